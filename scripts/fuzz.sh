#!/bin/bash
# Runs every fuzz target for SECONDS (60). Usage: fuzz.sh [SECONDS [NAME...]]
# New inputs are collected in build/fuzz/found/NAME, crashing ones in build/fuzz/crashes. To keep an input,
# copy it to test/fuzz/corpus/NAME: the ordinary tests replay it from then on.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift

compgen -G 'test/fuzz/fuzz_*.c' >/dev/null || { echo "fuzz: there are no targets yet"; exit 0; }
if [ $# -eq 0 ]; then
    for source in test/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        set -- "$@" "${name%.c}"
    done
fi
mkdir -p build
cmake --preset fuzz >build/configure-fuzz.log 2>&1 || { cat build/configure-fuzz.log; exit 1; }
targets=()
for name in "$@"; do targets+=("fuzz_$name"); done
cmake --build --preset fuzz --target "${targets[@]}" || exit 1

export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/test/lsan.supp:print_suppressions=0

run() { # run NAME: one target, its log printed only where it fails
    local name=$1 found=build/fuzz/found/$1 corpus=test/fuzz/corpus/$1 log=build/fuzz/$1.log
    mkdir -p "$found" build/fuzz/crashes
    local dirs=("$found")
    [ ! -d "$corpus" ] || dirs+=("$corpus")
    if build/fuzz/fuzz/fuzz_"$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=3000 \
        -print_final_stats=1 -artifact_prefix=build/fuzz/crashes/"$name"- "${dirs[@]}" </dev/null >"$log" 2>&1; then
        echo "fuzz: $name: $(grep -oE 'number_of_executed_units: *[0-9]+' "$log" | grep -oE '[0-9]+$') inputs, no fault"
    else
        echo "fuzz: $name: FAILED; the input is in build/fuzz/crashes, the log in $log"
        tail -n 60 "$log"
        return 1
    fi
}

# As many at once as there are processors.
failed=0 running=0
for name in "$@"; do
    if [ $running -ge "$(nproc)" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run "$name" &
    running=$((running + 1))
done
while [ $running -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
