#!/usr/bin/env bash
# The service `init` of docker-compose.yml begins the set of its masters, and begins it again when they are empty. Its image is made here
# of the command of this tree and the libraries that it needs: what cli/Dockerfile builds it from takes the network.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh
need_cc
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
quorate=$target/debug/quorate
cargo build -q --locked -p quorate-cli
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
# within_a_minute COMMAND...: waits until it succeeds.
within_a_minute() {
  for _ in $(seq 60); do
    "$@" && return
    sleep 1
  done
  return 1
}
# locks WHICH: waits until a lock can be had: `init` has begun the set.
locks() {
  within_a_minute "$quorate" run --wait 1s "$1" -- true 2>/dev/null && return
  echo "a minute later nobody gets a lock:" >&2
  "${compose[@]}" logs init >&2
  exit 1
}
# on_each WORD...: sends a command to each master.
on_each() { for last in 1 2 3 4 5; do redis-cli -p "$QUORATE_PORTS$last" "$@"; done; }
record() { on_each HGETALL quorate:master; }
# standings: how many masters show which state in which set.
standings() { on_each HMGET quorate:master state set | paste -d ' ' - - | sort | uniq -c; }
is_complete() { [[ $(standings) =~ ^\ *5\ member\ [0-9a-f]{16}$ ]]; }
# complete: waits until all masters are members of one set. A lock can be had as soon as most are.
complete() {
  within_a_minute is_complete && return
  echo "a minute later not all masters are members of one set:" >&2
  standings >&2
  exit 1
}

up first
locks first
complete
begun=$(record)
up second
locks second
diff <(echo "$begun") <(record) >&2 || { echo "init changed a set that was complete" >&2; exit 1; }
on_each FLUSHALL >/dev/null
locks third
[ "$(record)" != "$begun" ] || { echo "no record was lost" >&2; exit 1; }
echo "The service init began the set, left it alone when it was complete, and began it again when its masters were empty."
