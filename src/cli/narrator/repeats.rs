//! Lines that repeat, as a check that is tried again and again prints them: each is shown once, and how often it came.

/// The most lines that are taken for what a command says each time it is run.
const BLOCK_MOST: usize = 5;

/// Lines, and how often each stands there in a row; of lines that repeat as a block, the block once, and how often it
/// stood there: a check that is tried again and again says the same.
pub(super) fn runs(lines: &[String]) -> Vec<(&str, usize)> {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    let mut rest = lines;
    while let Some((line, further)) = rest.split_first() {
        let repeated = (1..=BLOCK_MOST)
            .map(|length| (length, repeats(rest, length)))
            .find(|(_, times)| *times > 1);
        match repeated {
            Some((length, times)) => {
                let (block, _) = rest.split_at(length);
                runs.extend(block.iter().map(|line| (line.as_str(), times)));
                rest = rest.get(length.saturating_mul(times)..).unwrap_or_default();
            }
            None => {
                runs.push((line, 1));
                rest = further;
            }
        }
    }
    runs
}

/// How often the first `length` lines stand there in a row.
fn repeats(lines: &[String], length: usize) -> usize {
    let block = lines.get(..length);
    let mut blocks = lines.chunks_exact(length);
    let times = blocks.by_ref().take_while(|other| Some(*other) == block);
    times.count()
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn what_a_check_says_again_and_again_is_shown_once() {
        let shown = |text: &str| {
            let lines: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let runs: Vec<String> = runs(&lines)
                .into_iter()
                .map(|(line, times)| format!("{line}{times}"))
                .collect();
            runs.join(" ")
        };
        assert_eq!(shown("a b a c"), "a1 b1 a1 c1");
        assert_eq!(shown("x a a a b"), "x1 a3 b1");
        assert_eq!(shown("x a b a b a b y"), "x1 a3 b3 y1");
        assert_eq!(shown("a b c d e f g"), "a1 b1 c1 d1 e1 f1 g1");
    }
}
