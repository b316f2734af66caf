#!/usr/bin/env bash
# bed: a broker that only its own network can reach, as in a container: via leads to it; without, the load fails and says so
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
begin
apart_open atlas box
machines atlas box
mkdir -p "$B/broker"
printf '%s' $((PORT_BASE + 1)) >"$B/broker.port"
on box bash -c ". '$BEDS/rabbitmq.sh'; rabbitmq_start '$B/broker' $(broker_port broker)" || fail "the broker did not start"
{
  mesh_head
  nodes
  provider broker broker '"atlas"' 'limits = { load = "20s" }'
  consumer billing broker '"box"'
} >"$MESH/mesh.toml"
grid 4 push box
matches 'failed +atlas +failed at load of broker'
lacks box services/billing
seen "atlas cannot reach the broker: exit 4, the load is named, and billing waits"
sed -i "s|provides = { kind = \"rabbitmq\"|& , via = [\"ip\", \"netns\", \"exec\", \"$(namespace box)\"]|" "$MESH/mesh.toml"
grid 0 push box
holds box services/billing
on box "$_client_home/bin/python" "$BEDS/amqp.py" login "$(binding box billing broker)" >/dev/null || fail "billing cannot log in"
seen "with via: one push, and billing logs in from where the broker is"
grid 0 rotate broker/billing
grid 0 push --behind
on box "$_client_home/bin/python" "$BEDS/amqp.py" login "$(binding box billing broker)" >/dev/null || fail "billing cannot log in"
[ "$(on box "$B/broker/rabbitmqctl" -q list_users | grep -c billing)" = 1 ] || fail "the old account is still there"
grid 0 revoke broker/billing
grid 0 push --behind
[ "$(on box "$B/broker/rabbitmqctl" -q list_users | grep -c billing)" = 0 ] || fail "the account is still there"
grid 0 status
seen "rotated and revoked through it too"
on box bash -c ". '$BEDS/rabbitmq.sh'; rabbitmq_stop '$B/broker'"
