//! The headers of a report: any bytes, one header a line.

use grid::evidence::headers::{parse, write};

/// The longest that a refusal may be, in bytes: nothing of what was sent is repeated in it.
const SAID: usize = 200;

/// # Panics
/// When something other than the one spelling of a report is taken, or a refusal depends on what it should not.
pub fn check(data: &[u8]) {
    let headers: Vec<(&str, &[u8])> = data
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let at = line.iter().position(|&byte| byte == b':')?;
            let name = std::str::from_utf8(&line[..at]).ok()?;
            let value = &line[at + 1..];
            Some((name, value.strip_prefix(b" ").unwrap_or(value)))
        })
        .collect();
    let read = parse(headers.iter().copied());

    // Neither their order nor the case of their names says anything.
    let upper: Vec<(String, &[u8])> = headers
        .iter()
        .rev()
        .map(|(name, value)| (name.to_ascii_uppercase(), *value))
        .collect();
    let again = parse(upper.iter().map(|(name, value)| (name.as_str(), *value)));
    assert_eq!(read, again);

    match read {
        Ok(report) => {
            let written = write(&report);
            for (header, value) in &written {
                let mut given = headers
                    .iter()
                    .filter(|(name, _)| name.eq_ignore_ascii_case(header.name()));
                assert_eq!(
                    given.next().map(|(_, value)| *value),
                    Some(value.as_bytes())
                );
                assert_eq!(given.next(), None);
            }
            let back = written
                .iter()
                .map(|(header, value)| (header.name(), value.as_bytes()));
            assert_eq!(parse(back).as_ref(), Ok(&report));
            assert!(
                !report.clean() || (report.sequence() < u64::MAX && report.rejected() < u64::MAX)
            );
        }
        Err(refusal) => {
            assert!([400, 431].contains(&refusal.status()));
            let said = refusal.to_string();
            assert!(
                said.len() < SAID && !said.contains(char::is_control),
                "{said}"
            );
        }
    }
}
