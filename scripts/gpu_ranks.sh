#!/bin/bash
# Several ranks on a machine with GPUs: conformance of the families that exchanges need; a large join in its variants, with peer
# access, without, and over sockets alone, beside the all-to-all of the same run; TPC-H on 1, 2, … ranks with --device cuda,
# compared with DuckDB, over the host's memory, over NCCL alone and as by default, and how many times as fast as one rank; a killed rank. NCCL
# is skipped, and why, where there is no GPU for each rank or no NCCL.
# Runs the program in the folder named by STACHIO_DIR (default build/release; see scripts/pack.sh). Needs mpirun (Open MPI 4).
# Usage: scripts/gpu_ranks.sh OUT [where|conformance|join|tpch|kill]...
# Environment: RANKS ("1 2"), SF ("1 10"), FILES ("default rewritten"), WAYS ("host nccl default": values of
# STACHIO_TRANSPORT, or none), RUNS, COMPARE (duckdb, or off), DATA (folder with tpch-sfN; made there where it lacks), JOIN_BUILD and JOIN_PROBE (rows, 120M and 320M), JOIN_THREADS (8 a
# rank), FAMILIES, SECONDS_A_RUN, KILL_AFTER (seconds, 15); DEVICE=cpu tries it without a GPU.
# Full logs go to OUT, a short table comes last.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
shift
[ $# -gt 0 ] || set -- where conformance join tpch kill
mkdir -p "$out"
# shellcheck source=unpack.sh
source scripts/unpack.sh
device=${DEVICE:-cuda}
data=${DATA:-$work}
limit=${SECONDS_A_RUN:-150}
compare="--compare ${COMPARE:-duckdb}"
[ "${COMPARE:-duckdb}" != off ] || compare=
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

tables() { # tables SF [default|rewritten]: their folder, made if it lacks
    local folder=$data/tpch-sf$1 file
    [ -d "$folder" ] || timeout -k 10 600 stachio tpch generate --sf "$1" -o "$folder" >"$out/generate-sf$1.log" 2>&1 || return 1
    if [ "${2:-default}" = rewritten ]; then
        for file in "$folder"/*.parquet; do
            [ ! -e "$folder-rewritten/${file##*/}" ] || continue
            mkdir -p "$folder-rewritten"
            timeout -k 10 600 stachio rewrite "$file" -o "$folder-rewritten/${file##*/}" --progress never \
                >>"$out/rewrite-sf$1.log" 2>&1 || return 1
        done
        folder+=-rewritten
    fi
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
        for way in ${WAYS:-host nccl default}; do
            [ "$n" -gt 1 ] || [ "$way" = host ] || continue
            STACHIO_TRANSPORT=${way#default} ranks_of "$n" stachio -d "$folder" --device "$device" --analyze -c "SELECT l_shipmode, count(*) FROM lineitem GROUP BY 1" \
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

# Name, environment and options of each join.
joins() {
    local no_peers=NCCL_P2P_DISABLE=1 variant columns way
    for variant in auto chunked deferred tuned blocking; do echo "4-columns-$variant - --columns 4 --variant $variant"; done
    for columns in 1 2 8; do echo "$columns-columns - --columns $columns"; done
    echo "zipf-1.2 - --columns 4 --skew 1.2"
    for way in off on auto; do echo "no-peers-$way $no_peers --columns 4 --shuffle-compression $way"; done
    for way in off on auto; do echo "sockets-$way $no_peers,NCCL_SHM_DISABLE=1 --columns 4 --shuffle-compression $way"; done
}

# "of it" is the join's rate, in bytes of the tables' rows, over that of the all-to-all in the same run.
join_step() {
    local name variables log options
    for n in ${RANKS:-1 2}; do
        [ "$n" -gt 1 ] || continue
        printf '%5s %-20s %9s %9s %9s %11s %6s %9s\n' ranks join ms least GB/s all-to-all "of it" "peak MB"
        while read -r name variables options; do
            log=$out/join-$n-$name.log
            # shellcheck disable=SC2086
            ranks_of "$n" env ${variables//[-,]/ } stachio bench join --build "${JOIN_BUILD:-120M}" --probe "${JOIN_PROBE:-320M}" \
                --hit-ratio 0.5 --device "$device" --runs "${RUNS:-5}" --threads "${JOIN_THREADS:-8}" $options >"$log" 2>&1 </dev/null ||
                echo "join: $n ranks, $name: $(outcome $? "$log")"
            awk -v n="$n" -v name="$name" 'NF == 10 && $1 ~ /^[0-9]+$/ {
                printf "%5d %-20s %9s %9s %9s %11s %5s%% %9s\n", n, name, $3, $4, $6, $7, $8, $10 }' "$log"
        done < <(joins)
    done
}

tpch_step() {
    local folder log
    for sf in ${SF:-1 10}; do
        for files in ${FILES:-default rewritten}; do
            folder=$(tables "$sf" "$files") || { echo "tpch: SF $sf, $files, could not be made"; continue; }
            cat "$folder"/*.parquet >/dev/null
            for n in ${RANKS:-1 2}; do
                for way in ${WAYS:-host nccl default}; do
                    [ "$n" -gt 1 ] || [ "$way" = host ] || continue
                    log=$out/tpch-sf$sf-$files-$n-$way.log
                    STACHIO_TRANSPORT=${way#default} ranks_of "$n" stachio tpch run -d "$folder" --device "$device" --cache host \
                        --repeat "${RUNS:-3}" $compare --fallback forbid >"$log" 2>&1
                    echo "$sf $files $n $way $log $(outcome $? "$log")" >>"$work/runs"
                done
            done
        done
    done
}

# SIGKILL to rank 1 in the midst of queries: the others have to end by themselves.
kill_step() {
    local folder pid began log
    folder=$(tables "${SF%% *}") || { echo "kill: no tables"; return; }
    for way in ${WAYS:-host nccl default}; do
        log=$out/kill-$way.log
        rm -f "$work/victim"
        STACHIO_TRANSPORT=${way#default} ranks_of 2 sh -c '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || echo $$ >"'"$work"'/victim"
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

# speedup BASE LOG: geometric mean of BASE's times over LOG's, and the least one with its query
speedup() {
    awk '/^ +[0-9]+ +[0-9]+ +[0-9.]+ / {
            if (FNR == NR) { base[$1] = $3; next }
            if (!($1 in base) || $3 <= 0) next
            ratio = base[$1] / $3; sum += log(ratio); n++
            if (n == 1 || ratio < least) { least = ratio; query = $1 }
        }
        END { if (n) printf "%.2f %.2f (Q%d)", exp(sum / n), least, query; else printf "- -" }' "$1" "$2"
}

summary() {
    local base
    [ -e "$work/runs" ] || return
    printf '%6s %-9s %5s %7s %6s %10s  %-18s %s\n' SF files ranks way equal "sum, s" "as fast, least" outcome
    while read -r sf files n way log outcome; do
        base=$out/tpch-sf$sf-$files-1-host.log
        [ -e "$base" ] || base=$log
        printf '%6s %-9s %5s %7s %6s %10s  %-18s %s\n' "$sf" "$files" "$n" "$way" "$(grep -cE '^ +[0-9]+ .* yes ' "$log")" \
            "$(awk '/^ +[0-9]+ +[0-9]+ +[0-9.]+ / { sum += $3 } END { printf "%.3f", sum }' "$log")" "$(speedup "$base" "$log")" "$outcome"
    done <"$work/runs"
}

SF=${SF:-1 10}
for step in "$@"; do
    echo "== $step"
    "${step}_step"
done
summary
