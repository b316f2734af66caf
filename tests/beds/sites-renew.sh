#!/usr/bin/env bash
# bed: identities of sites and their authority are renewed under pin and under spiffe, while all poll: no poll fails after its retries
. "$(dirname "$0")/bed.sh"
# shellcheck source=tests/beds/apart.sh
. "$(dirname "$0")/apart.sh"
# shellcheck source=tests/beds/sites.sh
. "$(dirname "$0")/sites.sh"
grid 0 init "$B/fresh"
SITES=(atlas borealis caelum)
sites "${SITES[@]}"
certificate() { at "$1" openssl x509 -in "$SITE/identity.pem" -outform DER | sha256sum | cut -d' ' -f1; }
authority() { at "$1" sha256sum "$SITE/authorities.pem" | cut -d' ' -f1; }
pairs() { # CMD…: for each site and each of its peers
  local name peer
  for name in "${SITES[@]}"; do for peer in "${SITES[@]}"; do [ "$name" = "$peer" ] || "$@" "$name" "$peer"; done; done
}
first_poll() { within 60 polled "$1" "$2" 1; }
more_polls() { within 60 polled "$1" "$2" $(($(polls "$1" "$2") + 3)); }
of_each() { local name; for name in "${SITES[@]}"; do "$1" "$name"; done | xargs; }
# A restart sets a counter to 0 again, so it is looked at whether it rose.
rose() { # BEFORE NOW
  local -a before now
  local i
  read -ra before <<<"$1"
  read -ra now <<<"$2"
  for i in "${!now[@]}"; do [ "${now[$i]}" -le "${before[$i]}" ] || return 0; done
  return 1
}
no_poll_failed() { # COUNTED NOTED: as they were before
  pairs more_polls
  COUNTED=$(of_each failed_polls) NOTED=$(of_each noted_failures)
  if rose "$1" "$COUNTED" || [ "$NOTED" != "$2" ]; then
    for name in "${SITES[@]}"; do echo "$name:"; series "$name"; journal "$name" | grep 'be polled'; done >"$OUT" || :
    fail "failed polls of ${SITES[*]}: $1 before, $COUNTED now; noted in the journals: $2 before, $NOTED now"
  fi
}
one_pin() { # NAME: its pins are one, at every site: that of its certificate
  local name
  for name in "${SITES[@]}"; do
    expect "$(certificate "$1")" at "$name" sed -n "/name = \"$1\"/,/pins/s/^pins = \[\"\(.*\)\"\]\$/\1/p" "$SITE/peers.toml"
  done
}
renewed() { # WHAT ROTATE-ARGUMENTS… -- SITES…
  local what=$1 before counted noted name
  shift
  local arguments=()
  while [ "$1" != -- ]; do arguments+=("$1"); shift; done
  shift
  declare -A old=()
  for name in "$@"; do old[$name]=$(certificate "$name"); done
  counted=$(of_each failed_polls) noted=$(of_each noted_failures)
  before=$(exits "$1")
  grid 0 rotate "${arguments[@]}"
  grid 0 push --behind
  for name in "$@"; do
    [ "$(certificate "$name")" != "${old[$name]}" ] || fail "$name has its old certificate"
    expect "$(certificate "$name")" status "$name" certificate
  done
  no_poll_failed "$counted" "$noted"
  seen "$what: $(pairs polls | xargs) polls succeeded; failed ones of ${SITES[*]}: $counted before, $COUNTED after; noted: $noted before, $NOTED after"
  if [ "$TRUST" = pin ]; then
    for name in "$@"; do one_pin "$name"; done
    expect "$(xargs <<<"$before 75")" exits "$1"
  else
    expect "$before" exits "$1"
  fi
}

for TRUST in pin spiffe; do
  declares poll "$TRUST" >"$MESH/mesh.toml"
  grid 0 push --all
  pairs first_poll
  renewed "$TRUST, rotate --site atlas" --site atlas -- atlas
  renewed "$TRUST, rotate --site borealis" --site borealis -- borealis
  known=$(authority caelum)
  renewed "$TRUST, rotate --ca" --ca -- "${SITES[@]}"
  [ "$(authority caelum)" != "$known" ] || fail "the authority is the old one"
  expect 1 at caelum grep -c BEGIN "$SITE/authorities.pem"
done
grid 0 status --exit-code
