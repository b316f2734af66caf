#!/usr/bin/env bash
# bed: the provider's machine is down: its consumer waits (exit 4); it is back: one push completes it
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis castor
broker broker
{
  mesh_head
  nodes
  provider broker broker '"atlas"'
  consumer billing broker '"borealis"'
  printf '[services.other]\nnode = "castor"\n[[services.other.files]]\npath = "a"\ncontent = "1"\n'
} >"$MESH/mesh.toml"
cut_off atlas
grid 4 push borealis
says "billing waits for broker"
says "grid push --behind"
holds castor services/other
lacks borealis services/billing
[ "$(applied billing)" = 0 ] || fail "billing started"
seen "exit 4; billing waits; castor was flushed all the same"
mend atlas
grid 0 push --behind
amqp login "$(binding borealis billing broker)" >/dev/null || fail "billing cannot log in"
seen "atlas is back: one push, and billing logs in"
