/* Rows to frames, in one pass over each column: reads go where the order leads, writes are consecutive. */
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

__global__ void long_bytes(const struct cuda_column column, const struct cuda_rows_parts parts,
                           int64_t *out) {
    for (int64_t i = cuda_thread(); i < parts.n; i += cuda_threads()) {
        const int64_t at = parts.first + i, row = row_of(parts, at);
        uint32_t length = 0;
        if (part_of(parts.offsets, parts.n_parts, at) != parts.skip && cuda_is_valid(column, row))
            length = cuda_load<struct sx_string>(column, row).length_bytes;
        out[i] = length > SX_STRING_INLINE_BYTES ? (int64_t)length : 0;
    }
}

__global__ void part_sums(const int64_t *sums, const int64_t *firsts, int n_parts, int scale, int64_t *out) {
    for (int64_t p = cuda_thread(); p <= n_parts; p += cuda_threads())
        out[p] = sums[(firsts[p] - firsts[0]) * scale];
}

/* A string that a lane has found, for all lanes to copy. */
__device__ static inline void copy_together(unsigned mask, const char *from, char *to, uint32_t length) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    for (; mask; mask &= mask - 1) {
        const int source = __ffs((int)mask) - 1;
        const char *bytes = (const char *)__shfl_sync(0xffffffffu, (unsigned long long)from, source);
        char *place = (char *)__shfl_sync(0xffffffffu, (unsigned long long)to, source);
        const uint32_t n = __shfl_sync(0xffffffffu, length, source);
        for (uint32_t k = (uint32_t)lane; k < n; k += CUDA_WARP)
            place[k] = bytes[k];
    }
}

/* A lane takes a row; long strings are copied by the whole warp, one after the other. */
__global__ void pack_strings(const struct cuda_column column, const struct cuda_rows_parts parts,
                             const struct cuda_rows_place *places, const int64_t *sums) {
    const int64_t lanes = (parts.n + CUDA_WARP - 1) / CUDA_WARP * CUDA_WARP;
    for (int64_t i = cuda_thread(); i < lanes; i += cuda_threads()) {
        const int64_t at = parts.first + i;
        const int part = i < parts.n ? part_of(parts.offsets, parts.n_parts, at) : 0;
        const struct cuda_rows_place &place = places[part];
        const bool is_packed = i < parts.n && place.values;
        struct sx_string view = {};
        const char *from = nullptr;
        char *to = nullptr;
        if (is_packed) {
            const int64_t row = row_of(parts, at), index = at - parts.offsets[part];
            const bool valid = cuda_is_valid(column, row);
            if (valid)
                view = cuda_load<struct sx_string>(column, row);
            if (place.valid)
                place.valid[index] = valid;
            if (view.length_bytes > SX_STRING_INLINE_BYTES) {
                const int64_t offset = sums[i] - place.heap_first;
                from = view.u.ref.pointer;
                to = place.heap + offset;
                view.u.ref.pointer = (const char *)(uintptr_t)offset;
            }
            ((struct sx_string *)place.values)[index] = view;
        }
        copy_together(__ballot_sync(0xffffffffu, from != nullptr), from, to, view.length_bytes);
    }
}

__global__ void place_strings(struct sx_string *views, int64_t n, const char *heap, uint64_t heap_bytes,
                              int number, struct cuda_control *control) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const uint32_t length = views[i].length_bytes;
        if (length <= SX_STRING_INLINE_BYTES)
            continue;
        const uint64_t offset = (uint64_t)(uintptr_t)views[i].u.ref.pointer;
        if (offset > heap_bytes || length > heap_bytes - offset) {
            views[i] = {};
            cuda_fault_set(control, CUDA_FAULT_ROWS, (uint32_t)number, i);
        } else {
            views[i].u.ref.pointer = heap + offset;
        }
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

void cuda_rows_long_bytes(cudaStream_t stream, struct cuda_column column, const struct cuda_rows_parts *parts,
                          int64_t *out) {
    SX_LAUNCH(long_bytes, cuda_blocks(parts->n), CUDA_THREADS, 0, stream, column, *parts, out);
}

void cuda_rows_part_sums(cudaStream_t stream, const int64_t *sums, const int64_t *firsts, int n_parts,
                         int scale, int64_t *out) {
    SX_LAUNCH(part_sums, cuda_blocks(n_parts + 1), CUDA_THREADS, 0, stream, sums, firsts, n_parts, scale,
              out);
}

void cuda_rows_pack(cudaStream_t stream, struct cuda_column column, int width,
                    const struct cuda_rows_parts *parts, const struct cuda_rows_place *places,
                    const int64_t *sums) {
    const unsigned blocks = cuda_blocks(parts->n);
    if (column.phys == SX_PHYS_STRING) {
        SX_LAUNCH(pack_strings, blocks, CUDA_THREADS, 0, stream, column, *parts, places, sums);
        return;
    }
    switch (width) {
    case 1: SX_LAUNCH(pack_values<uint8_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    case 2: SX_LAUNCH(pack_values<uint16_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    case 4: SX_LAUNCH(pack_values<uint32_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    case 8: SX_LAUNCH(pack_values<uint64_t>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    default: SX_LAUNCH(pack_values<sx_u128>, blocks, CUDA_THREADS, 0, stream, column, *parts, places); break;
    }
}

void cuda_rows_place_strings(cudaStream_t stream, struct sx_string *views, int64_t n, const char *heap,
                             uint64_t heap_bytes, int number, struct cuda_control *control) {
    SX_LAUNCH(place_strings, cuda_blocks(n), CUDA_THREADS, 0, stream, views, n, heap, heap_bytes, number,
              control);
}

void cuda_rows_check_codes(cudaStream_t stream, int32_t *codes, int64_t n, int64_t n_entries, int number,
                           struct cuda_control *control) {
    SX_LAUNCH(check_codes, cuda_blocks(n), CUDA_THREADS, 0, stream, codes, n, n_entries, number, control);
}
}
