#!/bin/bash
# Several ranks on a machine with GPUs: conformance of the families that exchanges need, then TPC-H on 1, 2, … ranks with
# --device cuda, compared with DuckDB, over the host's memory and over NCCL; that way is skipped, and why, where there is no
# GPU for each rank or no NCCL.
# Runs the program in the folder named by STACHIO_DIR (default build/release; see scripts/pack.sh). Needs mpirun (Open MPI 4).
# Usage: scripts/gpu_ranks.sh OUT [where|conformance|tpch|kill]...
# Environment: RANKS ("1 2"), SF ("1 10"), WAYS ("host nccl"), RUNS, DATA (folder with tpch-sfN; made there where it lacks),
# FAMILIES, SECONDS_A_RUN, KILL_AFTER (seconds, 15); DEVICE=cpu tries it without a GPU.
# Full logs go to OUT, a short table comes last.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
shift
[ $# -gt 0 ] || set -- where conformance tpch kill
mkdir -p "$out"
# shellcheck source=unpack.sh
source scripts/unpack.sh
device=${DEVICE:-cuda}
data=${DATA:-$work}
limit=${SECONDS_A_RUN:-150}
for name in cuda net topology; do
    library=$dir/libstachio_$name.so
    [ ! -e "$work/libstachio_$name.so" ] || library=$work/libstachio_$name.so
    export "STACHIO_${name^^}_LIBRARY=$library"
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 NCCL_NVLS_ENABLE=0
! command -v nvidia-smi >/dev/null || nvidia-smi --query-gpu=name,pci.bus_id,driver_version,memory.total --format=csv,noheader

ranks_of() { # ranks_of N COMMAND...
    local n=$1
    shift
    timeout -k 10 "$limit" mpirun --oversubscribe -n "$n" "$@"
}

tables() { # tables SF: their folder, made if it lacks
    local folder=$data/tpch-sf$1
    [ -d "$folder" ] || timeout -k 10 600 stachio tpch generate --sf "$1" -o "$folder" >"$out/generate-sf$1.log" 2>&1 || return 1
    echo "$folder"
}

# outcome STATUS LOG: of a run
outcome() {
    local why
    if why=$(grep -m 1 -o 'STACHIO_TRANSPORT=nccl: .*' "$2"); then
        echo "skipped, $why"
    else
        echo "exit $1"
    fi
}

where_step() {
    local folder
    folder=$(tables "${SF%% *}") || { echo "where: no tables"; return; }
    for n in ${RANKS:-1 2}; do
        for way in ${WAYS:-host nccl}; do
            [ "$n" -gt 1 ] || [ "$way" = host ] || continue
            STACHIO_TRANSPORT=$way ranks_of "$n" stachio -d "$folder" --device "$device" --analyze -c "SELECT l_shipmode, count(*) FROM lineitem GROUP BY 1" \
                >"$out/where-$n-$way.log" 2>&1
            echo "where: $n ranks, $way: $(outcome $? "$out/where-$n-$way.log")"
            grep -E '^(Answered|Network|Rank|stachio)' "$out/where-$n-$way.log" | sed 's/^/    /'
        done
    done
}

conformance_step() {
    for family in ${FAMILIES:-hash move rows}; do
        timeout -k 10 200 conformance --load "$STACHIO_CUDA_LIBRARY" "$family" >"$out/conformance-$family.log" 2>&1
        echo "conformance $family: exit $?: $(tail -1 "$out/conformance-$family.log")"
    done
}

tpch_step() {
    local folder log
    for sf in ${SF:-1 10}; do
        folder=$(tables "$sf") || { echo "tpch: SF $sf could not be made"; continue; }
        for n in ${RANKS:-1 2}; do
            for way in ${WAYS:-host nccl}; do
                [ "$n" -gt 1 ] || [ "$way" = host ] || continue
                log=$out/tpch-sf$sf-$n-$way.log
                STACHIO_TRANSPORT=$way ranks_of "$n" stachio tpch run -d "$folder" --device "$device" --cache host \
                    --repeat "${RUNS:-3}" --compare duckdb --fallback forbid >"$log" 2>&1
                echo "$sf $n $way $log $(outcome $? "$log")" >>"$work/runs"
            done
        done
    done
}

# SIGKILL to rank 1 in the midst of queries: the others have to end by themselves.
kill_step() {
    local folder pid began log
    folder=$(tables "${SF%% *}") || { echo "kill: no tables"; return; }
    for way in ${WAYS:-host nccl}; do
        log=$out/kill-$way.log
        rm -f "$work/victim"
        STACHIO_TRANSPORT=$way ranks_of 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || echo $$ >"'"$work"'/victim"
            exec "$@"' sh stachio tpch run -d "$folder" --device "$device" --repeat 1000 --fallback forbid >"$log" 2>&1 &
        pid=$!
        sleep "${KILL_AFTER:-15}"
        if ! kill -0 "$pid" 2>/dev/null || [ ! -s "$work/victim" ]; then # else its number may be another process's
            wait "$pid"
            echo "kill: $way: $(outcome $? "$log"), before anything was killed"
            continue
        fi
        began=$(date +%s%N)
        kill -9 "$(cat "$work/victim")"
        wait "$pid"
        echo "kill: $way: exit $? after $((($(date +%s%N) - began) / 1000000)) ms: $(grep -m 1 'was lost' "$log")"
    done
}

summary() {
    [ -e "$work/runs" ] || return
    printf '%6s %5s %5s %6s %10s  %s\n' SF ranks way equal "sum, s" outcome
    while read -r sf n way log outcome; do
        printf '%6s %5s %5s %6s %10s  %s\n' "$sf" "$n" "$way" "$(grep -cE '^ +[0-9]+ .* yes ' "$log")" \
            "$(awk '/^ +[0-9]+ +[0-9]+ +[0-9.]+ / { sum += $3 } END { printf "%.3f", sum }' "$log")" "$outcome"
    done <"$work/runs"
}

SF=${SF:-1 10}
for step in "$@"; do
    echo "== $step"
    "${step}_step"
done
summary
