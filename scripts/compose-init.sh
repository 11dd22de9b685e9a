#!/usr/bin/env bash
# The service `init` of docker-compose.yml begins the set of its masters, and leaves it alone when it runs again. Its image is made here
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

# up WHICH: starts all services, and waits until `init` was run and ended well.
started=
up() {
  "${compose[@]}" up -d --no-build 2>&1 | sed "s/^/$1: /"
  local container status code since
  container=$("${compose[@]}" ps --all --quiet init)
  for _ in $(seq 600); do
    read -r status code since < <(docker inspect --format '{{.State.Status}} {{.State.ExitCode}} {{.State.StartedAt}}' "$container")
    if [ "$status $code" = "exited 0" ] && [ "$since" != "$started" ]; then
      started=$since
      return
    fi
    sleep 0.1
  done
  echo "a minute after the $1 start init is $status $code:" >&2
  docker logs "$container" >&2
  exit 1
}
record() { for last in 1 2 3 4 5; do redis-cli -p "$QUORATE_PORTS$last" HGETALL quorate:master; done; }

up first
"$quorate" run --wait 30s first -- true
begun=$(record)
up second
[ "$(record)" = "$begun" ] || { echo "init changed a set that was complete" >&2; exit 1; }
"$quorate" run --no-wait second -- true
echo "The service init began the set, and left it alone when it ran again."
