#!/usr/bin/env bash
# Runs the tests again and again, and lists those that failed, or once took three times as long as they usually do.
#
#   scripts/flakes.sh N [BUSY]   N times on a machine that is quiet, and BUSY times (N / 2) beside two busy loops
#
# It goes on where it stopped: a run counts for as long as src, scripts/lua, testkit and tests are what they were.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh

# A test that takes longer than usual is listed from this many seconds on: the busy loops alone make seconds of a quick one.
declare -A LONG=([quiet]=2 [busy]=5)

[[ ${1:-} =~ ^[0-9]+$ ]] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 64; }
quiet=$1 busy=${2:-$(($1 / 2))}
need_redis
need_cc

# What the runs are of.
of=$(git ls-files -z --cached --others --exclude-standard -- src scripts/lua testkit tests | sort -z |
  xargs -0 cat | sha256sum | cut -c 1-16)
runs=${CARGO_TARGET_DIR:-target}/flakes/$of
mkdir -p "$runs"

# Times of tests are for unstable toolchains, but for those who say so to the tests themselves.
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=env RUSTC_BOOTSTRAP=1"
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((4 * $(nproc)))}
tests=(cargo test --workspace --exclude quorate-simulator --all-features --locked --lib --bins --tests)
"${tests[@]}" --no-run
cargo build -p quorate --examples --all-features --locked # tests run them

loops=()
trap 'kill "${loops[@]}" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# run KIND NUMBER: a run, unless it was done. Its log says how it ended.
run() {
  local log=$runs/$1-$2.log began=$SECONDS
  if [ -f "$log" ]; then return; fi
  "${tests[@]}" --no-fail-fast -- -Z unstable-options --report-time --skip every_guard_of_the_scripts_is_needed \
    >"$runs/unfinished" 2>&1 || true
  mv "$runs/unfinished" "$log"
  printf '%s run %s: %s s, %s passed, %s failed\n' "$1" "$2" "$((SECONDS - began))" "$(grep -c '^test .* ok <' "$log")" \
    "$(grep -c '^test .* FAILED <' "$log")"
}

for ((number = 1; number <= quiet; number++)); do run quiet "$number"; done
if [ "$busy" -gt 0 ]; then
  for _ in 1 2; do
    (while :; do :; done) &
    loops+=($!)
  done
  for ((number = 1; number <= busy; number++)); do run busy "$number"; done
fi

# The runs of a kind: what failed, and what took longer than usual.
report() {
  local kind=$1 count=$2 logs=()
  for ((number = 1; number <= count; number++)); do logs+=("$runs/$kind-$number.log"); done
  [ "$count" -gt 0 ] || return 0
  awk -v kind="$kind" -v long="${LONG[$kind]}" '
    function usual(name,    times, n, i, j, swap) {
      n = split(took[name], times, " ")
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && times[j - 1] + 0 > times[j] + 0; j--) { swap = times[j]; times[j] = times[j - 1]; times[j - 1] = swap }
      return times[int((n + 1) / 2)]
    }
    FNR == 1 { runs++ }
    /^test .* (ok|FAILED) <[0-9.]+s>$/ {
      time = $NF
      gsub(/[<>s]/, "", time)
      time += 0
      took[$2] = took[$2] " " time
      if (time > worst[$2]) worst[$2] = time
      if ($(NF - 1) == "FAILED") { failed[$2]++; failures++ }
      tests++
    }
    # What ended without its tests: a crash, or one that does not build.
    /^error: could not compile|\(signal: / { print kind ": " $0; failures++ }
    END {
      for (name in failed) printf "%s: FAILED in %d of %d runs: %s\n", kind, failed[name], runs, name
      for (name in took) {
        time = usual(name)
        if (worst[name] > long && worst[name] > 3 * time) {
          printf "%s: took %.1f s, usually %.1f s: %s\n", kind, worst[name], time, name
          failures++
        }
      }
      printf "%s: %d runs of %d tests, %d failed or took three times as long\n", kind, runs, tests / runs, failures
      exit failures > 0 || tests == 0
    }' "${logs[@]}"
}
clean=0
report quiet "$quiet" || clean=1
report busy "$busy" || clean=1
exit $clean
