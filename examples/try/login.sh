# Logs in with what the binding says, and nothing else: the host's file has to have the account, with this password.
set -eu
binding=$GRID_RELEASE/bindings/accounts
machines=$(cd -P "$GRID_RELEASE/../../../../../.." && pwd)
host=$(cat "$binding/host")
user=$(cat "$binding/username")
hash=$(tr -d "\n" <"$binding/password" | sha256sum | cut -d " " -f 1)
if ! awk -v user="$user" -v hash="$hash" '$2 == user && $3 == hash { found = 1 } END { exit !found }' "$machines/$host/accounts"; then
	echo "$host refused $user"
	exit 1
fi
echo "logged in to $host as $user"
