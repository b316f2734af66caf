#!/usr/bin/env bash
# bed: a machine's cable is pulled in mid apply: the push ends in time with exit 4, names it, sends to the others; one push heals it
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
begin
apart_open atlas borealis castor
machines atlas borealis castor
mkfifo "$B/began"
# An operator's own setting: three questions without an answer, two seconds apart.
printf 'ServerAliveInterval 2\nServerAliveCountMax 3\n' >"$HOME/.ssh/config"
{
  mesh_head
  nodes
  listed broker '"atlas"'
  looks_up billing broker '"borealis"' "apply = [\"sh\", \"-c\", \"echo began >$B/began; until [ -e $B/go ]; do sleep 0.1; done; echo applied >>$B/billing.applied\"]"
  printf '[services.other]\nnode = "castor"\n[[services.other.files]]\npath = "a"\ncontent = "1"\n'
} >"$MESH/mesh.toml"
code=0
started=$SECONDS
"$GRID" --mesh "$MESH" push --all >"$OUT" 2>&1 </dev/null &
pid=$!
read -r _ <"$B/began"
unplug borealis
wait "$pid" || code=$?
[ "$code" = 4 ] || fail "exit $code, not 4"
[ $((SECONDS - started)) -lt 60 ] || fail "it took $((SECONDS - started)) s"
matches 'failed +borealis +uncertain after .*nothing was heard'
holds castor services/other
holds atlas services/broker
seen "in mid apply: exit 4 after $((SECONDS - started)) s, borealis is named, atlas and castor are sent"
grid 6 status --exit-code
matches 'borealis +uncertain'
grid 4 push --behind
matches 'failed +borealis +could not be asked what it holds: .*(no route|no answer|timed out)'
seen "still unplugged: exit 4, it could not be asked"
touch "$B/go"
plug borealis
grid 0 push --behind
says settled
[ "$(applied billing)" = 1 ] || fail "billing was applied $(applied billing) times"
grid 0 status --exit-code --probe
seen "plugged in again: it had finished by itself, and one push knows"

# The same before it was reached at all, and in mid tar.
head -c 60000000 /dev/urandom >"$MESH/big"
printf '[[services.other.files]]\npath = "big"\nsource = "big"\n' >>"$MESH/mesh.toml"
"$GRID" --mesh "$MESH" push castor >"$OUT" 2>&1 </dev/null &
pid=$!
receiving() { compgen -G "$B/machines/castor/releases/.new-*/services/other/big" >/dev/null; }
within 20 receiving
unplug castor
code=0
wait "$pid" || code=$?
[ "$code" = 4 ] || fail "exit $code, not 4"
matches 'failed +castor'
seen "in mid tar: exit 4, castor is named: $(grep -oE 'failed +castor .*' "$OUT" | head -c 160)"
lacks castor services/other/big
plug castor
grid 0 push --behind
holds castor services/other/big
grid 0 status --exit-code --probe
seen "plugged in again: one push sends all of it"
