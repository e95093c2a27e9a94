#!/bin/sh
# Makes the cluster at the first start, with a login and a database for Catnap, and becomes the server.
set -eu
bin=/usr/lib/postgresql/17/bin
data=/var/lib/postgresql/data

if [ ! -s "$data/PG_VERSION" ]; then
  # Under another name until it is whole: a start that was killed begins anew.
  rm -rf "$data.new"
  "$bin/initdb" --pgdata "$data.new" --auth=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-instructions \
    --pwfile=/dev/stdin >/dev/null <<END
$CATNAP_DATABASE_PASSWORD
END
  echo 'host all all all scram-sha-256' >>"$data.new/pg_hba.conf"
  # Single-user mode asks nobody for a password; the quotes in it are doubled.
  password=$(printf %s "$CATNAP_DATABASE_PASSWORD" | sed "s/'/''/g")
  for statement in "CREATE ROLE catnap LOGIN PASSWORD '$password'" 'CREATE DATABASE catnap OWNER catnap'; do
    echo "$statement" | "$bin/postgres" --single -D "$data.new" postgres >/dev/null
  done
  mv "$data.new" "$data"
fi
unset CATNAP_DATABASE_PASSWORD
exec "$bin/postgres" -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp
