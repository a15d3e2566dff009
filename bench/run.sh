#!/bin/bash
# What the README and the notes quote: stachio beside DuckDB and beside what the machine allows. Same files, same threads,
# medians of five alternating runs. Usage: bench/run.sh [SCALE_FACTOR...]   (default: 1 10)
# Environment: THREADS (default: all), REPEAT (default 5).
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.deps/venv/bin:$PATH"
stachio=build/release/stachio
threads=${THREADS:-$(nproc)}
repeat=${REPEAT:-5}

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# Seconds of a command as a whole process, median of `repeat` runs.
time_command() {
    for _ in $(seq "$repeat"); do
        local begin end
        begin=$(date +%s%N)
        "$@" >/dev/null
        end=$(date +%s%N)
        echo $(((end - begin) / 1000))
    done | median | awk '{printf "%.4f", $1 / 1e6}'
}

data_for() { # data_for SF: generates TPC-H data where it is not there yet
    local dir=data/tpch-sf$1
    [ -d "$dir" ] || $stachio tpch generate --sf "$1" -o "$dir" >&2
    echo "$dir"
}

echo "== start-up: stachio -c 'select 1' (at most 0.060 s)"
echo "select 1: $(time_command $stachio -c 'select 1') s"

for sf in "${@:-1}" $([ $# -eq 0 ] && echo 10); do
    dir=$(data_for "$sf")
    cat "$dir"/*.parquet >/dev/null # into the page cache
    echo "== TPC-H SF$sf, $threads threads, medians of $repeat"
    $stachio tpch run -d "$dir" --repeat "$repeat" --threads "$threads" --compare duckdb || echo "NOT ALL EQUAL"
    echo "== one column: sum(l_extendedprice), beside reading and decompressing its pages and nothing else"
    scan=$(time_command $stachio -d "$dir" --threads "$threads" -c 'select sum(l_extendedprice) from lineitem')
    start=$(time_command $stachio -d "$dir" --threads "$threads" -c 'select count(*) from region')
    bound=$(for _ in $(seq "$repeat"); do
        build/release/scan_bound "$threads" l_extendedprice decimal:15:2 "$dir"/lineitem.parquet | cut -d' ' -f4
    done | median)
    awk -v s="$scan" -v z="$start" -v b="$bound" 'BEGIN {
        printf "scan %.4f s (of which start-up %.4f), bound %.4f s, share of the bound %.2f\n", s, z, b, b / (s - z) }'
done

sf=${*: -1}
dir=$(data_for "${sf:-10}")
echo "== memory: --memory-limit 512MB on $dir (peak resident at most 700 MB)"
for q in 1 6 12 14 19; do
    /usr/bin/env python3 bench/peak_memory.py $stachio tpch run -d "$dir" --queries $q --threads "$threads" --memory-limit 512MB
done
