#!/usr/bin/env bash
# Shows the lock at work on five redis-servers of its own, in about ten seconds. Installs redis-server if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh
need_redis
# What it does not show, and what a debugger needs, is left out, which is half of the build.
export CARGO_PROFILE_DEV_DEBUG=false
exec cargo run -p quorate-cli --no-default-features --bin quorate -- demo "$@"
