#!/usr/bin/env bash
# Builds what would be published, from what its packages contain, and checks how large the command is. With the oldest Rust that
# Cargo.toml promises, if rustup can get it.
set -euo pipefail
cd "$(dirname "$0")/.."
MOST=8000000
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

oldest=$(sed -nE 's/^rust-version = "(.*)"$/\1/p' Cargo.toml)
if command -v rustup >/dev/null && timeout 300 rustup toolchain install "$oldest" --profile minimal --no-self-update >/dev/null 2>&1; then
  RUSTC=$(rustup which --toolchain "$oldest" rustc)
  export RUSTC
else
  echo "skipped: the oldest Rust: rustup cannot get $oldest, so $(rustc --version) builds the packages"
fi
# Cargo would build what it unpacked of an earlier run: the version is the same.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/quorate-* "$target"/packages/*/.fingerprint/quorate-*
CARGO_TARGET_DIR=$target/packages CARGO_PROFILE_DEV_DEBUG=false cargo publish --workspace --dry-run --locked --allow-dirty
unset RUSTC

cargo build --release -p quorate-cli --locked
strip -o "$target/stripped" "$target/release/quorate"
size=$(stat -c %s "$target/stripped")
echo "the stripped command has $size bytes, and may have $MOST"
[ "$size" -le "$MOST" ]
