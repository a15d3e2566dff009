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

# Seconds of a command as a whole process.
seconds_of() {
    local begin end
    begin=$(date +%s%N)
    "$@" >/dev/null
    end=$(date +%s%N)
    awk -v us=$(((end - begin) / 1000)) 'BEGIN {printf "%.4f\n", us / 1e6}'
}

time_command() { for _ in $(seq "$repeat"); do seconds_of "$@"; done | median; }

data_for() { # data_for SF: generates TPC-H data where it is not there yet
    local dir=data/tpch-sf$1
    [ -d "$dir" ] || $stachio tpch generate --sf "$1" -o "$dir" >&2
    echo "$dir"
}

# The sum of a column beside its bound, in alternating runs. Planning reads the footer: `count(*)` does that and no more.
one_column() {
    local dir=$1 logs
    logs=$(mktemp -d)
    for _ in $(seq "$repeat"); do
        seconds_of $stachio -d "$dir" --threads "$threads" -c 'select sum(l_extendedprice) from lineitem' >>"$logs/scan"
        seconds_of $stachio -d "$dir" --threads "$threads" -c 'select count(*) from lineitem' >>"$logs/planning"
        build/release/scan_bound "$threads" l_extendedprice decimal:15:2 "$dir"/lineitem.parquet | cut -d' ' -f4 >>"$logs/bound"
    done
    awk -v s="$(median <"$logs/scan")" -v z="$(median <"$logs/planning")" -v b="$(median <"$logs/bound")" 'BEGIN {
        printf "scan %.4f s (of which start-up and planning %.4f), bound %.4f s, share of the bound %.2f\n", s, z, b, b / (s - z) }'
    rm -r "$logs"
}

echo "== start-up: stachio -c 'select 1' (at most 0.060 s)"
echo "select 1: $(time_command $stachio -c 'select 1') s"

[ $# -gt 0 ] || set -- 1 10
for sf in "$@"; do
    dir=$(data_for "$sf")
    cat "$dir"/*.parquet >/dev/null # into the page cache
    echo "== TPC-H SF$sf, $threads threads, medians of $repeat"
    $stachio tpch run -d "$dir" --repeat "$repeat" --threads "$threads" --compare duckdb || echo "NOT ALL EQUAL"
    echo "== one column: sum(l_extendedprice), beside reading and decompressing its pages and nothing else"
    one_column "$dir"
done

echo "== memory: --memory-limit 512MB on $dir (peak resident at most 700 MB)"
for q in 1 6 12 14 19; do
    /usr/bin/env python3 bench/peak_memory.py $stachio tpch run -d "$dir" --queries $q --threads "$threads" --memory-limit 512MB
done
