#!/usr/bin/env bash
# bed: moving the consumer, then moving the provider (accounts, not data)
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis castor
broker east
broker west
cat >"$B/here" <<EOF
#!/bin/sh
case \$PWD in */machines/atlas/*) exec "$B/east/rabbitmqctl" "\$@" ;; esac
exec "$B/west/rabbitmqctl" "\$@"
EOF
chmod 755 "$B/here"
declare_broker_on() { # NODE PORT
  {
    mesh_head
    nodes
    printf '[services.broker]\nnode = "%s"\nprovides = { kind = "rabbitmq", host = "127.0.0.1", port = %s, rabbitmqctl = ["%s/here"] }\n\n' "$1" "$2" "$B"
    consumer billing broker "$3" "remove = [\"sh\", \"-c\", \"echo removed >>$B/billing.removed\"]"
  } >"$MESH/mesh.toml"
}
declare_broker_on atlas "$(broker_port east)" '"borealis"'
grid 0 push borealis
grid 0 assign billing castor
grid 0 push castor
lacks borealis services/billing
[ "$(wc -l <"$B/billing.removed")" = 1 ] || fail "the old machine did not remove it"
amqp login "$(binding castor billing broker)" >/dev/null || fail "billing cannot log in from castor"
grid 0 status --exit-code
seen "the consumer moved: removed from borealis, then started on castor, same account"
# Throughout the move of the provider, what the consumer's current release says must be admitted.
(
  while [ ! -e "$B/stop" ]; do
    release=$(readlink "$B/machines/castor/current") || continue
    rm -rf "$B/read"
    cp -r "$B/machines/castor/$release/services/billing/bindings/broker" "$B/read" 2>/dev/null || continue
    amqp login "$B/read" >>"$B/logins" 2>&1 || echo "refused: $release" >>"$B/logins"
  done
) &
client=$!
within 20 grep -q open "$B/logins"
declare_broker_on borealis "$(broker_port west)" '"castor"'
grid 0 push borealis
touch "$B/stop"
wait "$client"
! grep -q refused "$B/logins" || fail "a login was refused: $(grep -m 1 refused "$B/logins")"
[ "$(cat "$(binding castor billing broker)/port")" = "$(broker_port west)" ] || fail "billing still uses the old broker"
amqp round-trip "$(binding castor billing broker)" q hello | grep -qx hello || fail "no message came back"
[ -z "$(users east)" ] || fail "the old broker still admits $(users east)"
vhosts east | grep -qx billing || fail "the old broker lost its data"
lacks atlas services/broker
grid 0 status --exit-code
seen "the provider moved: $(grep -c '^open$' "$B/logins") logins meanwhile, none refused; the old broker admits nobody and keeps its vhost"
