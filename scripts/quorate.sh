# Sourced by the scripts that run `quorate chaos` again and again: builds the command, with its assertions and with overflow checked, and
# sets `target`, `quorate`, and `scenarios`.
. scripts/need-redis.sh
need_redis
need_cc
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
quorate=$target/debug/quorate
cargo build -q --locked -p quorate-cli
mapfile -t scenarios < <("$quorate" chaos --list | awk '{ print $1 }')
[ "${#scenarios[@]}" -gt 0 ] || { echo "there is no scenario" >&2; exit 1; }
