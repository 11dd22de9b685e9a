# Sourced by the scripts that test: one profile for all of them, as what is built with the same features is built once.
# shellcheck disable=SC2034 # they use it
checks=(--profile checks --workspace --all-features --locked)
