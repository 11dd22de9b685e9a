#!/usr/bin/env bash
# Puts the locks through every scenario of `quorate-lab chaos`, so many seeds each (20 if nothing is said), some runs at a time:
#   scripts/chaos-all.sh [SEEDS [AT_A_TIME [DURATION]]]
# Prints a row a scenario: how many runs found nothing, were inconclusive, and found something. The summaries of those that did not
# find nothing are kept in target/chaos-all. Fails unless every run found nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${1:-20} at_a_time=${2:-2} duration=${3:-5s}
. scripts/lab.sh
folder=$target/chaos-all
rm -rf "$folder"
mkdir -p "$folder"
export lab folder duration

one() {
  local summary="$folder/$1-$2.txt" code=0
  "$lab" chaos --scenario "$1" --seed "$2" --duration "$duration" --history "$folder/$1-$2.jsonl" >"$summary" 2>&1 || code=$?
  echo "$1 $code" >>"$folder/codes"
  if [ "$code" = 0 ]; then rm "$folder/$1-$2".*; else echo "$1, seed $2, ended with $code: $summary" >&2; fi
}
export -f one

for seed in $(seq "$seeds"); do
  for scenario in "${scenarios[@]}"; do echo "$scenario $seed"; done
done | xargs -P "$at_a_time" -L 1 bash -c 'one "$0" "$1"'

awk '
  { runs[$1]++ } $2 == 0 { clean[$1]++ } $2 == 80 { open[$1]++ } $2 != 0 && $2 != 80 { found[$1]++ }
  END {
    print "| scenario | runs | nothing found | inconclusive | else |\n|---|---|---|---|---|"
    for (name in runs) {
      printf "| %s | %d | %d | %d | %d |\n", name, runs[name], clean[name], open[name], found[name] | "sort"
    }
    close("sort")
  }' "$folder/codes"
[ "$(awk '$2 == 0' "$folder/codes" | wc -l)" = $((seeds * ${#scenarios[@]})) ]
