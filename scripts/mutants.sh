#!/usr/bin/env bash
# Puts known bugs back, one at a time, and checks that the simulator finds each of them: simulator/mutants/README.md.
#
#   scripts/mutants.sh                     every bug, with the seed that the table names
#   scripts/mutants.sh NAME...             these only
#   scripts/mutants.sh --seeds LAB         whether the seeds of the table violate nothing with this quorate-lab, which has none of the bugs
#   scripts/mutants.sh --fits              whether all of them fit this tree, those of chaos/mutants/ and tests/mutants/ included: takes a second
#   scripts/mutants.sh --search [NAME...]  looks for the first seed from 1 to 1,000 anew, and prints rows for the table
set -euo pipefail
cd "$(dirname "$0")/.."

MUTANTS=simulator/mutants
TABLE=$MUTANTS/README.md
SEEDS=1000

search=false profile=debug cargo_options=()
if [ "${1:-}" = --search ]; then
  search=true profile=release cargo_options=(--release)
  shift
fi
. scripts/broken-copy.sh
lab=

# The names of all bugs.
bugs() { (cd "$MUTANTS" && printf '%s\n' *.bug | sed 's/\.bug$//'); }

# What a bug is: the first paragraph.
what() { sed '/^$/,$d' "$MUTANTS/$1.bug" | paste -sd ' '; }

# The kind of locks that shows a bug.
locks() { sed -nE 's/^Locks: //p' "$MUTANTS/$1.bug" | grep . || echo reentrant; }

# run NAME OPTION...: simulates what shows a bug: its kind of locks, and the fault outside of Redlock's assumptions that it needs, if any.
# With the program that was built last, unless there is another one.
run() {
  local fault name=$1
  shift
  fault=$(sed -nE 's/^Fault: //p' "$MUTANTS/$name.bug")
  "${lab:-$CARGO_TARGET_DIR/$profile/quorate-lab}" simulate --locks "$(locks "$name")" ${fault:+--fault "$fault"} "$@"
}

# The table's row for a bug: property and seed.
row() { sed -nE "s/^\| \[$1\].*\| ([a-z_]+) \| ([0-9]+) \|.*/\1 \2/p" "$TABLE"; }

# Finds a seed for each bug, whether or not it is in the table.
search() {
  local name found seed property missed=0
  copy_tree
  for name; do
    build_broken "$MUTANTS/$name.bug" quorate-lab
    found=$(run "$name" --seeds "$SEEDS" --no-shrink) || true
    seed=$(sed -nE 's/^seed ([0-9]+) violates:$/\1/p' <<<"$found")
    property=$(sed -nE 's/^  ([a-z_]+) at .*/\1/p' <<<"$found" | sed -n 1p)
    if [ -n "$seed" ]; then
      echo "| [$name]($name.bug) | $(what "$name") | $(locks "$name") | $property | $seed | \`scripts/mutants.sh $name\` |"
    else
      echo "NOT FOUND in $SEEDS seeds: $name"
      missed=$((missed + 1))
    fi
  done
  [ "$missed" = 0 ] || fail "$missed were not found"
}

# Checks that the seeds of these bugs find nothing where no bug was put.
check_seeds() {
  local name seed log
  for name; do
    read -r _ seed <<<"$(row "$name")"
    [ -n "$seed" ] || fail "simulator/mutants/README.md has no row for $name"
    log=$(run "$name" --seed "$seed" 2>&1) ||
      fail "seed $seed finds something without $name: look at that first: $log"
  done
  echo "the seeds that find $# known bugs find nothing without them"
}

# Looks for each of these bugs with its seed: a line for each.
try() {
  local name property seed log found
  for name; do
    read -r property seed <<<"$(row "$name")"
    build_broken "$MUTANTS/$name.bug" quorate-lab
    found=found
    if ! log=$(run "$name" --seed "$seed" --expect "$property" 2>&1); then
      found="NOT FOUND"
      printf '%s\n' "$log" >&2
    fi
    printf '%-24s %-12s %5s  %s\n' "$name" "$property" "$seed" "$found"
  done
}

# Checks that each bug is found with its seed, and that the seed finds nothing where no bug was put. Half of the bugs are tried beside
# the others: a build keeps one processor busy for most of its time.
check() {
  local half=$(($# / 2)) others report missed
  copy_tree
  build "the tree itself" quorate-lab
  check_seeds "$@"
  copy_again
  in_second_copy try "${@:half+1}" >"$WORK/others" &
  others=$!
  trap wait EXIT
  report=$(try "${@:1:half}")
  wait "$others"
  report+=${report:+$'\n'}$(<"$WORK/others")
  printf '\n%-24s %-12s %5s\n%s\n' bug property seed "$report"
  missed=$(grep -c 'NOT FOUND$' <<<"$report") || return 0
  fail "$missed were not found with their seeds: scripts/mutants.sh --search looks for others"
}

if [ "${1:-}" = --fits ]; then
  check_fit */mutants/*.bug
  exit
fi
if [ "${1:-}" = --seeds ]; then
  lab=$2
  mapfile -t names < <(bugs)
  check_seeds "${names[@]}"
  exit
fi
if [ $# = 0 ]; then
  mapfile -t names < <(bugs)
  set -- "${names[@]}"
fi
files=("${@/#/$MUTANTS/}")
check_fit "${files[@]/%/.bug}"
if $search; then search "$@"; else check "$@"; fi
