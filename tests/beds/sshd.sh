# shellcheck shell=sh
# A real sshd as a machine, without touching this one's. Source it; needs root, openssh-server and ssh-keygen.
#
#   sshd_start DIR PORT     starts it on all of 127.0.0.0/8, and on ::1 where there is that; DIR gets home/.ssh with a key that may log in as root, the
#                           known_hosts of 127.0.0.1 (hashed) and of 127.0.0.2 to 127.0.0.9, and sshd's log
#   sshd_stop DIR

sshd_start() {
	sshd_dir=$1 sshd_port=$2
	mkdir -p "$sshd_dir/home/.ssh" /run/sshd || return 1
	chmod 700 "$sshd_dir/home/.ssh"
	[ -f "$sshd_dir/host_key" ] || ssh-keygen -q -t ed25519 -N "" -C "" -f "$sshd_dir/host_key" || return 1
	[ -f "$sshd_dir/home/.ssh/id_ed25519" ] ||
		ssh-keygen -q -t ed25519 -N "" -C "" -f "$sshd_dir/home/.ssh/id_ed25519" || return 1
	cp "$sshd_dir/home/.ssh/id_ed25519.pub" "$sshd_dir/authorized_keys"
	read -r sshd_kind sshd_key _ <"$sshd_dir/host_key.pub"
	: >"$sshd_dir/home/.ssh/known_hosts"
	echo "[127.0.0.1]:$sshd_port $sshd_kind $sshd_key" >"$sshd_dir/home/.ssh/known_hosts"
	ssh-keygen -q -H -f "$sshd_dir/home/.ssh/known_hosts" >/dev/null 2>&1
	rm -f "$sshd_dir/home/.ssh/known_hosts.old"
	for sshd_host in 2 3 4 5 6 7 8 9; do
		echo "[127.0.0.$sshd_host]:$sshd_port $sshd_kind $sshd_key" >>"$sshd_dir/home/.ssh/known_hosts"
	done
	cat >"$sshd_dir/config" <<-END
		Port $sshd_port
		ListenAddress 0.0.0.0
		HostKey $sshd_dir/host_key
		PidFile $sshd_dir/pid
		AuthorizedKeysFile $sshd_dir/authorized_keys
		StrictModes no
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin prohibit-password
		UseDNS no
		MaxStartups 100:30:200
	END
	if grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
		echo "ListenAddress ::1" >>"$sshd_dir/config"
	fi
	/usr/sbin/sshd -D -f "$sshd_dir/config" -E "$sshd_dir/log" </dev/null >/dev/null 2>&1 &
	sshd_pid=$!
	sshd_tries=0
	until [ -s "$sshd_dir/pid" ]; do
		kill -0 "$sshd_pid" 2>/dev/null || return 1
		sshd_tries=$((sshd_tries + 1))
		[ "$sshd_tries" -lt 200 ] || return 1
		sleep 0.05
	done
}

sshd_stop() {
	[ -s "$1/pid" ] || return 0
	kill "$(cat "$1/pid")" 2>/dev/null
	rm -f "$1/pid"
}
