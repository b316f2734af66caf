//! The answer of `GET /v1/site/signals`: body, `Age` and `Date`, from one reading of the clock.
//!
//! Rows are written in the order in which they are given. What does not fit into the bound is left out from there on and
//! counted: a body that a poller refuses whole would tell it nothing.

use super::clock::EpochMs;
use super::exposition::Limits;
use super::query::Query;
use super::row::Row;

/// The answer's `Content-Type`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An answer of status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The lines.
    pub body: String,
    /// `Age`: the whole seconds of the oldest row; none where there is no row.
    pub age: Option<u64>,
    /// `Date`: of the reading by which `age` was measured.
    pub date: String,
    /// How many rows did not fit.
    pub left_out: u64,
}

/// Writes those of `rows` that `query` picks, as of `now`, into a body within `limits`.
pub fn respond<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    query: &Query,
    now: EpochMs,
    limits: Limits,
) -> Response {
    let mut body = String::new();
    let mut oldest: Option<EpochMs> = None;
    let (mut left_out, mut is_full) = (0_u64, false);
    for row in rows.into_iter().filter(|row| query.picks(row)) {
        let before = body.len();
        if !is_full {
            row.write(&mut body);
        }
        let line = body.len().saturating_sub(before);
        is_full |= body.len() > limits.body;
        // Its line feed is not of the line.
        if is_full || line.saturating_sub(1) > limits.line {
            body.truncate(before);
            left_out = left_out.saturating_add(1);
            continue;
        }
        oldest = Some(oldest.map_or(row.stamp, |stamp| stamp.min(row.stamp)));
    }
    Response {
        body,
        age: oldest.map(|stamp| stamp.age_at(now) / 1000),
        date: now.http_date(),
        left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::row::Labels;
    use crate::signals::sample::row;
    use crate::words::LabelName;

    const NOW: EpochMs = EpochMs::new(784_111_777_500);

    fn all(rows: &[Row]) -> Response {
        respond(rows, &Query::default(), NOW, Limits::CONTRACT)
    }

    #[test]
    fn an_answer_tells_the_age_of_its_oldest_row_in_whole_seconds() {
        let rows = [
            row("atlas", "broker", "queue_size", 3.0, 784_111_775_501),
            row("atlas", "pool", "queue_size", 4.5, 784_111_777_500),
        ];
        let response = all(&rows);
        insta::assert_snapshot!(response.body, @r#"
        queue_size{grid_provider="broker",grid_site="atlas"} 3 784111775501
        queue_size{grid_provider="pool",grid_site="atlas"} 4.5 784111777500
        "#);
        assert_eq!(response.age, Some(1));
        assert_eq!(response.date, "Sun, 06 Nov 1994 08:49:37 GMT");
        let younger = respond(
            &rows,
            &Query::parse("target=pool").unwrap(),
            NOW,
            Limits::CONTRACT,
        );
        assert_eq!(younger.age, Some(0));
    }

    #[test]
    fn an_answer_without_rows_is_empty_and_has_no_age() {
        let response = all(&[]);
        assert_eq!((response.body.as_str(), response.age), ("", None));
    }

    #[test]
    fn a_clock_that_jumped_back_makes_no_row_younger_than_zero() {
        let rows = [row("atlas", "broker", "queue_size", 3.0, NOW.get() + 5_000)];
        assert_eq!(all(&rows).age, Some(0));
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_counted() {
        let mut long = row("atlas", "a", "m", 1.0, 0);
        long.labels = Labels::new(vec![(
            LabelName::new("a").unwrap(),
            "x".repeat(Limits::CONTRACT.line).into(),
        )])
        .unwrap();
        let rows = [long, row("atlas", "b", "m", 1.0, NOW.get())];
        let response = all(&rows);
        assert_eq!(response.body.lines().count(), 1);
        assert_eq!((response.left_out, response.age), (1, Some(0)));

        let rows = vec![row("atlas", "broker", "queue_size", 3.0, 0); 20_000];
        let response = all(&rows);
        assert!(response.body.len() <= Limits::CONTRACT.body);
        assert!(response.body.ends_with('\n'));
        let lines = response.body.lines().count() as u64;
        assert_eq!(lines + response.left_out, 20_000);
        assert!(response.left_out > 0);
    }
}
