#!/usr/bin/env bash
# bed: a provider on two machines, one of them down: a new consumer waits, a bound one goes on
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis castor
broker east
broker west
# The consumers' host is one name for both; here it is the first broker's address.
{
  mesh_head
  nodes
  cat <<EOF
[services.broker]
nodes = ["atlas", "castor"]
provides = { kind = "rabbitmq", host = "127.0.0.1", port = $(broker_port east), rabbitmqctl = ["$B/here"] }

EOF
  consumer billing broker '"borealis"'
  consumer reports broker '' ''
} >"$MESH/mesh.toml"
# Each machine has a broker of its own; both machines are this one, so the release tells them apart.
cat >"$B/here" <<EOF
#!/bin/sh
case \$PWD in */machines/atlas/*) exec "$B/east/rabbitmqctl" "\$@" ;; esac
exec "$B/west/rabbitmqctl" "\$@"
EOF
chmod 755 "$B/here"
grid 0 push borealis
for b in east west; do users $b | grep -qx bed.billing.1 || fail "$b has not heard of billing"; done
seen "both machines have the list before billing starts"
cut_off castor
grid 0 assign reports borealis
before=$(applied billing)
grid 4 push borealis
says "reports waits for broker"
lacks borealis services/reports
users east | grep -qx bed.reports.1 || fail "the machine that is up was not told"
amqp login "$(binding borealis billing broker)" >/dev/null || fail "billing was disturbed"
[ "$(applied billing)" = "$before" ] || fail "billing was applied again"
seen "castor down: reports waits, billing goes on"
mend castor
grid 0 push --behind
amqp login "$(binding borealis reports broker)" >/dev/null || fail "reports cannot log in"
seen "castor back: reports logs in"
