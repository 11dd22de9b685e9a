#!/usr/bin/env bash
# Puts the locks through one random scenario after the other, for so long (10 minutes if nothing is said), until a property
# does not hold:
#   scripts/soak.sh [TIME]    90, 90s, 15m or 8h
# That run's report and history are kept in target/soak, and the command that replays it is printed.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf 'soak: %s\n' "$1" >&2; exit "${2:-1}"; }

time=${1:-10m}
[[ $time =~ ^([1-9][0-9]*)([smh]?)$ ]] || fail "$time is no time: 90, 90s, 15m or 8h" 64
case ${BASH_REMATCH[2]} in h) unit=3600 ;; m) unit=60 ;; *) unit=1 ;; esac
seconds=$((BASH_REMATCH[1] * unit))

. scripts/lab.sh
folder=$target/soak
mkdir -p "$folder"

# A bar is for a terminal; the lines of thousands of runs are for nobody, but those of the last one.
progress=/dev/stderr
[ -t 2 ] || progress=$folder/progress.txt

runs=0 inconclusive=0
summary() {
  printf '%s runs of 10 s in %s s, %s of them inconclusive, %s with a violation\n' "$runs" "$SECONDS" "$inconclusive" "$1"
}
trap 'echo; summary 0; exit 130' INT
SECONDS=0
while [ "$SECONDS" -lt "$seconds" ]; do
  scenario=${scenarios[RANDOM % ${#scenarios[@]}]}
  seed=$((RANDOM * 32768 + RANDOM))
  masters=$((1 + 2 * (RANDOM % 4)))
  [ "$scenario" != members ] || masters=3
  command=(chaos --scenario "$scenario" --seed "$seed" --duration 10s --masters "$masters" --clients $((1 + RANDOM % 5)))
  "$lab" "${command[@]}" --report "$folder/report.html" --history "$folder/history.jsonl" >"$folder/summary.txt" 2>"$progress" && code=0 || code=$?
  runs=$((runs + 1))
  case $code in
    0) printf '%6d s  %-10s seed %-10d nothing found\n' "$SECONDS" "$scenario" "$seed" ;;
    80)
      inconclusive=$((inconclusive + 1))
      printf '%6d s  %-10s seed %-10d inconclusive\n' "$SECONDS" "$scenario" "$seed"
      ;;
    # Acquires were too slow while the set changed: this machine may be busy with something else.
    82) printf '%6d s  %-10s seed %-10d too slow\n' "$SECONDS" "$scenario" "$seed" ;;
    *)
      [ -t 2 ] || cat "$progress" >&2
      cat "$folder/summary.txt"
      printf '\n%s seed %s ended with %s. It is kept in %s: report.html, history.jsonl, summary.txt\n' "$scenario" "$seed" "$code" "$folder"
      printf 'To replay it: cargo run -p quorate-lab --'
      printf ' %s' "${command[@]}"
      printf '\n'
      [ "$code" != 79 ] || { summary 1; exit 79; }
      summary 0
      exit "$code"
      ;;
  esac
done
rm -f "$folder"/{report.html,history.jsonl,summary.txt,progress.txt}
summary 0
