#!/bin/bash
# Packs what is built, with the libraries that it needs and the TPC-H generator, into a folder that runs on another
# machine of the same architecture (scripts/scaling.sh, gpu.sh and gpu_ranks.sh take it in STACHIO_DIR). Large files are packed
# with xz. Usage: scripts/pack.sh FOLDER   Environment: BUILD (build/release).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder}
build=${BUILD:-build/release}
mkdir -p "$out"

put() { # put FILE [NAME]: stripped, and packed when it is large
    local name=${2:-$(basename "$1")}
    [ "$out/$name" -nt "$1" ] || [ "$out/$name.xz" -nt "$1" ] || {
        rm -f "$out/$name" "$out/$name.xz"
        cp -L "$1" "$out/$name"
        chmod u+w "$out/$name"
        strip "$out/$name" 2>/dev/null || true
        if [ "$(stat -c %s "$out/$name")" -gt $((4 << 20)) ]; then xz -T0 -3 "$out/$name"; fi
    }
}

needed() { ldd "$@" 2>/dev/null | awk '/=> \//{print $3}' | sort -u; }

put $build/stachio
put $build/libstachio.so libstachio.so.0.1
[ ! -e $build/test/conformance ] || put $build/test/conformance
[ ! -e $build/libstachio_cuda.so ] || put $build/libstachio_cuda.so
[ ! -e $build/libstachio_net.so ] || put $build/libstachio_net.so
[ ! -e $build/libstachio_topology.so ] || put $build/libstachio_topology.so
[ ! -e $build/libnvcomp.so.5 ] || put $build/libnvcomp.so.5
[ ! -e $build/inflate_rates ] || put $build/inflate_rates
[ ! -e .deps/venv/bin/tpchgen-cli ] || put .deps/venv/bin/tpchgen-cli
for library in $(needed $build/stachio $build/libstachio.so $build/libstachio_cuda.so); do
    case $(basename "$library") in
    libstachio*) ;;
    libduckdb* | libsnappy* | libbrotli* | libdeflate* | libjson-c* | libedit* | liblz4* | libzstd* | libbsd* | libmd* | libtinfo*) put "$library" ;;
    esac
done
du -sh "$out"
