#!/usr/bin/env bash
# bed: kill -9 of the controller at every step of a push, and at 50 random moments: one push converges, no secret is lost
#
# A development build stops where GRID_STOP_AFTER says: after so many events of a push it writes the last
# one's name to GRID_STOP_FILE and waits to be killed.
. "$(dirname "$0")/bed.sh"
GRID=${GRID_DEV:-$BEDS/../../target/debug/grid}
RANDOM_KILLS=${RANDOM_KILLS:-50}
begin
machines atlas borealis
{
  mesh_head
  nodes
  listed broker '"atlas"'
  looks_up base broker '"borealis"'
} >"$MESH/mesh.toml"
grid 0 push --all
number=0

# A consumer that nobody has heard of yet, assigned: the plain case of a push. With an account of an earlier
# one rotated, so that a push has something to take away too.
next_consumer() {
  [ "$number" = 0 ] || grid 0 unassign "c$number"
  number=$((number + 1))
  looks_up "c$number" broker '' 'test = ["true"]
apply = ["true"]
remove = ["true"]' >>"$MESH/mesh.toml"
  grid 0 rotate broker/base
  sed -i "/^\[services.c$number\]/,/^nodes/ s/^nodes = .*/nodes = [\"borealis\"]/" "$MESH/mesh.toml"
}
secrets() { "$GRID" --mesh "$MESH" provisions --show-secrets --json 2>/dev/null; }
secret_lines() { # one line a generation: PROVISION GENERATION SECRET
  python3 -c '
import json, sys
for p in json.load(sys.stdin)["provisions"]:
    for g in p["generations"]:
        if g.get("secret"): print(p["provider"], p["consumer"], g["number"], g["secret"])'
}
# No machine is half switched: its current release is whole, and applied.
whole() {
  local node release
  for node in atlas borealis; do
    release=$B/machines/$node/current
    if [ ! -L "$release" ] || [ ! -e "$release/.applied" ]; then fail "$node is half switched: $1"; fi
    (cd "$release" && sha256sum --quiet -c sums) >"$OUT" 2>&1 || fail "$node has damaged files: $1"
  done
}
converges() { # WHAT
  secrets | secret_lines >"$B/before"
  grid 0 push borealis
  whole "$1"
  secrets | secret_lines >"$B/after"
  # Whoever was minted before and is still kept has the same secret.
  python3 - "$B/before" "$B/after" <<'P' || fail "a secret changed: $1"
import sys
before, after = ({tuple(l.split()[:3]): l.split()[3] for l in open(p)} for p in sys.argv[1:])
assert before, "nothing was minted"
changed = [k for k in before if k in after and after[k] != before[k]]
sys.exit(1 if changed else 0)
P
  grid 0 status --exit-code
  grid 0 push borealis
  matches '0 machines sent|nothing was sent'
}

# Which steps a push has.
next_consumer
steps=0
hit=()
while :; do
  steps=$((steps + 1))
  rm -f "$B/stopped"
  GRID_STOP_AFTER=$steps GRID_STOP_FILE=$B/stopped "$GRID" --mesh "$MESH" push borealis >"$B/killed.out" 2>&1 </dev/null &
  pid=$!
  until [ -e "$B/stopped" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
  if [ ! -e "$B/stopped" ]; then
    wait "$pid" || fail "the push failed by itself: $(tail -n 3 "$B/killed.out")"
    break
  fi
  step=$(cat "$B/stopped")
  kill -9 "$pid"
  wait "$pid" 2>/dev/null || :
  hit+=("$step")
  converges "killed after event $steps, $step"
  next_consumer
done
printf '%s\n' "${hit[@]}" | sort | uniq -c | sort -rn >"$B/hit"
for wanted in began minted sending unpack verify test switch install load read-back apply check remove sent ended; do
  grep -qw "$wanted" "$B/hit" || fail "the step $wanted was never hit: $(tr -s ' \n' ' ' <"$B/hit")"
done
seen "killed after each of ${#hit[@]} events:$(tr -s ' \n' ' ' <"$B/hit")"

# How long one takes, to spread the random moments over it.
started=$(date +%s%N)
grid 0 push borealis
next_consumer
started=$(date +%s%N)
grid 0 push borealis
took=$((($(date +%s%N) - started) / 1000))
for n in $(seq "$RANDOM_KILLS"); do
  next_consumer
  "$GRID" --mesh "$MESH" push borealis >"$B/killed.out" 2>&1 </dev/null &
  pid=$!
  at=$(((RANDOM * 32768 + RANDOM) % took))
  sleep "$(printf '%d.%06d' $((at / 1000000)) $((at % 1000000)))"
  kill -9 "$pid" 2>/dev/null || :
  wait "$pid" 2>/dev/null || :
  converges "killed at random, $n"
done
seen "killed at $RANDOM_KILLS random moments of $((took / 1000)) ms: each time one push converged with the same secrets"
