# shellcheck shell=bash
# Machines that are sites, each with a network, an sshd and a systemd of its own, which runs the unit that is shipped.
# Source it after bed.sh and apart.sh; needs root, cgroups of version 2 and Debian's systemd.
#
#   sites NAME…             boots them
#   at NAME CMD…            runs CMD on the machine, as root
#   declares MODE TRUST     the declaration's head: the mesh, its signals and its machines
#   exporter NAME           a stand-in for a model server: shows the file of `shows NAME DEPTH`, on port 8000
#   ask NAME PEER           what PEER answers to a GET with the identity of NAME
#   depth NAME SITE         the queue depth of SITE in NAME's overlay, or "neutral"
#   status NAME KEY         what the daemon's status.json says
#   systemd NAME PROPERTY   what the machine's systemd says of the unit grid-site
#   exits NAME              with what the daemon exited so far, one number after the other
#   polls NAME PEER         how many polls of PEER succeeded since the daemon of NAME started
#   failed_polls NAME       how many polls failed after their retries since the daemon of NAME started
#   noted_failures NAME     how often the daemons of NAME noted in the journal that a peer cannot be polled any more
#   is VALUE CMD…           whether CMD prints VALUE
#   expect VALUE CMD…       it does, or the bed ends
#
# A machine is a set of namespaces: network, processes, mounts, host name, cgroups. Its /etc, /run, /var/lib and
# /usr/local are its own; all else is this machine's. Its systemd knows the units below and no others, so that nothing
# of this machine is started, mounted or set a second time.

UNIT=$BEDS/../../packaging/grid-site.service
CGROUPS=
declare -A INIT=() # the process, as seen from here, of each machine's systemd

# The units of a machine, besides the shipped one: what every unit depends on, and the journal.
units() { # FOLDER
  local target units=/usr/lib/systemd/system
  [ -d "$units" ] || units=/lib/systemd/system
  mkdir -p "$1/grid-site.service.d"
  for target in basic sysinit sockets network-online multi-user shutdown; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" >"$1/$target.target"
  done
  printf 'Requires=systemd-journald.service\nAfter=systemd-journald.service\n' >>"$1/basic.target"
  cp "$units"/systemd-journald{,-dev-log}.socket "$units/systemd-journald.service" "$1/"
  cp "$UNIT" "$1/grid-site.service"
  # As its head says.
  printf '[Service]\nEnvironment=GRID_SITE_MESH=bed\n' >"$1/grid-site.service.d/mesh.conf"
}

second_unit() { # NAME MESH: the machine has the shipped unit once more, for another mesh
  cp "$UNIT" "$B/units/$1/grid-site-$2.service"
  mkdir -p "$B/units/$1/grid-site-$2.service.d"
  printf '[Service]\nEnvironment=GRID_SITE_MESH=%s\n' "$2" >"$B/units/$1/grid-site-$2.service.d/mesh.conf"
  at "$1" systemctl daemon-reload
}

# What a machine does before its systemd. Its mounts are seen by nobody else.
boot_script() {
  cat <<'EOF'
set -euo pipefail
units=$1 grid=$2 name=$3 bed=$4
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mount -t proc proc /proc
for folder in /etc /usr/local; do
  mkdir -p "/run/overlay$folder/"{upper,work}
  mount -t overlay overlay -o "lowerdir=$folder,upperdir=/run/overlay$folder/upper,workdir=/run/overlay$folder/work" "$folder"
done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /run/sshd /run/none /usr/local/bin /etc/systemd
rm -rf /etc/systemd/system /etc/systemd/system.conf.d /etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nRateLimitBurst=0\n' >/etc/systemd/journald.conf
echo "$name" >/etc/hostname
touch /usr/local/bin/grid
mount --bind "$grid" /usr/local/bin/grid
# A unit's PrivateTmp stays behind when its machine is gone. The bed's own folder may lie in /tmp.
mkdir /run/bed
mount --bind "$bed" /run/bed
for folder in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$folder"; done
mkdir -p "$bed"
mount --bind /run/bed "$bed"
exec env -i container=bed PATH="$PATH" SYSTEMD_UNIT_PATH="$units" SYSTEMD_GENERATOR_PATH=/run/none \
  "$(command -v /usr/lib/systemd/systemd || echo /lib/systemd/systemd)" \
  --system --unit=basic.target --log-target=journal --show-status=no
EOF
}
boot() {
  local name=$1 outer
  mkdir -p "$CGROUPS/$name" "$B/units/$name"
  units "$B/units/$name"
  (
    echo "$BASHPID" >"$CGROUPS/$name/cgroup.procs"
    exec ip netns exec "$(namespace "$name")" unshare --pid --fork --kill-child --mount --uts --ipc --cgroup \
      bash -c "$(boot_script)" - "$B/units/$name" "$(readlink -f "$GRID")" "$name" "$B"
  ) >"$B/$name.boot" 2>&1 </dev/null &
  outer=$!
  within 10 pgrep -P "$outer" >/dev/null
  INIT[$name]=$(pgrep -P "$outer")
  within 30 is active at "$name" systemctl is-active basic.target
}
at() { nsenter -t "${INIT[$1]}" --all --wd=/ "${@:2}"; }
mend() {
  # Its process ends with the machine's; what it would write down is a number of the machine's own.
  at "$1" /usr/sbin/sshd -o PidFile=none -f "$B/sshd/$1.conf" -E "$B/sshd/$1.log"
  within 10 listening "$1"
}
sites() {
  local hierarchy name
  hierarchy=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
  [ -n "$hierarchy" ] || fail "a machine's systemd needs cgroups of version 2, and none are mounted here"
  CGROUPS=$hierarchy/$APART
  mkdir "$CGROUPS"
  apart_open "$@"
  for name in "$@"; do boot "$name"; done
  machines "$@"
}
sites_close() {
  local name end=$((SECONDS + 10))
  for name in "${!INIT[@]}"; do kill -KILL "${INIT[$name]}" 2>/dev/null; done
  [ -n "$CGROUPS" ] || return 0
  until find "$CGROUPS" -depth -type d -exec rmdir {} + 2>/dev/null || [ ! -d "$CGROUPS" ]; do
    [ "$SECONDS" -lt "$end" ] || break
    sleep 0.1
  done
}

is() {
  local wanted=$1
  shift
  [ "$("$@" 2>/dev/null)" = "$wanted" ]
}
expect() {
  local wanted=$1 found
  shift
  found=$("$@" 2>&1) || :
  [ "$found" = "$wanted" ] || fail "$*: $found, not $wanted"
}
systemd() { at "$1" systemctl show --property="$2" --value grid-site; }
journal() { at "$1" journalctl --quiet --unit=grid-site --output=cat; }
exits() {
  journal "$1" | sed -n 's/^grid-site.service: Main process exited, code=exited, status=\([0-9]*\).*/\1/p' | xargs
}

# The files are the machine's, read as any user of it may.
SITE=/var/lib/grid/bed/current/services/site
STATE=/var/lib/grid-site/bed
json() { # NAME FILE PYTHON: what the expression says of the document d
  at "$1" setpriv --reuid=65534 --regid=65534 --clear-groups cat "$STATE/$2" |
    python3 -c "import json, sys; d = json.load(sys.stdin); print($3)"
}
status() { json "$1" status.json "d.get('$2', '')"; }
depth() {
  json "$1" overlay.json "next((r['signals']['queue_depth'].get('value', 'neutral') for r in d['rows'] if r['site'] == '$2'), 'neutral')"
}
series() { at "$1" curl -sf --max-time 5 http://127.0.0.1:9092/metrics | grep '^grid_peer_poll_total{'; }
polls() { series "$1" | sed -n "s/.*{peer=\"$2\",outcome=\"success\"} //p"; }
# The counters know each failure since the daemon's start, the journal the first of each row of them since the boot.
failed_polls() { series "$1" | grep -v 'outcome="success"' | awk '{ n += $2 } END { print n + 0 }'; }
noted_failures() { journal "$1" | grep -c 'cannot be polled' || :; }
polled() { # NAME PEER COUNT
  [ "$(polls "$1" "$2")" -ge "$3" ] 2>/dev/null
}

declares() {
  mesh_head
  printf '[signals]\nmode = "%s"\ntrust = "%s"\n' "$1" "$2"
  # As the schema says for machines with systemd.
  printf 'apply = ["systemctl", "enable", "--now", "grid-site"]\nremove = ["systemctl", "disable", "--now", "grid-site"]\n'
  printf 'limits = { check = "30s" }\n\n'
  printf '[signals.settings]\nscrape_interval_ms = 500\nscrape_timeout_ms = 400\npoll_interval_ms = 500\n\n'
  local name
  for name in "${MACHINES[@]}"; do
    printf '[nodes.%s]\naddress = "%s"\nport = %s\nuser = "root"\n\n' "$name" "$(address "$name")" "$SSH_PORT"
  done
}
shows() {
  mkdir -p "$B/shown/$1"
  printf 'llm_d_epp_average_queue_size %s\n' "$2" >"$B/shown/$1/metrics.next"
  mv "$B/shown/$1/metrics.next" "$B/shown/$1/metrics"
}
exporter() {
  at "$1" python3 -m http.server 8000 --bind 127.0.0.1 --directory "$B/shown/$1" >/dev/null 2>&1 &
  printf '[services.pool-%s]\nnodes = ["%s"]\nmetrics = "http://127.0.0.1:8000/metrics"\n\n' "$1" "$1" >>"$B/exporters"
}
ask() {
  at "$1" curl -sS --max-time 5 --cacert "$SITE/authorities.pem" --cert "$SITE/identity.pem" --key "$SITE/identity.key" \
    --resolve "$2.grid.internal:9091:$(address "$2")" "https://$2.grid.internal:9091/v1/site/signals"
}
