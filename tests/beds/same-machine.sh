#!/usr/bin/env bash
# bed: consumer and provider on one machine: one send, the list loaded before the consumer starts
. "$(dirname "$0")/bed.sh"
begin
machines atlas
broker broker
{ mesh_head; nodes; provider broker broker '"atlas"'; consumer billing broker '"atlas"'; } >"$MESH/mesh.toml"
grid 0 push atlas --json
[ "$(grep -c '"event":"sent"' "$OUT")" = 1 ] || fail "not one send"
load=$(grep -n '"step":"load"' "$OUT" | head -n 1 | cut -d: -f1)
apply=$(grep -n '"step":"apply"' "$OUT" | head -n 1 | cut -d: -f1)
[ "$load" -lt "$apply" ] || fail "the consumer started first"
amqp round-trip "$(binding atlas billing broker)" q hello | grep -qx hello || fail "no message came back"
seen "one send; the list was loaded, then billing applied; a message went through"
