#!/usr/bin/env bash
# bed: a real API server takes the definitions and the resources of a mesh, under each group, version and generation of field names
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/kube.sh
. "$(dirname "$0")/kube.sh"

grid 0 init "$B/fresh"
cat >"$MESH/mesh.toml" <<EOF
[mesh]
name = "bed"
[signals]
mode = "poll"
check = ["true"]
gridId = "e10"
region = "eu"
zone = "no"
seeds = ["seed.example.net", "[2001:db8::1]:7000"]
[defaults]
courier = "local"
[nodes.atlas]
address = "10.0.0.1"
root = "$B/machines/atlas"
gateway = { address = "gateway.example.net", tls = "mutual", serverName = "atlas.grid.internal" }
[nodes.no]
address = "10.0.0.2"
root = "$B/machines/no"
region = "us"
gateway = { address = "[2001:db8::2]:8443", tls = "plaintext" }
EOF
grid 0 push --all
kube_start
kube create namespace grid-system >/dev/null
seen "kube-apiserver $(kube get --raw /version | sed -n 's/.*"gitVersion": "\(.*\)",/\1/p'), $(kubectl version --client 2>/dev/null | head -1)"

rendered() { "$GRID" --mesh "$MESH" signals "$@" </dev/null; }
# The same objects as the server has them and as they were rendered: everything that we said, and nothing of a spec besides.
same() { # FILE GROUP
  kube create --dry-run=client --validate=false -o json -f "$1" >"$B/said.json" 2>"$OUT" || fail "kubectl does not read what was rendered"
  kube get "gridnetworks.$2,gridsites.$2" -o json >"$B/held.json" 2>"$OUT" || fail "the server does not give it back"
  python3 - "$B/said.json" "$B/held.json" <<'P' >"$OUT" 2>&1 || fail "what is read back is not what was rendered"
import json, sys

def objects(path):
    text, found = open(path).read(), []
    while text.strip():
        value, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        found += value["items"] if value["kind"] == "List" else [value]
    return {(o["apiVersion"], o["kind"], o["metadata"]["name"]): (o["spec"], o["metadata"]["labels"]) for o in found}

said, held = map(objects, sys.argv[1:])
assert len(said) == 3, said
assert said == held, (said, held)
P
}
refused() { # WHAT FILE TEXT
  if kube apply -f "$2" >"$OUT" 2>&1; then fail "taken: $1"; fi
  matches "$3"
}
# kubectl knows a field by the schema that the server publishes, which follows a definition by a moment.
field_is_refused() { ! kube apply -f "$B/wrong.yaml" >"$OUT" 2>&1 && grep -qE 'unknown field "?sepc' "$OUT"; }

taken() { kube apply -f "$1" >"$OUT" 2>&1; }
site_is_taken() { rendered render --site atlas --secrets 2>/dev/null | kube apply -f - >"$OUT" 2>&1; }

for group in grid.praxis-proxy.io grid.praxis.fast; do
  for version in v1alpha1 v1beta1; do
    for names in old new; do
      api=(--group "$group" --version "$version" --field-names "$names")
      rendered crd "${api[@]}" >"$B/crd.yaml"
      rendered render "${api[@]}" >"$B/mesh.yaml"
      kube apply -f "$B/crd.yaml" >"$OUT" 2>&1 || fail "the definitions are not taken"
      kube wait --for condition=established --timeout 30s "crd/gridnetworks.$group" "crd/gridsites.$group" >"$OUT" 2>&1 ||
        fail "the definitions are not in force"
      kube get crd "gridnetworks.$group" "gridsites.$group" -o json >"$OUT"
      silent NonStructuralSchema
      within 20 taken "$B/mesh.yaml"
      same "$B/mesh.yaml" "$group"
      sed 's/mode: poll/mode: swim/' "$B/mesh.yaml" >"$B/wrong.yaml"
      refused "a mode that there is not" "$B/wrong.yaml" 'Unsupported value: "swim"'
      sed 's/^kind: GridSite/&\nsepc: {}/' "$B/mesh.yaml" >"$B/wrong.yaml"
      within 30 field_is_refused
      sed 's/^\( *\)- "\{0,1\}\([0-9a-f]\{64\}\)"\{0,1\}$/\1- "AB\2"/' "$B/mesh.yaml" >"$B/wrong.yaml"
      refused "a pin that is none" "$B/wrong.yaml" 'canonicalFingerprints.*should match|should match'
      seen "$group/$version with $names names: taken, read back as rendered; a wrong mode, field and pin are refused"
    done
    kube delete -f "$B/crd.yaml" --timeout 30s >"$OUT" 2>&1 || fail "the definitions cannot be taken away"
  done
done

rendered crd | kube apply -f - >"$OUT" 2>&1 || fail "the definitions are not taken"
kube wait --for condition=established --timeout 30s crd --all >"$OUT" 2>&1 || fail "the definitions are not in force"
within 20 site_is_taken
held() { kube get secret -n grid-system "$1" -o "go-template={{index .data \"$2\"}}" | base64 -d; }
site=$B/machines/atlas/current/services/site
held grid-bed-site tls.key | cmp - "$site/identity.key" || fail "the key in the cluster is not the site's"
held grid-bed-site tls.crt | cmp - "$site/identity.pem" || fail "the certificate in the cluster is not the site's"
held grid-bed-ca ca.crt | cmp - "$site/authorities.pem" || fail "the authorities in the cluster are not the mesh's"
[ "$(kube get secret -n grid-system grid-bed-site -o 'go-template={{.type}}')" = kubernetes.io/tls ] || fail "no TLS secret"
seen "--site atlas --secrets: the authorities and the site's own identity lie in the cluster, byte for byte"

# A cluster where nothing that was rendered stands any more: what is pruned by our label is ours alone.
kube create secret generic -n grid-system theirs --from-literal a=b >/dev/null
kube delete secret -n grid-system -l app.kubernetes.io/managed-by=grid >"$OUT"
says grid-bed-ca
kube get secret -n grid-system theirs >/dev/null || fail "what is theirs went too"
seen "the label picks what grid rendered, and nothing else"
