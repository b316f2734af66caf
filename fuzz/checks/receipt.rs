//! What a machine says in a delivery: the protocol of its receipt, in whatever pieces it arrives. The first byte says
//! how large these are.

#[allow(dead_code, reason = "the messages are looked at whole")]
#[path = "../../src/delivery/message.rs"]
mod message;
#[path = "../../src/delivery/protocol.rs"]
mod protocol;

/// Where the parser looks for what it takes secrets out with.
mod redact {
    pub use grid::delivery::Secrets;
}

use message::Message;
use protocol::{Garbage, Parser};

/// The bounds of `protocol.rs`, stated once more: this is what they are held to.
const TEXT: usize = 500;
const NOISE: usize = 64 * 1024;
const LINES: usize = 1024 * 1024;
const FRAMES: usize = 16 * 1024 * 1024;

/// # Panics
/// When it depends on the pieces what is heard, or something passes a bound or reaches a terminal as it came.
pub fn check(data: &[u8]) {
    let Some((first, said)) = data.split_first() else {
        return;
    };
    let whole = hear(said.chunks(said.len().max(1)));
    let pieces = hear(said.chunks(usize::from(*first).max(1)));
    assert_eq!(whole, pieces);

    let (messages, garbage) = whole;
    let (mut noise, mut framed, mut begun) = (0, 0, false);
    for message in &messages {
        match message {
            Message::Noise(text) => {
                assert!(!begun);
                noise += 1;
                shown(text);
            }
            Message::Hello => {
                assert!(!begun);
                begun = true;
            }
            Message::Frame(_, bytes) => framed += bytes.len(),
            Message::Out { line: text, .. }
            | Message::Mended(text)
            | Message::Note(text)
            | Message::Log(text)
            | Message::Fail { cause: text, .. }
            | Message::Fenced(Some(text))
            | Message::Token(Some(text)) => shown(text),
            Message::Step { step, .. } => {
                assert!((1..=32).contains(&step.len()));
                shown(step);
            }
            _ => {}
        }
        assert!(begun || matches!(message, Message::Noise(_)));
    }
    // Each message is a line at least, and frames are bytes that were sent.
    assert!(noise <= NOISE && framed <= FRAMES.min(said.len()));
    assert!(messages.len() <= said.len().min(LINES));
    if let Some(garbage) = garbage {
        shown(&garbage.to_string());
    }
}

/// Fit for a terminal.
fn shown(text: &str) {
    assert!(text.chars().count() <= TEXT + 100, "{text}");
    assert!(!text.contains(char::is_control), "{text:?}");
    assert!(
        !text.contains(['\u{202e}', '\u{2066}', '\u{200f}']),
        "{text:?}"
    );
}

fn hear<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Message>, Option<Garbage>) {
    let mut parser = Parser::default();
    let mut heard = Vec::new();
    for piece in pieces {
        parser.push(piece);
        loop {
            match parser.next() {
                Ok(Some(message)) => heard.push(message),
                Ok(None) => break,
                Err(garbage) => return (heard, Some(garbage)),
            }
        }
    }
    (heard, None)
}
