/* Rows of numbers to frames as they are, in one pass over each column: reads go where the order leads, writes
 * are consecutive. And what is small. */
#include "backend/cuda/rows_kernel.h"

template <typename T>
__global__ void pack_values(const struct cuda_column column, const struct cuda_rows_parts parts,
                            const struct cuda_rows_place *places) {
    for (int64_t i = cuda_thread(); i < parts.n; i += cuda_threads()) {
        const int64_t at = parts.first + i;
        const int part = part_of(parts.offsets, parts.n_parts, at);
        const struct cuda_rows_place &place = places[part];
        if (!place.values)
            continue;
        const int64_t row = row_of(parts, at), to = at - parts.offsets[part];
        const bool valid = cuda_is_valid(column, row);
        ((T *)place.values)[to] = valid ? cuda_load<T>(column, row) : T{};
        if (place.valid)
            place.valid[to] = valid;
    }
}

__global__ void part_sums(const struct cuda_rows_measured measured, const struct cuda_rows_blocks blocks,
                          int n_parts, int n_series, int64_t *out) {
    const int n_ends = n_parts + 1;
    for (int64_t i = cuda_thread(); i < n_ends * n_series; i += cuda_threads()) {
        const int series = (int)(i / n_ends);
        const int64_t first = blocks.firsts[i % n_ends];
        out[i] = cuda_rows_series(&measured, blocks.n,
                                  series)[series == CUDA_ROWS_WORDS ? first * measured.n_vectors : first];
    }
}

__global__ void check_codes(int32_t *codes, int64_t n, int64_t n_entries, int number,
                            struct cuda_control *control) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        if (codes[i] < 0 || codes[i] >= n_entries) {
            codes[i] = 0;
            cuda_fault_set(control, CUDA_FAULT_ROWS, (uint32_t)number, i);
        }
}

extern "C" {

void cuda_rows_part_sums(cudaStream_t stream, const struct cuda_rows_measured *measured,
                         const struct cuda_rows_blocks *blocks, int n_parts, int n_series, int64_t *out) {
    SX_LAUNCH(part_sums, cuda_blocks((n_parts + 1) * n_series), CUDA_THREADS, 0, stream, *measured, *blocks,
              n_parts, n_series, out);
}

void cuda_rows_pack(cudaStream_t stream, struct cuda_column column, int width,
                    const struct cuda_rows_parts *parts, const struct cuda_rows_place *places) {
    const unsigned blocks = cuda_blocks(parts->n);
    switch (width) {
    case 1: SX_LAUNCH(pack_values<uint8_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    case 2: SX_LAUNCH(pack_values<uint16_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    case 4: SX_LAUNCH(pack_values<uint32_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    case 8: SX_LAUNCH(pack_values<uint64_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    default: SX_LAUNCH(pack_values<sx_u128>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    }
}

void cuda_rows_check_codes(cudaStream_t stream, int32_t *codes, int64_t n, int64_t n_entries, int number,
                           struct cuda_control *control) {
    SX_LAUNCH(check_codes, cuda_blocks(n), CUDA_THREADS, 0, stream, codes, n, n_entries, number, control);
}
}
