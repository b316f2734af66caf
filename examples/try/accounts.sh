# A provider whose accounts are lines of a file: MARK USER SHA256-OF-THE-PASSWORD.
#
#   sh accounts.sh load  <LIST    makes the file admit exactly the list: adds, changes and revokes
#   sh accounts.sh check <LIST    exits 0 only if it admits exactly the list; changes nothing
#
# The list begins with a line "# MARK". Lines of the file with another mark are somebody else's, and stay.
set -eu
machine=$(cd -P "$GRID_RELEASE/../../../../.." && pwd)
file=$machine/accounts
[ -e "$file" ] || : >"$file"
read -r hash mark rest
if [ "$hash" != "#" ] || [ -z "$mark" ] || [ -n "$rest" ]; then
	echo "the list does not begin with its mark"
	exit 1
fi
new=$(awk NF | sort -u)

# The lines that carry the mark, or with -v those that do not.
ours() { awk -v mark="$mark" -v other="${1:-}" '($1 == mark) == (other == "")' "$file"; }

case $1 in
load)
	next=$(mktemp "$file.XXXXXX")
	{
		ours -v
		[ -z "$new" ] || printf "%s\n" "$new"
	} >"$next"
	mv "$next" "$file" # one rename: nobody reads half a list
	echo "$(ours | wc -l) accounts admitted"
	;;
check)
	if [ "$(ours | sort)" != "$new" ]; then
		echo "the file does not admit exactly the list"
		exit 1
	fi
	;;
*)
	echo "usage: accounts.sh load|check <LIST"
	exit 2
	;;
esac
