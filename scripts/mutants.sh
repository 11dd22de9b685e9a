#!/usr/bin/env bash
# Puts known bugs back, one at a time, and checks that the simulator finds each of them: simulator/mutants/README.md.
#
#   scripts/mutants.sh                     every bug, with the seed that the table names
#   scripts/mutants.sh NAME...             these only
#   scripts/mutants.sh --search [NAME...]  looks for the first seed from 1 to 1,000 anew, and prints rows for the table
#
# Nothing is changed in this tree: the bugs are put into a copy of it, target/mutants/tree.
set -euo pipefail
cd "$(dirname "$0")/.."

MUTANTS=$PWD/simulator/mutants
TABLE=$MUTANTS/README.md
WORK=$(realpath -m "${CARGO_TARGET_DIR:-target}")/mutants
COPY=$WORK/tree
# The copy has a target directory of its own. In a shared one cargo would take what it built of the copy for what it would
# build of this tree, and use a broken library.
export CARGO_TARGET_DIR=$WORK/target
# Nobody debugs it, and it is built sooner without what that takes.
export CARGO_PROFILE_DEV_DEBUG=false
SEEDS=1000

fail() { printf 'mutants: %s\n' "$*" >&2; exit 1; }

search=false profile=debug options=()
if [ "${1:-}" = --search ]; then
  search=true profile=release options=(--release)
  shift
fi
simulate=$CARGO_TARGET_DIR/$profile/quorate-simulate

# Makes the copy like this tree. A file that is the same already keeps its date, so that it is not built again.
copy_tree() {
  local file
  while IFS= read -r -d '' file; do
    cmp -s "$file" "$COPY/$file" || install -m 644 -D "$file" "$COPY/$file"
  done < <(git ls-files -z -- ':!docs' ':!simulator/mutants')
}

# Builds the copy.
build() {
  local log=$WORK/build.log
  (cd "$COPY" && cargo build -q --locked "${options[@]}" -p quorate-simulator) >"$log" 2>&1 ||
    { cat "$log" >&2; fail "$1 does not build"; }
}

# Builds the copy with one bug in it.
build_broken() {
  [ -f "$MUTANTS/$1.patch" ] || fail "there is no simulator/mutants/$1.patch"
  copy_tree
  # Without the ceiling git would take the copy for an ignored part of this repository, and skip every file of it.
  (cd "$COPY" && GIT_CEILING_DIRECTORIES=$WORK git apply "$MUTANTS/$1.patch") ||
    fail "$1.patch does not apply"
  build "$1"
}

# The names of all patches.
patches() { (cd "$MUTANTS" && printf '%s\n' *.patch | sed 's/\.patch$//'); }

# What a patch says that its bug is: the first paragraph.
what() { sed '/^$/,$d' "$MUTANTS/$1.patch" | paste -sd ' '; }

# The kind of locks that shows a bug, as a patch says it.
locks() { sed -nE 's/^Locks: //p' "$MUTANTS/$1.patch" | grep . || echo reentrant; }

# The table's row for a bug: property and seed.
row() { sed -nE "s/^\| \[$1\].*\| ([a-z_]+) \| ([0-9]+) \|.*/\1 \2/p" "$TABLE"; }

# Finds a seed for each bug, whether or not it is in the table.
search() {
  local name found seed property missed=0
  for name; do
    build_broken "$name"
    found=$("$simulate" --seeds "$SEEDS" --locks "$(locks "$name")" --no-shrink) || true
    seed=$(sed -nE 's/^seed ([0-9]+) violates:$/\1/p' <<<"$found")
    property=$(sed -nE 's/^  ([a-z_]+) at .*/\1/p' <<<"$found" | sed -n 1p)
    if [ -n "$seed" ]; then
      echo "| [$name]($name.patch) | $(what "$name") | $(locks "$name") | $property | $seed | \`scripts/mutants.sh $name\` |"
    else
      echo "NOT FOUND in $SEEDS seeds: $name"
      missed=$((missed + 1))
    fi
  done
  [ "$missed" = 0 ] || fail "$missed were not found"
}

# Checks that each bug is found with its seed, and that the seed finds nothing where no bug was put.
check() {
  local name property seed report=() missed=0
  for name; do
    [ -n "$(row "$name")" ] || fail "simulator/mutants/README.md has no row for $name"
  done
  copy_tree
  build "the tree itself"
  for name; do
    read -r property seed <<<"$(row "$name")"
    "$simulate" --seed "$seed" --locks "$(locks "$name")" || fail "seed $seed finds something without $name: look at that first"
  done
  for name; do
    read -r property seed <<<"$(row "$name")"
    build_broken "$name"
    found=found
    if ! "$simulate" --seed "$seed" --locks "$(locks "$name")" --expect "$property" >"$WORK/run.log" 2>&1; then
      cat "$WORK/run.log" >&2
      found="NOT FOUND" missed=$((missed + 1))
    fi
    report+=("$(printf '%-24s %-12s %5s  %s' "$name" "$property" "$seed" "$found")")
  done
  printf '\n%-24s %-12s %5s\n' bug property seed
  printf '%s\n' "${report[@]}"
  [ "$missed" = 0 ] || fail "$missed were not found with their seeds: scripts/mutants.sh --search looks for others"
}

mkdir -p "$COPY"
if [ $# = 0 ]; then
  mapfile -t names < <(patches)
  set -- "${names[@]}"
fi
if $search; then search "$@"; else check "$@"; fi
