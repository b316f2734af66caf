#!/usr/bin/env python3
"""Takes one clause at a time out of the rules and out of the push (clauses.py), and runs the simulation against what is left.

    run.py SCRATCH [HISTORIES] [CLAUSE…]

All clauses are put into one copy of the package below SCRATCH, each behind a number in the environment, so that the copy is compiled
once. A text that is not found, or is found twice, is an error: then the sources changed, and clauses.py has to follow.
Prints the table of README.md; exits 1 if a clause survives, or if the copy fails with every clause in its place."""
import os, pathlib, re, shutil, subprocess, sys
from clauses import CLAUSES

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANT = """
/// Which clause is out.
#[must_use]
pub fn mutant(number: u32) -> bool {
    static OUT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *OUT.get_or_init(|| std::env::var("GRID_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) == number
}
"""


def copy(scratch):
    for name in ("src", "tests", "Cargo.toml", "Cargo.lock", "man", "completions", "schemas", "examples", "benches"):
        source, target = ROOT / name, scratch / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)
        elif source.is_file():
            shutil.copy(source, target)
    for number, (clause, path, old, new) in enumerate(CLAUSES, 1):
        file = scratch / path
        text = file.read_text()
        found = text.count(old)
        if found != (3 if old == "!self.failed.contains_key(" else 1): sys.exit(f"{clause}: found {found} times in {path}: {old!r}")
        if "holders\n" in old:  # the statement that follows goes with it
            end = text.index(";", text.index(old) + len(old)) + 1
            text = text[:end] + " }" + text[end:]
        text = text.replace(old, new.replace("OLD", old).replace("MUT", f"crate::mutant({number})"))
        file.write_text(text)
    lib = scratch / "src/lib.rs"
    lib.write_text(lib.read_text() + MUTANT)


def build(scratch):
    environment = dict(os.environ, CARGO_PROFILE_DEV_OPT_LEVEL="2", CARGO_PROFILE_DEV_DEBUG="0")
    built = subprocess.run(["cargo", "test", "--test", "simulation", "--no-run"], cwd=scratch, env=environment, capture_output=True, text=True)
    if built.returncode: sys.exit(built.stderr[built.stderr.find("\nerror"):])
    return scratch / re.search(r"Executable .*\((.*)\)", built.stderr)[1]


def run(binary, number, histories):
    environment = dict(os.environ, GRID_MUTANT=str(number), GRID_SIM_HISTORIES=str(histories), GRID_SIM_SHRINK="0", RUST_BACKTRACE="0")
    try:
        ran = subprocess.run([binary, "--nocapture"], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    except subprocess.TimeoutExpired:
        return "it never ends", []
    text = ran.stdout + ran.stderr
    property_ = re.search(r"after (\d+) histories: history \d+ breaks an invariant: (.*)", text)
    missed = re.search(r"no history covered (.*)", text)
    counted = sorted(set(re.findall(r"^test (?:progress|deaths)::(\w+).*FAILED", text, re.M)) | set(re.findall(r"^    (?:progress|deaths)::(\w+)$", text, re.M)))
    if property_: return f"{property_[1]}: {property_[2]}", counted
    if missed: return f"{histories}: nothing is seen of {missed[1]}", counted
    if ran.returncode and not counted: return "it panics: " + text[-300:].replace("\n", " "), counted
    return None, counted


def main():
    scratch = pathlib.Path(sys.argv[1]).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    histories = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    chosen = {int(n) for n in sys.argv[3:]} or set(range(1, len(CLAUSES) + 1))
    copy(scratch)
    binary = build(scratch)
    whole, counted = run(binary, 0, 1000)
    if whole or counted: sys.exit(f"with every clause in its place: {whole} {counted}")
    print("| | clause taken out | the property fails after … histories | tests that count waits and rounds |")
    print("|---|---|---|---|", flush=True)
    survivors = 0
    for number, (clause, *_) in enumerate(CLAUSES, 1):
        if number not in chosen: continue
        why, counted = run(binary, number, histories)
        survivors += why is None
        cell = "**SURVIVES**" if why is None else re.sub(r"[|\n]", " ", why)[:170]
        named = counted[0].replace("_", " ") + (f" (and {len(counted) - 1} more)" if len(counted) > 1 else "") if counted else ""
        print(f"| {number} | {clause} | {cell} | {named} |", flush=True)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
