#!/bin/sh
# The roles of loopctl: `loopctl_owner` makes and migrates the tables, `loopctl_worker` reads and writes their rows.
# The image of PostgreSQL runs this once, when the data are new. SECRETS is the folder of the passwords.
set -eu
secrets=${SECRETS:-/run/secrets}
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
  --set=owner_password="$(cat "$secrets/owner_password")" --set=worker_password="$(cat "$secrets/worker_password")" <<'SQL'
CREATE ROLE loopctl_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE loopctl_worker LOGIN PASSWORD :'worker_password';
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE SCHEMA loopctl AUTHORIZATION loopctl_owner;
GRANT USAGE ON SCHEMA loopctl TO loopctl_worker;
-- Also for the tables of later versions.
ALTER DEFAULT PRIVILEGES FOR ROLE loopctl_owner IN SCHEMA loopctl
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO loopctl_worker;
SQL
