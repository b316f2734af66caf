//! What a site shows its own gateways: its own rows, and those that it pulled from peers. Read by hand, so every metric is
//! taken, each with its age by the site's own clock.
//!
//! Threat: the site may be hostile. The exposition's bounds hold; rows without a site, a provider or a stamp, and values
//! that are no numbers, are left out and counted. What is text in a row may be any text: whoever prints it cleans it.

use super::clock::EpochMs;
use super::counts::Counts;
use super::exposition::{Flaw, Item, Limits, Reader, Sample};
use super::reading::{AnswerError, Refusal, age, row};
use super::row::{Row, SITE};
use crate::words::NodeName;

/// A site's answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    /// Its rows with their ages in milliseconds, in the order of [`Row::order`].
    pub rows: Vec<(Row, u64)>,
    /// Rows that were read and left out.
    pub refused: Counts<Refusal>,
    /// Lines that could not be read.
    pub flaws: Counts<Flaw>,
}

/// Reads an answer; `date` is its header of that name, if it had exactly one.
///
/// # Errors
/// When the body is over its bound, or there is no date.
pub fn read(body: &[u8], date: Option<&str>, limits: Limits) -> Result<Shown, AnswerError> {
    let mut reader = Reader::new(body, limits)?;
    let date = date
        .and_then(EpochMs::from_http_date)
        .ok_or(AnswerError::NoDate)?;
    let mut shown = Shown::default();
    while let Some(item) = reader.next_item() {
        let Item::Sample(sample) = item else { continue };
        match one(&sample, date) {
            Ok(row) => shown.rows.push(row),
            Err(refusal) => shown.refused.add(refusal),
        }
    }
    shown.rows.sort_by(|(one, _), (other, _)| one.order(other));
    shown.flaws = reader.into_flaws();
    Ok(shown)
}

fn one(sample: &Sample<'_, '_>, date: EpochMs) -> Result<(Row, u64), Refusal> {
    let site = sample.labels.iter().find(|label| label.name == SITE);
    let site = site.and_then(|label| NodeName::new(&label.value).ok());
    let site = site.ok_or(Refusal::Site)?;
    if !sample.value.is_finite() {
        return Err(Refusal::Value);
    }
    let age = age(sample, date)?;
    let row = row(&site, sample, date.before(age))?;
    Ok((row, u64::try_from(age).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    #[test]
    fn rows_of_every_site_come_with_their_ages_and_what_makes_no_sense_is_counted() {
        let body = "x{grid_provider=\"b\",grid_site=\"borealis\"} 2 784111775000\n\
                    anything{grid_provider=\"a\",grid_site=\"atlas\",m=\"\u{1b}[31m\"} 1.5 784111777500\n\
                    y{grid_provider=\"a\"} 1 784111777000\n\
                    y{grid_provider=\"a\",grid_site=\"atlas\"} NaN 784111777000\n\
                    y{grid_provider=\"a\",grid_site=\"atlas\"} 1\n\
                    y{grid_provider=\"a\",grid_site=\"atlas\"} 1 784111779000\n\
                    nonsense{\n";
        let shown = read(body.as_bytes(), Some(DATE), Limits::CONTRACT).unwrap();
        let told: Vec<String> = shown
            .rows
            .iter()
            .map(|(row, age)| {
                format!(
                    "{} {} {} {} {age}",
                    row.site, row.provider, row.name, row.value
                )
            })
            .collect();
        assert_eq!(told, ["atlas a anything 1.5 0", "borealis b x 2 2000"]);
        let refused: Vec<(&str, u64)> =
            shown.refused.iter().map(|(r, n)| (r.as_str(), n)).collect();
        assert_eq!(
            refused,
            [("site", 1), ("value", 1), ("no_stamp", 1), ("future", 1)]
        );
        assert_eq!(shown.flaws.iter().count(), 1);
        assert_eq!(read(b"", None, Limits::CONTRACT), Err(AnswerError::NoDate));
    }
}
