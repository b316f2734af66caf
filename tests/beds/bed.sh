# shellcheck shell=bash
# What every bed stands on: a folder of its own, machines, grid as an operator types it, and checks that
# print what they saw. Source it first; it ends the bed at the first check that does not hold.
#
#   $B                          the bed's folder; removed at its end, kept with KEEP=1
#   $MESH                       its declaration
#   machines NAME…              an sshd that is all of them, at 127.0.0.2 and on; `address NAME` prints one
#   cut_off NAME / mend NAME    the machine refuses connections / takes them again
#   grid EXIT ARGS…             runs grid, which must exit with EXIT; its output is in $OUT
#   says TEXT / silent TEXT     the last output has, or has not, TEXT
#   seen TEXT                   says what the bed saw
#   fail TEXT                   ends the bed
#   within SECONDS CMD…         runs CMD until it holds

set -euo pipefail
BEDS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GRID=${GRID:-$BEDS/../../target/release/grid}
export PATH=$PATH:/usr/sbin:/sbin
# shellcheck source=tests/beds/rabbitmq.sh
. "$BEDS/rabbitmq.sh"
# shellcheck source=tests/beds/client.sh
. "$BEDS/client.sh"

B=$(mktemp -d "${TMPDIR:-/tmp}/grid-bed.XXXXXX")
chmod 755 "$B" # brokers and consumers of other users look into it
MESH=$B/mesh
OUT=$B/out
# Below the ports that the system gives to connections (32768 and up), so that none of those is in the way.
PORT_BASE=${PORT_BASE:-$((20000 + ($$ * 40) % 12000))}
SSH_PORT=$PORT_BASE
BROKERS=()
MACHINES=()
mkdir -p "$MESH" "$B/home/.ssh"
chmod 700 "$B/home/.ssh"
export HOME=$B/home XDG_CONFIG_HOME=$B/home/.config USER=maria LOGNAME=maria
unset SSH_AUTH_SOCK GRID_MESH GRID_STORE GRID_IDENTITY

bed_close() {
  local code=$?
  set +e
  local broker pid close
  for broker in "${BROKERS[@]:-}"; do [ -z "$broker" ] || rabbitmq_stop "$broker"; done
  for pid in "$B"/sshd/*.pid "$B"/*.pid; do [ ! -s "$pid" ] || kill "$(cat "$pid")" 2>/dev/null; done
  jobs -p | xargs -r kill 2>/dev/null
  for close in sites_close apart_close; do
    if declare -F "$close" >/dev/null; then "$close"; fi
  done
  if [ "${KEEP:-}" = 1 ]; then echo "kept: $B"; else rm -rf "$B"; fi
  exit "$code"
}
trap bed_close EXIT

fail() {
  printf '   FAILED: %s\n' "$*" >&2
  [ ! -s "$OUT" ] || sed 's/^/   | /' "$OUT" >&2
  exit 1
}
seen() { printf '   %s\n' "$*"; }

# One sshd a machine, each on an address of its own, so that one can be cut off alone.
machines() {
  local name at
  mkdir -p /run/sshd "$B/sshd"
  chmod 755 /run/sshd
  [ -f "$HOME/.ssh/id_ed25519" ] || ssh-keygen -q -t ed25519 -N '' -C bed -f "$HOME/.ssh/id_ed25519"
  [ -f "$B/sshd/host" ] || ssh-keygen -q -t ed25519 -N '' -C host -f "$B/sshd/host"
  for name in "$@"; do
    MACHINES+=("$name")
    at=$(address "$name")
    cat >"$B/sshd/$name.conf" <<EOF
Port $SSH_PORT
ListenAddress $at
HostKey $B/sshd/host
PidFile $B/sshd/$name.pid
AuthorizedKeysFile $HOME/.ssh/id_ed25519.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UseDNS no
MaxStartups 100
EOF
    printf '[%s]:%s %s\n' "$at" "$SSH_PORT" "$(cut -d' ' -f1,2 "$B/sshd/host.pub")" >>"$HOME/.ssh/known_hosts"
    mend "$name"
  done
}
# The n-th machine is 127.0.0.(n+1).
address() {
  local i
  for i in "${!MACHINES[@]}"; do
    [ "${MACHINES[$i]}" != "$1" ] || { printf '127.0.0.%d' $((i + 2)); return 0; }
  done
  fail "no machine $1"
}
cut_off() {
  kill "$(cat "$B/sshd/$1.pid")"
  within 5 not_listening "$1"
}
not_listening() { ! (exec 3<>"/dev/tcp/$(address "$1")/$SSH_PORT") 2>/dev/null; }
listening() { (exec 3<>"/dev/tcp/$(address "$1")/$SSH_PORT") 2>/dev/null; }
mend() {
  /usr/sbin/sshd -f "$B/sshd/$1.conf" -E "$B/sshd/$1.log"
  within 5 listening "$1"
}
# The [nodes.NAME] tables of all machines.
nodes() {
  local name
  for name in "${MACHINES[@]}"; do
    printf '[nodes.%s]\naddress = "%s"\nport = %s\nuser = "root"\nroot = "%s"\n\n' \
      "$name" "$(address "$name")" "$SSH_PORT" "$B/machines/$name"
  done
}

# A broker in $B/NAME; its AMQP port is printed by `broker_port NAME`.
broker() {
  local index=${#BROKERS[@]}
  BROKERS+=("$B/$1")
  printf '%s' $((PORT_BASE + 1 + 20 * index)) >"$B/$1.port"
  mkdir -p "$B/$1"
  rabbitmq_start "$B/$1" "$(broker_port "$1")" || fail "the broker $1 did not start"
}
broker_port() { cat "$B/$1.port"; }
vhosts() { "$B/$1/rabbitmqctl" -q list_vhosts name | grep -vx -e name -e / || :; }
users() { "$B/$1/rabbitmqctl" -q list_users | cut -f1 | grep -vx -e user -e guest || :; }

grid() {
  local wanted=$1 code=0
  shift
  "$GRID" --mesh "$MESH" "$@" >"$OUT" 2>&1 </dev/null || code=$?
  [ "$code" = "$wanted" ] || fail "grid $* exited with $code, not $wanted"
}
says() { grep -qF -- "$1" "$OUT" || fail "the output does not say: $1"; }
matches() { grep -qE -- "$1" "$OUT" || fail "the output does not match: $1"; }
silent() { ! grep -qF -- "$1" "$OUT" || fail "the output says: $1"; }
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "never: $*"
    sleep 0.1
  done
}
holds() { # MACHINE PATH: a file of the machine's current release
  [ -e "$B/machines/$1/current/$2" ] || fail "$1 has no $2"
}
lacks() {
  [ ! -e "$B/machines/$1/current/$2" ] || fail "$1 has $2"
}
binding() { printf '%s/machines/%s/current/services/%s/bindings/%s' "$B" "$1" "$2" "$3"; }
# Every release that a machine was switched to, and what ran there: equal before and after, nothing was applied.
trace() { find "$B/machines/$1/releases" "$B/machines/$1/current" ! -type d ! -name .applied -printf '%p %i %T@ %s\n' 2>/dev/null | sort | sha256sum; }

# Parts of declarations that most beds share.
mesh_head() { printf '[mesh]\nname = "bed"\n\n'; }
# A RabbitMQ of this bed as a provider: SERVICE BROKER NODES [MORE]
provider() {
  printf '[services.%s]\nnodes = [%s]\nprovides = { kind = "rabbitmq", host = "127.0.0.1", port = %s, rabbitmqctl = ["%s/rabbitmqctl"] }\n%s\n\n' \
    "$1" "$3" "$(broker_port "$2")" "$B/$2" "${4:-}"
}
# A consumer whose check is a login with nothing but its binding: SERVICE PROVIDER NODES [MORE]
consumer() {
  local login
  login=$(printf '"%s", "%s", "login", "{release}/bindings/%s"' "$_client_home/bin/python" "$_client_here/amqp.py" "$2")
  printf '[services.%s]\nnodes = [%s]\nconsumes = ["%s"]\napply = ["sh", "-c", "echo applied >>%s/%s.applied"]\ncheck = [%s]\nlimits = { check = "10s" }\n%s\n\n' \
    "$1" "$3" "$2" "$B" "$1" "$login" "${4:-}"
}
# A provider of kind custom, whose accounts are the lines of $B/NAME.accounts: SERVICE NODES [MORE]
listed() {
  mkdir -p "$MESH/templates"
  # shellcheck disable=SC2016
  printf '{%% for a in accounts %%}{{ a.username }} {{ a.sha256 }}\n{%% endfor %%}' >"$MESH/templates/accounts.txt.j2"
  printf '[services.%s]\nnodes = [%s]\nprovides = { kind = "custom", host = "127.0.0.1", port = 1, template = "templates/accounts.txt.j2", load = ["sh", "-c", "cat >%s/%s.accounts"], check = ["sh", "-c", "cmp - %s/%s.accounts"] }\n%s\n\n' \
    "$1" "$2" "$B" "$1" "$B" "$1" "${3:-}"
}
# A consumer of such a provider; its check looks its account up: SERVICE PROVIDER NODES [MORE]
looks_up() {
  # shellcheck disable=SC2016 # the machine's shell expands it
  printf '[services.%s]\nnodes = [%s]\nconsumes = ["%s"]\ncheck = ["sh", "-c", "grep -q \\"^$(cat bindings/%s/username) $(printf %%s \\"$(cat bindings/%s/password)\\" | sha256sum | cut -c1-64)$\\" %s/%s.accounts"]\nlimits = { check = "5s" }\n%s\n\n' \
    "$1" "$3" "$2" "$2" "$2" "$B" "$2" "${4:-}"
}
applied() { if [ -e "$B/$1.applied" ]; then wc -l <"$B/$1.applied"; else echo 0; fi; }
begin() { # installs the client, makes the identity
  client_install
  grid 0 init "$B/fresh"
}
