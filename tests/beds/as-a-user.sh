#!/usr/bin/env bash
# bed: a PostgreSQL that lets only the user of its own name administer it (peer): as makes the load that user
. "$(dirname "$0")/bed.sh"
begin
machines atlas borealis
bin=$(find /usr/lib/postgresql -path '*/bin/initdb' | sort -V | tail -n 1)
bin=${bin%/initdb}
port=$((PORT_BASE + 5))
install -d -o postgres -m 700 "$B/pg" "$B/pg-run"
chmod 755 "$B/pg-run"
as_postgres() { setpriv --reuid postgres --regid postgres --init-groups env HOME="$B/pg" "$@"; }
as_postgres "$bin/initdb" -D "$B/pg/data" -A scram-sha-256 --auth-local=peer -U postgres >/dev/null
as_postgres "$bin/pg_ctl" -D "$B/pg/data" -w -l "$B/pg/log" -o "-p $port -h 127.0.0.1 -k $B/pg-run" start >/dev/null
trap 'as_postgres "$bin/pg_ctl" -D "$B/pg/data" -m immediate stop >/dev/null 2>&1; bed_close' EXIT
# The list is SQL: all accounts with this mesh's mark are closed, then those on it are made or opened.
cat >"$MESH/accounts.sql.j2" <<'J'
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
BEGIN;
DO $$ DECLARE r name; BEGIN
  FOR r IN SELECT rolname FROM pg_roles WHERE shobj_description(oid, 'pg_authid') = '{{ mark }}' LOOP
    EXECUTE format('ALTER ROLE %I NOLOGIN', r);
  END LOOP;
END $$;
{% for a in accounts %}
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{{ a.username }}') THEN CREATE ROLE "{{ a.username }}"; END IF;
END $$;
ALTER ROLE "{{ a.username }}" LOGIN PASSWORD '{{ a.password }}';
COMMENT ON ROLE "{{ a.username }}" IS '{{ mark }}';
{% endfor %}
COMMIT;
-- admitted: {% for a in accounts %}{{ a.username }}{{ "," if not loop.last }}{% endfor %}

J
psql=$(printf '"psql", "-XqtA", "-U", "postgres", "-h", "%s", "-p", "%s", "-v", "ON_ERROR_STOP=1", "postgres"' "$B/pg-run" "$port")
cat >"$B/check.sh" <<S
wanted=\$(sed -n 's/^-- admitted: //p')
held=\$(psql -XtA -U postgres -h $B/pg-run -p $port postgres -c "SELECT coalesce(string_agg(rolname, ',' ORDER BY rolname), '') FROM pg_roles WHERE rolcanlogin AND shobj_description(oid, 'pg_authid') LIKE 'grid.%'") || exit 1
[ "\$held" = "\$wanted" ] || { echo "it admits \$held"; exit 1; }
S
chmod 644 "$B/check.sh"
write() { # MORE: further keys of provides
  {
    mesh_head
    nodes
    printf '[services.db]\nnodes = ["atlas"]\nprovides = { kind = "custom"%s, host = "127.0.0.1", port = %s, template = "accounts.sql.j2", load = [%s, "-f", "-"], check = ["sh", "%s/check.sh"] }\n\n' "$1" "$port" "$psql" "$B"
    # shellcheck disable=SC2016 # the machine's shell expands it
    printf '[services.billing]\nnodes = ["borealis"]\nconsumes = ["db"]\ncheck = ["sh", "-c", "cd bindings/db && PGPASSWORD=$(cat password) psql -XqtA -h $(cat host) -p $(cat port) -U $(cat username) postgres -c \\"select 1\\""]\nlimits = { check = "5s" }\n'
  } >"$MESH/mesh.toml"
}
write ''
grid 4 push borealis
matches 'failed +atlas +failed at load of db'
says 'Peer authentication failed'
seen "as root: PostgreSQL refuses, exit 4, and the load's own words are shown"
write ', as = "postgres"'
grid 0 push borealis
holds borealis services/billing
[ "$(stat -c %a:%U "$B/machines/atlas/current/services/db/grants.txt")" = 600:root ] || fail "the list is not root's alone"
seen "as postgres: one push, billing logs in; the list is a file of root's, 0600"
grid 0 rotate db/billing
grid 0 push --behind
login() { PGPASSWORD=$(cat "$(binding borealis billing db)/password") psql -XqtA -h 127.0.0.1 -p "$port" -U "$(cat "$(binding borealis billing db)/username")" postgres -c 'select 1' 2>&1; }
[ "$(login)" = 1 ] || fail "billing cannot log in"
grid 0 revoke db/billing
old=$(cat "$(binding borealis billing db)/password")
grid 0 push --behind
! PGPASSWORD=$old psql -XqtA -h 127.0.0.1 -p "$port" -U bed.billing.2 postgres -c 'select 1' >/dev/null 2>&1 || fail "a revoked account logs in"
! grep -q "$old" "$B/pg/log" || fail "the secret is in the provider's log"
seen "rotated and revoked as that user; nothing of it in the provider's log"
