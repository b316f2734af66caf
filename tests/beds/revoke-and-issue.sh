#!/usr/bin/env bash
# bed: revoke closes the account and its connection, keeps the vhost; issue gives a new one
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
{ mesh_head; nodes; provider broker broker '"atlas"'; consumer billing broker '"borealis"'; consumer reports broker '"borealis"'; } >"$MESH/mesh.toml"
grid 0 push borealis
cp -r "$(binding borealis billing broker)" "$B/old"
mkfifo "$B/in"
amqp hold "$B/old" <"$B/in" >"$B/held" 2>&1 &
exec 7>"$B/in"
within 10 grep -q open "$B/held"
grid 0 revoke broker/billing
grid 0 push --behind
! amqp login "$B/old" >"$OUT" || fail "the revoked account still works"
within 10 grep -q cut "$B/held"
exec 7>&-
lacks borealis services/billing
amqp login "$(binding borealis reports broker)" >/dev/null || fail "reports was disturbed"
vhosts broker | grep -qx billing || fail "the vhost is gone"
grid 0 status
says revoked
seen "revoked: login refused, connection closed, service taken away, vhost kept; reports goes on"
grid 0 issue broker/billing
grid 0 push --behind
[ "$(cat "$(binding borealis billing broker)/username")" = bed.billing.2 ] || fail "not a new generation"
amqp login "$(binding borealis billing broker)" >/dev/null || fail "the new account is refused"
seen "issued: generation 2 logs in"
