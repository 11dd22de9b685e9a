#!/usr/bin/env bash
# The long check: many seeds of all kinds of locks in turn, for each of SORTS, on two cores. It goes on where it stopped, also on another
# machine: docs/figures/seeds.tsv says which were clean, and at which commit.
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
SIMULATE=$CARGO_TARGET_DIR/simulate/quorate-lab
PART=4000
# Faults, and how many seeds with them, of eight kinds of locks in turn (six with late-handshake). The first six lines are the check
# before an issue is closed, two hours; all are that of a release, many hours.
SORTS="
members 20000
mixed-lists 20000
lost-sets 4000
late-handshake 4000
any 32000
none 32000
any 160000
none 160000
"

# What the simulator is built from.
CODE=(src scripts/lua history/src simulator/src testkit/src)
code() { git rev-parse "${CODE[@]/#/HEAD:}" | sha1sum | cut -c 1-12; }

# All parts: fault, and the first seed.
parts() {
  local fault count from
  while read -r fault count; do
    for ((from = 1; from <= ${count:-0}; from += PART)); do echo "$fault $from"; done
  done <<<"$SORTS" | awk '!seen[$0]++'
}

# The parts that are not in the ledger.
missing() { parts | grep -vxFf <(sed -nE 's/^([a-z-]+)\t([0-9]+)\t.*/\1 \2/p' "$LEDGER") || true; }

# run FAULT FROM: one part; prints how many holds, and how much virtual time, it comes to.
run() {
  local with=()
  [ "$1" = none ] || with=(--fault "$1")
  nice -n 19 "$SIMULATE" simulate --locks any "${with[@]}" --from "$2" --seeds "$PART" | tee -a /dev/stderr |
    sed -nE 's/.*; ([0-9]+ holds, .*[0-9.]+ min).*/\1/p'
}

[ -f "$LEDGER" ] || printf '# fault\tfrom\twhat %s seeds came to, all clean\tcode\tcommit\n' "$PART" >"$LEDGER"

if [ "${1:-}" = --check ]; then
  left=$(missing | wc -l)
  echo "$((left * PART)) seeds are missing of $(($(parts | wc -l) * PART)); the code is $(code), the last part's $(tail -n 1 "$LEDGER" | cut -f 4)"
  [ "$left" = 0 ]
  exit
fi

# The ledger names the commit, so what runs has to be that.
if ! git diff --quiet HEAD -- "${CODE[@]}"; then
  echo "commit ${CODE[*]} first: the parts are noted with the commit" >&2
  exit 1
fi
until=$((SECONDS + ${1:-1000000}))
cargo build --profile simulate --locked -p quorate-lab
if [ "$(tail -n +2 "$LEDGER" | tail -n 1 | cut -f 4)" != "$(code)" ]; then
  for fault in $(parts | cut -d ' ' -f 1 | sort -u); do
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
