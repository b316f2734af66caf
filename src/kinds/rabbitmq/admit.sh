# Makes a RabbitMQ broker admit exactly the grant list on standard input (mode=load), or reads back that
# it does and changes nothing (mode=check). POSIX shell with sed, sort, tr, uniq, wc, base64 and `date +%s`. Before
# this text stand `mode`, `mark` and `ctl`, which runs rabbitmqctl.
#
# What it promises, in both ways of doing it:
# - It refuses, by name and before it changes anything, a user that exists without the mark, a vhost of
#   the list that exists without it, and a hand-made vhost that is not there.
# - It adds and changes first, then closes accounts; only what differs is written, so a second run writes
#   nothing. The broker closes the connections of a user that is deleted, and nobody else's.
# - It deletes no vhost.
# - Nothing of the list but names stands in an argument; nothing that it prints holds a hash.
# - Where rabbitmqctl does not reach the broker, what it answers is told at once, and each line once.
#
# One `eval` (half a second) does all of it, with functions of the broker's own that were seen on 3.10. A
# broker that lacks one of them, or GRID_RABBITMQ=public in the environment, takes the public commands
# instead: a process for each account that is closed, and a permission that is no regular expression shows
# only while importing.
#
# A load that runs out of time goes on inside the broker, and the next one does what it left: each writes
# only what differs. A new vhost costs the broker some 80 ms of its own, a new user 2 ms (3.10).

# Bytes are bytes, and sorted as such; `ctl` says its own locale.
export LC_ALL=C
newline='
'
escape=$(printf '\033')
# For so many seconds a broker that is still starting is waited for: no try begins later. A try that takes longer is
# told of, since the time limit of the load may come before its answer.
patience=25
# Seconds between tries.
pauses='1 2 3 4 5 5 5'
# The lines about rabbitmqctl that were told.
told=

# Prints its argument; unlike printf, never as the argument of a process.
emit() {
	cat <<EOF
$1
EOF
}

# Prints its argument: of many lines the first 6 and the last 14, where the cause stands.
shorten() {
	lines=$(emit "$1" | wc -l)
	if [ "$lines" -le 21 ]; then
		emit "$1"
		return
	fi
	emit "$1" | sed 6q
	echo "$((lines - 20)) lines are left out"
	emit "$1" | sed "1,$((lines - 14))d"
}

complain() {
	shorten "$1" >&2
}

# Prints those lines of its argument to standard error that were not told before.
tell() {
	fresh=$(shorten "$1" | while IFS= read -r line; do
		case $newline$told$newline in
		*"$newline$line$newline"*) ;;
		*) emit "$line" ;;
		esac
	done)
	[ -z "$fresh" ] || emit "$fresh" >&2
	told=$told$newline$fresh
}

# What rabbitmqctl said, without hashes (it prints one of the cookie when it finds no node) and without escape
# sequences; where it has diagnostics, without the general advice before them and its own name, which is another one
# each time.
tell_of_ctl() {
	advice=''
	case $1 in
	*"${newline}DIAGNOSTICS$newline"*)
		advice='s/ Please see diagnostics.*//
			/^Most common reasons/,/^DIAGNOSTICS/d
			/^===*$/d
			/^attempted to contact:/d
			/suggestion: see the CLI/d
			/^Current node details:/d
			/^ \* node name:/d'
		;;
	esac
	tell "$(emit "$1" | sed -e "s|$escape\\[[0-?]*[ -/]*[@-~]||g" -e '/[Cc]ookie hash/d' -e '/^[[:space:]]*$/d' \
		-e 's|[A-Za-z0-9+/]\{44,\}=*|[redacted]|g' -e "$advice")"
}

clock() {
	date +%s || echo 0
}

# Runs a command, and tells it when there is no answer for long; leaves $answer and $status.
attempt() {
	(
		trap 'kill "$sleeper"; exit' TERM
		sleep "$patience" 3>&- &
		sleeper=$!
		wait "$sleeper"
		echo "rabbitmqctl has not answered for $patience s" >&3
	) 3>&2 2>/dev/null >/dev/null &
	watch=$!
	answer=$("$@" 2>&1)
	status=$?
	{
		kill "$watch"
		wait "$watch"
	} 2>/dev/null
}

# Runs a command until the broker has started or time is up; leaves $answer, $verdict and $status.
patiently() {
	began=$(clock)
	for pause in $pauses ''; do
		attempt "$@"
		verdict=$(emit "$answer" | sed -n 's/^grid-verdict: //p')
		case $verdict:$status in
		starting:*) tell 'the node runs, but RabbitMQ has not started in it' ;;
		:69) tell_of_ctl "$answer" ;;
		*)
			[ "$status" -ne 0 ] || [ -z "$told" ] || tell 'the broker answers now'
			return
			;;
		esac
		if [ -z "$pause" ] || [ "$(($(clock) - began + pause))" -gt "$patience" ]; then
			return
		fi
		tell 'it is tried again'
		sleep "$pause"
	done
}

# Tells what rabbitmqctl said, and ends.
give_up() {
	case $verdict in
	starting) echo 'RabbitMQ did not start in time; nothing was changed' >&2 ;;
	*)
		tell_of_ctl "$answer"
		echo "rabbitmqctl failed (exit $status); nothing was changed" >&2
		;;
	esac
	exit 1
}

# The expression: prints what it has to say, and a verdict.
expression() {
	cat <<EOF
Mode = $mode, Mark = <<"$mark">>, Encoded = <<"$(emit "$list" | base64 | tr -d '\n')">>,
EOF
	cat <<'EOF'
Say = fun ({Format, Args}) -> io:format("grid-says: " ++ Format ++ "~n", Args) end,
Redacted = fun (Term) ->
    Text = io_lib:format("~0tP", [Term, 12]),
    re:replace(Text, "[A-Za-z0-9+/]{40,}=*", "[redacted]", [global, unicode, {return, binary}])
end,
Needed = [
    {rabbit, is_running, 0},
    {rabbit_json, decode, 1},
    {rabbit_json, encode, 1},
    {rabbit_definitions, import_raw, 1},
    {rabbit_definitions, list_users, 0},
    {rabbit_definitions, list_vhosts, 0},
    {rabbit_definitions, list_permissions, 0},
    {rabbit_auth_backend_internal, delete_user, 2},
    {rabbit_auth_backend_internal, clear_permissions, 3}
],
Lacking = [F || {M, F, A} <- Needed,
    code:ensure_loaded(M) =/= {module, M} orelse not erlang:function_exported(M, F, A)],
Shape = [
    {<<"users">>, [<<"name">>]},
    {<<"vhosts">>, [<<"name">>]},
    {<<"permissions">>, [<<"user">>, <<"vhost">>]}
],
Index = fun (Definitions) ->
    [maps:from_list([{[maps:get(K, Item) || K <- Keys], Item} || Item <- maps:get(Of, Definitions)])
        || {Of, Keys} <- Shape]
end,
Items = fun (Map) -> lists:sort(maps:to_list(Map)) end,
Tags = fun
    (#{<<"tags">> := Text}) when is_binary(Text) -> binary:split(Text, <<",">>, [global, trim_all]);
    (#{<<"tags">> := List}) -> List;
    (_) -> []
end,
Ours = fun (Item) ->
    lists:member(Mark, Tags(Item) ++ Tags(maps:get(<<"metadata">>, Item, #{})))
end,
Other = fun (Fields, Item, Held) ->
    lists:any(fun (F) -> maps:get(F, Item, none) =/= maps:get(F, Held, none) end, Fields)
end,
Plan = fun () ->
    [Users, Vhosts, Permissions] = Index(rabbit_json:decode(base64:decode(Encoded))),
    % Through JSON and back, so that both sides are of the same types.
    [HeldUsers, HeldVhosts, HeldPermissions] = Index(rabbit_json:decode(rabbit_json:encode(#{
        <<"users">> => rabbit_definitions:list_users(),
        <<"vhosts">> => rabbit_definitions:list_vhosts(),
        <<"permissions">> => rabbit_definitions:list_permissions()
    }))),
    Foreign = fun (Key, Held) -> maps:is_key(Key, Held) andalso not Ours(maps:get(Key, Held)) end,
    Verbs = [<<"configure">>, <<"write">>, <<"read">>],
    Refused =
        [{"user ~ts exists, but without the mark ~ts", [N, Mark]}
            || {[N] = K, _} <- Items(Users), Foreign(K, HeldUsers)] ++
        [{"vhost ~ts exists, but without the mark ~ts; existing = true takes it as it is", [N, Mark]}
            || {[N] = K, _} <- Items(Vhosts), Foreign(K, HeldVhosts)] ++
        [{"vhost ~ts is wanted as an existing one, but is not there", [V]}
            || V <- lists:usort([V || [_, V] <- maps:keys(Permissions)]),
            not maps:is_key([V], Vhosts), not maps:is_key([V], HeldVhosts)] ++
        [{"the ~ts permission of ~ts on vhost ~ts is no regular expression: ~ts", [F, U, V, Why]}
            || {[U, V], P} <- Items(Permissions), F <- Verbs,
            {error, {Why, _}} <- [re:compile(maps:get(F, P))]],
    Changes =
        [{user, W, {"user ~ts is missing", [N]}}
            || {[N] = K, W} <- Items(Users), not maps:is_key(K, HeldUsers)] ++
        [{user, W, {"user ~ts has another password", [N]}}
            || {[N] = K, W} <- Items(Users), {ok, H} <- [maps:find(K, HeldUsers)],
            Other([<<"password_hash">>, <<"hashing_algorithm">>], W, H)] ++
        [{user, W, {"user ~ts has other tags", [N]}}
            || {[N] = K, W} <- Items(Users), {ok, H} <- [maps:find(K, HeldUsers)],
            lists:sort(Tags(W)) =/= lists:sort(Tags(H))] ++
        [{vhost, W, {"vhost ~ts is missing", [N]}}
            || {[N] = K, W} <- Items(Vhosts), not maps:is_key(K, HeldVhosts)] ++
        [{permission, W, {"user ~ts has no permissions on vhost ~ts", K}}
            || {K, W} <- Items(Permissions), not maps:is_key(K, HeldPermissions)] ++
        [{permission, W, {"user ~ts has other permissions on vhost ~ts", K}}
            || {K, W} <- Items(Permissions), {ok, H} <- [maps:find(K, HeldPermissions)],
            Other(Verbs, W, H)] ++
        [{gone, N, {"user ~ts is not on the list", [N]}}
            || {[N] = K, H} <- Items(HeldUsers), Ours(H), not maps:is_key(K, Users)] ++
        [{stale, K, {"user ~ts has permissions on vhost ~ts, which is not on the list", K}}
            || {[U, _] = K, _} <- Items(HeldPermissions),
            maps:is_key([U], Users), not maps:is_key(K, Permissions)],
    {Refused, Changes}
end,
Load = fun (Changes) ->
    Of = fun (Kind) -> lists:usort([W || {K, W, _} <- Changes, K =:= Kind]) end,
    Import = #{<<"users">> => Of(user), <<"vhosts">> => Of(vhost), <<"permissions">> => Of(permission)},
    case rabbit_definitions:import_raw(iolist_to_binary(rabbit_json:encode(Import))) of
        ok ->
            [rabbit_auth_backend_internal:delete_user(U, <<"grid">>) || U <- Of(gone)],
            [rabbit_auth_backend_internal:clear_permissions(U, V, <<"grid">>) || [U, V] <- Of(stale)],
            case Plan() of
                {[], []} ->
                    Say({"users: ~b written, ~b closed; vhosts: ~b made; permissions: ~b set, ~b taken back",
                        [length(Of(K)) || K <- [user, gone, vhost, permission, stale]]}),
                    done;
                {Refused, Left} ->
                    Say({"the broker did not take all of the list:", []}),
                    [Say(Line) || Line <- Refused ++ [L || {_, _, L} <- Left]],
                    failed
            end;
        Error ->
            Say({"the broker refuses the list: ~ts", [Redacted(Error)]}),
            failed
    end
end,
Verdict = try
    case Lacking =:= [] andalso rabbit:is_running() of
        false when Lacking =/= [] -> unsupported;
        false -> starting;
        true ->
            case Plan() of
                {[], []} ->
                    Say({"the broker admits exactly the list", []}),
                    done;
                {[_ | _] = Refused, _} ->
                    [Say(Line) || Line <- Refused],
                    refused;
                {[], Changes} when Mode =:= load -> Load(Changes);
                {[], Changes} ->
                    [Say(Line) || {_, _, Line} <- Changes],
                    differs
            end
    end
catch
    _:Reason ->
        Say({"the broker failed: ~ts", [Redacted(Reason)]}),
        failed
end,
io:format("grid-verdict: ~ts~n", [Verdict]).
EOF
}

ask() {
	expression | ctl -q eval
}

list=$(cat)

if [ "${GRID_RABBITMQ:-}" != public ]; then
	patiently ask
	says=$(emit "$answer" | sed -n 's/^grid-says: //p')
	case $verdict in
	done)
		emit "$says"
		exit 0
		;;
	refused)
		complain "$says"
		echo 'nothing was changed' >&2
		exit 1
		;;
	differs | failed)
		complain "$says"
		exit 1
		;;
	unsupported) ;;
	*) give_up ;;
	esac
fi

# From here on: the public commands. Their JSON is taken apart by plain shell.

# Characters that no name of ours has: they stand for the structure of a document and for what is escaped in
# its strings, and they separate fields.
open=$(printf '\003')
close=$(printf '\004')
backslash=$(printf '\005')
quote=$(printf '\006')
sep=$(printf '\037')

# Appends the string that the object has under a name, to the line that is being made of it.
field() {
	emit "G; s/\\n.*\"$1\":\"\\([^\"]*\\)\".*\$/$sep\\1/"
}

# The definitions document on standard input as lines:
#   user NAME HASH ALGORITHM "TAG","TAG"    vhost NAME "TAG"    permission USER VHOST CONFIGURE WRITE READ
flatten() {
	tr -d '\n\r' |
		sed -e "s/\\\\\\\\/$backslash/g" -e "s/\\\\\"/$quote/g" |
		# Now every quote ends or begins a string: odd lines are structure, even ones are strings.
		tr '"' '\n' |
		sed -e "s/{/$open/g; s/}/$close/g; s/[[:space:]]//g; n" |
		tr '\n' '"' |
		# An object under a name becomes part of the one that it is in; the rest get a line each.
		sed -e ':again' -e "s/:$open\\([^$open$close]*\\)$close/:(\\1)/g" -e 't again' |
		tr "$open" '\n' |
		sed -n -e "/\"password_hash\":\"/ {
			h; s/.*/user/
			$(field name)
			$(field password_hash)
			$(field hashing_algorithm)
			G; s/\\n.*\"tags\":\\[\\([^]]*\\)\\].*\$/$sep\\1/
			p
		}" -e "/\"metadata\":(/ {
			h; s/.*/vhost/
			$(field name)
			G; s/\\n.*\"tags\":\\[\\([^]]*\\)\\].*\$/$sep\\1/
			p
		}" -e "/\"configure\":\"/ {
			h; s/.*/permission/
			$(field user)
			$(field vhost)
			$(field configure)
			$(field write)
			$(field read)
			p
		}"
}

# The lines of $1 of the kind $2, its first $3 fields; with $4, only what has the mark (yes) or has not (no).
some() {
	marked="/\"$(emit "$mark" | sed 's/\./\\./g')\"/"
	case ${4:-} in
	yes) only="$marked!d" ;;
	no) only="$marked d" ;;
	*) only='' ;;
	esac
	fields="[^$sep]*"
	n=1
	while [ "$n" -lt "$3" ]; do
		fields="$fields${sep}[^$sep]*"
		n=$((n + 1))
	done
	emit "$1" | sed -n -e "/^$2$sep/!d" -e "$only" -e "s/^$2$sep\\($fields\\).*\$/\\1/p" | sort -u
}

# The lines of $1 that $2 has not; each is a set.
minus() {
	{
		emit "$1"
		emit "$2"
		emit "$2"
	} | sort | uniq -u | sed '/^$/d'
}

# The lines that both sets have.
common() {
	{
		emit "$1"
		emit "$2"
	} | sort | uniq -d | sed '/^$/d'
}

# Those pairs, user and vhost, of $1 whose user is in $2.
of_users() {
	emit "$1" | while IFS= read -r pair; do
		case $newline$2$newline in
		*"$newline${pair%%"$sep"*}$newline"*) emit "$pair" ;;
		esac
	done | sed '/^$/d'
}

count() {
	emit "$1" | sed '/^$/d' | wc -l | tr -d ' '
}

# One line for each name or pair in $1: $2, the first field, $3, and of a pair the second field and $4.
lines() {
	emit "$1" | sed -e '/^$/d' -e "s|^\\([^$sep]*\\)$sep\\([^$sep]*\\).*\$|$2 \\1 $3 \\2${4:-}|" -e t \
		-e "s|.*|$2 & $3|" | tr "$backslash$quote" '\\"'
}

plan() {
	exported=$(ctl -q export_definitions - 2>/dev/null </dev/null) || {
		echo "rabbitmqctl export_definitions failed (exit $?)" >&2
		exit 1
	}
	held=$(emit "$exported" | flatten)
	users=$(some "$want" user 1)
	vhosts=$(some "$want" vhost 1)
	pairs=$(some "$want" permission 2)
	granted=$(emit "$pairs" | sed "s/^[^$sep]*$sep//" | sort -u)
	held_users=$(some "$held" user 1)
	held_vhosts=$(some "$held" vhost 1)
	held_pairs=$(some "$held" permission 2)
	refused=$(
		lines "$(common "$users" "$(some "$held" user 1 no)")" user "exists, but without the mark $mark"
		lines "$(common "$vhosts" "$(some "$held" vhost 1 no)")" vhost \
			"exists, but without the mark $mark; existing = true takes it as it is"
		lines "$(minus "$(minus "$granted" "$vhosts")" "$held_vhosts")" vhost \
			'is wanted as an existing one, but is not there'
	)
	new_users=$(minus "$users" "$held_users")
	new_vhosts=$(minus "$vhosts" "$held_vhosts")
	new_pairs=$(minus "$pairs" "$held_pairs")
	written=$(minus "$(some "$want" user 4)" "$(some "$held" user 4)" | sed "s/$sep.*//")
	rekeyed=$(minus "$(some "$want" user 3)" "$(some "$held" user 3)" | sed "s/$sep.*//")
	set=$(minus "$(some "$want" permission 5)" "$(some "$held" permission 5)" |
		sed "s/^\\([^$sep]*${sep}[^$sep]*\\)$sep.*/\\1/")
	gone=$(minus "$(some "$held" user 1 yes)" "$users")
	stale=$(minus "$(of_users "$held_pairs" "$users")" "$pairs")
	changes=$(
		lines "$new_users" user 'is missing'
		lines "$(minus "$rekeyed" "$new_users")" user 'has another password'
		lines "$(minus "$written" "$rekeyed")" user 'has other tags'
		lines "$new_vhosts" vhost 'is missing'
		lines "$new_pairs" user 'has no permissions on vhost'
		lines "$(minus "$set" "$new_pairs")" user 'has other permissions on vhost'
		lines "$gone" user 'is not on the list'
		lines "$stale" user 'has permissions on vhost' ', which is not on the list'
	)
}

# Runs one command that changes something.
change() {
	answer=$(ctl -q "$@" 2>&1 </dev/null) || {
		status=$?
		tell_of_ctl "$answer"
		echo "rabbitmqctl $1 failed (exit $status)" >&2
		exit 1
	}
}

patiently ctl -q await_startup </dev/null
[ "$status" -eq 0 ] || give_up
want=$(emit "$list" | flatten)
plan
if [ -n "$refused" ]; then
	complain "$refused"
	echo 'nothing was changed' >&2
	exit 1
fi
if [ -z "$changes" ]; then
	echo 'the broker admits exactly the list'
	exit 0
fi
if [ "$mode" = check ]; then
	complain "$changes"
	exit 1
fi
report="users: $(count "$written") written, $(count "$gone") closed; vhosts: $(count "$new_vhosts") made;"
report="$report permissions: $(count "$set") set, $(count "$stale") taken back"
if [ -n "$written$new_vhosts$set" ]; then
	answer=$(emit "$list" | ctl -q import_definitions 2>&1) || {
		status=$?
		tell_of_ctl "$answer"
		echo "rabbitmqctl import_definitions failed (exit $status)" >&2
		exit 1
	}
fi
[ -z "$gone" ] || while IFS= read -r user; do
	change delete_user "$user"
done <<EOF
$gone
EOF
[ -z "$stale" ] || while IFS= read -r pair; do
	change clear_permissions -p "$(emit "${pair#*"$sep"}" | tr "$backslash$quote" '\\"')" "${pair%%"$sep"*}"
done <<EOF
$stale
EOF
plan
if [ -n "$refused$changes" ]; then
	echo 'the broker did not take all of the list:' >&2
	complain "$refused$newline$changes"
	exit 1
fi
emit "$report"
