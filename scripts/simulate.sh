#!/usr/bin/env bash
# Simulates as many seeds as fit into so many seconds (60 if none are given), on all cores, until one violates a property:
#   scripts/simulate.sh [SECONDS] [OPTIONS of quorate-lab simulate]
# Each run begins with other seeds; --from N says with which.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
if [[ ${1-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
from=()
case " $* " in
  *" --from"*) ;;
  *) from=(--from "$(($(date +%s) * 1000))") ;;
esac
echo "Simulating for $seconds s, when it is built: with all optimisations that takes some minutes, the first time." >&2
exec cargo run --profile simulate --locked --quiet -p quorate-lab -- simulate --during "$seconds" "${from[@]}" "$@"
