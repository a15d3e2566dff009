#!/bin/bash
# Installs what is missing to build, demonstrate, test or check stachio. Usage: setup.sh [build|demo|test|lint|cuda|cufile]...
#   build  compiler, libraries (Debian packages) and libduckdb (into .deps/duckdb)
#   demo   build, and the TPC-H generator (into .deps/venv)
#   test   demo, and the Python packages that the tests compare with (into .deps/venv)
#   lint   build, and clang's formatter, linter and fuzzer
#   cuda   build, and nvcc where the machine has none (into .deps/cuda; build does it too where there is an NVIDIA GPU)
#   cufile build, and NVIDIA's cuFile for reads straight into a GPU's memory (into .deps/cufile; under NVIDIA's licence, and never needed)
# Runs again at no cost: what is there already is left alone, and nothing is printed.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=versions.env
source scripts/versions.env

say() { printf 'setup: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

want_build=0 want_demo=0 want_test=0 want_lint=0 want_cuda=0 want_cufile=0
[ $# -gt 0 ] || set -- build
for stage in "$@"; do
    case $stage in
    build) want_build=1 ;;
    demo) want_build=1 want_demo=1 ;;
    test) want_build=1 want_demo=1 want_test=1 ;;
    lint) want_build=1 want_lint=1 ;;
    cuda) want_build=1 want_cuda=1 ;;
    cufile) want_build=1 want_cufile=1 ;;
    *) die "unknown stage '$stage'; usage: setup.sh [build|demo|test|lint|cuda|cufile]..." ;;
    esac
done

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
    die "this is $(uname -s) on $(uname -m); only Linux on x86-64 is supported"

mkdir -p .deps
exec 9>.deps/.lock
command -v flock >/dev/null && flock 9
scratch=
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

duckdb_stamp="$DUCKDB_LIB_SHA512 $DUCKDB_HEADER_SHA512"
have_duckdb() { [ "$(cat .deps/duckdb/.stamp 2>/dev/null)" = "$duckdb_stamp" ]; }

# A full set of requirements also serves the demo, so the demo never takes the tests' packages away.
stamp_of() { cat "$@" | sha512sum | cut -d' ' -f1; }
venv_full=$(stamp_of scripts/requirements.txt scripts/requirements-demo.txt)
venv_demo=$(stamp_of scripts/requirements-demo.txt)
have_venv() {
    local got
    [ -x .deps/venv/bin/python ] || return 1
    got=$(cat .deps/venv/.stamp 2>/dev/null) || return 1
    [ "$got" = "$venv_full" ] || { [ $want_test = 0 ] && [ "$got" = "$venv_demo" ]; }
}
need_venv=0
if [ $want_demo = 1 ] && ! have_venv; then need_venv=1; fi

# nvcc of the machine comes first; a GPU without one gets ours.
[ ! -e /dev/nvidia0 ] || want_cuda=1
cuda_stamp=$(stamp_of scripts/requirements-cuda.txt)
have_nvcc() {
    command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || [ "$(cat .deps/cuda/.stamp 2>/dev/null)" = "$cuda_stamp" ]
}
need_cuda=0
if [ $want_cuda = 1 ] && ! have_nvcc; then need_cuda=1; fi

cufile_stamp=$(stamp_of scripts/requirements-cufile.txt)
need_cufile=0
if [ $want_cufile = 1 ] && [ "$(cat .deps/cufile/.stamp 2>/dev/null)" != "$cufile_stamp" ]; then need_cufile=1; fi
need_python=$((need_venv + need_cuda + need_cufile))

# ---------------------------------------------------------------------------------------------------------
# Packages of the system

wanted=$DEBIAN_BUILD
[ $want_lint = 0 ] || wanted+=" $DEBIAN_LINT"
[ $need_python = 0 ] || wanted+=" $DEBIAN_PYTHON"
if ! have_duckdb && ! command -v npm >/dev/null; then wanted+=" $DEBIAN_NPM"; fi

is_debian_12() {
    [ -r /etc/os-release ] && command -v apt-get >/dev/null && command -v dpkg-query >/dev/null &&
        (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ])
}

missing=()
# Fills `missing` with the wanted packages whose installed version is absent or another one.
find_missing_debian() {
    local spec name version status installed
    declare -A found=()
    while read -r name status version; do
        if [ "$status" = installed ]; then found[${name%%:*}]=$version; fi
    # shellcheck disable=SC2086
    done < <(dpkg-query -W -f='${binary:Package} ${db:Status-Status} ${Version}\n' ${wanted//=*([^ ])/} 2>/dev/null || true)
    missing=()
    for spec in $wanted; do
        installed=${found[${spec%%=*}]:-}
        # The right side is a glob on purpose.
        # shellcheck disable=SC2053
        if [ -z "$installed" ] || [[ $installed != ${spec#*=} ]]; then missing+=("$spec"); fi
    done
}

# On other systems nothing is installed: the tools and libraries are looked for and the missing ones named.
find_missing_elsewhere() {
    local item
    missing=()
    for item in cmake ninja gcc g++ pkg-config; do
        command -v $item >/dev/null || missing+=("$item")
    done
    if ! have_duckdb && ! command -v npm >/dev/null; then missing+=(npm); fi
    for item in libzstd liblz4 libbrotlidec zlib json-c libedit libdeflate liburing; do
        pkg-config --exists $item 2>/dev/null || missing+=("$item (with headers)")
    done
    [ -e /usr/include/snappy-c.h ] || [ -e /usr/local/include/snappy-c.h ] || missing+=("snappy (with headers)")
    if [ $need_python -gt 0 ]; then
        python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=("python3 with venv")
    fi
    if [ $want_lint = 1 ]; then
        for item in clang-16 clang-format-16 clang-tidy-16; do
            command -v $item >/dev/null || missing+=("$item")
        done
    fi
}

shopt -s extglob
if is_debian_12; then
    find_missing_debian
    if [ ${#missing[@]} -gt 0 ]; then
        if [ "$(id -u)" = 0 ]; then
            as_root=()
        elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; }; then
            as_root=(sudo)
        else
            say "these Debian packages are missing, and neither root nor sudo is at hand:"
            printf '    %s\n' "${missing[@]}" >&2
            say "let someone with root run:"
            printf "    apt-get install --no-install-recommends" >&2
            printf " '%s'" "${missing[@]}" >&2
            printf '\n' >&2
            exit 1
        fi
        say "installing ${missing[*]}"
        apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600)
        "${apt[@]}" update >&2 || say "apt-get update reported errors; going on with the lists that are there"
        "${apt[@]}" install -y --no-install-recommends --allow-downgrades "${missing[@]}" </dev/null >&2 ||
            die "apt-get could not install: ${missing[*]}"
        find_missing_debian
        [ ${#missing[@]} = 0 ] || die "still missing after the installation: ${missing[*]}"
    fi
else
    find_missing_elsewhere
    if [ ${#missing[@]} -gt 0 ]; then
        say "packages are installed only on Debian 12. Install these, then run this again:"
        printf '    %s\n' "${missing[@]}" >&2
        exit 1
    fi
fi

# ---------------------------------------------------------------------------------------------------------
# libduckdb and its header

# fetch PACKAGE SHA512 FILE: leaves the package's archive, checked, as FILE.
fetch() {
    local dir sum
    dir=$(mktemp -d "$scratch/pack.XXXXXX")
    say "downloading $1"
    (cd "$dir" && npm_config_cache="$scratch/npm" npm_config_update_notifier=false \
        npm pack --loglevel=error "$1" </dev/null >/dev/null) || die "npm could not download $1"
    mv "$dir"/*.tgz "$3"
    sum=$(sha512sum "$3" | cut -d' ' -f1)
    [ "$sum" = "$2" ] || die "$1: SHA-512 is $sum, but $2 is pinned in scripts/versions.env"
}

if ! have_duckdb; then
    scratch=$(mktemp -d "$PWD/.deps/tmp.XXXXXX")
    fetch "$DUCKDB_LIB_PACKAGE" "$DUCKDB_LIB_SHA512" "$scratch/lib.tgz"
    fetch "$DUCKDB_HEADER_PACKAGE" "$DUCKDB_HEADER_SHA512" "$scratch/header.tgz"
    mkdir -p "$scratch/duckdb/lib" "$scratch/duckdb/include"
    tar xzf "$scratch/lib.tgz" -C "$scratch" "$DUCKDB_LIB_FILE" "$DUCKDB_LICENSE_FILE"
    tar xzf "$scratch/header.tgz" -C "$scratch" "$DUCKDB_HEADER_FILE"
    mv "$scratch/$DUCKDB_LIB_FILE" "$scratch/duckdb/lib/libduckdb.so"
    mv "$scratch/$DUCKDB_LICENSE_FILE" "$scratch/duckdb/LICENSE"
    mv "$scratch/$DUCKDB_HEADER_FILE" "$scratch/duckdb/include/duckdb.h"
    chmod 755 "$scratch/duckdb/lib/libduckdb.so"
    printf '%s\n' "$duckdb_stamp" >"$scratch/duckdb/.stamp"
    rm -rf .deps/duckdb
    mv "$scratch/duckdb" .deps/duckdb
fi

# ---------------------------------------------------------------------------------------------------------
# Python packages

# install_packages FOLDER REQUIREMENTS [OPTION]...: a new virtual environment with them; options are pip's.
install_packages() {
    local folder=$1 requirements=$2 python=/usr/bin/python3
    shift 2
    [ -x $python ] || python=python3
    say "installing the packages of $requirements into $folder"
    $python -m venv --clear "$folder" || die "python3 could not create $folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-cache-dir \
        --only-binary=:all: --require-hashes "$@" -r "$requirements" </dev/null >&2 ||
        die "pip could not install the packages of $requirements"
}

if [ $need_venv = 1 ]; then
    requirements=scripts/requirements-demo.txt stamp=$venv_demo
    if [ $want_test = 1 ]; then requirements=scripts/requirements.txt stamp=$venv_full; fi
    rm -f .deps/venv/.stamp
    install_packages .deps/venv $requirements
    printf '%s\n' "$stamp" >.deps/venv/.stamp
fi

# ---------------------------------------------------------------------------------------------------------
# nvcc, cuFile

if [ $need_cuda = 1 ]; then
    rm -rf .deps/cuda .deps/cuda-packages
    install_packages .deps/cuda-packages scripts/requirements-cuda.txt --no-deps
    toolkit=$(echo "$PWD"/.deps/cuda-packages/lib/python3*/site-packages/nvidia/cu13)
    [ -x "$toolkit/bin/nvcc" ] || die "the CUDA packages hold no nvcc"
    ln -sfn lib "$toolkit/lib64" # where nvcc looks
    ln -sfn "$toolkit" .deps/cuda
    printf '%s\n' "$cuda_stamp" >.deps/cuda/.stamp
fi

if [ $need_cufile = 1 ]; then
    [ -n "$scratch" ] || scratch=$(mktemp -d "$PWD/.deps/tmp.XXXXXX")
    install_packages "$scratch/cufile-packages" scripts/requirements-cufile.txt --no-deps
    packages=$(echo "$scratch"/cufile-packages/lib/python3*/site-packages)
    mkdir -p "$scratch/cufile/lib"
    mv "$packages"/nvidia/cu13/lib/libcufile*.so.* "$scratch/cufile/lib/" || die "the cuFile package holds no library"
    mv "$packages/nvidia/cu13/include" "$scratch/cufile/"
    mv "$packages"/nvidia_cufile-*/licenses/License.txt "$scratch/cufile/LICENSE"
    printf '%s\n' "$cufile_stamp" >"$scratch/cufile/.stamp"
    rm -rf .deps/cufile
    mv "$scratch/cufile" .deps/cufile
fi
