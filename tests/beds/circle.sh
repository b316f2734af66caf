#!/usr/bin/env bash
# bed: two machines that depend on each other in a circle
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
{
  mesh_head
  nodes
  provider broker broker '"atlas"'
  listed files '"borealis"'
  looks_up web files '"atlas"'
  consumer billing broker '"borealis"'
} >"$MESH/mesh.toml"
grid 0 push atlas
holds atlas services/web
holds borealis services/billing
amqp login "$(binding borealis billing broker)" >/dev/null || fail "billing cannot log in"
grid 0 status --exit-code
seen "one push of atlas: web has its account on borealis, billing its own on atlas"
