#!/usr/bin/env bash
# Puts known bugs back, one at a time, and checks that chaos on real servers finds each of them: chaos/mutants/README.md.
#
#   scripts/chaos-mutants.sh                     every bug, with the seeds from 1 to 40, up to the first one that finds it
#   scripts/chaos-mutants.sh NAME...             these only
#   scripts/chaos-mutants.sh --count [NAME...]   how many of the seeds from 1 to 5 find it, for the table
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh

TABLE=chaos/mutants/README.md
SEEDS=40
COUNTED=5
# Runs at a time: they mostly wait, for leases and for faults.
AT_A_TIME=4

count=false
if [ "${1:-}" = --count ]; then
  count=true
  shift
fi
cargo_options=()
. scripts/broken-copy.sh
built=$CARGO_TARGET_DIR/debug/quorate-lab

# The table's rows, each as: name, file, property, options of `quorate-lab chaos`.
rows() { sed -nE 's/^\| \[([a-z-]+)\]\(([^)]*)\) \|[^|]*\| `([^`]*)` \| ([a-z]+) \|.*/\1 \2 \4 \3/p' "$TABLE"; }

# run PROGRAM SEED OPTIONS: a run, whose summary is printed.
run() {
  # shellcheck disable=SC2086 # they are several words
  "$1" chaos --seed "$2" $3 2>&1
}

# finds PROGRAM SEED OPTIONS PROPERTY: true if the run violates this.
finds() {
  local summary code
  summary=$(run "$1" "$2" "$3") && code=0 || code=$?
  case $code in
    0 | 80) return 1 ;;
    79) grep -qw "^Violated: .*$4" <<<"$summary" ;;
    *) fail "seed $2 of $3 ended with $code: $summary" ;;
  esac
}

# search PROGRAM OPTIONS PROPERTY: what is found, in words.
search() {
  local seed found=0 last=$SEEDS
  if $count; then last=$COUNTED; fi
  for ((seed = 1; seed <= last; seed++)); do
    if ! finds "$1" "$seed" "$2" "$3"; then continue; fi
    found=$((found + 1))
    if ! $count; then echo "seed $seed" && return; fi
  done
  if $count; then echo "$found of $COUNTED"; else echo "NOT FOUND"; fi
}

# clean OPTIONS: fails if the first run finds something where no bug was put.
clean() {
  local log code=0
  log=$(run "$WORK/clean" 1 "$1") || code=$?
  case $code in
    0 | 80) ;;
    *) fail "$1 finds something without a bug: look at that first: $log" ;;
  esac
}

need_redis
need_cc
mapfile -t all < <(rows)
[ "${#all[@]}" -gt 0 ] || fail "$TABLE has no rows"
chosen=() missed=0
for row in "${all[@]}"; do
  if [ $# = 0 ] || [[ " $* " == *" ${row%% *} "* ]]; then chosen+=("$row"); fi
done
[ $# = 0 ] || [ "${#chosen[@]}" = $# ] || fail "$TABLE has not all of: $*"
files=()
for row in "${chosen[@]}"; do
  read -r _ file _ <<<"$row"
  files+=("chaos/mutants/$file")
done
check_fit "${files[@]}"

under_way=()
trap wait EXIT

# start COMMAND...: runs it in the background, when fewer than AT_A_TIME are.
start() {
  while [ "$(jobs -rp | wc -l)" -ge "$AT_A_TIME" ]; do wait -n || true; done
  "$@" &
  under_way+=($!)
}

# Each program runs while the next one is built.
copy_tree
build "the tree itself" quorate-lab
cp "$built" "$WORK/clean"
mapfile -t unlike < <(printf '%s\n' "${chosen[@]}" | cut -d ' ' -f 4- | sort -u)
for options in "${unlike[@]}"; do
  start clean "$options"
done
for row in "${chosen[@]}"; do
  read -r name file property options <<<"$row"
  build_broken "chaos/mutants/$file" quorate-lab
  cp "$built" "$WORK/$name"
  start search "$WORK/$name" "$options" "$property" >"$WORK/$name.found"
done
for i in "${under_way[@]}"; do wait "$i" || exit; done
printf '%-20s %-10s %s\n' bug property found
for row in "${chosen[@]}"; do
  read -r name file property options <<<"$row"
  found=$(<"$WORK/$name.found")
  case $found in "NOT FOUND" | 0*) missed=$((missed + 1)) ;; esac
  printf '%-20s %-10s %s\n' "$name" "$property" "$found"
done
[ "$missed" = 0 ] || fail "$missed were not found"
