#!/usr/bin/env bash
# Shows the lock at work on five redis-servers of its own, in about ten seconds. Installs redis-server if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh
need_redis
exec cargo run --release -p quorate-cli --bin quorate -- demo "$@"
