#!/usr/bin/env bash
# bed: somebody deletes an account at the broker: the consumer's push names the broker's machine, and naming that one mends it
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
{ mesh_head; nodes; provider broker broker '"atlas"'; consumer billing broker '"borealis"'; } >"$MESH/mesh.toml"
grid 0 push --all
account=$(cat "$(binding borealis billing broker)/username")
"$B/broker/rabbitmqctl" -q delete_user "$account" >/dev/null
! amqp login "$(binding borealis billing broker)" >"$OUT" 2>&1 || fail "the deleted account logs in"
# A probe looks into no provider, and says nothing else than that the files are right.
grid 0 status --probe --exit-code
grid 4 push borealis
says "billing consumes broker on atlas: if its account was changed or removed there, \`grid push atlas\` finds that and puts it back"
seen "$account was deleted by hand: exit 4, and atlas is named"
grid 0 push atlas
says "broker: it did not admit exactly its list"
amqp login "$(binding borealis billing broker)" >/dev/null || fail "billing cannot log in"
grid 0 push borealis
seen "one push of atlas, and billing logs in with the account that it had"
