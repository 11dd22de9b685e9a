#!/usr/bin/env bash
# Puts known bugs back, one at a time, and checks that chaos on real servers finds each of them: chaos/mutants/README.md.
#
#   scripts/chaos-mutants.sh                     every bug, with the seeds from 1 to 20, up to the first one that finds it
#   scripts/chaos-mutants.sh NAME...             these only
#   scripts/chaos-mutants.sh --count [NAME...]   how many of the seeds from 1 to 5 find it, for the table
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh

TABLE=chaos/mutants/README.md
SEEDS=20
COUNTED=5
# They mostly wait, for leases and for faults.
AT_A_TIME=2

count=false
if [ "${1:-}" = --count ]; then
  count=true
  shift
fi
cargo_options=()
. scripts/broken-copy.sh
quorate=$CARGO_TARGET_DIR/debug/quorate

# The table's rows, each as: name, file, property, options of `quorate chaos`.
rows() { sed -nE 's/^\| \[([a-z-]+)\]\(([^)]*)\) \|[^|]*\| `([^`]*)` \| ([a-z]+) \|.*/\1 \2 \4 \3/p' "$TABLE"; }

# run SEED OPTIONS: a run, whose summary is printed.
run() {
  # shellcheck disable=SC2086 # they are several words
  "$quorate" chaos --seed "$1" $2 2>&1
}

# finds SEED OPTIONS PROPERTY: prints the seed if a run violates this.
finds() {
  local summary code
  summary=$(run "$1" "$2") && code=0 || code=$?
  case $code in
    0 | 80) ;;
    79) if grep -qw "^Violated: .*$3" <<<"$summary"; then echo "$1"; fi ;;
    *) fail "seed $1 of $2 ended with $code: $summary" ;;
  esac
}

# What is found with these options of this property, in words.
search() {
  local seed i jobs found=() last=$SEEDS
  if $count; then last=$COUNTED; fi
  for ((seed = 1; seed <= last; seed += AT_A_TIME)); do
    jobs=()
    for ((i = seed; i < seed + AT_A_TIME && i <= last; i++)); do
      finds "$i" "$@" >"$WORK/found-$i" &
      jobs+=($!)
    done
    for i in "${jobs[@]}"; do wait "$i" || exit; done
    for ((i = seed; i < seed + AT_A_TIME && i <= last; i++)); do
      if [ -s "$WORK/found-$i" ]; then found+=("$i"); fi
    done
    if ! $count && [ "${#found[@]}" -gt 0 ]; then echo "seed ${found[0]}" && return; fi
  done
  if $count; then echo "${#found[@]} of $COUNTED"; else echo "NOT FOUND"; fi
}

# clean OPTIONS: fails if the first run finds something where no bug was put.
clean() {
  local log code=0
  log=$(run 1 "$1") || code=$?
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

copy_tree
build "the tree itself" quorate-cli
mapfile -t unlike < <(printf '%s\n' "${chosen[@]}" | cut -d ' ' -f 4- | sort -u)
for ((i = 0; i < ${#unlike[@]}; i += AT_A_TIME)); do
  jobs=()
  for options in "${unlike[@]:i:AT_A_TIME}"; do
    clean "$options" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job"; done
done
printf '%-20s %-10s %s\n' bug property found
for row in "${chosen[@]}"; do
  read -r name file property options <<<"$row"
  build_broken "chaos/mutants/$file" quorate-cli
  found=$(search "$options" "$property")
  case $found in "NOT FOUND" | 0*) missed=$((missed + 1)) ;; esac
  printf '%-20s %-10s %s\n' "$name" "$property" "$found"
done
[ "$missed" = 0 ] || fail "$missed were not found"
