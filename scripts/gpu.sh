#!/bin/bash
# Everything that needs a GPU, on any machine that has one: conformance of the CUDA backend, the same under
# compute-sanitizer, decompression by nvCOMP with its rates, the primitives' times, TPC-H with --device cuda against DuckDB.
# Runs the program in the folder named by STACHIO_DIR (default build/release; libraries and tpchgen-cli may lie beside it,
# packed with xz; `conformance` in it or in its folder test).
# Usage: scripts/gpu.sh OUT [conformance|sanitizer|inflate|primitives|tpch]...   Environment: SF ("1"), FAMILIES, ROWS.
# Full logs go to OUT, a short table comes last.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
shift
[ $# -gt 0 ] || set -- conformance sanitizer inflate primitives tpch
dir=$(realpath "${STACHIO_DIR:-build/release}")
families=${FAMILIES:-move eval hash sort group join decode}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
for packed in "$dir"/*.xz; do
    [ -e "$packed" ] || continue
    xz -dc "$packed" >"$work/$(basename "$packed" .xz)"
    chmod +x "$work/$(basename "$packed" .xz)"
done
export LD_LIBRARY_PATH="$work:$dir" PATH="$work:$dir:$dir/test:$PATH" STACHIO_CUDA_LIBRARY="$dir/libstachio_cuda.so"
[ ! -e "$work/libstachio_cuda.so" ] || export STACHIO_CUDA_LIBRARY=$work/libstachio_cuda.so
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader

conformance_step() {
    for family in $families; do
        timeout 120 conformance --load "$STACHIO_CUDA_LIBRARY" "$family" >"$out/conformance-$family.log" 2>&1
        echo "conformance $family: exit $?: $(tail -1 "$out/conformance-$family.log")"
        grep -v '^device' "$out/conformance-$family.log" | head -n 6 | sed 's/^/    /'
    done
}

find_sanitizer() {
    command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null
}

sanitizer_step() {
    local sanitizer
    sanitizer=$(find_sanitizer) || { echo "sanitizer: no compute-sanitizer here"; return; }
    for tool in memcheck racecheck; do
        for family in $families; do
            CONFORMANCE_MAX_ROWS=1000 timeout 150 "$sanitizer" --tool $tool --error-exitcode 9 \
                "$(command -v conformance)" --load "$STACHIO_CUDA_LIBRARY" "$family" >"$out/$tool-$family.log" 2>&1
            echo "$tool $family: exit $?: $(tail -1 "$out/$tool-$family.log")"
        done
    done
}

# Needs libnvcomp.so.5 beside the backend (scripts/setup.sh nvcomp). The last line is for information: nvCOMP promises
# nothing for zstd pages with wrong bits inside.
inflate_step() {
    local run=(conformance --load "$STACHIO_CUDA_LIBRARY" inflate) sanitizer
    timeout 120 "${run[@]}" >"$out/inflate.log" 2>&1
    echo "inflate: exit $?: $(tail -1 "$out/inflate.log")"
    grep -v '^device' "$out/inflate.log" | head -n 6 | sed 's/^/    /'
    timeout 200 inflate_rates "$STACHIO_CUDA_LIBRARY" >"$out/inflate-rates.txt" 2>&1
    echo "inflate, rates: exit $?"
    cat "$out/inflate-rates.txt"
    if sanitizer=$(find_sanitizer); then
        timeout 200 "$sanitizer" --tool memcheck --error-exitcode 9 "$(command -v conformance)" "${run[@]:1}" \
            >"$out/inflate-memcheck.log" 2>&1
        echo "inflate, memcheck: exit $?: $(tail -1 "$out/inflate-memcheck.log")"
    fi
    CONFORMANCE_UNDEFINED=1 timeout 60 "${run[@]}" >"$out/inflate-undefined.log" 2>&1
    echo "inflate, damage that is undefined for nvCOMP: exit $?: $(tail -1 "$out/inflate-undefined.log")"
}

primitives_step() { # ROWS: sizes
    timeout 200 stachio bench primitives --device cuda --rows "${ROWS:-1048576,16777216,67108864}" \
        --json "$out/primitives.json" >"$out/primitives.txt" 2>"$out/primitives.err"
    echo "primitives: exit $?"
    cat "$out/primitives.txt" "$out/primitives.err"
}

tpch_step() {
    for sf in ${SF:-1}; do
        local data=$work/tpch-sf$sf
        stachio tpch generate --sf "$sf" -o "$data" >"$out/generate-$sf.log" 2>&1
        cat "$data"/*.parquet >/dev/null
        timeout 400 stachio tpch run -d "$data" --device cuda --repeat "${REPEAT:-1}" --compare duckdb >"$out/tpch-sf$sf.txt" 2>"$out/tpch-sf$sf.err"
        echo "tpch SF$sf: exit $?"
        cat "$out/tpch-sf$sf.txt"
        sort "$out/tpch-sf$sf.err" | uniq -c | head -n 12
        rm -rf "$data"
    done
}

for step in "$@"; do "${step}_step"; done
