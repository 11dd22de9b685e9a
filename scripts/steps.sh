# Sourced by test.sh and test-all.sh: names each step as it begins, and prints at the end how many seconds each took.

STEPS=()
STEP=

step() {
  end_step
  STEP=$* STEP_BEGAN=$SECONDS
  printf '\n== %s\n' "$STEP"
}

end_step() {
  if [ -n "$STEP" ]; then STEPS+=("$(printf '%5d  %s' "$((SECONDS - STEP_BEGAN))" "$STEP")"); fi
  STEP=
}

steps_table() {
  end_step
  printf '\n%s, seconds:\n' "$0"
  printf '%s\n' "${STEPS[@]}" "$(printf '%5d  in all' "$SECONDS")"
}

# Prints the table where the script ends before its time, and at which step that was.
ended() {
  local code=$? at=$STEP
  if [ "$code" = 0 ]; then return; fi
  steps_table
  printf '\n%s FAILED at: %s\n' "$0" "$at" >&2
}
trap ended EXIT
