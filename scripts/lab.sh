# Sourced by the scripts that run `quorate-lab chaos` again and again: builds the command, with its assertions and with overflow checked, and
# sets `target`, `lab`, and `scenarios`.
. scripts/need-redis.sh
need_redis
need_cc
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
lab=$target/debug/quorate-lab
cargo build -q --locked -p quorate-lab
mapfile -t scenarios < <("$lab" chaos --list | awk '{ print $1 }')
[ "${#scenarios[@]}" -gt 0 ] || { echo "there is no scenario" >&2; exit 1; }
