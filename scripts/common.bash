# shellcheck shell=bash
# What the scripts share. Sourced, after `set -euo pipefail`.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # the scripts use it
readonly root
started=$SECONDS

# say TEXT: one line of progress with the time since the start.
say() {
  local elapsed=$((SECONDS - started))
  printf '[%d:%02d] %s\n' $((elapsed / 60)) $((elapsed % 60)) "$*" >&2
}

# step NAME COMMAND…: runs the command between two lines that tell its name, and how long it took.
step() {
  local name=$1 since=$SECONDS status=0
  shift
  say "$name …"
  "$@" || status=$?
  if ((status == 0)); then
    say "$name: done in $((SECONDS - since)) s"
  else
    say "$name: FAILED after $((SECONDS - since)) s (exit $status)"
  fi
  return "$status"
}

# pytest_count WORD FILE: how many tests pytest's last summary in a file calls so (`passed`, `failed`, `errors?` …).
pytest_count() {
  { grep -E '^(=+ )?([0-9]+ [a-z]+, )*[0-9]+ [a-z]+ in [0-9.]+s' "$2" || true; } | tail -n 1 |
    { grep -oE "[0-9]+ $1\\b" || echo 0; } | grep -oE '^[0-9]+'
}

# need_swift: ends with 69 (unavailable, in sysexits) where there is no toolchain that fits.
need_swift() {
  local version
  if ! command -v swift >/dev/null; then
    cat >&2 <<'TEXT'
Swift is missing. Martlet needs the Swift 6.3 toolchain on Linux:

  1. Install it from https://www.swift.org/install/linux/ (with swiftly: `swiftly install 6.3.1`),
     or work in the container image swift:6.3.1-bookworm.
  2. Make sure that `swift --version` works in this shell, and start this script again.
TEXT
    exit 69
  fi
  version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9][0-9.]*\).*/\1/p' | head -n 1)
  if [[ $(printf '%s\n6.2\n' "${version:-0}" | sort -V | head -n 1) != 6.2 ]]; then
    printf 'Swift %s is too old: Martlet needs 6.2 or newer (6.3.1 is what it is tested with).\n' "$version" >&2
    exit 69
  fi
}
