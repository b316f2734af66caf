# shellcheck shell=bash
# Machines with a network of their own: a namespace each, on one bridge with the controller. Source it after bed.sh.
#
#   machines NAME…          as in bed.sh; each has an address of its own, and what it starts runs in its namespace
#   on NAME CMD…            runs CMD in the machine's namespace
#   unplug NAME / plug NAME its cable: nobody reaches it, and nobody is told so / everybody does again
#   part NAME NAME          the two lose each other; the controller keeps both
#   join NAME NAME          they find each other again

# One network a bed: names of interfaces have at most 15 letters.
APART=g$((BASHPID % 100000))
NET=10.$((64 + BASHPID / 250 % 64)).$((BASHPID % 250))
PLACES=()

place() { # NAME: its number
  local i
  for i in "${!PLACES[@]}"; do
    [ "${PLACES[$i]}" != "$1" ] || { printf '%d' "$i"; return 0; }
  done
  fail "no machine $1"
}
address() { printf '%s.%d' "$NET" $((10 + $(place "$1"))); }
namespace() { printf '%s-%d' "$APART" "$(place "$1")"; }
cable() { printf '%sv%d' "$APART" "$(place "$1")"; }
on() { ip netns exec "$(namespace "$1")" "${@:2}"; }
unplug() { ip link set "$(cable "$1")" down; }
plug() {
  ip link set "$(cable "$1")" up
  within 10 listening "$1"
}
part() { for name in "$@"; do bridge link set dev "$(cable "$name")" isolated on; done; }
join() { for name in "$@"; do bridge link set dev "$(cable "$name")" isolated off; done; }

# A machine that was not reached yet.
settle_in() {
  local at
  PLACES+=("$1")
  at=$(address "$1")
  ip netns add "$(namespace "$1")"
  ip link add "$(cable "$1")" type veth peer name eth0 netns "$(namespace "$1")"
  ip link set "$(cable "$1")" master "$APART" up
  ip -n "$(namespace "$1")" link set lo up
  ip -n "$(namespace "$1")" address add "$at/24" dev eth0
  ip -n "$(namespace "$1")" link set eth0 up
}
mend() {
  on "$1" /usr/sbin/sshd -f "$B/sshd/$1.conf" -E "$B/sshd/$1.log"
  within 10 listening "$1"
}
apart_open() {
  ip link add "$APART" type bridge
  ip address add "$NET.1/24" dev "$APART"
  ip link set "$APART" up
  local name
  for name in "$@"; do settle_in "$name"; done
}
apart_close() {
  local name
  for name in "${PLACES[@]}"; do
    ip netns pids "$(namespace "$name")" | xargs -r kill 2>/dev/null
    ip netns delete "$(namespace "$name")" 2>/dev/null
    ip link delete "$(cable "$name")" 2>/dev/null
  done
  ip link delete "$APART" 2>/dev/null
}

# A provider that asks for a login over the network: PORT NAME MACHINE; its accounts are the lines of $B/NAME.accounts.
door() {
  on "$3" python3 - "$1" "$B/$2.accounts" >/dev/null 2>&1 <<'P' &
import hashlib, socketserver, sys
class Door(socketserver.StreamRequestHandler):
    def handle(self):
        name, secret = self.rfile.readline().decode().split()
        line = name + " " + hashlib.sha256(secret.encode()).hexdigest()
        known = line in open(sys.argv[2]).read().splitlines()
        self.wfile.write(b"welcome\n" if known else b"no\n")
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("0.0.0.0", int(sys.argv[1])), Door).serve_forever()
P
}
# A consumer whose check is a login over the network, with nothing but its binding: SERVICE PROVIDER NODES [MORE]
logs_in() {
  cat >"$B/login.py" <<'P'
import os, socket, sys
read = lambda name: open(os.path.join(sys.argv[1], name)).read()
door = socket.create_connection((read("host"), int(read("port"))), timeout=2)
door.sendall(f"{read('username')} {read('password')}\n".encode())
sys.exit(0 if door.recv(100) == b"welcome\n" else "not let in")
P
  printf '[services.%s]\nnodes = [%s]\nconsumes = ["%s"]\ncheck = ["python3", "%s/login.py", "bindings/%s"]\nlimits = { check = "4s" }\n%s\n\n' \
    "$1" "$3" "$2" "$B" "$2" "${4:-}"
}
