#!/usr/bin/env bash
# Changes the rules of src/set, one place at a time, and checks that a test of the rules notices: tests/mutants/README.md.
#
#   scripts/set-mutants.sh                    every change that cargo-mutants knows: hours. Those that no test notices have to be
#                                             the ones of tests/mutants/survivors.tsv
#   scripts/set-mutants.sh FILE...            those in these files of src/set only, as rejoin.rs
#   scripts/set-mutants.sh sample [NAME...]   the known bugs of tests/mutants, or these of them
set -euo pipefail
cd "$(dirname "$0")/.."

BUGS=tests/mutants
SURVIVORS=$BUGS/survivors.tsv
# The pure part of src/set.
FILES=(begin change handle peer proposer record rejoin rules state terms view voters write)
# A change may let a rule loop for ever. The rule tests take a second, and the walks some ten.
MOST_SECONDS=120
# Walks draw what they try, so they come last.
RULES=(--skip tests::walks --skip tests::model)
WALKS=(tests::walks)

cargo_command=test
cargo_options=(--lib --no-run)
. scripts/broken-copy.sh

# What cargo-mutants changed without a test that notices, without the places in the files: sorted lines.
survivors() { sed -E 's/:[0-9]+:[0-9]+:/:/' "$1/mutants.out/missed.txt" | LC_ALL=C sort; }

# The lines of the list about these files: sorted.
listed() {
  local file
  for file; do sed -nE "s|^(src/set/$file: [^\t]*)\t.+|\1|p" "$SURVIVORS"; done | LC_ALL=C sort
}

# Runs cargo-mutants on these files, and compares what survives with the list.
whole() {
  local code=0 out=$WORK/set
  cargo mutants --version >/dev/null 2>&1 || fail "there is no cargo-mutants: cargo install --locked cargo-mutants"
  mkdir -p "$out"
  # 2: some are missed. 3: some took too long, which a test notices, too.
  cargo mutants -p quorate "${@/#/--file=src/set/}" --no-shuffle -o "$out" --timeout "$MOST_SECONDS" \
    --cargo-arg=--locked --cargo-arg=--lib -- set:: -- "${RULES[@]}" || code=$?
  [ $code = 0 ] || [ $code = 2 ] || [ $code = 3 ] || fail "cargo-mutants ended with $code"
  diff <(listed "$@") <(survivors "$out") ||
    fail "$SURVIVORS is not what survives: < is noticed by now, and > needs a test, or a reason there"
}

# tests OPTION...: whether these tests of the copy pass. Names those that do not in `failed`.
tests() {
  local log
  failed=
  if log=$(cd "$COPY" && timeout "$MOST_SECONDS" cargo test -q --locked --lib -p quorate set:: -- "$@" 2>&1); then return; fi
  failed=$(sed -nE 's/^    set::tests::([a-z_:]+)$/\1/p' <<<"$log" | sort -u)
  [ -n "$failed" ] || failed="a test that takes longer than $MOST_SECONDS s"
  return 1
}

# Puts each of these bugs into a copy of the tree: a line for each.
sample() {
  local name missed=0
  check_fit "${@/#/$BUGS/}"
  copy_tree
  build "the tree itself" quorate
  tests "${RULES[@]}" || fail "a test fails without a bug: $failed"
  for name; do
    build_broken "$BUGS/$name" quorate
    if tests "${RULES[@]}" && tests "${WALKS[@]}"; then
      failed="NOT FOUND"
      missed=$((missed + 1))
    fi
    printf '%-32s %2d  %s\n' "${name%.bug}" "$(grep -c :: <<<"$failed")" "$(sed -n 1p <<<"$failed")"
  done
  [ $missed = 0 ] || fail "$missed were not found"
}

if [ "${1:-}" = sample ]; then
  shift
  if [ $# = 0 ]; then
    mapfile -t names < <(cd "$BUGS" && printf '%s\n' *.bug)
    set -- "${names[@]%.bug}"
  fi
  sample "${@/%/.bug}"
else
  if [ $# = 0 ]; then set -- "${FILES[@]/%/.rs}"; fi
  whole "$@"
fi
