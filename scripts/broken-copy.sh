# Sourced by the scripts that put known bugs back: a copy of this tree, in which one bug is at a time. Nothing is changed in this
# tree. They set `cargo_options` to what cargo is given besides.

WORK=$(realpath -m "${CARGO_TARGET_DIR:-target}")/mutants
COPY=$WORK/tree
# The copy has a target directory of its own. In a shared one cargo would take what it built of the copy for what it would
# build of this tree, and use a broken library.
export CARGO_TARGET_DIR=$WORK/target
# Nobody debugs it, and it is built sooner without what that takes.
export CARGO_PROFILE_DEV_DEBUG=false
mkdir -p "$COPY"

fail() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; exit 1; }

# Makes the copy like this tree. A file that is the same already keeps its date, so that it is not built again.
copy_tree() {
  local file
  while IFS= read -r -d '' file; do
    cmp -s "$file" "$COPY/$file" || install -m 644 -D "$file" "$COPY/$file"
  done < <(git ls-files -z -- ':!docs' ':!*/mutants')
}

# build WHAT PACKAGE: builds a package of the copy.
build() {
  local log=$WORK/build.log
  (cd "$COPY" && cargo build -q --locked "${cargo_options[@]}" -p "$2") >"$log" 2>&1 ||
    { cat "$log" >&2; fail "$1 does not build"; }
}

# build_broken PATCH PACKAGE: builds it with this bug in it.
build_broken() {
  [ -f "$1" ] || fail "there is no ${1#"$PWD/"}"
  copy_tree
  # Without the ceiling git would take the copy for an ignored part of this repository, and skip every file of it.
  (cd "$COPY" && GIT_CEILING_DIRECTORIES=$WORK git apply "$1") || fail "${1##*/} does not apply"
  build "${1##*/}" "$2"
}
