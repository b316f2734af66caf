//! A line as it was typed into bash: its words, and how a word is written there.

/// The words of a line; the last one is the one under the cursor, and empty after a blank. What is quoted and not
/// closed yet is a word all the same.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    let mut is_blank = true;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let (begins, literal) = match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                (true, None)
            }
            (_, Some(open)) if letter == open => {
                quote = None;
                (true, None)
            }
            ('\\', None | Some('"')) => (true, letters.next()),
            (' ' | '\t' | '\n', None) => (false, None),
            _ => (true, Some(letter)),
        };
        if begins && is_blank && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        is_blank = !begins;
        if let (Some(literal), Some(word)) = (literal, words.last_mut()) {
            word.push(literal);
        }
    }
    if is_blank && words.last().is_some_and(|word| !word.is_empty()) {
        words.push(String::new());
    }
    words
}

/// A word as bash takes it for one.
pub(super) fn escaped(word: &str) -> String {
    let is_plain = |letter: char| {
        letter.is_alphanumeric()
            || matches!(
                letter,
                '/' | '@' | '.' | ',' | '_' | '-' | '+' | '=' | ':' | '%' | '~'
            )
    };
    word.chars().fold(String::new(), |mut text, letter| {
        if !is_plain(letter) {
            text.push('\\');
        }
        text.push(letter);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_bash_splits_it() {
        assert_eq!(words("grid push at"), ["grid", "push", "at"]);
        assert_eq!(words("grid  push "), ["grid", "push", ""]);
        assert_eq!(words("grid --mesh=a:b @e"), ["grid", "--mesh=a:b", "@e"]);
        assert_eq!(words(r#"grid push "at"#), ["grid", "push", "at"]);
        assert_eq!(
            words(r"grid --mesh a\ b 'c d'"),
            ["grid", "--mesh", "a b", "c d"]
        );
        assert_eq!(words(""), [""]);
    }

    #[test]
    fn what_would_break_a_word_is_escaped() {
        assert_eq!(escaped("broker/billing"), "broker/billing");
        assert_eq!(escaped("@eu"), "@eu");
        assert_eq!(escaped("a b;c"), r"a\ b\;c");
    }
}
