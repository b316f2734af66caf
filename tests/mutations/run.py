#!/usr/bin/env python3
"""Takes one clause at a time out of the rules and out of the push (clauses.py), and runs the simulation against what is left.

    run.py SCRATCH [HISTORIES] [CLAUSE…]

All clauses are put into one copy of the package below SCRATCH, each behind a number in the environment, so that the copy is compiled
once. A text that is not found, or is found twice, is an error: then the sources changed, and clauses.py has to follow.
Prints the table of README.md; exits 1 if a clause survives the property and the tests that count, or if the copy fails with every clause in its place."""
import os, pathlib, re, subprocess, sys, time
from clauses import CLAUSES

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROPERTY = "one_push_leaves_the_mesh_consistent_in_every_history"
MUTANT = """
/// Which clause is out.
#[must_use]
pub fn mutant(number: u32) -> bool {
    static OUT: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *OUT.get_or_init(|| std::env::var("GRID_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) == number
}
"""


def sources():
    """The package with every clause behind its number: text by path."""
    texts = {}
    for name in ("src", "tests", "Cargo.toml", "Cargo.lock", "man", "completions", "schemas", "examples", "benches"):
        source = ROOT / name
        for file in [source] if source.is_file() else source.rglob("*"):
            if file.is_file(): texts[file.relative_to(ROOT)] = file.read_bytes()
    for number, (clause, path, old, new) in enumerate(CLAUSES, 1):
        text = texts[pathlib.Path(path)].decode()
        found = text.count(old)
        if found != (3 if old == "!self.failed.contains_key(" else 1): sys.exit(f"{clause}: found {found} times in {path}: {old!r}")
        texts[pathlib.Path(path)] = text.replace(old, new.replace("OLD", old).replace("MUT", f"crate::mutant({number})")).encode()
    texts[pathlib.Path("src/lib.rs")] += MUTANT.encode()
    return texts


def copy(scratch):
    """Writes what differs, so that what did not change is not compiled again."""
    texts = sources()
    for path, text in texts.items():
        target = scratch / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_file() or target.read_bytes() != text: target.write_bytes(text)
    for name in ("src", "tests"):
        for file in (scratch / name).rglob("*"):
            if file.is_file() and file.relative_to(scratch) not in texts: file.unlink()


def build(scratch):
    environment = dict(os.environ, CARGO_PROFILE_DEV_OPT_LEVEL="2", CARGO_PROFILE_DEV_DEBUG="0")
    built = subprocess.run(["cargo", "test", "--test", "simulation", "--no-run"], cwd=scratch, env=environment, capture_output=True, text=True)
    if built.returncode: sys.exit(built.stderr[built.stderr.find("\nerror"):])
    return scratch / re.search(r"Executable .*\((.*)\)", built.stderr)[1]


def execute(binary, number, histories, arguments, limit):
    """Exit code and text of the tests that `arguments` choose; without a code where they do not end within `limit` seconds."""
    environment = dict(os.environ, GRID_MUTANT=str(number), GRID_SIM_HISTORIES=str(histories), GRID_SIM_SHRINK="0", RUST_BACKTRACE="0")
    try:
        ran = subprocess.run([binary, "--nocapture", *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, ""
    return ran.returncode, ran.stdout + ran.stderr


def run(binary, number, histories, limit):
    """Why the property fails (absent: it does not), and which tests that count fail."""
    code, text = execute(binary, number, histories, ["--exact", PROPERTY], limit)
    property_ = re.search(r"after (\d+) histories: history \d+ breaks an invariant: (.*)", text)
    missed = re.search(r"no history covered (.*)", text)
    if code is None: why = f"a push never ends (stopped after {limit:.0f} s)"
    elif property_: why = f"{property_[1]}: {property_[2]}"
    elif missed: why = f"{histories}: nothing is seen of {missed[1]}"
    elif code: why = "it panics: " + text[-300:]
    else: why = None
    code, text = execute(binary, number, histories, ["--skip", PROPERTY], 60)
    counted = sorted(set(re.findall(r"^    (?:progress|deaths)::(\w+)$", text, re.M)))
    if code is None: counted = ["a push never ends"]
    return why, counted


def main():
    scratch = pathlib.Path(sys.argv[1]).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    histories = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    chosen = {int(n) for n in sys.argv[3:]} or set(range(1, len(CLAUSES) + 1))
    copy(scratch)
    binary = build(scratch)
    began = time.monotonic()
    whole, counted = run(binary, 0, histories, 3600)
    # Without a clause a history may take longer, but not ten times as long; what does is an endless push.
    limit = 30 + 10 * (time.monotonic() - began)
    if whole or counted: sys.exit(f"with every clause in its place: {whole} {counted}")
    print("| | clause taken out | the property fails after … histories | tests that count waits and rounds, or die at each step |")
    print("|---|---|---|---|", flush=True)
    survivors = 0
    for number, (clause, *_) in enumerate(CLAUSES, 1):
        if number not in chosen: continue
        why, counted = run(binary, number, histories, limit)
        survives = why is None and not counted
        survivors += survives
        cell = "**SURVIVES**" if survives else re.sub(r"[|\n]", " ", why or "(counted)")[:150]
        named = counted[0].replace("_", " ") + (f" (and {len(counted) - 1} more)" if len(counted) > 1 else "") if counted else ""
        print(f"| {number} | {clause} | {cell} | {named} |", flush=True)
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
