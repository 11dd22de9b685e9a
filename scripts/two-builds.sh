#!/usr/bin/env bash
# Two builds that speak two versions of the protocol hold and wait for the same names before, during and after changes of the set.
# First `quorate chaos` changes it while clients of two future builds are at work: it fails if an acquire fails, one of 100 leases does
# not go on, or acquires get more than five times as slow. Then jobs run under the build of this tree and
# under a future one, and the set changes to the protocol that only the future one speaks.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/quorate.sh
present=$quorate
cargo_options=()
. scripts/broken-copy.sh

LIMITS=src/protocol/limits.rs
SPOKEN='^(pub const SPOKEN: .* = &\[)(.*)\];$'
# How many seconds anything may take.
BOUND=60

# build_speaking NAME VERSIONS: builds the tree with these versions, as the executable $WORK/NAME.
build_speaking() {
  sed -i -E "s/$SPOKEN/\1$2];/" "$COPY/$LIMITS"
  build "$1" quorate-cli
  cp "$CARGO_TARGET_DIR/debug/quorate" "$WORK/$1"
}

# until_true WHAT COMMAND...: waits until the command succeeds.
until_true() {
  local end=$((SECONDS + BOUND))
  until "${@:2}"; do
    [ "$SECONDS" -lt "$end" ] || { tail -n +1 "$folder"/*.log >&2; fail "in $BOUND s it did not happen that $1"; }
    sleep 0.1
  done
}

# Starts a redis-server at a port that is free, and that no test takes, and adds it to `masters`.
start_server() {
  local port=$((30000 + RANDOM % 2700)) log
  log=$folder/redis-$port.log
  redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$folder" >"$log" &
  until_true "a server starts or ends" eval "grep -q 'Ready to accept' '$log' || ! kill -0 $! 2>/dev/null"
  if kill -0 $! 2>/dev/null; then masters+=("redis://127.0.0.1:$port"); else start_server; fi
}

# start_job JOB BUILD: the job runs under the lock, as soon as this build has it, until it is to end.
start_job() {
  # shellcheck disable=SC2016 # its own shell expands it
  "$2" run shared -- sh -c 'touch "$1.runs"; until [ -e "$1.end" ]; do sleep 0.1; done' job "$folder/$1" 2>"$folder/$1.log" &
  pids[$1]=$!
}
runs() { [ -e "$folder/$1.runs" ] && kill -0 "${pids[$1]}"; }
waits() { ! runs "$1" && "$future" status shared --json | grep -q '"waiting": 1'; }
end_job() { touch "$folder/$1.end" && wait "${pids[$1]}" || fail "the job $1 did not end well: $(cat "$folder/$1.log")"; }

# hand_over JOB NEXT BUILD: the next job waits for the lock that the first one has, and gets it when that ends.
hand_over() {
  start_job "$2" "$3"
  until_true "$2 waits" waits "$2"
  end_job "$1"
  until_true "$2 runs" runs "$2"
}

spoken=$(sed -nE "s/$SPOKEN/\2/p" "$LIMITS")
last=$(grep -oE '[0-9]+' <<<"$spoken" | tail -n 1) || fail "$LIMITS has no SPOKEN"
next=v$((last + 1))
future=$WORK/future
copy_tree
build_speaking future "$spoken, \"$next\""
build_speaking later "$spoken, \"$next\", \"v$((last + 2))\""
"$future" chaos --scenario members --other-build "$WORK/later" --seed 1

folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
declare -A pids=()
masters=()
for _ in 1 2 3; do start_server; done
QUORATE_MASTERS=$(IFS=, && echo "${masters[*]}")
export QUORATE_MASTERS QUORATE_MAX_TTL=2s
"$present" init
start_job first "$present"
until_true "first runs" runs first
hand_over first second "$future"
hand_over second third "$present"
hand_over third fourth "$future"
start_job fifth "$future"
until_true "fifth waits" waits fifth
"$future" members set --protocol "$next"
sleep 3 # a lease is over by then that is not renewed
runs fourth && waits fifth || fail "a job did not outlive the change to protocol $next"
end_job fourth
until_true "fifth runs" runs fifth
"$present" run --no-wait shared -- true 2>"$folder/refused.log" && code=0 || code=$?
[ "$code" = 81 ] && grep -q "protocol $next" "$folder/refused.log" || fail "this build ended with $code: $(cat "$folder/refused.log")"
end_job fifth
echo "Two builds share locks before, during and after the change to protocol $next; then this build is told: $(cat "$folder/refused.log")"
