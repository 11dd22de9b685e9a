#!/usr/bin/env bash
# The service `init` of docker-compose.yml begins the set of its masters, and begins it again when they are empty. Its image is made here
# of the command of this tree and the libraries that it needs: what cli/Dockerfile builds it from takes the network.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/quorate.sh
. scripts/copy-program.sh
scripts/need-compose.sh || { echo "skipped: the service init of docker-compose.yml"; exit 0; }
if docker compose version >/dev/null 2>&1; then compose=(docker compose); else compose=(docker-compose); fi

# What a lease may last at most, and so how long masters have no vote at first, and what ports they have.
export QUORATE_MAX_TTL=2s QUORATE_PORTS=1764
QUORATE_MASTERS=$(for last in 1 2 3 4 5; do echo "redis://127.0.0.1:$QUORATE_PORTS$last"; done | paste -sd ,)
export QUORATE_MASTERS

folder=$(mktemp -d)
image=quorate-init-$$
compose+=(-p "$image" -f docker-compose.yml -f "$folder/image.yml" --profile init)
clean_up() {
  "${compose[@]}" down --volumes --timeout 1 >/dev/null 2>&1 || true
  docker image rm "$image" >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap clean_up EXIT

mkdir "$folder/root"
copy_program "$quorate" "$folder/root" quorate
tar -C "$folder/root" -c . | docker import --change 'ENTRYPOINT ["/quorate"]' - "$image" >/dev/null
printf 'services:\n  init:\n    image: %s\n' "$image" >"$folder/image.yml"

# up WHICH: starts all services.
up() { "${compose[@]}" up -d --no-build 2>&1 | sed "s/^/$1: /"; }
# locks WHICH: waits until a lock can be had: `init` has begun the set.
locks() {
  for _ in $(seq 60); do
    "$quorate" run --wait 1s "$1" -- true 2>/dev/null && return
    sleep 1
  done
  echo "a minute later nobody gets a lock:" >&2
  "${compose[@]}" logs init >&2
  exit 1
}
# members: what each master that is a member of a set shows of that set.
members() {
  for last in 1 2 3 4 5; do
    redis-cli -p "$QUORATE_PORTS$last" HMGET quorate:master state set | paste -sd ' '
  done | grep ^member || true
}
# complete: waits until all masters are members of one set. A lock can be had as soon as most are.
complete() {
  for _ in $(seq 60); do
    [ "$(members | wc -l)" = 5 ] && [ "$(members | sort -u | wc -l)" = 1 ] && return
    sleep 1
  done
  echo "a minute later not all masters are members of one set:" >&2
  members >&2
  exit 1
}
record() { for last in 1 2 3 4 5; do redis-cli -p "$QUORATE_PORTS$last" HGETALL quorate:master; done; }

up first
locks first
complete
begun=$(record)
up second
locks second
diff <(echo "$begun") <(record) >&2 || { echo "init changed a set that was complete" >&2; exit 1; }
for last in 1 2 3 4 5; do redis-cli -p "$QUORATE_PORTS$last" FLUSHALL >/dev/null; done
locks third
[ "$(record)" != "$begun" ] || { echo "no record was lost" >&2; exit 1; }
echo "The service init began the set, left it alone when it was complete, and began it again when its masters were empty."
