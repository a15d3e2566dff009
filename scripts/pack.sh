#!/bin/bash
# Packs what is built, with the libraries that it needs and the TPC-H generator, into a folder that runs on another
# machine of the same architecture (scripts/scaling.sh, gpu.sh and gpu_ranks.sh take it in STACHIO_DIR). Large files are packed
# with xz. With `tests` also what scripts/gpu_tests.sh needs there: the server of test statements, the files of
# PARQUET_TESTING, and DuckDB for Python PYTHON_VERSION (3.12), which has to have pyarrow and numpy.
# Usage: scripts/pack.sh FOLDER [tests]   Environment: BUILD (build/release).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?a folder}
what=${2:-program}
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
[ ! -e $build/libcufile.so.0 ] || put $build/libcufile.so.0
[ ! -e $build/inflate_rates ] || put $build/inflate_rates
[ ! -e .deps/venv/bin/tpchgen-cli ] || put .deps/venv/bin/tpchgen-cli
for library in $(needed $build/stachio $build/libstachio.so $build/libstachio_cuda.so); do
    case $(basename "$library") in
    libstachio*) ;;
    libduckdb* | libsnappy* | libbrotli* | libdeflate* | libjson-c* | libedit* | liblz4* | libzstd* | libbsd* | libmd* | libtinfo*) put "$library" ;;
    esac
done

# The version that scripts/requirements.txt names, for another machine's Python.
pack_duckdb() {
    local scratch version=${PYTHON_VERSION:-3.12}
    [ "$out/python-$version.tar.xz" -nt scripts/requirements.txt ] && return
    scratch=$(mktemp -d)
    awk '/^duckdb==/ {on = 1} on {print} on && !/\\$/ {exit}' scripts/requirements.txt >"$scratch/requirements.txt"
    .deps/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes \
        --only-binary=:all: --implementation cp --python-version "$version" --platform manylinux_2_28_x86_64 \
        --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 --target "$scratch/python" -r "$scratch/requirements.txt"
    strip "$scratch"/python/*.so 2>/dev/null || true
    tar -C "$scratch/python" -c . | xz -T0 -3 >"$out/python-$version.tar.xz"
    rm -rf "$scratch"
}

if [ "$what" = tests ]; then
    put $build/test/query_server
    [ ! -e $build/test/ranks ] || put $build/test/ranks
    [ ! -e $build/test/rank_errors ] || put $build/test/rank_errors
    [ ! -e $build/test/libaborting_ucx.so ] || put $build/test/libaborting_ucx.so
    pack_duckdb
    files=${PARQUET_TESTING:-../shared/parquet-testing}
    [ ! -d "$files" ] || tar -C "$files" -c --exclude-vcs . | xz -3 >"$out/parquet-testing.tar.xz"
fi
du -sh "$out"
