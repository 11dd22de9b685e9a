# Sourced by the scripts that make an image of programs of this machine.

# copy_program PATH ROOT FILE: copies a program to this file below ROOT, and every shared library, and the loader, to the paths that it
# asks for.
copy_program() {
  local library
  cp -L "$1" "$2/$3"
  ldd "$1" | grep -oE '/[^ )]+' | while read -r library; do
    mkdir -p "$2$(dirname "$library")"
    cp -Ln "$library" "$2$library" 2>/dev/null || true
  done
}
