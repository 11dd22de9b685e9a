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

# finds SEED OPTIONS PROPERTY: whether a run violates this.
finds() {
  local summary code
  summary=$(run "$1" "$2") && code=0 || code=$?
  case $code in
    0 | 79 | 80) [ "$code" = 79 ] && grep -qw "^Violated: .*$3" <<<"$summary" ;;
    *) fail "seed $1 of $2 ended with $code: $summary" ;;
  esac
}

# What is found with these options of this property, in words.
search() {
  local seed found=0
  if $count; then
    for ((seed = 1; seed <= COUNTED; seed++)); do
      if finds "$seed" "$@"; then found=$((found + 1)); fi
    done
    echo "$found of $COUNTED"
    return
  fi
  for ((seed = 1; seed <= SEEDS; seed++)); do
    if finds "$seed" "$@"; then echo "seed $seed" && return; fi
  done
  echo "NOT FOUND"
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
  found=$(search "$options" "$property")
  case $found in "NOT FOUND" | 0*) missed=$((missed + 1)) ;; esac
  printf '%-20s %-10s %s\n' "$name" "$property" "$found"
done
[ "$missed" = 0 ] || fail "$missed were not found"
