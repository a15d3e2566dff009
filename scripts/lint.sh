#!/bin/bash
# Checks the style. Usage: lint.sh [format|format-fix|tidy]; without an argument, format and tidy.
# tidy reads build/release/compile_commands.json, so the release preset must be configured.
set -uo pipefail
cd "$(dirname "$0")/.."

# Our C files, committed or about to be.
sources() { git ls-files -co --exclude-standard --deduplicate -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }

check_format() {
    local files
    mapfile -t files < <(sources '*.c' '*.h' '*.cu' '*.cpp')
    [ ${#files[@]} -gt 0 ] || return 0
    clang-format-16 --dry-run -Werror "${files[@]}" || return 1
    # A relative include would step around the layers.
    if grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"\.\.?/' "${files[@]}"; then
        echo "lint: include other layers' headers as \"layer/name.h\"" >&2
        return 1
    fi
}

check_tidy() {
    local database=build/release/compile_commands.json files
    [ -e $database ] || { echo "lint: $database is missing: run make first" >&2; return 1; }
    mapfile -t files < <(sources 'src/*.c' 'cli/*.c' 'test/*.c' 'examples/*.c' 'bench/*.c' |
        while read -r f; do grep -qF "\"file\": \"$PWD/$f\"" $database && echo "$f"; done)
    [ ${#files[@]} -gt 0 ] || return 0
    # Prints only what clang-tidy finds, not its count of warnings in others' headers.
    printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy-16 -p build/release --quiet 2>/dev/null
}

case ${1:-all} in
format) check_format ;;
format-fix) sources '*.c' '*.h' '*.cu' '*.cpp' | xargs -r clang-format-16 -i ;;
tidy) check_tidy ;;
all)
    check_format
    format=$?
    check_tidy
    tidy=$?
    exit $((format || tidy))
    ;;
*)
    echo "usage: lint.sh [format|format-fix|tidy]" >&2
    exit 2
    ;;
esac
