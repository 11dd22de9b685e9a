#!/usr/bin/env bash
# What a contributor runs: format, lints, tests, docs, dependencies, in at most 15 minutes on two cores. Installs what is
# missing: redis-server, a C compiler, and cargo-deny. test-all.sh has what takes longer, or needs more.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh
. scripts/checks.sh
. scripts/steps.sh

# Fewer tests than this have run means that some were not found, or not built.
LEAST_TESTS=1100

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

built=${CARGO_TARGET_DIR:-target}/checks

step "lints"
cargo clippy "${checks[@]}" --all-targets -- -D warnings
cargo clippy "${checks[@]}" --test model -- -D warnings # "all targets" are without it

step "build"
cargo test "${checks[@]}" --no-run
cargo test "${checks[@]}" --test model --no-run

# What needs the processors: the models and their broken variants, and the simulator.
compute() {
  cargo test "${checks[@]}" --test model -- --nocapture
  cargo test "${checks[@]}" --lib -- --ignored --nocapture model::two_never model::broken
  scripts/mutants.sh --seeds "$built/quorate-lab"
  "$built/quorate-lab" simulate --seeds 100
  "$built/quorate-lab" simulate --seeds 100 --fault any
  "$built/quorate-lab" simulate --seeds 150 --locks any
  "$built/quorate-lab" simulate --seeds 150 --fault any --locks any
  "$built/quorate-lab" simulate --seeds 100 --fault mixed-lists --locks any
  for fault in lost-sets late-handshake cut-short; do "$built/quorate-lab" simulate --seeds 50 --fault "$fault"; done
}

step "tests, and beside them, as they mostly wait: models, and simulation with the seeds that find known bugs and new ones"
computing=${CARGO_TARGET_DIR:-target}/computing.log
(renice -n 19 "$BASHPID"; compute) >"$computing" 2>&1 &
under_way=$!
# test-all.sh runs what is skipped here: it takes minutes.
cargo test "${checks[@]}" -- --skip every_guard_of_the_scripts 2>&1 | tee "$log"
computed=0
wait "$under_way" || computed=$?
tee -a "$log" <"$computing"
[ "$computed" = 0 ]

step "figures: the tables are made of what was measured"
scripts/figures.sh --check

step "docs"
RUSTDOCFLAGS="-D warnings" cargo doc "${checks[@]}" --no-deps

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
