#!/usr/bin/env bash
# bed: two machines lose each other, the controller keeps both: the consumer's check fails and it is put back; one push heals it
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
begin
apart_open atlas borealis
machines atlas borealis
{
  mesh_head
  nodes
  listed broker '"atlas"' | sed "s/host = \"127.0.0.1\", port = 1/host = \"$(address atlas)\", port = 5555/"
  logs_in billing broker '"borealis"'
} >"$MESH/mesh.toml"
: >"$B/broker.accounts"
door 5555 broker atlas
secrets() { "$GRID" --mesh "$MESH" provisions --show-secrets --json 2>/dev/null | grep -o '"secret": *"[^"]*"' | sort; }

part atlas borealis
grid 4 push borealis
matches 'failed +borealis +failed at check of billing'
holds atlas services/broker
lacks borealis services/billing
minted=$(secrets)
[ -n "$minted" ] || fail "nothing was minted"
seen "apart: exit 4, the provider is told, billing's check fails and it is taken away again"
grid 4 push --behind
says borealis
join atlas borealis
grid 0 push borealis
holds borealis services/billing
[ "$(secrets)" = "$minted" ] || fail "the secret is another one"
seen "together again: one push, billing logs in with the account that was minted first"

# One that runs keeps its old account while it cannot try the new one.
old=$(cat "$(binding borealis billing broker)/password")
grid 0 rotate broker/billing
part atlas borealis
grid 4 push --behind
# Its old account cannot be tried either, so nobody says that it is well.
matches 'failed +borealis +uncertain after check of billing'
[ "$(cat "$(binding borealis billing broker)/password")" = "$old" ] || fail "billing has lost its account"
[ "$(wc -l <"$B/broker.accounts")" = 2 ] || fail "the provider has not both accounts: $(cat "$B/broker.accounts")"
seen "apart in a rotation: billing is put back to its old account, which the provider still has"
join atlas borealis
grid 0 push borealis
[ "$(cat "$(binding borealis billing broker)/password")" != "$old" ] || fail "billing still has its old account"
[ "$(wc -l <"$B/broker.accounts")" = 1 ] || fail "the old account is still there"
grid 0 status --exit-code
seen "together again: one push finishes the rotation"
