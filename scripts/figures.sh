#!/usr/bin/env bash
# Measures topics of the benches, all or those that are named, writes docs/figures/, and makes the tables of README.md and
# docs/PERFORMANCE.md from it: half an hour for all, on a machine that does nothing else, when the benches are built. Most
# topics are measured three times; with --once all are measured once. With --tables it only makes the tables again; with --check
# it fails where they are not what docs/figures make of them, and says which are older than the code.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/checks.sh

case "${1:-}" in
  --tables | --check) build=("${checks[@]}") words=("${1#--}") ;; # built already where the tests ran
  *) build=(--locked) words=(figures "$@") ;;
esac
cargo bench "${build[@]}" --quiet --bench bench -- "${words[@]}"
