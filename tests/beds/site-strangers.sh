#!/usr/bin/env bash
# bed: sites on networks of their own, without a push: one polls the other; strangers stall 400 handshakes, and local callers are served
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
apart_open atlas borealis
grid=$(readlink -f "$GRID")

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/O=ai-grid/CN=authority" \
  -keyout "$B/ca.key" -out "$B/ca.pem" 2>/dev/null
site() { # NAME: its folder with an identity
  mkdir -p "$B/$1"
  cp "$B/ca.pem" "$B/$1/authorities.pem"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/O=ai-grid/CN=$1" \
    -keyout "$B/$1/identity.key" -out "$B/$1/request" 2>/dev/null
  openssl x509 -req -in "$B/$1/request" -CA "$B/ca.pem" -CAkey "$B/ca.key" -days 30 -out "$B/$1/identity.pem" 2>/dev/null -extfile - <<EOF
subjectAltName=DNS:$1.grid.internal,URI:spiffe://grid.internal/site/$1
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
EOF
}
pin() { openssl x509 -in "$B/$1/identity.pem" -noout -fingerprint -sha256 | cut -d= -f2; }
config() { # NAME OTHER MODE
  printf 'format = 1\n[[peers]]\nname = "%s"\nhost = "%s"\npins = ["%s"]\n' "$2" "$(address "$2")" "$(pin "$2")" >"$B/$1/peers.toml"
  cat >"$B/$1/site.toml.next" <<EOF
format = 1
network = "prod"
site = "$1"
mode = "$3"
state = "$B/$1/state"
[settings]
poll_interval_ms = 500
scrape_interval_ms = 500
reread_ms = 200
[[scrape]]
provider = "pool"
url = "http://127.0.0.1:8000/metrics"
EOF
  mv "$B/$1/site.toml.next" "$B/$1/site.toml"
}
# As the shipped unit does: 75 is started again, at once.
supervise() {
  # shellcheck disable=SC2016 # the inner shell's
  on "$1" bash -c 'while :; do "$1" site run --config "$2/site.toml" 2>>"$2/log"; code=$?; echo "$code" >>"$2/codes"; [ $code = 75 ] || exit; done' \
    - "$grid" "$B/$1" &
}
metric() { on "$1" curl -s http://127.0.0.1:9092/metrics | sed -n "s/^$2 //p"; }
depth() { # NAME SITE: the queue depth of SITE's provider in NAME's overlay
  python3 - "$B/$1/state/overlay.json" "$2" <<'P'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
print(*[row["signals"]["queue_depth"].get("value") for row in rows if row["site"] == sys.argv[2]])
P
}
is_depth() { [ "$(depth "$1" "$2" 2>/dev/null)" = "$3" ]; }
local_caller() {
  on atlas curl -sf --max-time 5 --cacert "$B/ca.pem" --cert "$B/atlas/identity.pem" --key "$B/atlas/identity.key" \
    --resolve "atlas.grid.internal:9091:$1" https://atlas.grid.internal:9091/v1/site/signals
}

mkdir -p "$B/metrics"
printf 'llm_d_epp_average_queue_size 7\n' >"$B/metrics/metrics"
for name in atlas borealis; do site "$name"; done
for name in atlas borealis; do
  on "$name" python3 -m http.server 8000 --bind 127.0.0.1 --directory "$B/metrics" >/dev/null 2>&1 &
done
config atlas borealis poll
config borealis atlas gossip
supervise atlas
supervise borealis
within 30 is_depth borealis borealis 7.0 || fail "borealis does not scrape"
on atlas curl -s --max-time 2 "https://$(address borealis):9091/" >/dev/null 2>&1 && fail "a listener under gossip"
seen "under gossip: no listener, and it scrapes"
config borealis atlas poll
within 30 is_depth atlas borealis 7.0 || fail "the load of borealis is not seen at atlas"
within 30 is_depth borealis atlas 7.0 || fail "the load of atlas is not seen at borealis"
[ "$(cat "$B/borealis/codes")" = 75 ] || fail "borealis did not exit with 75"
seen "a mode change: exit 75, started again, and each sees the other's load"

# Forty addresses of one stranger, ten connections each, none of which says a word.
for n in $(seq 100 139); do ip -n "$(namespace borealis)" address add "$NET.$n/24" dev eth0; done
on borealis python3 - "$(address atlas)" "$NET" "$B/stalled" <<'P' &
import socket, sys, time
host, net, flag = sys.argv[1:]
end, held = time.time() + 12, []
while time.time() < end:
    for n in range(100, 140):
        for _ in range(10):
            try:
                held.append(socket.create_connection((host, 9091), timeout=1, source_address=(f"{net}.{n}", 0)))
            except OSError:
                pass
    open(flag, "w").close()
    time.sleep(1)
    held = held[-400:]
P
stranger=$!
within 10 test -e "$B/stalled" || fail "the stranger does not come"
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
  local_caller 127.0.0.1 >/dev/null || fail "local caller $n is not served"
  local_caller "$(address atlas)" >/dev/null || fail "local caller $n at the machine's own address is not served"
done
[ "$(metric atlas 'grid_signals_connections_refused_total{reason="source"}')" -gt 0 ] || fail "no source was held to its share"
[ "$(metric atlas 'grid_signals_connections{kind="foreign_handshake"}')" -le 248 ] || fail "strangers hold more than 248"
seen "400 handshakes stall from forty addresses: held to eight a source and 248 in all, and 24 local callers are served"
wait "$stranger" || true
printf 'llm_d_epp_average_queue_size 9\n' >"$B/metrics/metrics"
within 30 is_depth atlas borealis 9.0 || fail "atlas does not poll any more"
seen "and the polls go on"
