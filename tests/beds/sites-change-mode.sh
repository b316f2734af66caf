#!/usr/bin/env bash
# bed: sites are told another mode and another trust: exit 75 where it has to be, and the shipped unit brings them up as declared
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
# shellcheck source=tests/beds/sites.sh
. "$(dirname "$0")/sites.sh"
grid 0 init "$B/fresh"
SITES=(atlas borealis caelum)
sites "${SITES[@]}"
for name in "${SITES[@]}"; do
  shows "$name" 5
  exporter "$name"
done
push() { # MODE TRUST: declares and pushes them
  { declares "$1" "$2"; cat "$B/exporters"; } >"$MESH/mesh.toml"
  grid 0 push --behind
}
as_declared() { # MODE TRUST EXITS: every site runs so, and exited with these before
  local name
  for name in "${SITES[@]}"; do
    expect active systemd "$name" ActiveState
    expect "$1" status "$name" mode
    expect "$2" status "$name" trust
    expect "$3" exits "$name"
    expect "$(wc -w <<<"$3")" systemd "$name" NRestarts
  done
}
pids() { for name in "${SITES[@]}"; do systemd "$name" MainPID; done | xargs; }
listens() { at "$1" ss -Hltn sport = :9091 | grep -q .; }
see_each_other() {
  local name other
  for name in "${SITES[@]}"; do for other in "${SITES[@]}"; do within 30 is 5.0 depth "$name" "$other"; done; done
}
certificate() { at "$1" openssl x509 -in "$SITE/identity.pem" -outform DER | sha256sum | cut -d' ' -f1; }

{ declares poll pin; cat "$B/exporters"; } >"$MESH/mesh.toml"
grid 0 push --all
as_declared poll pin ""
see_each_other
push gossip pin
as_declared gossip pin "75"
for name in "${SITES[@]}"; do
  ! listens "$name" || fail "$name listens under gossip"
  expect "" status "$name" listens
done
seen "poll to gossip: each exits with 75, the unit starts it, it runs as declared, and there is no listener"

before=$(pids)
push gossip spiffe
as_declared gossip spiffe "75"
grid 0 rotate --site atlas
grid 0 push --behind
expect "$(certificate atlas)" status atlas certificate
taken=$(status atlas certificate)
seen "gossip, pin to spiffe: no process ends, and a renewed certificate is taken up: ${taken:0:12}"
push gossip pin
as_declared gossip pin "75"
grid 0 rotate --site atlas
grid 0 push --behind
[ "$(certificate atlas)" != "$taken" ] || fail "atlas was given no other certificate"
says_it_waits() { [[ "$(status atlas waits_for)" == *'a new certificate is not taken up under "pin"'* ]]; }
within 10 says_it_waits
expect "$taken" status atlas certificate
seen "gossip, spiffe to pin: atlas has $(certificate atlas | cut -c1-12) in its release, and stays with ${taken:0:12}"
push gossip spiffe
as_declared gossip spiffe "75"
expect "$(certificate atlas)" status atlas certificate
[ "$(pids)" = "$before" ] || fail "a process ended: $before before, $(pids) now"
seen "gossip, pin to spiffe: it is taken up; the processes are those of before: $before"

push poll spiffe
as_declared poll spiffe "75 75"
see_each_other
seen "gossip to poll: exit 75, up as declared, and each sees the others' load"
push poll pin
as_declared poll pin "75 75 75"
see_each_other
seen "poll, spiffe to pin: exit 75, up as declared, and each sees the others' load"
push poll spiffe
as_declared poll spiffe "75 75 75 75"
see_each_other
seen "poll, pin to spiffe: exit 75, up as declared, and each sees the others' load"

killed=$(systemd borealis MainPID)
at borealis kill -KILL "$killed"
is_another() { [ "$(status borealis pid)" != "$killed" ] && is active systemd borealis ActiveState; }
within 30 is_another
see_each_other
at borealis systemctl stop grid-site
expect inactive systemd borealis ActiveState
seen "a daemon that is killed comes up again, and one that is stopped stays stopped"
