#!/usr/bin/env bash
# bed: rotated twice while the consumer's machine is down: it keeps its account, and gets the newest when it is back
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
{ mesh_head; nodes; provider broker broker '"atlas"'; consumer billing broker '"borealis"'; } >"$MESH/mesh.toml"
grid 0 push borealis
cut_off borealis
for n in 1 2; do
  grid 0 rotate broker/billing
  grid 4 push --behind
  amqp login "$(binding borealis billing broker)" >/dev/null || fail "after rotation $n the account in use is refused"
done
seen "rotated twice, pushed twice (exit 4): the running consumer still logs in"
mend borealis
grid 0 push --behind
[ "$(cat "$(binding borealis billing broker)/username")" = bed.billing.3 ] || fail "it has not the newest"
amqp login "$(binding borealis billing broker)" >/dev/null || fail "the newest is refused"
[ "$(users broker)" = bed.billing.3 ] || fail "old accounts are left: $(users broker | tr '\n' ' ')"
seen "back: generation 3, and no older account is left"
