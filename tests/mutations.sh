#!/bin/sh
# Proves the simulation: without any one clause of the rules, it fails. Prints the table of tests/mutations/README.md.
#   tests/mutations.sh [HISTORIES] [CLAUSE...]       (1000, all)   needs python3 and cargo; SCRATCH is where the copy is built
set -eu
cd "$(dirname "$0")/.."
exec python3 -B tests/mutations/run.py "${SCRATCH:-target/mutations}" "$@"
