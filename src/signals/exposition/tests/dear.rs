//! Bodies made to be dear: many short lines, labels in falling order, escapes, digits without end, half lines. They are
//! read in a test, and timed by `cargo bench --bench exposition`.

/// The bodies, each of nearly `length` bytes, by name.
pub(crate) fn bodies(length: usize) -> Vec<(&'static str, String)> {
    let repeated = |line: &str| line.repeat(length / line.len());
    let falling: Vec<String> = (10..74).rev().map(|n| format!("a{n}=\"\"")).collect();
    let escapes = format!("m{{a=\"{}\"}} 1\n", "\\\\".repeat(8000));
    vec![
        (
            "usual",
            repeated(
                "llm_d_epp_average_queue_size{name=\"pool-a\",namespace=\"models\"} 12.75 1700000000123\n",
            ),
        ),
        ("short", repeated("a 1\n")),
        ("newlines", repeated("\n")),
        ("one line", repeated("a")),
        (
            "labels",
            repeated(&format!("m{{{}}} 1\n", falling.join(","))),
        ),
        ("escapes", repeated(&escapes)),
        ("quotes", repeated("m{a=\"\\\"\\\"\\\"\\\"\"} 1\n")),
        (
            "halves",
            repeated("m 9007199254740993.00000000000000000000001e-290\n"),
        ),
        (
            "large",
            repeated("m 9007199254740993.00000000000000000000001e+290\n"),
        ),
        (
            "digits",
            repeated(&format!("m {}e-9\n", "7".repeat(16_000))),
        ),
        ("types", repeated("# TYPE m gauge\n")),
        ("open", repeated("m{a=\"\n")),
    ]
}
