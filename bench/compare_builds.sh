#!/bin/bash
# TPC-H with several builds of the program in turn, so that a machine's moods are all of theirs: times of later runs by
# query, in milliseconds, and of each process the sum and the geometric mean. The table comes last.
# Usage: bench/compare_builds.sh OUT DATA BUILD BUILD...   OUT: a folder for the logs; DATA: a folder with the tables; BUILD: a
# build folder, or what scripts/pack.sh has made (what it has not, as another version of a library, comes from the first one)
# Environment: PROCESSES (3, of each build), REPEAT (7, runs of a query in each), QUERIES (1-22), THREADS (8), DEVICE (cuda)
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:?a folder for the logs}" && realpath "$1")
data=${2:?a folder with the tables}
shift 2
[ $# -ge 2 ] || { echo "two builds at least" >&2; exit 2; }
processes=${PROCESSES:-3} device=${DEVICE:-cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Unpacked, with links to the rest.
unpack() { # unpack BUILD FOLDER
    local file
    mkdir "$2"
    for file in "$(realpath "$1")"/*; do
        case $file in
        *.xz) xz -dc "$file" >"$2/$(basename "$file" .xz)" && chmod +x "$2/$(basename "$file" .xz)" ;;
        *) [ ! -f "$file" ] || ln -s "$file" "$2/" ;;
        esac
    done
    [ -x "$2/stachio" ] || { echo "$1 has no program" >&2; exit 2; }
}

run() { # run NUMBER PROCESS
    local folder=$work/$1 log=$out/build$1-$2.txt
    LD_LIBRARY_PATH=$folder:$work/1:${LD_LIBRARY_PATH:-} STACHIO_CUDA_LIBRARY=$folder/libstachio_cuda.so "$folder/stachio" tpch run \
        --device "$device" --threads "${THREADS:-8}" -d "$data" --queries "${QUERIES:-1-22}" --repeat "${REPEAT:-7}" >"$log" ||
        { echo "build $1 failed: $log" >&2; exit 1; }
    awk '/^ +[0-9]+ /{printf "%.1f\n", 1000 * $3}' "$log" >"$work/times-$1-$2"
}

number=0
for build in "$@"; do
    number=$((number + 1))
    unpack "$build" "$work/$number"
    echo "build $number: $build"
done
for process in $(seq "$processes"); do
    for n in $(seq $number); do run "$n" "$process"; done
done

columns=()
for n in $(seq $number); do
    for process in $(seq "$processes"); do
        columns+=("$work/times-$n-$process")
        echo "build $n, process $process: $(awk '{sum += $1; logs += log($1)} END {printf "sum %.1f ms, geometric mean %.2f ms", sum, exp(logs / NR)}' "$work/times-$n-$process")"
    done
done
echo "query, and milliseconds of the processes of build 1, 2, ..."
paste <(awk '/^ +[0-9]+ /{print $1}' "$out/build1-1.txt") "${columns[@]}"
