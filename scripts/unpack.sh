# Sourced: makes the program in the folder named by STACHIO_DIR (default build/release; libraries and tools may lie
# beside it, packed with xz) the one that is found first, and its GPU backend the one that is loaded, unless another one
# is named. Sets `dir`, and `work`: a scratch folder that goes at the end.
dir=$(realpath "${STACHIO_DIR:-build/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for packed in "$dir"/*.xz; do
    [ -e "$packed" ] || continue
    xz -dc "$packed" >"$work/$(basename "$packed" .xz)"
    chmod +x "$work/$(basename "$packed" .xz)"
done
export LD_LIBRARY_PATH="$work:$dir" PATH="$work:$dir:$dir/test:$PATH"
if [ -z "${STACHIO_CUDA_LIBRARY:-}" ]; then
    STACHIO_CUDA_LIBRARY=$dir/libstachio_cuda.so
    [ ! -e "$work/libstachio_cuda.so" ] || STACHIO_CUDA_LIBRARY=$work/libstachio_cuda.so
fi
export STACHIO_CUDA_LIBRARY
