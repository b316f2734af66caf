# shellcheck shell=bash
# Clients for the beds that know nothing of grid: what they need they read from a binding's folder
# (servicebinding.io). Source it.
#
#   client_install               puts the clients into target/beds/client, once (python3 with venv; PyPI)
#   amqp round-trip BINDING QUEUE TEXT
#   amqp login BINDING
#   amqp hold BINDING            see tests/beds/amqp.py

_client_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
_client_home=$_client_here/../../target/beds/client

client_install() {
	local requirements=$_client_here/requirements.txt made
	if ! cmp -s "$requirements" "$_client_home/requirements.txt"; then
		# Made aside and moved, so that neither a second bed nor an interruption leaves half of it.
		mkdir -p "${_client_home%/*}"
		made=$(mktemp -d "$_client_home.XXXXXX") &&
			python3 -m venv "$made" &&
			"$made/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
				--require-hashes -r "$requirements" &&
			cp "$requirements" "$made/" || return 1
		rm -rf "$_client_home"
		mv -T "$made" "$_client_home" 2>/dev/null || rm -rf "$made" # another bed was quicker
	fi
}

amqp() {
	"$_client_home/bin/python" "$_client_here/amqp.py" "$@"
}
