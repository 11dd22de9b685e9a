# Sourced by the other scripts: makes sure that redis-server is there, or says how to install it.

need_redis() {
  if command -v redis-server >/dev/null; then return; fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo)
    else
      echo "redis-server is missing, and this user may not install it. As root: apt-get install redis-server" >&2
      exit 1
    fi
  fi
  if ! command -v apt-get >/dev/null; then
    echo "redis-server is missing, and there is no apt-get. Install Redis 6 or later, or Valkey, and run this again." >&2
    exit 1
  fi
  echo "Installing redis-server from Debian's packages." >&2
  "${as_root[@]}" apt-get update -qq
  # Without starting the packaged service: the tests and the demo start servers of their own.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server >/dev/null
  command -v redis-server >/dev/null
}
