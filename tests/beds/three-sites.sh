#!/usr/bin/env bash
# bed: three sites: push, serve, poll, a broker's load seen at the others, one cut off becomes neutral and comes back, two networks refused
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
# shellcheck source=tests/beds/sites.sh
. "$(dirname "$0")/sites.sh"
begin
sites atlas borealis caelum
# atlas has a RabbitMQ with its Prometheus plugin, the others stand-ins.
mkdir -p "$B/broker/conf"
echo '[rabbitmq_prometheus].' >"$B/broker/conf/enabled_plugins"
at atlas bash -c ". '$BEDS/rabbitmq.sh'; rabbitmq_start '$B/broker' 5672" || fail "the broker did not start"
shows borealis 3
shows caelum 0
exporter borealis
exporter caelum
{
  declares poll pin
  cat "$B/exporters"
  cat <<EOF
[services.broker]
nodes = ["atlas"]
provides = { kind = "rabbitmq", host = "127.0.0.1", port = 5672, rabbitmqctl = ["$B/broker/rabbitmqctl"] }
metrics = "http://127.0.0.1:15692/metrics"
signals = { map = { queue-depth = ["rabbitmq_queue_messages"] } }

[services.billing]
nodes = ["atlas"]
consumes = ["broker"]
EOF
} >"$MESH/mesh.toml"
queue() { # N: the queue of billing has N messages
  at atlas "$_client_home/bin/python" "$BEDS/amqp.py" fill /var/lib/grid/bed/current/services/billing/bindings/broker invoices "$1" >/dev/null
}
sees() { within 30 is "$3" depth "$1" "$2"; }

grid 0 push --all
for name in atlas borealis caelum; do
  expect active systemd "$name" ActiveState
  expect poll status "$name" mode
  expect '[::]:9091' status "$name" listens
  expect "" exits "$name"
done
seen "one push: three units active on first start, mode poll, each listens on [::]:9091"

queue 7
for name in borealis caelum; do sees "$name" atlas 7.0; done
for name in atlas caelum; do sees "$name" borealis 3.0; done
for name in atlas borealis; do sees "$name" caelum 0.0; done
queue 12
for name in borealis caelum; do sees "$name" atlas 12.0; done
seen "the broker's queue depth at atlas is 7, then 12, in the overlays of borealis and caelum; a depth of 0 is 0 there"

ask borealis atlas >"$OUT"
says 'rabbitmq_queue_messages{grid_provider="broker",grid_site="atlas"} 12 '
silent 'grid_site="borealis"'
silent 'grid_site="caelum"'
ask borealis borealis >"$OUT"
says 'rabbitmq_queue_messages{grid_provider="broker",grid_site="atlas"} 12 '
says 'llm_d_epp_average_queue_size{grid_provider="pool-borealis",grid_site="borealis"} 3 '
says 'llm_d_epp_average_queue_size{grid_provider="pool-caelum",grid_site="caelum"} 0 '
! at borealis curl -sk --max-time 5 "https://$(address atlas):9091/v1/site/signals" >"$OUT" 2>&1 || fail "a caller without a certificate is served"
seen "curl at borealis: atlas answers a peer with its own rows, borealis answers its own gateway with all three grid_site"

unplug atlas
queue 20
shows borealis 4
sees caelum borealis 4.0
seen "atlas is cut off, its queue grows to 20: borealis and caelum still see each other"

# Two networks, while the readings of atlas grow old.
cat >"$B/two.toml" <<'EOF'
format = 1
network = ["bed", "lab"]
site = "caelum"
state = "/var/lib/grid-site/two"
EOF
at caelum mkdir -p /var/lib/grid/two/current/services/site
at caelum cp "$B/two.toml" /var/lib/grid/two/current/services/site/site.toml
refused() { # TEXT CONFIG…: a daemon with these is refused
  local code=0
  at caelum grid site run "${@:2}" >"$OUT" 2>&1 || code=$?
  [ "$code" = 3 ] || fail "site run ${*:2} exited with $code, not 3"
  says "$1"
}
two=/var/lib/grid/two/current/services/site/site.toml
refused "2 configurations are named: one daemon serves one network" --config "$SITE/site.toml" --config "$two"
refused "it names 2 networks: one daemon serves one network" --config "$two"
second_unit caelum two
! at caelum systemctl start grid-site-two 2>/dev/null || fail "a daemon of two networks starts"
expect failed at caelum systemctl show --property=ActiveState --value grid-site-two
expect 3 at caelum systemctl show --property=ExecMainStatus --value grid-site-two
expect 0 at caelum systemctl show --property=NRestarts --value grid-site-two
expect active systemd caelum ActiveState
seen "two networks: exit 3 with either spelling, the unit is not started again, and the daemon that runs goes on"

neutral() { # NAME SITE WAS: it is neutral, and was WAS until then
  local now
  now=$(depth "$1" "$2")
  [ "$now" = "$3" ] || [ "$now" = neutral ] || fail "$1 sees $now of $2: neither $3, its last value, nor neutral"
  [ "$now" = neutral ]
}
for name in borealis caelum; do within 150 neutral "$name" atlas 12.0; done
sees atlas borealis neutral
sees atlas caelum neutral
expect 20.0 depth atlas atlas
ask borealis borealis >"$OUT"
silent 'grid_site="atlas"'
seen "after the readings' life: atlas is neutral at borealis and caelum, which are neutral at atlas; never 0"
plug atlas
for name in borealis caelum; do sees "$name" atlas 20.0; done
sees atlas borealis 4.0
sees atlas caelum 0.0
for name in atlas borealis caelum; do expect "" exits "$name"; done
seen "plugged in again: the others see 20, atlas sees them, and no daemon was restarted"
