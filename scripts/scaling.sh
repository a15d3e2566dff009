#!/bin/bash
# TPC-H against DuckDB at several scale factors and numbers of threads, on a machine with many cores. Runs the program in
# the folder named by STACHIO_DIR (default build/release; libraries and tpchgen-cli may lie beside it, packed with xz).
# Usage: scripts/scaling.sh OUT "SF..." "THREADS..."; full logs go to OUT, a short table comes last.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
scale_factors=${2:-"1 10"}
threads=${3:-"1 $(nproc)"}
mkdir -p "$out"
# shellcheck source=unpack.sh
source scripts/unpack.sh
for sf in $scale_factors; do
    data=$work/tpch-sf$sf
    stachio tpch generate --sf "$sf" -o "$data" >"$out/generate-$sf.log" 2>&1
    cat "$data"/*.parquet >/dev/null
    for n in $threads; do
        stachio tpch run -d "$data" --threads "$n" --repeat 3 --compare duckdb \
            >"$out/sf$sf-threads$n.txt" 2>&1 || echo "not all equal: SF$sf, $n threads"
    done
    for query in 1 9 13 18 21; do
        stachio -d "$data" --threads "$(nproc)" --analyze -f "$(printf cli/tpch/q%02d.sql $query)" \
            >"$out/sf$sf-analyze-q$query.txt" 2>&1 || true
    done
    rm -rf "$data"
done
for log in "$out"/sf*-threads*.txt; do
    echo "== $(basename "$log" .txt): $(tail -1 "$log"); unequal or failed: $(awk '$1 ~ /^[0-9]+$/ && $6 != "yes"' "$log" | wc -l)"
    awk 'NF == 8 && $1 ~ /^[0-9]+$/ { s += $3; d += $4 } END { printf "   sum %.2f s, DuckDB %.2f s\n", s, d }' "$log"
done
