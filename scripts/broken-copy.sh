# Sourced by the scripts that put known bugs back: a copy of this tree, in which one bug is at a time. Nothing is changed in this
# tree. They set `cargo_options` to what cargo is given besides, and `cargo_command` if that is not `build`.

WORK=$(realpath -m "${CARGO_TARGET_DIR:-target}")/mutants
COPY=$WORK/tree
# The copy has a target directory of its own. In a shared one cargo would take what it built of the copy for what it would
# build of this tree, and use a broken library.
export CARGO_TARGET_DIR=$WORK/target
# Nobody debugs it, and it is built sooner without what that takes.
export CARGO_PROFILE_DEV_DEBUG=false
mkdir -p "$COPY"

fail() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; exit 1; }

# Makes the copy like this tree. A file that is the same already keeps its date, so that it is not built again; one that is not in
# the tree any more goes.
copy_tree() {
  local file
  declare -A here=()
  while IFS= read -r -d '' file; do
    here[$file]=1
    cmp -s "$file" "$COPY/$file" || install -m 644 -D "$file" "$COPY/$file"
  done < <(git ls-files -z -- ':!docs' ':!*/mutants')
  while IFS= read -r -d '' file; do
    [ -n "${here[$file]:-}" ] || rm "$COPY/$file"
  done < <(cd "$COPY" && find . -type f -printf '%P\0')
}

# build WHAT PACKAGE: builds a package of the copy.
build() {
  (cd "$COPY" && cargo "${cargo_command:-build}" -q --locked "${cargo_options[@]}" -p "$2") >"$COPY.log" 2>&1 ||
    { cat "$COPY.log" >&2; fail "$1 does not build"; }
}

# Makes a second copy, of the copy and of what is built there.
copy_again() {
  rm -rf "$WORK/second"
  mkdir "$WORK/second"
  cp -a "$COPY" "$CARGO_TARGET_DIR" "$WORK/second"
}

# in_second_copy COMMAND...: runs it there, so that another one can run in the first copy meanwhile.
in_second_copy() {
  (COPY=$WORK/second/tree CARGO_TARGET_DIR=$WORK/second/target && "$@")
}

# The text of each file that a bug may be put into.
declare -A texts
while IFS= read -r -d '' file; do
  texts[$file]=$(<"$file")
done < <(find src scripts/lua simulator/src -type f -print0)

# read_bug BUG: reads a bug into `finds`, texts of this tree, and `puts`, what the bug has in their place.
read_bug() {
  local line part=about
  finds=() puts=()
  while IFS= read -r line; do
    case $part:$line in
      *:'=== find') finds+=('') puts+=('') part=find ;;
      *:'=== put') part=put ;;
      find:*) finds[-1]+=$line$'\n' ;;
      put:*) puts[-1]+=$line$'\n' ;;
    esac
  done <"$1"
  finds=("${finds[@]%$'\n'}") puts=("${puts[@]%$'\n'}")
}

# locate TEXT: the files that have it, each as often as it does, into `found`.
locate() {
  local LC_ALL=C file rest
  found=()
  for file in "${!texts[@]}"; do
    rest=${texts[$file]}
    while [[ -n $1 && $rest == *"$1"* ]]; do
      found+=("$file") rest=${rest#*"$1"}
    done
  done
}

# check_fit BUG...: fails unless each text that these bugs take the place of is in this tree, once. Names all that are not.
check_fit() {
  local bug text wrong=()
  for bug; do
    [ -f "$bug" ] || { wrong+=("there is no $bug"); continue; }
    read_bug "$bug"
    [ "${#finds[@]}" -gt 0 ] || wrong+=("$bug has no line '=== find'")
    for text in "${finds[@]}"; do
      locate "$text"
      case ${#found[@]} in
        0) wrong+=("$bug: not found: $text") ;;
        1) ;;
        *) wrong+=("$bug: found ${#found[@]} times (${found[*]}): $text") ;;
      esac
    done
  done
  [ "${#wrong[@]}" = 0 ] || fail "known bugs that no longer fit:$(printf '\n  %s' "${wrong[@]}")"
}

# The files of the copy that have a bug.
broken=()

# build_broken BUG PACKAGE: builds it with this bug in it, and with no other.
build_broken() {
  local i file text
  for file in "${broken[@]}"; do install -m 644 "$file" "$COPY/$file"; done
  broken=()
  read_bug "$1"
  for i in "${!finds[@]}"; do
    locate "${finds[i]}"
    file=${found[0]}
    text=$(<"$COPY/$file")
    printf '%s\n' "${text%%"${finds[i]}"*}${puts[i]}${text#*"${finds[i]}"}" >"$COPY/$file"
    broken+=("$file")
  done
  build "$1" "$2"
}
