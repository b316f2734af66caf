use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

mod dear;

/// What a body holds, a line an item, flaws last.
fn read(body: impl AsRef<[u8]>) -> String {
    let mut reader = Reader::new(body.as_ref(), Limits::CONTRACT).unwrap();
    let mut text = String::new();
    while let Some(item) = reader.next_item() {
        match item {
            Item::Type { name, kind } => writeln!(text, "type {name} {kind:?}").unwrap(),
            Item::Sample(sample) => {
                write!(text, "{}", sample.name).unwrap();
                for Label { name, value } in sample.labels {
                    write!(text, " {name}={value:?}").unwrap();
                }
                write!(text, " -> {}", sample.value).unwrap();
                if let Some(stamp) = sample.stamp {
                    write!(text, " at {}", stamp.get()).unwrap();
                }
                text.push('\n');
            }
        }
    }
    for (flaw, count) in reader.flaws().iter() {
        writeln!(text, "{} {count}", flaw.as_str()).unwrap();
    }
    text
}

fn flaw(line: &str) -> String {
    read(format!("{line}\n"))
}

#[test]
fn a_body_as_exporters_write_it_is_read() {
    let body = "\
# HELP queue_size The number\\nof waiting requests.
# TYPE queue_size gauge
queue_size{name=\"pool-a\",zone=\"b\"} 12 1700000000123
queue_size { zone = \"a\" , name=\"pool-a\", } 1.5e1
# a comment of nobody

\tvllm:num_requests_waiting{model_name=\"m\"}\t3
plain 4
latency{quantile=\"0.5\"} NaN -62135596800000
up{} +Inf
# TYPE plain untyped
# TYPE odd stateset
";
    insta::assert_snapshot!(read(body), @r#"
    type queue_size Gauge
    queue_size name="pool-a" zone="b" -> 12 at 1700000000123
    queue_size name="pool-a" zone="a" -> 15
    vllm:num_requests_waiting model_name="m" -> 3
    plain -> 4
    latency quantile="0.5" -> NaN at -62135596800000
    up -> inf
    type plain Untyped
    type odd Other
    "#);
}

#[test]
fn label_values_hold_braces_quotes_backslashes_and_newlines() {
    let body = r#"m{a="} 1",b="\"{\\\n",c="",d="é, =",e="C:\\dir\\"} 7
"#;
    insta::assert_snapshot!(read(body), @r#"m a="} 1" b="\"{\\\n" c="" d="é, =" e="C:\\dir\\" -> 7"#);
}

#[test]
fn a_line_that_is_not_the_format_is_left_out_and_those_around_it_are_read() {
    for wrong in [
        "m",
        "m{",
        "m{}",
        "m{a}",
        "m{a=} 1",
        "m{a=b} 1",
        "m{a=\"b} 1",
        "m{a=\"b\\\"} 1",
        "m{a=\"b\\t\"} 1",
        "m{a=\"b\"",
        "m{a=\"b\" c=\"d\"} 1",
        "m{,} 1",
        "m{a=\"b\",,} 1",
        "m{\"utf.8\"} 1",
        "m{a:b=\"c\"} 1",
        "m{1a=\"c\"} 1",
        "1m 1",
        "m-n 1",
        "m 1 2 3",
        "m 1 2 # no comment here",
        "{a=\"b\"} 1",
        "é 1",
        "m\u{b}1",
    ] {
        let body = format!("before 1\n{wrong}\nafter 2\n");
        assert_eq!(
            read(body),
            "before -> 1\nafter -> 2\nsyntax 1\n",
            "{wrong:?}"
        );
    }
}

#[test]
fn each_flaw_has_its_own_reason() {
    assert_eq!(flaw("m one"), "value 1\n");
    assert_eq!(flaw("m 1e999"), "value 1\n");
    assert_eq!(flaw("m 1\r"), "value 1\n");
    assert_eq!(flaw("m 1 1.5"), "timestamp 1\n");
    assert_eq!(flaw("m 1 9223372036854775808"), "timestamp 1\n");
    assert_eq!(flaw("m 1 -9223372036854775809"), "timestamp 1\n");
    assert_eq!(
        flaw("m 1 9223372036854775807"),
        "m -> 1 at 9223372036854775807\n"
    );
    assert_eq!(flaw("m{a=\"1\",b=\"2\",a=\"1\"} 1"), "repeated_label 1\n");
    assert_eq!(flaw("# TYPE m"), "type 1\n");
    assert_eq!(flaw("# TYPE m gauge x"), "type 1\n");
    assert_eq!(flaw("# TYPE m- gauge"), "type 1\n");
    assert_eq!(flaw("#TYPE m"), "");
    assert_eq!(flaw("# HELP"), "");
    assert_eq!(read(b"m{a=\"\xff\"} 1\nm 2\n"), "m -> 2\nnot_utf8 1\n");
    assert_eq!(read(b" # \xff\nm 2\n"), "m -> 2\n");
}

#[test]
fn a_last_line_that_broke_off_is_left_out() {
    assert_eq!(read("m 1\nm 12"), "m -> 1\nunterminated 1\n");
    assert_eq!(read("m 1\n \t"), "m -> 1\n");
    assert_eq!(read(""), "");
    assert_eq!(read("\n\n"), "");
}

#[test]
fn every_bound_holds_at_its_edge() {
    let limits = Limits::CONTRACT;
    let name = "n".repeat(limits.name);
    assert_eq!(flaw(&format!("{name} 1")), format!("{name} -> 1\n"));
    assert_eq!(flaw(&format!("{name}n 1")), "name_too_long 1\n");
    assert_eq!(flaw(&format!("m{{{name}n=\"\"}} 1")), "name_too_long 1\n");
    assert_eq!(flaw(&format!("# TYPE {name}n gauge")), "name_too_long 1\n");

    let labels = |count: usize| {
        let labels: Vec<String> = (0..count).map(|n| format!("l{n:02}=\"\"")).collect();
        format!("m{{{}}} 1", labels.join(","))
    };
    assert_eq!(flaw(&labels(limits.labels)).matches("l").count(), 64);
    assert_eq!(flaw(&labels(limits.labels + 1)), "too_many_labels 1\n");

    let line = |length: usize| format!("m{{a=\"{}\"}} 1", "x".repeat(length - 9));
    assert!(flaw(&line(limits.line)).starts_with("m a="));
    assert_eq!(flaw(&line(limits.line + 1)), "line_too_long 1\n");

    let samples = "m 1\n".repeat(limits.samples + 2);
    let mut reader = Reader::new(samples.as_bytes(), limits).unwrap();
    let mut read = 0;
    while reader.next_item().is_some() {
        read += 1;
    }
    assert_eq!(read, limits.samples);
    assert_eq!(reader.flaws().of(Flaw::TooManySamples), 2);

    assert!(Reader::new(&vec![b'\n'; limits.body], limits).is_ok());
    let error = Reader::new(&vec![b'\n'; limits.body + 1], limits).unwrap_err();
    insta::assert_snapshot!(error, @"the metrics are 1048577 bytes, and at most 1048576 are read");
}

#[test]
fn bodies_made_to_be_dear_are_read_to_their_end() {
    for (name, body) in dear::bodies(Limits::CONTRACT.body / 8) {
        let lines = body.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
        let mut reader = Reader::new(body.as_bytes(), Limits::CONTRACT).unwrap();
        let mut items = 0;
        while reader.next_item().is_some() {
            items += 1;
        }
        let left_out = reader.flaws().total();
        assert!(items + left_out <= lines, "{name}: {items} {left_out}");
        assert_eq!(items + left_out > 0, name != "newlines", "{name}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic_or_go_past_a_bound(
        body in proptest::collection::vec(
            prop_oneof![
                4 => proptest::sample::select(&b"m{a=\"\\n\",} 1e+.#TYPE\n\t "[..]),
                1 => any::<u8>(),
            ],
            0..2000,
        ),
    ) {
        let limits = Limits { body: 2000, line: 60, labels: 2, samples: 20, name: 4 };
        let lines = body.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let mut reader = Reader::new(&body, limits).unwrap();
        let (mut items, mut samples) = (0, 0);
        while let Some(item) = reader.next_item() {
            items += 1;
            if let Item::Sample(sample) = item {
                samples += 1;
                prop_assert!(sample.name.len() <= limits.name);
                prop_assert!(sample.labels.len() <= limits.labels);
                for label in sample.labels {
                    prop_assert!(label.name.len() <= limits.name && label.value.len() <= limits.line);
                }
                let mut pairs = sample.labels.iter().zip(sample.labels.iter().skip(1));
                prop_assert!(pairs.all(|(first, second)| first.name < second.name));
            }
        }
        prop_assert!(samples <= limits.samples);
        prop_assert!(items + reader.flaws().total() <= lines);
    }
}
