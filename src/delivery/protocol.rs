//! What the machine side says, line by line.
//!
//! Threat: the machine may be hostile or broken. A line has at most 8 KiB, all lines together one MiB, all framed
//! bytes 16 MiB; a word that is not known, a value that is none of its kind, or a frame that is too long ends the
//! conversation. What each line says is read in `message`.

use super::message::{Framed, Message, clean, frame, message};

/// The version that this grid and its script speak.
const HELLO: &str = "grid-receive 1";
/// The longest line, in bytes.
const LONGEST_LINE: usize = 8 * 1024;
/// All lines of a conversation, in bytes.
const ALL_LINES: usize = 1024 * 1024;
/// All frames of a conversation, in bytes.
const ALL_FRAMES: usize = 16 * 1024 * 1024;
/// What a login shell may print before the script says hello, in bytes.
const NOISE: usize = 64 * 1024;
/// What came back makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Garbage {
    #[error("a line is longer than {LONGEST_LINE} bytes")]
    LongLine,
    #[error("it says more than {ALL_LINES} bytes")]
    TooMuch,
    #[error("a frame is longer than all may be together, {ALL_FRAMES} bytes")]
    LongFrame,
    #[error("a frame does not end where it should")]
    Frame,
    #[error("more than {NOISE} bytes came before the machine side spoke; the last line: {0}")]
    Noise(String),
    #[error("not understood: {0}")]
    Line(String),
}

/// Takes bytes, gives messages.
#[derive(Debug, Default)]
pub(super) struct Parser {
    bytes: Vec<u8>,
    /// How far `bytes` is read.
    at: usize,
    /// How far `bytes` is known to hold no newline.
    searched: usize,
    begun: bool,
    noise: usize,
    lines: usize,
    frames: usize,
    frame: Option<(Framed, usize)>,
}

impl Parser {
    /// Takes what was read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 && self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
            self.searched = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message; `None`: more bytes are needed.
    ///
    /// # Errors
    /// When there is no sense in it. The conversation is over then.
    pub(super) fn next(&mut self) -> Result<Option<Message>, Garbage> {
        if let Some((framed, size)) = self.frame.take() {
            return self.frame(framed, size);
        }
        let unread = self.bytes.get(self.at..).unwrap_or_default();
        let skip = self.searched.saturating_sub(self.at).min(unread.len());
        let Some(found) = unread
            .get(skip..)
            .and_then(|rest| rest.iter().position(|&b| b == b'\n'))
        else {
            self.searched = self.bytes.len();
            if unread.len() > LONGEST_LINE {
                return Err(Garbage::LongLine);
            }
            return Ok(None);
        };
        let length = skip.saturating_add(found);
        if length > LONGEST_LINE {
            return Err(Garbage::LongLine);
        }
        self.lines = self.lines.saturating_add(length).saturating_add(1);
        if self.lines > ALL_LINES {
            return Err(Garbage::TooMuch);
        }
        let line = String::from_utf8_lossy(unread.get(..length).unwrap_or_default()).into_owned();
        self.at = self.at.saturating_add(length).saturating_add(1);
        self.searched = self.at;
        if self.at > ALL_LINES {
            self.bytes.drain(..self.at);
            (self.at, self.searched) = (0, 0);
        }
        if !self.begun {
            return self.before(&line).map(Some);
        }
        if let Some(rest) = line.strip_prefix("frame ") {
            let (framed, size) = frame(rest).ok_or_else(|| Garbage::Line(clean(&line)))?;
            self.frames = self.frames.saturating_add(size);
            if self.frames > ALL_FRAMES {
                return Err(Garbage::LongFrame);
            }
            return self.frame(framed, size);
        }
        message(&line)
            .map(Some)
            .ok_or_else(|| Garbage::Line(clean(&line)))
    }

    fn before(&mut self, line: &str) -> Result<Message, Garbage> {
        if line == HELLO {
            self.begun = true;
            return Ok(Message::Hello);
        }
        self.noise = self.noise.saturating_add(line.len()).saturating_add(1);
        if self.noise > NOISE {
            return Err(Garbage::Noise(clean(line)));
        }
        Ok(Message::Noise(clean(line)))
    }

    fn frame(&mut self, framed: Framed, size: usize) -> Result<Option<Message>, Garbage> {
        let end = self.at.saturating_add(size);
        let Some(&after) = self.bytes.get(end) else {
            self.frame = Some((framed, size));
            return Ok(None);
        };
        if after != b'\n' {
            return Err(Garbage::Frame);
        }
        let bytes = self.bytes.get(self.at..end).unwrap_or_default().to_vec();
        self.at = end.saturating_add(1);
        self.searched = self.at;
        Ok(Some(Message::Frame(framed, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::Ending;
    use super::*;
    use crate::words::ServiceName;

    fn read(bytes: &[u8]) -> Result<Vec<Message>, Garbage> {
        let mut parser = Parser::default();
        parser.push(bytes);
        let mut messages = Vec::new();
        while let Some(message) = parser.next()? {
            messages.push(message);
        }
        Ok(messages)
    }

    fn after_hello(rest: &[u8]) -> Result<Vec<Message>, Garbage> {
        let mut bytes = b"grid-receive 1\n".to_vec();
        bytes.extend_from_slice(rest);
        read(&bytes).map(|mut messages| messages.split_off(1))
    }

    #[test]
    fn what_a_login_shell_prints_before_is_noise_and_not_believed() {
        assert_eq!(
            read(b"Welcome\nend applied\ngrid-receive 1\nend applied\n").unwrap(),
            [
                Message::Noise("Welcome".into()),
                Message::Noise("end applied".into()),
                Message::Hello,
                Message::End(Ending::Applied)
            ]
        );
        let flood = read("x\n".repeat(NOISE).as_bytes());
        assert_eq!(flood, Err(Garbage::Noise("x".into())));
    }

    #[test]
    fn no_escape_sequence_and_no_invalid_utf_8_comes_through() {
        assert_eq!(
            after_hello(b"out web \x1b[31mred\x07\xff\xc2\x9b\xe2\x80\xae\n").unwrap(),
            [Message::Out {
                service: ServiceName::new("web").unwrap(),
                line: "\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}\u{fffd}".into()
            }]
        );
    }

    #[test]
    fn a_frame_is_bytes_and_not_lines() {
        let web = ServiceName::new("web").unwrap();
        assert_eq!(
            after_hello(b"frame list web 12\nend applied\n\nend refused\n").unwrap(),
            [
                Message::Frame(Framed::List(web), b"end applied\n".to_vec()),
                Message::End(Ending::Refused)
            ]
        );
        assert_eq!(
            after_hello(b"frame manifest - 1\nxx\n"),
            Err(Garbage::Frame)
        );
        assert_eq!(
            after_hello(b"frame manifest - 99999999\n"),
            Err(Garbage::LongFrame)
        );
    }

    #[test]
    fn what_is_not_of_the_protocol_is_refused() {
        for line in [
            "end",
            "end won",
            "applied ../x",
            "loaded",
            "loaded broker twice",
            "step APPLY web 3",
            "step apply web",
            "step apply web -3",
            "hello",
            "want",
            "current 12",
            "busy now",
            "differing some",
            "fail apply web",
            "frame list - 3",
        ] {
            let bytes = format!("{line}\n");
            assert!(after_hello(bytes.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused() {
        assert_eq!(after_hello(&[b'x'; 9000]), Err(Garbage::LongLine));
        let many = "note x\n".repeat(200_000);
        assert_eq!(after_hello(many.as_bytes()), Err(Garbage::TooMuch));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let mut parser = Parser::default();
            parser.push(b"grid-receive 1\n");
            for chunk in chunks {
                parser.push(&chunk);
                while let Ok(Some(_)) = parser.next() {}
            }
        }

        #[test]
        fn lines_like_those_of_the_protocol_are_read_the_same_however_they_are_cut(
            lines in prop::collection::vec("(step|out|fail|frame|end|applied|loaded|note|log|want|token)( [ -~é\u{1b}]{0,12}| web| -| [0-9]{1,3}){0,4}", 0..20),
            cut in 1_usize..40,
        ) {
            let mut bytes = b"grid-receive 1\n".to_vec();
            for line in lines {
                bytes.extend_from_slice(line.as_bytes());
                bytes.push(b'\n');
            }
            let whole = collect(&[&bytes]);
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(whole, collect(&pieces));
        }
    }

    fn collect(pieces: &[&[u8]]) -> Vec<Result<Message, Garbage>> {
        let mut parser = Parser::default();
        let mut all = Vec::new();
        for piece in pieces {
            parser.push(piece);
            loop {
                match parser.next() {
                    Ok(Some(message)) => all.push(Ok(message)),
                    Ok(None) => break,
                    Err(garbage) => {
                        all.push(Err(garbage));
                        return all;
                    }
                }
            }
        }
        all
    }
}
