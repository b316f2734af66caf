//! What a site showed, for people and as JSON.

use std::collections::BTreeMap;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::phrases::count;
use crate::cli::ui::{Line, Look};
use crate::cli::view::{SignalView, SignalsView};
use crate::site::Shown;
use crate::words::NodeName;

/// Tells what the site showed.
pub(super) fn tell(context: &mut Context, name: &NodeName, shown: &Shown) -> crate::cli::Result {
    let view = view(name, shown);
    if context.ui.json {
        context.ui.json(&view, false)?;
        return Ok(Exit::Done);
    }
    if view.signals.is_empty() {
        context
            .ui
            .chat(&Line::of(format!("{name} shows no signals")));
    }
    context.ui.results(&table(&view))?;
    if !view.left_out.is_empty() {
        let all: u64 = view.left_out.values().sum();
        let why: Vec<String> = view
            .left_out
            .iter()
            .map(|(reason, n)| format!("{reason} {n}"))
            .collect();
        let lines = count(usize::try_from(all).unwrap_or(usize::MAX), "line");
        let text = format!("{lines} made no sense and left out: {}", why.join(", "));
        context.ui.note(&Line::note(text));
    }
    Ok(Exit::Done)
}

fn view(name: &NodeName, shown: &Shown) -> SignalsView {
    let signals = shown.rows.iter().map(|(row, age)| SignalView {
        site: row.site.clone(),
        provider: row.provider.to_string(),
        metric: row.name.to_string(),
        labels: row
            .labels
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        value: row.value,
        age_ms: *age,
    });
    let refused = shown.refused.iter().map(|(why, n)| (why.as_str(), n));
    let flaws = shown.flaws.iter().map(|(why, n)| (why.as_str(), n));
    let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
    for (why, n) in refused.chain(flaws) {
        let all = left_out.entry(why.to_owned()).or_default();
        *all = all.saturating_add(n);
    }
    SignalsView {
        site: name.clone(),
        signals: signals.collect(),
        left_out,
    }
}

/// An age as people say it; whole units, since a `Date` has whole seconds.
fn age(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

fn table(view: &SignalsView) -> Vec<Line> {
    if view.signals.is_empty() {
        return Vec::new();
    }
    let metric = |signal: &SignalView| {
        let labels: Vec<String> = signal
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        match labels.is_empty() {
            true => signal.metric.clone(),
            false => format!("{}{{{}}}", signal.metric, labels.join(",")),
        }
    };
    let head = ["site", "provider", "metric", "value", "age"].map(str::to_owned);
    let rows = view.signals.iter().map(|signal| {
        [
            signal.site.to_string(),
            signal.provider.clone(),
            metric(signal),
            signal.value.to_string(),
            age(signal.age_ms),
        ]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).saturating_add(2)
    };
    let widths = [0, 1, 2, 3].map(width);
    let line = |(index, row): (usize, &[String; 5])| {
        let look = match index {
            0 => Look::Faint,
            _ => Look::Plain,
        };
        let [.., last] = row;
        let cells = row.iter().zip(widths);
        let line = cells.fold(Line::new(), |line, (cell, width)| {
            line.column(look, cell, width)
        });
        line.look(look, last)
    };
    rows.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::exposition::Limits;
    use crate::signals::own;

    #[test]
    fn a_site_cannot_steer_the_terminal_and_ages_are_told() {
        let body = "x{grid_provider=\"pool\",grid_site=\"atlas\"} 7 784111775000\n\
                    x{grid_provider=\"pool\",grid_site=\"borealis\",m=\"\u{1b}[31m\u{202e}\"} 0.25 784111177000\n\
                    x{grid_provider=\"pool\",grid_site=\"At las\"} 1 784111777000\n";
        let date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let shown = own::read(body.as_bytes(), date, Limits::CONTRACT).unwrap();
        let view = view(&NodeName::new("atlas").unwrap(), &shown);
        let lines: String = table(&view).iter().map(|line| line.styled(None)).collect();
        let plain = anstream::adapter::strip_str(&lines).to_string();
        insta::assert_snapshot!(plain, @r#"
        site      provider  metric                     value  age
        atlas     pool      x                          7      2 s
        borealis  pool      x{m="\u{1b}[31m\u{202e}"}  0.25   10 min
        "#);
        assert_eq!(view.left_out, BTreeMap::from([("site".to_owned(), 1)]));
        assert_eq!(
            [age(0), age(119_999), age(120_000), age(7_200_000)],
            ["0 s", "119 s", "2 min", "2 h"]
        );
    }
}
