#!/usr/bin/env bash
# bed: a consumer on one machine, RabbitMQ behind another machine's sshd: one push of the consumer's machine is enough
#
# The seed's own check. The workaround, a second push of the provider's machine, is nowhere in it.
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
broker broker
cp -r "$BEDS/../../examples/cross-node/." "$MESH/"
# The example's machines are somebody's; here they are this bed's.
for node in atlas borealis; do
  sed -i "/^\[nodes.$node\]/a address = \"$(address $node)\"\nport = $SSH_PORT\nuser = \"root\"\nroot = \"$B/machines/$node\"" "$MESH/mesh.toml"
done
sed -i -e '/^\[defaults\]/,/^$/d' \
  -e "s|port = 5672|host = \"127.0.0.1\", port = $(broker_port broker), rabbitmqctl = [\"$B/broker/rabbitmqctl\"]|" "$MESH/mesh.toml"
grid 0 push atlas borealis
grid 0 status --exit-code
seen "both machines are pushed and current without the consumer"
grid 0 assign billing borealis
says "minted"
[ -z "$(vhosts broker)" ] || fail "the vhost exists before the push"
seen "the consumer is registered; the vhost is absent"
grid 0 push borealis
vhosts broker | grep -qx billing || fail "the provider has not minted the vhost"
users broker | grep -q . || fail "the provider has not minted the user"
matches 'atlas +flushed'
seen "one push of borealis: $(grep -E 'atlas +flushed' "$OUT" | tr -s ' ')"
amqp round-trip "$(binding borealis billing broker)" orders "order 1" >"$OUT" || fail "the client was refused"
[ "$(cat "$OUT")" = "order 1" ] || fail "the message did not come back"
seen "a client with nothing but the binding published and read back"
before="$(trace atlas) $(trace borealis)"
grid 0 push borealis
[ "$before" = "$(trace atlas) $(trace borealis)" ] || fail "the second push changed a machine"
silent flushed
matches '0 machines sent|nothing was sent'
seen "a second push transferred nothing and applied nothing"
