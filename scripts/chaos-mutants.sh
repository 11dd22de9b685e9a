#!/usr/bin/env bash
# Puts known bugs back, one at a time, and checks that chaos on real servers finds each of them: chaos/mutants/README.md.
#
#   scripts/chaos-mutants.sh           every bug
#   scripts/chaos-mutants.sh NAME...   these only
#   RUNS=20 scripts/chaos-mutants.sh   twenty runs each, with the seeds from 1 on, and not five
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/need-redis.sh

TABLE=chaos/mutants/README.md
RUNS=${RUNS:-5}
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

# Counts the runs in which a bug is found by its property.
count() {
  local options=$1 property=$2 seed found=0 summary code
  for ((seed = 1; seed <= RUNS; seed++)); do
    summary=$(run "$seed" "$options") && code=0 || code=$?
    case $code in
      0 | 79 | 80) ;;
      *) fail "seed $seed of $options ended with $code: $summary" ;;
    esac
    if [ "$code" = 79 ] && grep -qw "^Violated: .*$property" <<<"$summary"; then found=$((found + 1)); fi
  done
  echo "$found"
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
for row in "${chosen[@]}"; do
  read -r name _ _ options <<<"$row"
  run 1 "$options" >"$WORK/run.log" || [ $? = 80 ] || { cat "$WORK/run.log" >&2; fail "$options finds something without $name: look at that first"; }
done
printf '%-20s %-10s %s\n' bug property found
for row in "${chosen[@]}"; do
  read -r name file property options <<<"$row"
  build_broken "chaos/mutants/$file" quorate-cli
  found=$(count "$options" "$property")
  [ "$found" -gt 0 ] || missed=$((missed + 1))
  printf '%-20s %-10s %s of %s\n' "$name" "$property" "$found" "$RUNS"
done
[ "$missed" = 0 ] || fail "$missed were not found"
