# shellcheck shell=sh
# An isolated RabbitMQ for a bed. Source it; it starts nothing by itself.
#
#   rabbitmq_start FOLDER PORT   starts a broker that keeps everything in FOLDER (absolute, without spaces) and
#                                listens on 127.0.0.1 only: AMQP on PORT; the twenty ports from PORT on are
#                                its own. Returns when it is up, or 1 after 90 s. It leaves
#                                FOLDER/rabbitmqctl, which speaks to it and to no other.
#   rabbitmq_stop FOLDER         stops it, and its port mapper, whatever state it is in.
#
# Its account guest/guest is an administrator, as in every new RabbitMQ. Another user than root may run it.

rabbitmq_start() {
	mkdir -p "$1/mnesia" "$1/log" "$1/conf" "$1/home" || return 1
	# Debian's command in PATH changes to the user rabbitmq; the one in the library folder does not.
	cat >"$1/env" <<EOF
export HOME=$1/home LANG=C.UTF-8 LC_ALL=C.UTF-8
export RABBITMQ_NODENAME=bed-$2@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
export RABBITMQ_NODE_PORT=$2 RABBITMQ_DIST_PORT=$(($2 + 1))
export ERL_EPMD_PORT=$(($2 + 2)) ERL_EPMD_ADDRESS=127.0.0.1
export RABBITMQ_CTL_DIST_PORT_MIN=$(($2 + 3)) RABBITMQ_CTL_DIST_PORT_MAX=$(($2 + 19))
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
export RABBITMQ_MNESIA_BASE=$1/mnesia RABBITMQ_LOG_BASE=$1/log
export RABBITMQ_CONFIG_FILE=$1/conf/rabbitmq RABBITMQ_ADVANCED_CONFIG_FILE=$1/conf/advanced.config
export RABBITMQ_CONF_ENV_FILE=$1/conf/rabbitmq-env.conf RABBITMQ_ENABLED_PLUGINS_FILE=$1/conf/enabled_plugins
export RABBITMQ_PID_FILE=$1/pid
export PATH=/usr/lib/rabbitmq/bin:$PATH
EOF
	cat >"$1/conf/rabbitmq.conf" <<EOF
listeners.tcp.1 = 127.0.0.1:$2
disk_free_limit.absolute = 50MB
EOF
	cat >"$1/rabbitmqctl" <<EOF
#!/bin/sh
. '$1/env'
exec rabbitmqctl "\$@"
EOF
	chmod 755 "$1/rabbitmqctl"
	(
		# shellcheck disable=SC1091
		. "$1/env"
		exec setsid rabbitmq-server
	) >"$1/out" 2>&1 </dev/null &
	_rabbitmq_tries=0
	# Until it is registered the command fails at once; then it waits.
	until "$1/rabbitmqctl" -q await_startup --timeout 60 >/dev/null 2>&1; do
		_rabbitmq_tries=$((_rabbitmq_tries + 1))
		if [ "$_rabbitmq_tries" -ge 60 ] || ! kill -0 $! 2>/dev/null; then
			echo "the broker did not start:" >&2
			tail -n 20 "$1/out" >&2
			rabbitmq_stop "$1"
			return 1
		fi
		sleep 0.5
	done
}

rabbitmq_stop() {
	[ -e "$1/env" ] || return 0
	timeout 30 "$1/rabbitmqctl" -q shutdown >/dev/null 2>&1 ||
		{ [ ! -s "$1/pid" ] || kill -9 "$(cat "$1/pid")"; } 2>/dev/null || :
	(
		# shellcheck disable=SC1091
		. "$1/env"
		epmd -kill >/dev/null 2>&1 || :
	)
}
