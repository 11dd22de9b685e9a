#!/usr/bin/env bash
# Every check: those of test.sh, and what takes longer. At most 40 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

step "scripts/test.sh"
log=$(mktemp)
scripts/test.sh 2>&1 | tee "$log"
counted=$(tail -n 1 "$log")
rm -f "$log"

step "a client in Python that was written from docs/PROTOCOL.md alone"
if command -v python3 >/dev/null; then
  python3 tests/neighbours/python/test_quorate.py
else
  echo "skipped: there is no python3"
fi

step "the scripts with each guard left out: some test fails"
cargo test --profile checks --workspace --all-features --locked --test it mutation -- --nocapture

step "other servers"
scripts/servers.sh some

step "known bugs put back: the simulator finds each"
scripts/mutants.sh

step "known bugs put back: chaos on real servers finds each"
scripts/chaos-mutants.sh

step "the service init of docker-compose.yml"
scripts/compose-init.sh

steps_table
printf '\n%s\n' "$counted"
