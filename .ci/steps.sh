# Steps of the three tiers: sourced by quick, run and nightly.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
failed=()

# step NAME COMMAND...: runs a command, prints how long it took, and remembers a failure.
step() {
  local name=$1
  shift
  local started=$SECONDS
  printf '\n== %s\n' "$name"
  if "$@"; then
    printf -- '-- %s: ok, %d s\n' "$name" $((SECONDS - started))
  else
    printf -- '-- %s: FAILED, %d s\n' "$name" $((SECONDS - started))
    failed+=("$name")
  fi
}

# tests NAME COMMAND...: a step whose command is the test runner; its report is counted at the end.
tests() {
  local name=$1
  shift
  step "$name" "$@" --reporter=default --reporter=json --outputFile.json="$report/$name.json"
}

# finish: counts the tests, refuses skipped ones and an empty run, and prints the closing line.
finish() {
  printf '\n%d s in all\n' "$SECONDS"
  if [ ${#failed[@]} -gt 0 ]; then printf 'Failed: %s\n' "${failed[*]}"; fi
  node scripts/test-summary.mjs "$report"
  local counted=$?
  [ ${#failed[@]} -eq 0 ] && [ $counted -eq 0 ]
}

# checks_of_text [OPTIONS OF TSC]: format, lint, order of imports, types and unused code.
checks_of_text() {
  step "format, lint, imports" biome check --error-on-warnings .
  step "types" tsc --noEmit "$@"
  step "unused code" knip
}
