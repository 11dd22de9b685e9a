#!/usr/bin/env bash
# What a contributor runs: format, lints, tests, docs, dependencies, in at most 25 minutes on two cores. Installs what is
# missing: redis-server, a C compiler, and cargo-deny. test-all.sh has what takes longer, or needs more.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh
. scripts/steps.sh

# Fewer tests than this have run means that some were not found, or not built.
LEAST_TESTS=1200

DENY=0.20.2

# Most tests wait, for servers and for leases: four times as many at a time as there are processors keep these busy.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((4 * $(nproc)))}

step "what the tests need"
need_redis
need_cc
mkdir -p "${CARGO_TARGET_DIR:-target}"
log=${CARGO_TARGET_DIR:-target}/test.log
: >"$log"
# Its build takes minutes, in the pauses of what follows.
if ! cargo deny --version >/dev/null 2>&1; then
  env -u CARGO_TARGET_DIR nice -n 19 cargo install cargo-deny --quiet --locked --version "$DENY" &
fi

step "format"
cargo fmt --all --check

step "lints, with every feature and with none"
cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
cargo clippy -p quorate --test members --test model --all-features --locked -- -D warnings # "all targets" are without these
cargo clippy -p quorate --all-targets --locked -- -D warnings
cargo clippy -p quorate -p quorate-testkit --lib --locked -- -D warnings # without what is for simulators, too
cargo clippy -p quorate-cli --locked -- -D warnings # the test kit without its embedded masters

step "tests, with every feature"
# The mutation of the scripts takes longest, and is among the optimised tests, as are the simulator's, which run many seeds.
cargo test --workspace --exclude quorate-simulator --all-features --locked -- --skip every_guard_of_the_scripts_is_needed 2>&1 | tee "$log"

step "tests of the optimised library, without features"
cargo build -p quorate --examples --release --locked # a test runs them
cargo test -p quorate --lib --test it --release --locked 2>&1 | tee -a "$log"

step "the models of the fencing tokens and of changes of members, and what is wrong with their broken variants"
cargo test -p quorate --test model --test members --release --locked -- --nocapture 2>&1 | tee -a "$log"

step "simulation: 1,000 seeds within Redlock's assumptions, 1,000 outside, 300 of each, and of clients with different lists, and 100 of sets that trust disks, of locks of all kinds"
cargo test --release --locked -p quorate-simulator 2>&1 | tee -a "$log"
cargo run --release --locked -p quorate-simulator -- --seeds 1000
cargo run --release --locked -p quorate-simulator -- --seeds 1000 --fault any
cargo run --release --locked -p quorate-simulator -- --seeds 300 --locks any
cargo run --release --locked -p quorate-simulator -- --seeds 300 --fault any --locks any
cargo run --release --locked -p quorate-simulator -- --seeds 300 --fault mixed-lists --locks any
cargo run --release --locked -p quorate-simulator -- --seeds 100 --fault fsync-promotion --locks any

step "benches: every topic, in small"
cargo bench --profile release --locked --bench bench -- smoke # what the tests were built with: half of it is built already

step "figures: the tables are made of what was measured"
scripts/figures.sh --check

step "docs"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps --locked

step "dependencies"
wait # for its build
cargo deny --all-features check --hide-inclusion-graph bans licenses sources
if cargo deny --all-features fetch db >/dev/null 2>&1; then
  cargo deny --all-features check --hide-inclusion-graph advisories
else
  echo "advisories: NOT CHECKED, the advisory database cannot be reached from here"
fi

passed=$(sed -nE 's/^test result: .* ([0-9]+) passed.*/\1/p' "$log" | awk '{ sum += $1 } END { print sum + 0 }')
skipped=$(grep -c '^skipped: ' "$log" || true)
grep '^skipped: ' "$log" || true
if [ "$passed" -lt "$LEAST_TESTS" ]; then
  echo "only $passed tests ran; there should be $LEAST_TESTS at least" >&2
  exit 1
fi
steps_table
printf '\n%s passed, 0 failed, %s skipped\n' "$passed" "$skipped"
