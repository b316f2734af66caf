#!/usr/bin/env bash
# bed: rotation under a client that reconnects throughout: not one login refused, the old credential refused afterwards
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
{ mesh_head; nodes; provider broker broker '"atlas"'; consumer billing broker '"borealis"'; } >"$MESH/mesh.toml"
grid 0 push borealis
# The release is read at one instant, as a program that starts reads it.
(
  while [ ! -e "$B/stop" ]; do
    release=$(readlink "$B/machines/borealis/current")
    rm -rf "$B/read"
    cp -r "$B/machines/borealis/$release/services/billing/bindings/broker" "$B/read" 2>/dev/null || continue
    if amqp login "$B/read" >>"$B/logins" 2>&1; then :; else echo "refused: $release" >>"$B/logins"; fi
  done
) &
client=$!
within 20 grep -q open "$B/logins"
cp -r "$(binding borealis billing broker)" "$B/old"
old=$(cat "$B/old/username")
for _ in 1 2 3; do
  grid 0 rotate broker/billing
  grid 0 push --behind
done
touch "$B/stop"
wait "$client"
logins=$(grep -c '^open$' "$B/logins")
[ "$logins" -ge 5 ] || fail "only $logins logins"
! grep -q refused "$B/logins" || fail "a login was refused: $(grep refused "$B/logins" | head -n 1)"
new=$(cat "$(binding borealis billing broker)/username")
[ "$new" != "$old" ] || fail "the account is the old one"
! amqp login "$B/old" >"$OUT" || fail "the old credential still works"
users broker >"$OUT"
[ "$(cat "$OUT")" = "$new" ] || fail "more than the newest account is left"
seen "$logins logins during three rotations, none refused; $old is refused now, $new is the only account"
grid 0 rotate --cut broker/billing
grid 0 push --behind
amqp login "$(binding borealis billing broker)" >/dev/null || fail "the account after --cut is refused"
seen "after --cut the newest generation logs in"
