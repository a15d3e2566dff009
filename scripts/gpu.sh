#!/bin/bash
# Everything that needs a GPU, on any machine that has one: conformance of the CUDA backend, the same under
# compute-sanitizer and the queries under it, decompression with its rates, the primitives' times, scans beside raw
# reads, TPC-H with --device cuda against DuckDB (default and rewritten files), the same answer from every run, little device
# memory, a damaged page. scripts/gpu_tests.sh runs the tests of the program there, scripts/gpu_ranks.sh several GPUs.
# Runs the program in the folder named by STACHIO_DIR (default build/release; libraries and tpchgen-cli may lie beside it,
# packed with xz; `conformance` in it or in its folder test).
# Usage: scripts/gpu.sh OUT [conformance|sanitizer|queries|inflate|codecs|primitives|scan|tpch|repeat|limits|damage]...
# Environment: DATA (where generated files are and stay; else they go at the end), SF ("1"), LAYOUTS ("default rewritten"),
# REPEAT (later runs, 3), CACHED (1: also with --cache device), SPARE (1: a table goes once it is rewritten, for disks that do not
# hold both layouts), THREADS (8), SCAN_SF (10), RUNS, LIMITS, FAMILIES, ROWS; for `sanitizer` TOOLS ("memcheck racecheck
# synccheck initcheck"), PART (of all families' cases, in place of what part_of says), SANITIZER_ROWS, SANITIZER_SECONDS (200, a
# tool); DEVICE=cpu tries the last five without a GPU.
# Full logs go to OUT, a short table comes last.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
shift
[ $# -gt 0 ] || set -- conformance sanitizer queries inflate codecs primitives scan tpch repeat limits damage
mkdir -p "$out"
# shellcheck source=unpack.sh
source scripts/unpack.sh
device=${DEVICE:-cuda}
every_codec=snappy,gzip,lz4,zstd # for the device, however few pages there are
families=${FAMILIES:-move rows eval hash bloom sort group join decode}
[ ! -e "$work/libcufile.so.0" ] || export STACHIO_CUFILE_LIBRARY=$work/libcufile.so.0
! command -v nvidia-smi >/dev/null || nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader

# Families do not disturb each other: all at the same time.
start() { # start NAME SECONDS COMMAND...: $out/NAME.log, $out/NAME.status
    local name=$1 limit=$2
    shift 2
    { timeout "$limit" "$@" >"$out/$name.log" 2>&1; echo $? >"$out/$name.status"; } &
}
tell() { echo "$1: exit $(cat "$out/$1.status"): $(tail -1 "$out/$1.log")"; }

conformance_step() {
    local told=$families
    for family in $families; do
        STACHIO_INFLATE=$every_codec start "conformance-$family" 200 conformance --load "$STACHIO_CUDA_LIBRARY" "$family"
    done
    if [[ " $families " = *" sort "* ]]; then
        STACHIO_SORT_FEW_ROWS=0 start conformance-sort_rounds 200 conformance --load "$STACHIO_CUDA_LIBRARY" sort
        told+=" sort_rounds"
    fi
    wait
    for family in $told; do
        tell "conformance-$family"
        grep -v '^device' "$out/conformance-$family.log" | head -n 6 | sed 's/^/    /'
    done
}

find_sanitizer() {
    command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null
}

# A part of each family's cases, such that each kernel is launched, with several blocks where the family does so; all parts
# together are all cases (CONFORMANCE_PART; test/emulator/README.md tells how to see what a part launches).
part_of() { # part_of TOOL FAMILY: the part, and the most rows of a case
    if [ "$1" = racecheck ]; then
        racecheck_part_of "$2"
        return
    fi
    case $2 in
    move) echo 0/4 1000 ;;
    rows) echo 1/2 1000 ;;
    bloom | io) echo 0/1 1000 ;;
    hash | sort | join | decode) echo 0/16 1000 ;;
    group) echo 0/16 8192 ;;
    eval) echo 0/64 8192 ;;
    *) echo 0/8 1000 ;;
    esac
}

# What gets through in 90 s, all at the same time (H200).
racecheck_part_of() {
    case $1 in
    bloom) echo 0/4 1000 ;;
    hash) echo 0/16 300 ;;
    move) echo 3/32 300 ;;
    rows) echo 3/16 100 ;;
    sort) echo 3/64 1000 ;;
    join) echo 3/256 300 ;;
    eval) echo 3/1024 1000 ;;
    group) echo 3/128 1000 ;;
    *) echo 3/64 300 ;;
    esac
}

sanitize() { # sanitize TOOL FAMILY
    local part rows
    read -r part rows < <(part_of "$1" "$2")
    CONFORMANCE_PART=${PART:-$part} CONFORMANCE_MAX_ROWS=${SANITIZER_ROWS:-$rows} start "$1-$2" "${SANITIZER_SECONDS:-200}" \
        "$sanitizer" --tool "$1" --error-exitcode 9 "$(command -v conformance)" --load "$STACHIO_CUDA_LIBRARY" "$2"
}

# "racecheck-join: passed: cuda join: 2899 checks, 0 failed"
tell_sanitized() { # tell_sanitized TOOL FAMILY
    local log=$out/$1-$2.log outcome
    case $(cat "$out/$1-$2.status") in
    0) outcome=passed ;;
    9) outcome=FINDINGS ;;
    124 | 137) outcome="out of time" ;;
    *) outcome="FAILED, exit $(cat "$out/$1-$2.status")" ;;
    esac
    echo "$1-$2: $outcome: $(grep -E 'checks, [0-9]+ failed' "$log" | tail -1); $(tail -1 "$log")"
}

# One tool after the other, all families at the same time: at most SANITIZER_SECONDS each.
sanitizer_step() {
    local sanitizer
    sanitizer=$(find_sanitizer) || { echo "sanitizer: no compute-sanitizer here"; return; }
    for tool in ${TOOLS:-memcheck racecheck synccheck initcheck}; do
        for family in $families inflate; do sanitize "$tool" "$family"; done
        wait
        for family in $families inflate; do tell_sanitized "$tool" "$family"; done
    done
}

# The 22 queries over little data: every kernel as queries use it, at a thousandth of the launches.
queries_step() {
    local sanitizer tool
    sanitizer=$(find_sanitizer) || { echo "queries: no compute-sanitizer here"; return; }
    generate 0.01
    for tool in memcheck racecheck; do
        start "$tool-queries" "${SANITIZER_SECONDS:-400}" "$sanitizer" --tool $tool --error-exitcode 9 \
            "$(command -v stachio)" tpch run -d "$data" --device cuda --threads 2 --repeat 1 --fallback forbid --compare duckdb
    done
    wait
    for tool in memcheck racecheck; do
        tell "$tool-queries"
        echo "    $(grep -c ' yes ' "$out/$tool-queries.log") queries equal"
    done
}

# Decompression, also under memcheck and racecheck, and how fast it is.
inflate_step() {
    local run=(conformance --load "$STACHIO_CUDA_LIBRARY" inflate) sanitizer tool
    timeout 120 "${run[@]}" >"$out/inflate.log" 2>&1
    echo "inflate: exit $?: $(tail -1 "$out/inflate.log")"
    grep -v '^device' "$out/inflate.log" | head -n 6 | sed 's/^/    /'
    timeout 200 inflate_rates "$STACHIO_CUDA_LIBRARY" 1 1000 >"$out/inflate-rates.txt" 2>&1
    echo "inflate, rates: exit $?"
    cat "$out/inflate-rates.txt"
    sanitizer=$(find_sanitizer) || return
    for tool in memcheck racecheck; do
        CONFORMANCE_PART=${PART:-3/16} CONFORMANCE_MAX_ROWS=300 start "inflate-$tool" "${SANITIZER_SECONDS:-200}" \
            "$sanitizer" --tool $tool --error-exitcode 9 "$(command -v conformance)" "${run[@]:1}"
    done
    wait
    for tool in memcheck racecheck; do tell "inflate-$tool"; done
}

primitives_step() { # ROWS: sizes
    timeout 200 stachio bench primitives --device cuda --rows "${ROWS:-1048576,16777216,67108864}" \
        --json "$out/primitives.json" >"$out/primitives.txt" 2>"$out/primitives.err"
    echo "primitives: exit $?"
    cat "$out/primitives.txt" "$out/primitives.err"
}

# Fills tpch-sfN, once.
generate() { # generate SF
    data=${DATA:-$work}/tpch-sf$1
    [ -e "$data" ] || stachio tpch generate --sf "$1" -o "$data" >"$out/generate-$1.log" 2>&1
    cat "$data"/*.parquet >/dev/null
}

ask() { # ask OPTION...: as CSV
    timeout 120 stachio -d "$data" --device "$device" --threads "${THREADS:-8}" --format csv --fallback forbid "$@"
}

# The folder of a layout: as generated, or by `stachio rewrite`.
lay_out() { # lay_out SF LAYOUT
    local rewritten=${DATA:-$work}/tpch-sf$1-rewritten
    if [ "$2" != rewritten ] || [ ! -e "$rewritten" ]; then generate "$1"; fi
    [ "$2" = rewritten ] || return 0
    [ -e "$rewritten" ] || rewrite_tables "$1"
    data=$rewritten
}

rewrite_tables() { # rewrite_tables SF
    local log=$out/rewrite-$1.log file
    if [ -z "${SPARE:-}" ]; then
        stachio rewrite "$data"/*.parquet -o "$data-rewritten" >"$log" 2>&1 || tail -1 "$log"
        return
    fi
    mkdir "$data-rewritten"
    for file in "$data"/*.parquet; do
        stachio rewrite "$file" -o "$data-rewritten/${file##*/}" --progress never >>"$log" 2>&1 || { tail -1 "$log"; return; }
        rm "$file"
    done
    rmdir "$data"
}

# "22 equal, 6.90 s / 77.5 s, geometric mean of the ratios: 0.068"
tell_tpch() { # tell_tpch FILE
    awk '/^ +[0-9]+ / { ours += $3; other += $4; equal += $6 == "yes"; compared += $6 != "-" }
        END { printf compared ? "%d equal, %.3f s / %.3f s" : "%.0s%.3f s", equal, ours, other }' "$1"
    grep '^geometric' "$1" | sed 's/^/, /' | tr -d '\n'
    echo
}

# The first run beside DuckDB, which has all processors beside a GPU; then the medians of later ones.
tpch_step() {
    local sf layout log run=(stachio tpch run --device "$device" --threads "${THREADS:-8}")
    for sf in ${SF:-1}; do
        for layout in ${LAYOUTS:-default rewritten}; do
            lay_out "$sf" "$layout"
            log=$out/tpch-sf$sf-$layout
            timeout 500 "${run[@]}" -d "$data" --repeat 1 --fallback forbid --compare duckdb >"$log.txt" 2>"$log.err"
            echo "tpch SF$sf, $layout files: exit $?, $(tell_tpch "$log.txt")"
            sort "$log.err" | uniq -c | head -n 5
            timeout 300 "${run[@]}" -d "$data" --repeat "$((${REPEAT:-3} + 1))" >"$log-later.txt" 2>"$log-later.err"
            echo "    later runs: exit $?, $(tell_tpch "$log-later.txt")"
            [ -n "${CACHED:-}" ] || continue
            timeout 300 "${run[@]}" -d "$data" --cache device --repeat "$((${REPEAT:-3} + 1))" >"$log-cached.txt" 2>"$log-cached.err"
            echo "    cached on the device: exit $?, $(tell_tpch "$log-cached.txt")"
        done
    done
}

# All columns of lineitem as DuckDB writes them with each codec, decompressed by the host (`none`) and on the device: the least
# time of some runs, and that the answer is the same.
codecs_step() {
    local codec where name file sql="SELECT count(*)" column
    for column in orderkey partkey suppkey linenumber quantity extendedprice discount tax; do sql+=", sum(l_$column)"; done
    for column in returnflag linestatus shipdate commitdate receiptdate shipinstruct shipmode comment; do sql+=", max(l_$column)"; done
    generate "${SCAN_SF:-10}"
    for codec in ${CODECS:-snappy gzip zstd lz4_raw}; do
        file=$data-$codec.parquet
        [ -e "$file" ] || stachio -d "$data" -c "COPY lineitem TO '$file' (FORMAT parquet, CODEC $codec)" >"$out/codec-$codec.log" 2>&1
        for where in none "$every_codec"; do
            name=$out/codec-$codec-$where
            for ((i = 0; i < ${REPEAT:-3} + 1; i++)); do echo "$sql FROM '$file';"; done >"$work/script.sql"
            STACHIO_INFLATE=$where ask --analyze -f "$work/script.sql" >"$name.txt" 2>&1
            echo "codec $codec, $(stat -c %s "$file") bytes, on the device: $where: exit $?, least time $(
                awk '/^Time / { if (!least || $2 < least) least = $2 } END { print least }' "$name.txt") s"
            STACHIO_INFLATE=$where ask -c "$sql FROM '$file'" >"$name.csv"
        done
        cmp "$out/codec-$codec-none.csv" "$out/codec-$codec-$every_codec.csv" && echo "    equal answers"
    done
}

# lineitem, all columns: stored bytes from the disk and from memory, values decoded.
scan_step() {
    local layout
    for layout in ${LAYOUTS:-default rewritten}; do
        lay_out "${SCAN_SF:-10}" "$layout"
        timeout 300 stachio bench scan "$data/lineitem.parquet" --device "$device" --threads "${THREADS:-8}" --repeat "${REPEAT:-3}" \
            --json "$out/scan-$layout.json" >"$out/scan-$layout.txt" 2>"$out/scan-$layout.err"
        echo "scan of $layout files: exit $?"
        grep -E 'way|direct|raw|decoded' "$out/scan-$layout.txt"
    done
}

# Each query RUNS times in one process, against one run with other threads.
repeat_step() {
    generate 1
    local runs=${RUNS:-100} query sql
    for query in 01 03 09 18 21; do
        sql=$(sed 's/;[[:space:]]*$//' "cli/tpch/q$query.sql")
        THREADS=3 ask -c "$sql" | tail -n +2 >"$work/once"
        for ((i = 0; i < runs; i++)); do echo "$sql;"; done >"$work/script.sql"
        ask -f "$work/script.sql" >"$work/all" 2>"$out/repeat-$query.err"
        echo "repeat Q$query: exit $?, $(head -c 200 "$out/repeat-$query.err")$(
            awk -v runs="$runs" 'NR == FNR { want[FNR] = $0; n = FNR; next }
                FNR == 1 { head = $0 }
                { at = (FNR - 1) % (n + 1); if (at == 0 ? $0 != head : $0 != want[at]) bad++ }
                END { print bad || FNR != runs * (n + 1) ? " DIFFERENT answers" : " " runs " equal answers" }' \
                "$work/once" "$work/all")"
    done
}

# Right, or status 4 with a message.
limits_step() {
    local sf limit query status
    for sf in ${SF:-1}; do
        generate "$sf"
        for query in 01 09 18 21; do
            ask -f "cli/tpch/q$query.sql" >"$work/free" 2>/dev/null
            for limit in ${LIMITS:-4GB 8GB 16GB}; do
                ask --device-memory-limit "$limit" -f "cli/tpch/q$query.sql" >"$work/limited" 2>"$work/limited.err"
                status=$?
                if [ $status = 0 ] && cmp -s "$work/free" "$work/limited"; then
                    echo "limits SF$sf Q$query $limit: equal"
                elif [ $status = 4 ] && [ -s "$work/limited.err" ] && [ ! -s "$work/limited" ]; then
                    echo "limits SF$sf Q$query $limit: $(head -c 200 "$work/limited.err")"
                else
                    echo "limits SF$sf Q$query $limit: WRONG, exit $status $(head -c 200 "$work/limited.err")"
                fi
            done
        done
    done
}

# 3,000 bytes in the middle of a table are others: status 3 and the page's name, as on the CPU; what does not read them runs.
damage_step() {
    generate 1
    local wanted sum="sum(length(l_comment)), sum(l_extendedprice), sum(l_partkey), sum(l_orderkey + l_suppkey)"
    mkdir -p "$work/damaged"
    cp "$data/lineitem.parquet" "$work/damaged"
    head -c 3000 /dev/zero | tr '\0' 'Z' | dd of="$work/damaged/lineitem.parquet" bs=1000 seek=5000 conv=notrunc status=none
    data=$work/damaged
    wanted=$(device=cpu ask -c "SELECT $sum FROM lineitem" 2>&1)
    ask -c "SELECT $sum FROM lineitem" >"$work/answer" 2>&1
    echo "damage: exit $?, $([ "$(cat "$work/answer")" = "$wanted" ] || echo NOT as on the CPU:) $(head -c 200 "$work/answer")"
    ask -c "SELECT sum(l_quantity) AS q FROM lineitem WHERE l_orderkey < 1000" >"$work/answer" 2>&1
    echo "damage, rows elsewhere: exit $?, $(tail -1 "$work/answer")"
}

for step in "$@"; do "${step}_step"; done
