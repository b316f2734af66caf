#!/usr/bin/env bash
# bed: a chain of three providers; with --max-rounds 1 the push exits 5 and names what is left, then heals
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis castor deneb
broker store
{
  mesh_head
  nodes
  provider store store '"atlas"'
  listed cache '"borealis"' 'consumes = ["store"]'
  listed index '"castor"' 'consumes = ["cache"]'
  looks_up app index '"deneb"'
} >"$MESH/mesh.toml"
grid 5 push deneb --max-rounds 1
grep -qE 'behind' "$OUT" || fail "it does not say who is behind"
seen "with one further round: exit 5"
lacks deneb services/app
grid 0 push --behind
for place in atlas/services/store borealis/services/cache castor/services/index deneb/services/app; do
  holds "${place%%/*}" "${place#*/}"
done
grid 0 status --exit-code
seen "healed: store, cache, index and app run, one after the other"
grid 0 unassign app
grid 0 push --behind
grid 0 assign app deneb
grid 0 push deneb
seen "the whole chain in one push of its last consumer's machine"
