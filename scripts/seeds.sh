#!/usr/bin/env bash
# 20,000 seeds while the set of masters changes, 20,000 of clients with different lists, and 4,000 of sets that trust disks, of all kinds
# of locks in turn; then 20,000 of each kind within Redlock's assumptions, and of each but the shared layouts with `--fault any`: hours on
# two cores. It goes on where it stopped, also on another machine: docs/figures/seeds.tsv says which were clean, and at which commit.
#
#   scripts/seeds.sh [SECONDS]   runs parts that are not there yet, until all are, or no part is begun any more
#   scripts/seeds.sh --check     says what is missing
#
# One seed decides everything, so parts that were run at an earlier commit count as long as the code behaves as it did then. Where the
# code is another one, the first part of each sort is run again before anything else, and has to come to the same holds and the same time; if
# it does not, all parts of that sort are run again. A change that only a rare seed shows is not seen so: after a change of behaviour, empty
# the file.
set -euo pipefail
cd "$(dirname "$0")/.."

LEDGER=docs/figures/seeds.tsv
# A build of its own: LuaJIT comes to the same histories 1.3 times as fast, which the first part shows whenever the code is another one.
export RUSTFLAGS="--cfg luajit -C target-cpu=native" CFLAGS="-O3 -march=native" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/seeds
SIMULATE=$CARGO_TARGET_DIR/simulate/quorate-simulate
PART=4000
# 20,000 seeds of all kinds together, of eight kinds in turn, and of six.
declare -A seeds=([members]=20000 [mixed-lists]=20000 [none]=160000 [any]=120000)

# What the simulator is built from.
CODE=(src scripts/lua simulator/src testkit/src)
code() { git rev-parse "${CODE[@]/#/HEAD:}" | sha1sum | cut -c 1-12; }

# The parts that are not in the ledger: fault, and the first seed.
missing() {
  local faults fault from
  for faults in members mixed-lists "none any"; do
    for ((from = 1; from <= seeds[none]; from += PART)); do
      for fault in $faults; do
        if [ "$from" -le "${seeds[$fault]}" ] && ! grep -q "^$fault	$from	" "$LEDGER"; then echo "$fault $from"; fi
      done
    done
  done
}

# run FAULT FROM: one part; prints how many holds, and how much virtual time, it comes to.
run() {
  local with=()
  [ "$1" = none ] || with=(--fault "$1")
  nice -n 19 "$SIMULATE" --locks any "${with[@]}" --from "$2" --seeds "$PART" | tee -a /dev/stderr |
    sed -nE 's/.*; ([0-9]+ holds, .*[0-9.]+ min).*/\1/p'
}

[ -f "$LEDGER" ] || printf '# fault\tfrom\twhat %s seeds came to, all clean\tcode\tcommit\n' "$PART" >"$LEDGER"

if [ "${1:-}" = --check ]; then
  left=$(missing | wc -l)
  all=$(($(IFS=+; echo "${seeds[*]}")))
  echo "$((left * PART)) seeds are missing of $all; the code is $(code), the last part's $(tail -n 1 "$LEDGER" | cut -f 4)"
  [ "$left" = 0 ]
  exit
fi

# The ledger names the commit, so what runs has to be that.
if ! git diff --quiet HEAD -- "${CODE[@]}"; then
  echo "commit ${CODE[*]} first: the parts are noted with the commit" >&2
  exit 1
fi
until=$((SECONDS + ${1:-1000000}))
cargo build --profile simulate --locked -p quorate-simulator
if [ "$(tail -n +2 "$LEDGER" | tail -n 1 | cut -f 4)" != "$(code)" ]; then
  for fault in "${!seeds[@]}"; do
    was=$(grep "^$fault	1	" "$LEDGER" | cut -f 3 || true)
    if [ -n "$was" ] && [ "$(run "$fault" 1)" != "$was" ]; then
      echo "the code behaves otherwise: all parts with --fault $fault have to be run again"
      sed -i "/^$fault\t/d" "$LEDGER"
    fi
  done
fi
while read -r fault from; do
  [ "$SECONDS" -lt "$until" ] || break
  came_to=$(run "$fault" "$from")
  printf '%s\t%s\t%s\t%s\t%s\n' "$fault" "$from" "$came_to" "$(code)" "$(git rev-parse --short HEAD)" >>"$LEDGER"
done < <(missing)
"$0" --check
