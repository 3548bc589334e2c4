#!/bin/sh
# Makes the database of the variables once, as the official image does, and becomes PostgreSQL.
set -eu
data=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
    chown postgres:postgres "$data" /run/postgresql
    chmod 0700 "$data"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0"
fi
if [ ! -s "$data/PG_VERSION" ]; then
    printf %s "$POSTGRES_PASSWORD" >/tmp/password
    initdb --pgdata="$data" --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust \
        --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
    rm /tmp/password
    echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
    # At another socket: the health check must not take this for the end of the preparation.
    pg_ctl --pgdata="$data" --options="-c listen_addresses= -c unix_socket_directories=/tmp" --wait start
    createdb --host=/tmp --username="$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl --pgdata="$data" --mode=fast --wait stop
fi
exec postgres -D "$data" -c listen_addresses='*'
