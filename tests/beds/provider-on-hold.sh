#!/usr/bin/env bash
# bed: the provider's machine is on hold: its consumer waits, the hold and its reason are named
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
{ mesh_head; nodes; provider broker broker '"atlas"'; consumer billing broker '"borealis"'; } >"$MESH/mesh.toml"
grid 0 hold atlas "in the rack on Monday"
grid 4 push borealis
says "billing waits for broker"
says "in the rack on Monday"
[ -z "$(users broker)" ] || fail "something was sent to atlas"
seen "exit 4; the reason is shown; nothing was sent to atlas"
grid 4 push atlas
grid 0 unhold atlas
grid 0 push borealis
amqp login "$(binding borealis billing broker)" >/dev/null || fail "billing cannot log in"
seen "without the hold: one push of borealis completes it"
