# The machine side of a send and of a question (DESIGN.md, section 5).
#
# It is sent as one command: comments and indentation are taken out, so that it stays below 30,000 bytes. It holds
# no single quote outside comments, since it travels inside of them. A line "#@ NAME" is a place where a test can
# kill it; what is sent has no trace of these.
#
#   sh -c SCRIPT grid send ROOT WAIT NAME SENDER TOKEN REPLACES TAKE_OVER DIGEST SUMS BASE DELTA ALL
#   sh -c SCRIPT grid ask  ROOT WAIT NAME SENDER
#   sh -c SCRIPT grid peek ROOT WAIT NAME SENDER DIGEST SUMS
#                                                    under no lock, and nothing is finished first: its token, and whether
#                                                    release DIGEST lies there as it was sent. It writes nothing.
#
# Standard output is the protocol (protocol.rs reads it): a line is a word and its values. What a command of a service
# prints comes as "out SERVICE LINE", so it can forge nothing.
#
# What lies under ROOT:
#
#   current -> releases/DIGEST       switched by one rename
#   releases/DIGEST/                 manifest.json, plan, sums, and the files that they name
#     .previous                      to what it is rolled back; "-": to nothing
#     .goes-on                       providers whose accounts are not closed where they leave: they are in use elsewhere
#     .said-gone                     services that leave whatever their remove says: the operator said that they are gone
#     .applied                       written last: all of it is in force
#     .broken                        a roll-back to it failed; the next send applies all of its own
#   releases/.new-NAME/              being received; rubbish if nobody holds the lock
#   undo                             a roll-back is under way: what to undo, why, which lists stay
#   token                            the fence
#   lists/DIGEST/PROVIDER/           a list newer than that of release DIGEST, kept from a roll-back to it
#   saved/PATH                       what stood at an absolute path before grid
#   lock/N                           the highest N is the holder: process, its start, boot; empty: nobody
#   log, log.1, run/                 who sent what; scratch of the holder of the lock
#
# Crash safety. Whatever instant everything is killed at, the next send or question finds one of: nothing to do;
# "undo", and rolls back (again); or a current release without ".applied", and applies all of it (again). Each change
# of state is one rename.
#
# Threats. Names of services are [a-z0-9-]; paths hold no control character and no backslash; both may else be
# anything, so every expansion is quoted and every path is made to begin with "./" or "/". Word splitting is used on
# purpose in few places, by tabs or newlines, with globbing off.
#
# shellcheck shell=sh disable=SC2086,SC2119,SC2120
set -uf
umask 022
nl="
"
tab="	"
ifs=" $tab$nl"
IFS=$ifs
PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin
mode=$1 root=$2 wait=$3 name=$4 sender=$5
shift 5
run=$root/run new=$root/releases/.new-$name
f_step="" f_svc=- f_text="" used=0 runs=0 locked="" t_load="" t_apply="" loaded="" lost="" all=0 settling=0 mends=0 most="" plan_file="" plan="" other_file="" other_plan="" stay="" drifted=""

say() { printf "%s\n" "$1"; }
step() { say "step $1 $2 $3"; }
# About this send; silent about an earlier one that is settled first.
tell() { [ $settling = 1 ] || say "$1"; }
# The cause of a failure: its first line, of at most 1,000 characters.
bad() {
	[ "$f_step" ] || { f_step=$1 f_svc=$2 f_text=$(printf "%.1000s" "${3%%"$nl"*}"); }
	return 1
}
failed() { say "fail ${f_step:-start} $f_svc $f_text"; }
finish() {
	[ "$mode" != send ] || journal "$1"
	unlock
	say "end $1"
	exit 0
}
die() {
	f_step=""
	bad "$@"
	failed
	[ ! -d "$new" ] || rm -rf "$new"
	finish refused
}
has() { case " $1 " in *" $2 "*) ;; *) return 1 ;; esac }
# Seconds since the machine started, without a process.
now() {
	read -r now _ </proc/uptime
	now=${now%%.*}
}
nap() { sleep "$1" || sleep 1; }
# Whether mv can put one thing in the place of another.
renames() { : >"$run/a" && mv -T -- "$run/a" "$run/b"; }
# A small file, replaced at once.
put() { printf "%s\n" "$2" >"$1.new" && mv -T -- "$1.new" "$1"; }
# What was mended: a line each, of the first hundred.
mended() {
	mends=$((mends + 1))
	[ $mends -gt 100 ] || printf "mended %.1000s\n" "$1"
}
private() { [ -d "$1" ] || mkdir -m 700 "$1"; }
there() { [ -e "$1" ] || [ -L "$1" ]; }

# --- the lock: whoever links the next number holds it, if the highest one belongs to nobody alive

# When process $1 started, into $began; fails if it is not alive.
began() {
	began=""
	[ -r "/proc/$1/stat" ] && read -r began <"/proc/$1/stat" || return 1
	set -- ${began##*) }
	began=${20-}
	[ "${1-Z}" != Z ]
}
top() {
	top=0
	set +f
	for f in "$root"/lock/*; do
		f=${f##*/}
		case $f in *[!0-9]*) ;; *) [ "$f" -gt "$top" ] && top=$f ;; esac
	done
	set -f
}
# Which start of this machine it is.
boot() {
	boot=-
	[ -r /proc/sys/kernel/random/boot_id ] && read -r boot </proc/sys/kernel/random/boot_id
}
# Whether somebody holds the lock and lives: $pid, $who. $top is the highest number there.
busy() {
	top=0 pid="" start="" b="" who=""
	[ ! -d "$root/lock" ] || top
	[ "$top" = 0 ] || read -r pid start b who <"$root/lock/$top"
	[ "$pid" ] && [ "$b" = "$boot" ] && began "$pid" && [ "$began" = "$start" ]
}
lock() {
	[ -d "$root/lock" ] && [ -d "$root/releases" ] || e=$(mkdir -p "$root/lock" "$root/releases" 2>&1) || die start - "$root cannot be used: $e"
	boot
	began $$
	mine="$$ $began $boot $sender"
	now
	end=$((now + wait))
	while :; do
		if busy; then
			now
			[ "$now" -lt "$end" ] || die lock - "process $pid holds it: $who"
			nap 0.2
			continue
		fi
		n=$((top + 1))
		e=$({ printf "%s\n" "$mine" >"$root/lock/new.$$" && ln "$root/lock/new.$$" "$root/lock/$n"; } 2>&1) || {
			there "$root/lock/$n" || die lock - "$root/lock cannot be written: ${e:-it is not said why}"
			continue
		}
		top
		[ "$top" = "$n" ] && break
		rm -f "$root/lock/$n"
	done
	locked=$n
	# All that is rubbish now, at once.
	set +f
	set -- "$run"
	for f in "$root"/lock/* "$root"/releases/.new-* "$root"/releases/.old-*; do
		[ "$f" = "$root/lock/$n" ] || ! there "$f" || set -- "$@" "$f"
	done
	set -f
	rm -rf -- "$@"
	e=$({ mkdir -m 700 "$run" && mkfifo "$run/d"; } 2>&1) || die start - "$root cannot be used: $e"
	exec 5<>"$run/d"
	mark=$name$$
	[ -r /proc/sys/kernel/random/uuid ] && read -r mark </proc/sys/kernel/random/uuid
}
unlock() {
	[ "$locked" ] || return 0
	rm -rf "$run"
	: >"$root/lock/$locked"
	locked=""
}
journal() {
	[ "$locked" ] || return 0
	size=$(wc -c <"$root/log") && [ "$size" -gt 1048576 ] && mv -T "$root/log" "$root/log.1"
	(umask 077 && printf "%s %s: %s %s\n" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$sender" "${digest:--}" "$1${f_step:+ ($f_step $f_svc $f_text)}" >>"$root/log")
}
show_log() {
	[ -f "$root/log" ] || return 0
	l=$(tail -n 20 "$root/log")
	IFS=$nl
	for l in $l; do printf "log %.1000s\n" "$l"; done
	IFS=$ifs
}

# --- commands of services

# Prints what it reads, as the output of service $1, until the mark or the end: its beginning, and its last lines, where the
# reason stands, within $2 bytes. Where that is too little for a beginning, its last lines go to a file and are held back.
# Then it tells so on descriptor 5, and drains: a daemon that was left behind must neither hold up the send nor find its
# output broken.
#
# It reads pieces, since a shell reads lines a byte at a time, and ends them with a full stop, which keeps a last newline.
# $text is what is not shown yet: lines, of at most what is shown of one, and one that is not whole. Of eight megabytes
# the rest is not looked at. Nothing here may take the square of a length: no "%%" or "##" with a star.
relay() {
	exec 4>&-
	n=0 whole=0 got=0 of=$1 room=$(($2 - 12000)) text=. from=+1
	[ "$room" -gt 0 ] || { room=0 && exec >"$run/held"; }
	while [ $got -lt 8388608 ] && part=$(dd bs=65536 count=1 5>&- | tr "\000" "?" && echo .) && [ "$part" != . ]; do
		text=${text%.}$part got=$((got + ${#part}))
		case $from$nl$text in
		*"$nl$mark$nl"*) whole=1 ;;
		+1"$nl"*"$nl"*) ;;
		*) [ ${#text} -gt 49152 ] || continue ;;
		esac
		[ $whole = 0 ] || break
		shorten
		[ $from = +1 ] || continue
		IFS=$nl
		set -- $text
		while [ $# -gt 1 ] && [ $n -lt $room ]; do out "$1" && shift; done
		[ $# -le 1 ] || from=22
		text="$*"
		IFS=$ifs
	done
	begins=$from from=+1
	shorten
	text=${text%.}
	IFS=$nl
	set -- $text
	IFS=$ifs
	while [ $begins = +1 ] && [ $# -gt 0 ] && [ "$1" != "$mark" ] && [ $n -lt $room ]; do out "$1" && shift; done
	k=0
	for l in "$@"; do
		[ "$l" != "$mark" ] || break
		k=$((k + 1))
	done
	[ $k -le 20 ] || {
		say "out $of [lines are left out here]"
		shift $((k - 20))
	}
	for l in "$@"; do
		[ "$l" != "$mark" ] || break
		out "$l"
	done
	[ $whole = 1 ] || say "out $of [it printed more, which is not shown]"
	[ $room -gt 0 ] || n=0
	printf "%s\n" "$n" >&5
	exec cat >/dev/null 5>&-
}
# Of $text: the beginnings of its lines, from line $from on; of what is no longer shown at once, the last.
shorten() { text=$(printf "%s\n" "$text" | tr -s "\n" | cut -b-501 | tail -n $from); }
out() {
	printf "out %s %.500s\n" "$of" "$1"
	n=$((n + ${#1} + 80))
}
# Runs a command of service $1 for at most $2 seconds: file $3, in folder $4, with $5 on standard input. Why it failed
# is then in $why. All that is shown of all commands stays below a megabyte: first as it comes, until $most or 700,000 bytes
# are shown, and then only what a command that failed printed last.
run() {
	cap=$((${most:-700000} - used))
	[ "$cap" -lt 65536 ] || cap=65536
	runs=$((runs + 1))
	mkfifo "$run/o$runs" || { why="no fifo can be made in $run" && return 1; }
	# Opened both ways, since that never waits; and closed only once the relay has answered, so that it finds a writer.
	exec 4<>"$run/o$runs"
	relay "$1" "$cap" <"$run/o$runs" &
	(
		trap - HUP PIPE
		cd "$4" && GRID_RELEASE=$4 && export GRID_RELEASE && exec timeout -k 5 "$2" sh "$3"
	) <"$5" >&4 2>&1 4>&- 5>&-
	rc=$?
	printf "\n%s\n" "$mark" >&4
	read -r n <&5 || read -r n <&5 || n=0
	exec 4>&-
	used=$((used + n))
	[ ! -s "$run/held" ] || mv -T "$run/held" "$run/said"
	case $rc in
	0)
		[ ! -f "$run/said" ] || rm "$run/said"
		return 0
		;;
	124 | 137 | 143) why="it was not done within $2 s" ;;
	*) why="it exited with $rc" ;;
	esac
	[ "$most" ] || show_held
	return 1
}
# What the command that failed printed, if it was held back.
show_held() {
	[ -f "$run/said" ] || return 0
	[ $used -gt 950000 ] || cat "$run/said"
	used=$((used + 12000))
	rm "$run/said"
}
# The same, again and again until it holds or time is up. Of all tries so much is shown at once as of one command; then
# the last that printed something.
until_holds() {
	now
	most=$((used + 65536))
	[ $most -lt 700000 ] || most=700000
	end=$((now + $2)) pause=0.2 told=""
	while :; do
		left=$((end - now))
		[ "$left" -gt 0 ] || left=1
		run "$1" "$left" "$3" "$4" "$5" && most="" && return 0
		# What had to stop with the time says less than what ended by itself before.
		case $why in "it was not done"*) ;; *) told=$why ;; esac
		now
		[ "$now" -lt "$end" ] || {
			why="it did not hold within $2 s; ${told:-$why}"
			most=""
			show_held
			return 1
		}
		nap $pause
		now
		case $pause in 0.2) pause=0.5 ;; *) pause=1 ;; esac
	done
}

# --- plans: lines of services, in the order in which they are applied, then of files, then of installed files

# The text of a plan into $p. The last two are kept, of the two releases of a send; but what a subshell reads is lost
# with it, so who asks in subshells again and again calls this first.
plan_of() {
	case $1 in
	"$plan_file") p=$plan ;;
	"$other_file") p=$other_plan ;;
	*)
		p=""
		[ ! -f "$1" ] || p=$(cat "$1")
		other_file=$plan_file other_plan=$plan plan_file=$1 plan=$p
		;;
	esac
}
# Forgets what was read of plans, since they changed; but for the one that was read last, if it lies at $1 now.
plans_moved() { plan_file=${1-} other_file=""; }
# S name steps list loads applies others test load apply check remove
# F mode owner service path
# I mode owner hash service install path
services_of() {
	plan_of "$root/releases/$1/plan"
	case $p in "plan 1$nl"*) p=${p#*"$nl"} ;; *) p="" ;; esac
	while :; do case $p in "S$tab"*) say "${p%%"$nl"*}" ;; *) break ;; esac && case $p in *"$nl"*) p=${p#*"$nl"} ;; *) break ;; esac done
}
lines_of() {
	plan_of "$2"
	p=$nl$p
	case $p in *"$nl$1$tab"*) say "$1$tab${p#*"$nl$1$tab"}" ;; esac
}
reversed() {
	r=""
	IFS=$nl
	for l in $1; do r=$l$nl$r; done
	IFS=$ifs
}
# The fields of a line of a service.
service() {
	IFS=$tab
	set -- $1
	IFS=$ifs
	s=$2 steps=$3 list=$4 d_load=$5 d_apply=$6 d_other=$7 m_test=$8 m_load=$9
	shift 9
	m_apply=$1 m_check=$2 m_remove=$3
}
named() { s=${line#*"$tab"} s=${s%%"$tab"*}; }
does() { case $steps in *"$1"*) ;; *) return 1 ;; esac }
# The line of service $2 among lines $1, into $found.
find() {
	found=""
	case $nl$1 in
	*"${nl}S$tab$2$tab"*)
		found=$nl$1
		found=S$tab$2$tab${found#*"${nl}S$tab$2$tab"}
		found=${found%%"$nl"*}
		;;
	*) return 1 ;;
	esac
}

# --- files

# Checks the release in folder $1, with the sums and the plan of folder $2: what is missing or edited, or has another
# mode or owner, is then in $wrong, a line each.
verify() {
	wrong=""
	e=$(cd "$1" && { printf "%s  ./sums\n" "$sums" && cat "$2/sums"; } | sha256sum -c) || {
		IFS=$nl
		for l in $e; do case $l in *": OK") ;; *) l=${l#./} && wrong=$wrong${l%: FAILED*}$nl ;; esac done
		IFS=$ifs
		[ "$wrong" ] || wrong=sums$nl
	}
	us=$(stat -c %U:%G "$1")
	each F "$2/plan" "$1"
	[ -z "$wrong" ]
}
# Compares files with what lines $1 of plan $2 say of them: hundreds in one call, and one by one if these differ.
# Below folder $3; of installed ones the path itself. What is wrong: into $wrong.
each() {
	where=$3 kind=$1 want="" got="" some=""
	l=$(lines_of "$1" "$2")
	set --
	IFS=$nl
	for l in $l; do
		entry "$l" || continue
		set -- "$@" "$path"
		want="$want$hex $owner$nl" some=$some$l$nl
		[ $# -lt 200 ] || {
			compare "$@"
			set --
			want="" some=""
		}
	done
	[ $# = 0 ] || compare "$@"
	IFS=$ifs
}
# The fields of a line of a file.
entry() {
	x=$1
	case $x in "$kind$tab"*) ;; *) return 1 ;; esac
	x=${x#*"$tab"}
	hex=${x%%"$tab"*} x=${x#*"$tab"}
	owner=${x%%"$tab"*} x=${x#*"$tab"}
	case $owner in -) owner=$us ;; *:*) ;; *) owner=$owner:${us#*:} ;; esac
	[ "$kind" = F ] || { hash=${x%%"$tab"*} && x=${x#*"$tab"}; }
	owns=${x%%"$tab"*} x=${x#*"$tab"}
	if [ "$kind" = F ]; then path=./$x; else path=${x%%"$tab"*} from=${x#*"$tab"}; fi
}
compare() {
	got=$(cd "$where" && stat -c "%f %U:%G" -- "$@")
	[ "$got$nl" = "$want" ] && return
	IFS=$nl
	for l in $some; do
		entry "$l"
		got=$(cd "$where" && stat -c "%f %U:%G %f %u:%g %f %U:%g %f %u:%G" -- "$path")
		case " $got " in *" $hex $owner "*) ;; *) case $nl$wrong in *"$nl${path#./}$nl"*) ;; *) wrong=$wrong${path#./}$nl ;; esac ;; esac
	done
}
# Gives the files of the new release to their owners.
own() {
	kind=F us=- last=- e=""
	l=$(lines_of F "$new/plan")
	set --
	IFS=$nl
	for l in $l; do
		entry "$l" || continue
		o=${owner%:-}
		if [ $# -gt 0 ] && { [ "$o" != "$last" ] || [ $# = 200 ]; }; then
			e=$(cd "$new" && chown -h -- "$last" "$@" 2>&1) || break
			set --
		fi
		last=$o e=""
		[ "$o" = - ] || set -- "$@" "$path"
	done
	IFS=$ifs
	[ -z "$e" ] || die verify - "files cannot be given to $last: $e"
	[ $# = 0 ] || e=$(cd "$new" && chown -h -- "$last" "$@" 2>&1) || die verify - "files cannot be given to $last: $e"
	# Giving a file away takes these bits from it.
	IFS=$nl
	for l in $(lines_of F "$new/plan"); do
		entry "$l" || continue
		[ "$owner" = - ] || [ $((0x$hex & 07000)) = 0 ] || (cd "$new" && chmod "$(printf %o $((0x$hex & 07777)))" "$path")
	done
	IFS=$ifs
}
# Receives $2 bytes of tar, "delta" or "all", into $new.
receive() {
	plans_moved
	[ ! -d "$new" ] || rm -rf "$new"
	e=$(mkdir -m 700 "$new" 2>&1) || die unpack - "$e"
	say "want $1"
	e=$(head -c "$2" | {
		tar -xpomf - -C "$root" 2>&1
		rc=$?
		# What tar left must not be taken for the beginning of the next one.
		[ "$1" = all ] || cat >/dev/null
		exit $rc
	}) || {
		[ "$1" = delta ] || die unpack - "${e:-tar failed}"
		# A file to carry over is gone; or the disk is full, and then the next one says so.
		return 1
	}
	#@ unpacked
	plan_of "$new/plan"
	[ "$1" = delta ] || carry
	own
	step verify - 0
	verify "$new" "$new"
}
# Adds the service of file $2, as plan $1 says, to $drifted: those whose files were not what they should be.
drift() {
	e=$nl$(lines_of F "$1")$nl
	case $e in *"$tab$2$nl"*) e=${e%%"$tab$2$nl"*} && drifted="$drifted ${e##*"$tab"}" ;; esac
}
# Finds out whose files were edited in the current release, so that they could not be carried over.
edited() {
	step verify - 0
	verify "$root/releases/$cur" "$root/releases/$cur"
	IFS=$nl
	for l in $wrong; do drift "$root/releases/$cur/plan" "$l"; done
	IFS=$ifs
}
# What the controller cannot send, since only this machine has it.
carry() {
	[ "$cur" = - ] && return
	kind=F us=-
	IFS=$nl
	for l in $(lines_of F "$new/plan"); do
		entry "$l" || continue
		[ -e "$new/$path" ] || { mkdir -p "$new/${path%/*}" && ln "$root/releases/$cur/$path" "$new/$path"; }
	done
	IFS=$ifs
}
unverified() {
	die verify - "$1 ${wrong%%"$nl"*} is not what was sent, or is missing"
}

# --- installed files

# Puts the installed files of release $1 in place, where they are not; $2: the lines of the other release, whose files
# are known to be of grid; $3: "fresh" if nothing of it can have been installed yet. What was mended is in $wrong, and
# whose it is in $drifted.
install_all() {
	wrong=""
	rel=$root/releases/$1
	l=$(lines_of I "$rel/plan" 2>/dev/null)
	[ "$l" ] || return 0
	us=$(stat -c %U:%G "$run")
	kind=I
	if [ "$3" = fresh ]; then
		IFS=$nl
		for l in $l; do
			entry "$l" || continue
			installed "$path" "$2" || {
				rm -f -- "$root/saved$path"
				save "$path" || return 1
			}
		done
		IFS=$ifs
	fi
	displaced "$rel"
	IFS=$nl
	for l in $(lines_of I "$rel/plan"); do
		entry "$l" || continue
		case $nl$wrong in *"$nl$path$nl"*) ;; *) continue ;; esac
		make_way "$path" "$2" || return 1
		if installed "$path" "$2"; then drifted="$drifted $owns"; else save "$path" || return 1; fi
		place "$rel/./$from" "$path" || return 1
	done
	IFS=$ifs
}
# What the release in folder $1 installs and is not in place: added to $wrong.
displaced() {
	kind=I
	e=$(sums_of_installed "$1" | sha256sum -c) || {
		IFS=$nl
		for l in $e; do case $l in *": OK") ;; *) wrong=$wrong${l%: FAILED*}$nl ;; esac done
		IFS=$ifs
	}
	each I "$1/plan" /
}
sums_of_installed() {
	IFS=$nl
	for l in $(lines_of I "$1/plan"); do entry "$l" && printf "%s  %s\n" "$hash" "$path"; done
}
installed() {
	case $2$nl in *"$tab$1$tab"*) ;; *) return 1 ;; esac
}
# Takes away what the other release, of lines $2, installed as a file where $1 needs a folder, or in the folder that
# stands where $1 is to be a file; and that folder, once nothing is in it.
make_way() {
	for m in $2; do
		m=${m#I"$tab"*"$tab"*"$tab"*"$tab"*"$tab"}
		m=${m%"$tab"*}
		case $1 in
		"$m"/*) uninstall "$m" || return 1 ;;
		*)
			case $m in "$1"/*) ;; *) continue ;; esac
			uninstall "$m" || return 1
			while m=${m%/*} && rmdir -- "$m" && [ "$m" != "$1" ]; do :; done
			;;
		esac
	done
}
place() {
	dir=${2%/*}/
	[ -d "$2" ] && ! [ -L "$2" ] && { IFS=$ifs && bad install "$owns" "$2 is a folder" || return 1; }
	t=$dir.grid-$name
	e=$({ mkdir -p "$dir" && cp -- "$1" "$t" && chown -- "$owner" "$t" && chmod "$(printf %o $((0x$hex & 07777)))" "$t" && mv -T -- "$t" "$2"; } 2>&1) && return
	rm -f -- "$t"
	IFS=$ifs
	bad install "$owns" "$2: $e"
}
# What stood at a path before grid. It is kept until the release without that path is settled, so that a path can be
# given back once more.
saved() { [ -L "$root/saved$1" ] || { [ -e "$root/saved$1" ] && ! [ -d "$root/saved$1" ]; }; }
forget_saved() {
	theirs=$(lines_of I "$root/releases/$2/plan" 2>/dev/null)
	kind=I us=-
	IFS=$nl
	for l in $(lines_of I "$root/releases/$1/plan" 2>/dev/null); do
		entry "$l" && ! installed "$path" "$theirs" && saved "$path" && rm -f -- "$root/saved$path"
	done
	IFS=$ifs
}
save() {
	there "$1" || return 0
	saved "$1" && return 0
	[ -d "$1" ] && ! [ -L "$1" ] && return 0
	e=$({ private "$root/saved" && mkdir -p "$root/saved${1%/*}" && cp -pP -- "$1" "$run/saved" && mv -T -- "$run/saved" "$root/saved$1"; } 2>&1) && return
	IFS=$ifs
	bad install - "$1 cannot be saved: $e"
}
# Takes an installed file away, and puts back what stood there before.
uninstall() {
	[ -d "$1" ] && ! [ -L "$1" ] && return 0
	there "$1" || saved "$1" || return 0
	if saved "$1"; then
		t=${1%/*}/.grid-$name
		e=$({ cp -pP -- "$root/saved$1" "$t" && mv -T -- "$t" "$1"; } 2>&1)
	else
		e=$(rm -f -- "$1" 2>&1)
	fi || { IFS=$ifs && bad install - "$1: $e"; }
}
# Takes away what release $1 installed and $2 does not: of service $3; "": of those services that are in both.
uninstall_left() {
	there "$root/releases/$1/plan" || return 0
	theirs=$(lines_of I "$root/releases/$2/plan" 2>/dev/null)
	kind=I us=-
	IFS=$nl
	for l in $(lines_of I "$root/releases/$1/plan"); do
		entry "$l" || continue
		installed "$path" "$theirs" && continue
		if [ "$3" ]; then [ "$owns" = "$3" ]; else find "$4" "$owns"; fi || continue
		uninstall "$path" || return 1
	done
	IFS=$ifs
}

# --- a service's steps. All after "service LINE"; $1: its release, $2: where it is reached

load() {
	it=$root/releases/$1/commands/$s
	l_list=$root/releases/$1/$list
	kept=$root/lists/$1/$s
	[ -f "$kept/list" ] && it=$kept l_list=$kept/list
	load_from "$2" "$l_list"
}
load_from() {
	step load "$s" "$m_load"
	#@ load
	run "$s" "$m_load" "$it/load" "$1/services/$s" "$2" || bad load "$s" "$why" || return 1
	#@ loaded
	[ -f "$it/verify" ] || return 0
	step read-back "$s" "$m_load"
	until_holds "$s" "$m_load" "$it/verify" "$1/services/$s" "$2" || bad check "$s" "the list was loaded, but reading it back: $why"
}
apply() {
	does a || return 0
	step apply "$s" "$m_apply"
	#@ apply
	run "$s" "$m_apply" "$root/releases/$1/commands/$s/apply" "$2/services/$s" /dev/null || bad apply "$s" "$why"
	#@ applied
}
check() {
	does c || return 0
	step check "$s" "$m_check"
	until_holds "$s" "$m_check" "$root/releases/$1/commands/$s/check" "$2/services/$s" /dev/null || bad check "$s" "$why"
}
# A service that leaves: nobody is admitted any more, it is removed, its installed files go. $2: what stays.
leave() {
	it=$root/releases/$1/commands/$s
	goes_on="" said_gone=""
	[ -f "$root/releases/$digest/.goes-on" ] && read -r goes_on <"$root/releases/$digest/.goes-on"
	[ -f "$root/releases/$digest/.said-gone" ] && read -r said_gone <"$root/releases/$digest/.said-gone"
	if does l && has "$goes_on" "$s"; then
		say "note $s goes on at its host: its accounts there stay open"
	elif does l && [ -f "$it/empty" ]; then
		load_from "$root/releases/$1" "$it/empty" || goes_anyway "closing its accounts" || return 1
	fi
	if does r; then
		step remove "$s" "$m_remove"
		#@ remove
		run "$s" "$m_remove" "$it/remove" "$root/releases/$1/services/$s" /dev/null || bad remove "$s" "$why" || goes_anyway "its remove" || return 1
		#@ removed
	fi
	uninstall_left "$1" "$2" "$s" ""
}
# What was said to be gone goes also where $1 failed.
goes_anyway() {
	has "$said_gone" "$s" && [ "$f_svc" = "$s" ] || return 1
	say "note $s was said to be gone, and goes: $1 failed ($f_text)"
	f_step="" f_svc=- f_text=""
}

# --- forward and back

switch() {
	step switch - 0
	cur=$1
	[ "$(readlink "$root/current")" = "releases/$1" ] && return
	e=$({ ln -sfn "releases/$1" "$run/current" && mv -T -- "$run/current" "$root/current"; } 2>&1) || bad switch - "$e"
}
# Puts $digest in force, which is current; $old: the release before it. $all: as if nothing of it were in force yet.
forward() {
	ours=$(services_of "$digest") theirs_s=$(services_of "$old")
	step install - 0
	fresh=fresh
	[ $all = 0 ] || fresh=again
	install_all "$digest" "$(lines_of I "$root/releases/$old/plan" 2>/dev/null)" $fresh || return 1
	#@ installed
	uninstall_left "$old" "$digest" "" "$ours" || return 1
	IFS=$nl
	for line in $ours; do
		IFS=$ifs
		was="" w_load=- w_apply=- w_other=-
		named
		find "$theirs_s" "$s" && was=$found
		if [ "$was" ]; then
			service "$was"
			w_load=$d_load w_apply=$d_apply w_other=$d_other
		fi
		service "$line"
		loads=0 applies=0 checks=0 reloads=0
		[ "$all" = 0 ] && [ "$w_load" = "$d_load" ] && ! there "$root/lists/$old/$s" || loads=1
		[ "$all" = 0 ] && [ "$w_apply" = "$d_apply" ] || applies=1
		[ "$w_other" = "$d_other" ] || checks=1
		does l || loads=0
		[ $applies = 1 ] || ! has "$drifted" "$s" || {
			applies=1
			mended "$s: a file of it was not as sent"
		}
		# What loads the list may be one of its files, and what is loaded may not outlive a changed one.
		[ $applies = 1 ] && [ "$was" ] && [ "$all" = 0 ] && does l && reloads=1
		# A provider that runs is told first, so that a failing apply does not keep somebody from being shut out.
		# One that may not run yet is started first.
		[ $loads = 1 ] && [ "$was" ] && [ "$all" = 0 ] && { forward_load || return 1; }
		if [ $applies = 1 ]; then
			t_apply="$t_apply $s"
			apply "$digest" "$root/current" && check "$digest" "$root/current" || return 1
		fi
		[ $loads = 1 ] && { [ -z "$was" ] || [ "$all" = 1 ]; } && { forward_load || return 1; }
		[ $reloads = 0 ] || forward_reload || return 1
		if [ $applies = 0 ] && [ "$loads$checks" != 00 ]; then check "$digest" "$root/current" || return 1; fi
		[ $applies = 0 ] || tell "applied $s"
	done
	IFS=$ifs
	reversed "$theirs_s"
	IFS=$nl
	for line in $r; do
		IFS=$ifs
		service "$line"
		find "$ours" "$s" && continue
		t_load="$t_load $s" t_apply="$t_apply $s"
		leave "$old" "$digest" || return 1
		tell "removed $s"
	done
	IFS=$ifs
	#@ before-applied
	put "$root/releases/$digest/.applied" "$sender" || bad switch - "the release cannot be marked as applied" || return 1
	#@ after-applied
	tidy
}
forward_load() {
	forward_reload || return 1
	loaded="$loaded $s"
}
# The same, of a list that is no newer than the one before, so that nothing of it stays if the rest is put back.
forward_reload() {
	t_load="$t_load $s"
	load "$digest" "$root/current" || return 1
	# It fails where nobody listens any more.
	has "$loaded" "$s" || tell "loaded $s" || :
}
# Keeps the current release and the one before it, and no newer lists but those of the current one. From a machine that holds no
# service any more the one before goes too: nothing goes back to it, and its secrets would stay.
tidy() {
	[ "$(services_of "$cur")" ] || old=-
	[ ! -f "$root/releases/$cur/.broken" ] || rm -f "$root/releases/$cur/.broken"
	forget_saved "${old:--}" "$cur"
	set +f
	for f in "$root"/releases/* "$root"/releases/.old-*; do has "$cur ${old:--}" "${f##*/}" || rm -rf "$f"; done
	for f in "$root"/lists/*; do [ "$f" = "$root/lists/$cur" ] || ! there "$f" || rm -rf "$f"; done
	set -f
}
# Keeps the list of $digest that service $1 has loaded, beside $old.
keep() {
	find "$theirs_s" "$1" || return 1
	service "$found"
	does l || return 1
	find "$ours" "$1" && service "$found"
	d=$root/releases/$digest
	rm -rf "$run/l"
	mkdir -m 700 "$run/l" && cp -p "$d/$list" "$run/l/list" && cp -p "$d/commands/$s/load" "$d/manifest.json" "$run/l/" || return 1
	[ ! -f "$d/commands/$s/verify" ] || cp -p "$d/commands/$s/verify" "$run/l/" || return 1
	private "$root/lists" && mkdir -p "$root/lists/$old" || return 1
	rm -rf "$root/lists/$old/$s"
	mv -T "$run/l" "$root/lists/$old/$s"
}
# Puts $old in force again, which stands for nothing if it is "-". $t_load and $t_apply: what may have been touched;
# "*": everything. $loaded: the lists that stay. It does what can be done, and fails if something could not.
back() {
	ours=$(services_of "$digest") theirs_s=$(services_of "$old")
	back=0 stay="" lost=""
	why_step=$f_step why_svc=$f_svc why_text=$f_text
	step roll-back - 0
	put "$root/undo" "$digest $old$nl$why_step $why_svc $why_text$nl$loaded$nl$t_load$nl$t_apply"
	#@ undo
	for s in $loaded; do keep "$s" && stay="$stay $s"; done
	f_step=""
	reversed "$ours"
	IFS=$nl
	for line in $r; do
		IFS=$ifs
		service "$line"
		find "$theirs_s" "$s" && continue
		has "$t_load $t_apply" "$s" || [ "$t_load" = "*" ] || { uninstall_left "$digest" "$old" "$s" "" || back=1; continue; }
		# Who never heard of its list need not be told that it is empty, and may not even run.
		has "$loaded" "$s" || case $steps in *l*) steps=${steps%l*}${steps#*l} ;; esac
		leave "$digest" "$old" || back=1
	done
	IFS=$ifs
	#@ back-left
	if [ "$old" = - ]; then
		rm -f "$root/current" || back=1
		cur=-
	else
		switch "$old" || back=1
		#@ back-switched
		install_all "$old" "$(lines_of I "$root/releases/$digest/plan" 2>/dev/null)" again || back=1
		uninstall_left "$digest" "$old" "" "$theirs_s" || back=1
	fi
	IFS=$nl
	for line in $theirs_s; do
		IFS=$ifs
		service "$line"
		again=0
		if [ "$t_load" = "*" ] || has "$t_apply" "$s"; then
			again=1
			apply "$old" "$root/current" && check "$old" "$root/current" || back=1
		fi
		does l || continue
		[ $again = 1 ] || has "$t_load" "$s" || continue
		[ $again = 0 ] && has "$stay" "$s" && continue
		load "$old" "$root/current" || {
			back=1
			lost="$lost $s"
			stay=$(for k in $stay; do [ "$k" = "$s" ] || say "$k"; done)
		}
	done
	IFS=$ifs
	#@ back-applied
	if [ $back = 0 ]; then
		f_step=$why_step f_svc=$why_svc f_text=$why_text
		undone
	fi
	return $back
}
undone() {
	for s in $stay; do tell "kept $s"; done
	rm -f "$root/undo"
	forget_saved "$digest" "$old"
	rm -rf "$root/releases/$digest"
	plans_moved
}
# What a crash left behind is finished, or rolled back. Where neither can be done, the previous release is current,
# marked as broken; a provider whose list is then not known is said to have none.
settle() {
	keep_digest=${digest-} failed_back=0 settling=1
	if [ -f "$root/undo" ]; then
		say settling
		say "note a roll-back that was cut short is done again"
		{
			read -r digest old
			read -r f_step f_svc f_text
			read -r loaded
			read -r t_load
			read -r t_apply
		} <"$root/undo"
		back || failed_back=1
		journal "rolled back again"
	elif [ "$cur" != - ] && ! [ -f "$root/releases/$cur/.applied" ] && ! [ -f "$root/releases/$cur/.broken" ]; then
		say settling
		say "note a send that was cut short is finished"
		digest=$cur old=-
		[ -f "$root/releases/$cur/.previous" ] && read -r old <"$root/releases/$cur/.previous"
		[ -d "$root/releases/$old" ] || old=-
		all=1
		forward || {
			say "note it could not be finished: $f_step $f_svc $f_text"
			t_load="*"
			back || failed_back=1
		}
		journal "settled"
		all=0
	fi
	if [ $failed_back = 1 ]; then
		say "note the roll-back failed again: $f_step $f_svc $f_text"
		for s in $lost; do
			private "$root/lists" && mkdir -p "$root/lists/$old/$s" && : >"$root/lists/$old/$s/unknown"
		done
		if [ "$old" != - ]; then
			put "$root/releases/$old/.broken" "$sender"
			rm -f "$root/releases/$old/.applied"
		fi
		undone
	fi
	settling=0 digest=$keep_digest f_step="" f_svc=- f_text="" t_load="" t_apply="" loaded="" lost="" drifted=""
}
# What is held, and what is out of order with it: into $odd.
look() {
	held=- cur=- odd=""
	[ -f "$root/token" ] && read -r held <"$root/token"
	if [ -L "$root/current" ]; then
		cur=$(readlink "$root/current")
		cur=${cur#releases/}
		case $cur in *[!0-9a-f]* | "") odd="$root/current points to $cur, which is no release" cur=- ;; esac
		[ -d "$root/releases/$cur" ] || cur=-
	elif [ -e "$root/current" ]; then
		odd="$root/current is not a symbolic link"
	fi
}
# The same, where what is out of order cannot be gone on from.
look_well() {
	look
	[ -z "$odd" ] || die switch - "$odd"
}

# --- a question

frame() {
	[ -f "$3" ] || return 0
	n=$(wc -c <"$3")
	say "frame $1 $2 $((n))"
	cat "$3"
	say ""
}
ask() {
	say "token $held"
	say "current $cur"
	frame manifest - "$root/releases/$cur/manifest.json"
	set +f
	for f in "$root/lists/$cur"/*; do
		[ -d "$f" ] || continue
		if [ -f "$f/unknown" ]; then say "unknown ${f##*/}"; else frame list "${f##*/}" "$f/manifest.json"; fi
	done
	set -f
	show_log
	finish answered
}

# Looks whether what is held lies there as it was sent, as a contact does. What is changed meanwhile by a send is no
# difference.
peek() {
	wrong="" was="$held $cur $odd"
	if [ "$cur" != - ] && [ "$cur" = "$digest" ]; then
		rel=$root/releases/$cur
		verify "$rel" "$rel"
		us=$(stat -c %U:%G "$rel")
		displaced "$rel"
	fi
	look
	boot
	if busy || [ "$was" != "$held $cur $odd" ]; then
		wrong="" odd=""
		say busy
	fi
	say "token $held"
	say "current $cur"
	[ -z "$odd" ] || say "odd $odd"
	n=0
	IFS=$nl
	for l in $wrong; do
		n=$((n + 1))
		[ $n -gt 20 ] || printf "differs %.1000s\n" "$l"
	done
	say "differing $n"
	finish answered
}

# --- a send

# The machine holds this release already: verify, check, mend. $1: "sent" if its files were verified a moment ago.
contact() {
	step verify - 0
	plan_of "$root/releases/$cur/plan"
	broken=0 old=-
	[ -f "$root/releases/$cur/.previous" ] && read -r old <"$root/releases/$cur/.previous"
	[ -f "$root/releases/$cur/.applied" ] || broken=1
	[ "${1-}" = sent ] || verify "$root/releases/$cur" "$root/releases/$cur" || {
		mend
		plans_moved
	}
	install_all "$cur" "$(lines_of I "$root/releases/$cur/plan")" again || { failed && finish refused; }
	IFS=$nl
	for l in $wrong; do mended "$l was not as installed"; done
	for line in $(services_of "$cur"); do
		IFS=$ifs
		service "$line"
		again=$broken
		it=$root/releases/$cur/commands/$s here=$root/current/services/$s
		has "$drifted" "$s" && again=1
		if [ $again = 0 ] && does c; then
			step check "$s" "$m_check"
			run "$s" "$m_check" "$it/check" "$here" /dev/null || {
				again=1
				mended "$s: its check did not hold ($why)"
			}
		fi
		[ $again = 0 ] || { apply "$cur" "$root/current" && check "$cur" "$root/current"; } || { failed && finish refused; }
		reload=$broken
		if does l && [ $reload = 0 ]; then
			kept=$root/lists/$cur/$s l_list=$root/releases/$cur/$list
			[ -f "$kept/list" ] && it=$kept l_list=$kept/list
			if [ -f "$kept/unknown" ]; then
				reload=1
			elif [ -f "$it/verify" ]; then
				step read-back "$s" "$m_load"
				run "$s" "$m_load" "$it/verify" "$here" "$l_list" || reload=1
			fi
			[ $reload = 0 ] || mended "$s: it did not admit exactly its list"
		fi
		if does l && [ $reload = 1 ]; then
			load "$cur" "$root/current" || { failed && finish refused; }
			rm -f "$root/lists/$cur/$s/unknown"
			say "loaded $s"
		fi
		[ $again = 0 ] || say "applied $s"
	done
	IFS=$ifs
	e=$({ put "$root/token" "$token" && { [ $broken = 0 ] || put "$root/releases/$cur/.applied" "$sender"; }; } 2>&1) || die switch - "the token cannot be written: ${e:-it is not said why}"
	tidy
	finish applied
}
# Fetches all, and puts in place what was not as it was sent.
mend() {
	receive all "$all_size" || unverified "on its way to $root,"
	here=$root/releases/$cur
	verify "$here" "$new"
	cp -p "$new/plan" "$run/plan"
	IFS=$nl
	for l in plan sums $wrong; do
		IFS=$ifs
		e=$({
			[ -d "$here/$l" ] && ! [ -L "$here/$l" ] && rm -rf "${here:?}/$l"
			case $l in */*) mkdir -p "$here/${l%/*}" ;; esac
			mv -T -- "$new/$l" "$here/$l"
		} 2>&1) || die verify - "$l cannot be put in place: $e"
		case $l in plan | sums) continue ;; esac
		mended "$l was not as sent"
		drift "$run/plan" "$l"
	done
	IFS=$ifs
	rm -rf "$new"
	mkdir -p "$here/services"
}
send() {
	token=$1 replaces=$2 take_over=$3 digest=$4 sums=$5 base=$6 delta_size=$7 all_size=$8
	case ",$replaces,$token," in
	*",$held,"*) ;;
	*)
		[ "$take_over" = 1 ] || {
			say "fenced $held"
			show_log
			finish fenced
		}
		[ "$held" = - ] || say "note it held what another send brought, and is taken over"
		;;
	esac
	settle
	# Somebody took the link away, or turned it to an earlier release: what it led to is in force.
	if [ "$take_over$base" = "0$digest" ] && [ "$cur" != "$digest" ] && [ -f "$root/releases/$digest/.applied" ]; then
		switch "$digest" || { failed && finish refused; }
		mended "current did not lead to what was sent"
	fi
	[ "$cur" = "$digest" ] && contact
	step unpack - 0
	if [ "$base" != - ] && [ "$base" = "$cur" ]; then
		receive delta "$delta_size" || {
			edited
			false
		}
	else
		wrong=x
		false
	fi || receive all "$all_size" || unverified "after all was sent,"
	old=$cur
	[ "$old" != - ] && ! [ -f "$root/releases/$old/.applied" ] && all=1
	#@ verified
	e=$({
		[ ! -d "$root/releases/$digest" ] || mv -T "$root/releases/$digest" "$root/releases/.old-$name"
		put "$new/.previous" "$old" && chmod 755 "$new" && mv -T "$new" "$root/releases/$digest"
	} 2>&1) || {
		renames || die start - "the mv of this machine has no -T, or cannot rename below $root: $e"
		die unpack - "$e"
	}
	#@ placed
	plans_moved "$root/releases/$digest/plan"
	plan_of "$root/releases/$old/plan"
	theirs_s=$(services_of "$old")
	IFS=$nl
	for line in $(services_of "$digest"); do
		IFS=$ifs
		was=""
		named
		find "$theirs_s" "$s" && was=$found
		service "${was:-$line}"
		w="$d_apply $d_other"
		service "$line"
		does t || continue
		[ "$was" ] && [ $all = 0 ] && [ "$w" = "$d_apply $d_other" ] && continue
		step test "$s" "$m_test"
		run "$s" "$m_test" "$root/releases/$digest/commands/$s/test" "$root/releases/$digest/services/$s" /dev/null || {
			rm -rf "$root/releases/$digest"
			die test "$s" "$why"
		}
	done
	IFS=$ifs
	#@ tested
	e=$(put "$root/token" "$token" 2>&1) || die switch - "the token cannot be written: ${e:-it is not said why}"
	#@ token
	if switch "$digest"; then
		#@ switched
		if forward; then
			# It was to be a contact, and found what another store sent: what that left alone nobody has looked at.
			case ",$replaces," in *",$token,"*) drifted="" && contact sent ;; esac
			finish applied
		fi
	fi
	failed
	back && finish rolled-back
	failed
	finish roll-back-failed
}

# --- begin

trap "" HUP PIPE
# A line of its own, whatever a start-up file printed before.
printf "\ngrid-receive 1\n"
exec 2>/dev/null
missing=""
for t in tar sha256sum mv ln rm rmdir cp cat head tail mkdir chmod chown stat timeout mkfifo dd date wc readlink sleep cut tr; do
	command -v $t >/dev/null || missing="$missing $t"
done
[ -z "$missing" ] || die start - "this machine lacks:$missing"
if [ "$mode" = peek ]; then
	digest=$1 sums=$2
	look
	peek
fi
if [ "$mode" = ask ] && ! [ -d "$root" ]; then
	held=- cur=-
	ask
fi
lock
look_well
case $mode in
send) send "$@" ;;
*)
	settle
	look_well
	ask
	;;
esac
