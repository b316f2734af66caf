# shellcheck shell=bash
# A real Kubernetes API server, with an etcd of its own, for the beds. Source it after bed.sh.
#
#   kube_start        starts both, waits until it is ready, and has `kube` talk to it; bed_close ends them
#   kube ARGS…        kubectl against it, as an administrator
#   kube_apiserver    prints the path of its program: $GRID_KUBE_APISERVER; else what lies in $GRID_TOOLS, or in
#                     ../shared/tools beside the repository; else target/beds/kube-apiserver, which is built once from
#                     Debian's source package: about 8 minutes on two cores, as root on Debian only

_kube_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

kube_apiserver() {
  local built=$_kube_here/../../target/beds/kube-apiserver packed tools
  if [ -n "${GRID_KUBE_APISERVER:-}" ]; then
    printf '%s' "$GRID_KUBE_APISERVER"
    return
  fi
  if [ ! -x "$built" ]; then
    mkdir -p "${built%/*}"
    tools=${GRID_TOOLS:-$_kube_here/../../../shared/tools}
    packed=$(find "$tools" -maxdepth 1 -name 'kube-apiserver-*-linux-amd64.gz' 2>/dev/null | sort -V | tail -1)
    if [ -n "$packed" ] && [ "$(uname -m)" = x86_64 ]; then
      gzip -dc "$packed" >"$built.$$"
    else
      _kube_build "$built.$$" || return 1
    fi
    chmod 755 "$built.$$"
    mv -T "$built.$$" "$built"
  fi
  printf '%s' "$built"
}

# Debian has the API server as source only. The package vendors a reflect2 that crashes under its own Go on the first
# custom resource, so Debian's newer one takes its place.
_kube_build() {
  local to=$1 build apt log
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "   there is no kube-apiserver, and only root on Debian can build one: name one with GRID_KUBE_APISERVER" >&2
    return 1
  fi
  build=$(mktemp -d "${TMPDIR:-/tmp}/grid-kube.XXXXXX")
  log=$build/log
  echo "   there is no kube-apiserver at hand: it is built from Debian's source, once, in about 8 minutes" >&2
  (
    set -e
    cd "$build"
    # The machine's own package sources, asked for source packages.
    mkdir -p apt/parts apt/lists/partial
    : >apt/sources.list
    [ ! -e /etc/apt/sources.list ] || sed 's/^deb /deb-src /' /etc/apt/sources.list >apt/sources.list
    for part in /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
      [ ! -e "$part" ] || sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$part" >"apt/parts/${part##*/}"
    done
    apt=(-qq -o "Dir::Etc::sourcelist=$build/apt/sources.list" -o "Dir::Etc::sourceparts=$build/apt/parts"
      -o "Dir::State::lists=$build/apt/lists" -o APT::Sandbox::User=root)
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends golang-go rsync jq make dpkg-dev golang-github-modern-go-reflect2-dev
    apt-get "${apt[@]}" update
    apt-get "${apt[@]}" source kubernetes
    cd kubernetes-*/
    rm -rf vendor/github.com/modern-go/reflect2
    cp -r /usr/share/gocode/src/github.com/modern-go/reflect2 vendor/github.com/modern-go/reflect2
    HOME=$build GOPATH=$build/go GOCACHE=$build/cache GOPROXY=off GOFLAGS=-mod=vendor CGO_ENABLED=0 make WHAT=cmd/kube-apiserver
    cp _output/bin/kube-apiserver "$to"
  ) >"$log" 2>&1 || {
    tail -20 "$log" | sed 's/^/   | /' >&2
    chmod -R u+w "$build"
    rm -rf "$build"
    return 1
  }
  chmod -R u+w "$build" # Go writes its modules read-only
  rm -rf "$build"
}

kube_start() {
  local program token port=$((PORT_BASE + 30))
  program=$(kube_apiserver) || fail "there is no kube-apiserver"
  mkdir -p "$B/kube"
  openssl genrsa -out "$B/kube/sa.key" 2048 2>/dev/null
  token=$(openssl rand -hex 16)
  (umask 077 && printf '%s,admin,admin,"system:masters"\n' "$token" >"$B/kube/tokens.csv")
  etcd --data-dir "$B/kube/etcd" --listen-client-urls "http://127.0.0.1:$((port + 1))" \
    --advertise-client-urls "http://127.0.0.1:$((port + 1))" --listen-peer-urls "http://127.0.0.1:$((port + 2))" \
    >"$B/kube/etcd.log" 2>&1 &
  echo $! >"$B/kube-etcd.pid"
  "$program" --etcd-servers="http://127.0.0.1:$((port + 1))" --etcd-prefix=/k --bind-address=127.0.0.1 \
    --advertise-address=127.0.0.1 --secure-port="$port" --cert-dir="$B/kube/certs" --token-auth-file="$B/kube/tokens.csv" \
    --authorization-mode=RBAC --service-cluster-ip-range=10.99.0.0/24 --service-account-issuer=https://127.0.0.1 \
    --service-account-key-file="$B/kube/sa.key" --service-account-signing-key-file="$B/kube/sa.key" \
    --disable-admission-plugins=ServiceAccount --endpoint-reconciler-type=none >"$B/kube/apiserver.log" 2>&1 &
  echo $! >"$B/kube-apiserver.pid"
  (umask 077 && cat >"$B/kube/config") <<EOF
apiVersion: v1
kind: Config
clusters: [{name: bed, cluster: {server: "https://127.0.0.1:$port", certificate-authority: "$B/kube/certs/apiserver.crt"}}]
users: [{name: admin, user: {token: "$token"}}]
contexts: [{name: bed, context: {cluster: bed, user: admin}}]
current-context: bed
EOF
  within 60 kube_is_ready
}
kube() { kubectl --kubeconfig "$B/kube/config" --cache-dir "$B/kube/cache" --request-timeout 30s "$@"; }
kube_is_ready() { [ "$(kube get --raw /readyz 2>/dev/null)" = ok ]; }
