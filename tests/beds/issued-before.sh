#!/usr/bin/env bash
# bed: an account issued before the push; an unrelated machine is pushed, and the provider is flushed by name
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
grid 0 push --all
grid 0 issue broker/reports --outside
grid 0 push castor
says atlas
matches 'atlas +flushed'
silent borealis
users broker | grep -qx 'bed.reports.1' || fail "the broker has not heard of reports"
seen "castor was pushed, atlas flushed by name, and the broker admits bed.reports.1"
