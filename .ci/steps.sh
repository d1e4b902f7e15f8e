# Steps of the three tiers: sourced by quick, run and nightly.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
report=$(mktemp -d)
# Functions of `start_beside` that run, each with its process group: "function=group ...".
beside=
trap 'stop_beside; rm -rf "$report"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

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
    # In a file: a function of `start_beside` has variables of its own.
    echo "$name" >>"$report/failed"
  fi
}

# tests NAME COMMAND...: a step whose command is the test runner; its report is counted at the end.
# What hangs is named, and ended.
tests() {
  local name=$1
  shift
  step "$name" "$@" --reporter=default --reporter=./scripts/stuck-tests.mjs \
    --reporter=json --outputFile.json="$report/$name.json"
}

# start_beside FUNCTION...: runs the steps of each function in the time that the next steps leave.
# `join_beside` waits for them, and prints their output.
start_beside() {
  local function
  for function in "$@"; do
    # A process group of its own, which `stop_beside` ends with all that runs in it.
    set -m
    (
      renice -n 10 -p "$BASHPID" >/dev/null
      "$function"
      touch "$report/$function.done"
    ) >"$report/$function.log" 2>&1 </dev/null &
    beside="$beside $function=$!"
    set +m
  done
}

join_beside() {
  local each function
  for each in $beside; do
    function=${each%=*}
    wait "${each#*=}"
    cat "$report/$function.log"
    # Steps that did not run are a failure too.
    [ -e "$report/$function.done" ] || echo "$function" >>"$report/failed"
  done
  beside=
}

stop_beside() {
  local each
  for each in $beside; do kill -- "-${each#*=}" 2>/dev/null; done
}

# finish: counts the tests, refuses skipped ones and an empty run, and prints the closing line.
finish() {
  printf '\n%d s in all\n' "$SECONDS"
  if [ -e "$report/failed" ]; then echo "Failed: $(paste -sd ' ' "$report/failed")"; fi
  node scripts/test-summary.mjs "$report"
  local counted=$?
  [ ! -e "$report/failed" ] && [ $counted -eq 0 ]
}

# checks_of_text [OPTIONS OF TSC]: format, lint, order of imports, types and unused code.
checks_of_text() {
  step "format, lint, imports" biome check --error-on-warnings .
  step "types" tsgo --noEmit "$@"
  step "types of pages" tsgo -p packages/pages
  step "unused code" knip
}
