#!/bin/sh
# Runs `catnap` in a container. Stopping Catnap does not stop tenants' servers, and the end of a container kills them;
# so they are shut down between the two, and have nothing to recover at their next start.
set -u

if [ "${1:-}" = health ]; then
  exec node -e "fetch('http://127.0.0.1:${CATNAP_HTTP_PORT:-7070}/readyz').then(
    (reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"
fi
[ "${1:-}" = up ] || exec catnap "$@"

# Postgres servers that were left to process 1, not the processes of theirs.
servers() {
  for folder in /proc/[0-9]*; do
    case "$(readlink "$folder/exe" 2>/dev/null)" in
      */bin/postgres) [ "$(sed 's/.*) //' "$folder/stat" 2>/dev/null | cut -d ' ' -f 2)" = 1 ] && echo "${folder#/proc/}" ;;
    esac
  done
}

catnap "$@" &
catnap=$!
trap 'kill -TERM "$catnap" 2>/dev/null' TERM INT
wait "$catnap"
status=$?
# A signal ends the first wait before Catnap has ended.
while kill -0 "$catnap" 2>/dev/null; do
  wait "$catnap"
  status=$?
done

# SIGINT is a fast shutdown: sessions end, and everything is written.
for server in $(servers); do kill -INT "$server" 2>/dev/null; done
while [ -n "$(servers)" ]; do sleep 0.1; done
exit "$status"
