# Sourced by the other scripts: makes sure that redis-server, or a C compiler, is there, or says how to install it.

need_redis() { need redis-server "Redis 7.0 or later, or Valkey 7.2 or later" redis-server; }

# Rust links with it, some crates build with it, and so do the test kit's servers with clocks of their own.
need_cc() { need cc "a C compiler" gcc libc6-dev; }

# need PROGRAM WHAT PACKAGES...: installs Debian's packages where there is no such program.
need() {
  local program=$1 what=$2 as_root=()
  shift 2
  if command -v "$program" >/dev/null; then return; fi
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo)
    else
      echo "$program is missing, and this user may not install it. As root: apt-get install $*" >&2
      exit 1
    fi
  fi
  if ! command -v apt-get >/dev/null; then
    echo "$program is missing, and there is no apt-get. Install $what, and run this again." >&2
    exit 1
  fi
  echo "Installing $* from Debian's packages." >&2
  "${as_root[@]}" apt-get update -qq
  # Without starting the packaged service: the tests and the demo start servers of their own.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
  command -v "$program" >/dev/null
}
