#!/usr/bin/env bash
# Every check: those of test.sh, and what takes longer. At most 40 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/checks.sh
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

step "lints of each package by itself, without features: in the workspace, one turns on features that another lacks"
for package in quorate quorate-testkit quorate-cli quorate-lab quorate-chaos quorate-simulator quorate-history; do
  cargo clippy --profile checks -p "$package" --no-default-features --locked -- -D warnings
done

step "documentation of the library as users build it"
RUSTDOCFLAGS="-D warnings" cargo doc --profile checks --no-deps -p quorate --locked

step "packages: what is published builds from what it contains, with the oldest Rust that is promised"
scripts/packages.sh

step "benches: every topic, in small"
cargo bench "${checks[@]}" --bench bench -- smoke

step "some tests of the library as users have it: without features and assertions"
# The dependencies are those that are built already.
CARGO_PROFILE_CHECKS_OPT_LEVEL=0 CARGO_PROFILE_CHECKS_DEBUG_ASSERTIONS=false CARGO_PROFILE_CHECKS_OVERFLOW_CHECKS=false \
  cargo test --profile checks -p quorate --test it --locked -- \
  cancel:: crowd:: exclusion:: fencing:: group_commit:: group_faults:: loss:: release:: renewal::

step "one of ten that try at once gets the lock: a thousand rounds with each number of masters"
QUORATE_TRIES=20 cargo test "${checks[@]}" --test it tries::

step "the scripts with each guard left out: some test fails"
cargo test "${checks[@]}" --test it mutation -- --nocapture

step "the model of a set: all orders of the steps of two changes"
cargo test "${checks[@]}" --lib -- --ignored --nocapture set::tests::model::no_order

step "other servers"
scripts/servers.sh some

step "known bugs put back: the simulator finds each"
scripts/mutants.sh

step "known bugs put back: the rule tests of a set find each"
scripts/set-mutants.sh sample

step "known bugs put back: chaos on real servers finds each"
scripts/chaos-mutants.sh

step "the service init of docker-compose.yml"
scripts/compose-init.sh

steps_table
printf '\n%s\n' "$counted"
