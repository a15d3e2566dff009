#!/bin/bash
# The tests of the program (test/cli) on a machine with a GPU, from a carried build: some scripts at a time, each with a limit
# of time, one line each: name, what came of it, seconds, the script's last line. Most of the statements of a script go to a few
# processes, since the driver starts one after the other (test/lib/server.py).
# Runs the program in the folder named by STACHIO_DIR (default build/release; `scripts/pack.sh FOLDER tests` makes one).
# Usage: scripts/gpu_tests.sh OUT [TEST]...   TEST: sql for test/cli/test_sql.py; by default all that are not slow
# Environment: AT_ONCE (4 scripts), STACHIO_TEST_JOBS (4 cases of each), TEST_SECONDS (400, of a script), STACHIO_TEST_TIMEOUT
# (60, of a statement), PYTHON (python3), RANDOM_QUERIES (300), CUDA_DEVICE_MAX_CONNECTIONS (2: with the program's 12 each of some
# thousand starts takes longer, one after the other); DEVICE=cpu tries it without a GPU. Full logs go to OUT.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
shift
# The long ones first.
first="reuse cli_usage ranks_sort bench server ranks session interrupt ranks_alone rewrite sql mpirun bad_input cache writers"
if [ $# -eq 0 ]; then
    mapfile -t others < <(ls test/cli/test_*.py | sed -E 's,.*/test_(.*)\.py,\1,' | grep -v '^slow_')
    mapfile -t names < <(printf '%s\n' $first "${others[@]}" | awk '!seen[$0]++')
    set -- "${names[@]}"
fi
mkdir -p "$out"
out=$(realpath "$out")
# shellcheck source=unpack.sh
source scripts/unpack.sh
! command -v nvidia-smi >/dev/null || nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader

# A build folder as tests expect it, of what lies in two; libraries look for one another where they really are.
build=$work/build
mkdir -p "$build/test"
for file in "$dir"/* "$dir"/test/* "$work"/*; do
    case $file in
    *.xz | *.tar | *.a) ;;
    */query_server | */ranks | */rank_errors | */libaborting_ucx.so | */conformance) cp -L "$file" "$build/test/" ;;
    *) [ ! -f "$file" ] || cp -L "$file" "$build/" ;;
    esac
done
[ -e "$build/libstachio.so" ] || ln -s libstachio.so.0.1 "$build/libstachio.so"
for packed in "$work"/*.tar; do
    [ -e "$packed" ] || continue
    folder=$(basename "$packed" .tar)
    folder=$work/${folder%-[0-9]*} # python-3.12
    mkdir "$folder" && tar -C "$folder" -xf "$packed"
done
[ ! -d "$work/python" ] || export PYTHONPATH="$work/python"
[ ! -d "$work/parquet-testing" ] || export PARQUET_TESTING="$work/parquet-testing"
export LD_LIBRARY_PATH="$build:$LD_LIBRARY_PATH" PATH="$build:$PATH" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHON="${PYTHON:-python3}"
export STACHIO="$build/stachio" SOURCE_DIR="$PWD" BUILD_DIR="$build" BUILD_TYPE=Release TMPDIR="$work"
export STACHIO_DEVICE="${DEVICE:-cuda}" STACHIO_TEST_JOBS="${STACHIO_TEST_JOBS:-4}" STACHIO_TEST_TIMEOUT="${STACHIO_TEST_TIMEOUT:-60}"
[ "$STACHIO_DEVICE" = cpu ] || export STACHIO_CUDA_LIBRARY="$build/libstachio_cuda.so"
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-2}"
export RANDOM_QUERIES="${RANDOM_QUERIES:-300}" OUT_FOLDER="$out" TEST_SECONDS="${TEST_SECONDS:-400}"

run_test() { # run_test NAME
    local log=$OUT_FOLDER/test-$1.log began=$SECONDS status outcome
    timeout -k 10 "$TEST_SECONDS" "$PYTHON" "test/cli/test_$1.py" >"$log" 2>&1 </dev/null
    status=$?
    case $status in
    0) outcome=passed ;;
    77) outcome=skipped ;;
    124 | 137) outcome="out of time" ;;
    *) outcome=failed ;;
    esac
    printf '%-18s %-12s %4d s  %s\n' "$1" "$outcome" $((SECONDS - began)) "$(tail -n 1 "$log" | head -c 150)"
}
export -f run_test
began=$SECONDS
printf '%s\n' "$@" | xargs -P "${AT_ONCE:-4}" -I{} bash -c 'run_test "$1"' run_test {} | tee "$out/tests.txt"
failed=$(awk '$2 != "passed" && $2 != "skipped"' "$out/tests.txt" | wc -l)
echo "tests: $(wc -l <"$out/tests.txt") scripts, $failed not passed, $((SECONDS - began)) s"
[ "$failed" -eq 0 ]
