#!/usr/bin/env bash
# Sees to what docker-compose.yml needs: a Docker engine, a compose tool, and the image, which is pulled, or else built
# from this machine's redis-server (redis-image.sh). Or says what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
missing() { echo "$1" >&2; exit 1; }

docker version >/dev/null 2>&1 || missing "no Docker engine answers"
docker compose version >/dev/null 2>&1 || docker-compose version >/dev/null 2>&1 || missing "there is no compose tool"
image=$(sed -n 's/^ *image: //p' docker-compose.yml)
docker image inspect "$image" >/dev/null 2>&1 || timeout 60 docker pull --quiet "$image" >/dev/null 2>&1 ||
  scripts/redis-image.sh "$image" >/dev/null 2>&1 || missing "$image can be neither pulled nor built"
