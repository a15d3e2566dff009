/* Strings to frames and back, a thread block for 1,024 rows of a part: sums of their bytes are kept a block,
 * and places within it are found anew by each kernel. With w the bytes of a string that go to the heap (all
 * of them PACKED, those of long ones PLAIN), and v those of validity (0 or 1), a row costs
 * - measuring: 4 (its order) + 16 + v read;
 * - packing: 4 + 16 + v + w read; w written, and 16 + v PLAIN, the words of its length PACKED;
 * - unpacking: 16 read PLAIN, and 16 written for a long one; PACKED the words and up to 12 characters read,
 *   16 + v written. */
#include "backend/cuda/block.h"
#include "backend/cuda/rows_blocks.h"
#include "backend/cuda/view.h"

/* A null string is empty, and so is one behind the block's rows. */
__device__ static inline struct sx_string load_view(const struct cuda_column &column,
                                                    const struct cuda_rows_parts &parts,
                                                    const struct block_rows &rows, int i, bool *out_valid) {
    const int64_t row = i < rows.n ? row_of(parts, rows.first + i) : 0;
    *out_valid = i < rows.n && cuda_is_valid(column, row);
    struct sx_string view = {};
    if (*out_valid)
        view = cuda_load<struct sx_string>(column, row);
    return view;
}

__device__ static inline int64_t heap_bytes(const struct sx_string &view, bool with_short) {
    return with_short || view.length_bytes > SX_STRING_INLINE_BYTES ? (int64_t)view.length_bytes : 0;
}

__global__ void measure_strings(const struct cuda_column column, const struct cuda_rows_parts parts,
                                const struct cuda_rows_blocks blocks,
                                const struct cuda_rows_measured measured) {
    int64_t *characters = cuda_rows_series(&measured, blocks.n, CUDA_ROWS_CHARACTERS),
            *longs = cuda_rows_series(&measured, blocks.n, CUDA_ROWS_LONG);
    for (int64_t b = blockIdx.x; b < blocks.n; b += gridDim.x) {
        const struct block_rows rows = find_block(parts, blocks, b);
        int64_t all = 0, of_long = 0;
        bool valid;
        for (int i = (int)threadIdx.x; i < rows.n; i += CUDA_THREADS) {
            const struct sx_string view = load_view(column, parts, rows, i, &valid);
            all += heap_bytes(view, true);
            of_long += heap_bytes(view, false);
        }
        (void)block_exclusive(all, &all);
        (void)block_exclusive(of_long, &of_long);
        if (threadIdx.x == 0) {
            characters[b] = all;
            longs[b] = of_long;
        }
        measure_vectors<struct sx_string>(column, parts, rows, b, measured);
    }
}

/* ---- packing ---- */

/* The strings of a warp's lanes that go to a heap, one after another. */
struct warp_strings {
    struct sx_string views[CUDA_WARP];
    int64_t begins[CUDA_WARP];
};

__device__ static inline char byte_of(const struct warp_strings &strings, int64_t k) {
    int lane = 0;
    for (int step = CUDA_WARP / 2; step > 0; step /= 2)
        if (strings.begins[lane + step] <= k)
            lane += step;
    return view_bytes(strings.views[lane])[k - strings.begins[lane]];
}

/* The warp writes them side by side, whichever lanes' they are: `bytes` in all. What a lane reads for several
 * steps is under way at the same time: of few rows there are not enough warps to hide that it takes long. */
__device__ static inline void copy_strings(const struct warp_strings &strings, int64_t bytes, char *to) {
    constexpr int STEPS = 8;
    for (int64_t first = warp_lane(); first < bytes; first += STEPS * CUDA_WARP) {
        char read[STEPS];
        SX_UNROLL
        for (int s = 0; s < STEPS; s++)
            if (first + s * CUDA_WARP < bytes)
                read[s] = byte_of(strings, first + s * CUDA_WARP);
        SX_UNROLL
        for (int s = 0; s < STEPS; s++)
            if (first + s * CUDA_WARP < bytes)
                to[first + s * CUDA_WARP] = read[s];
    }
}

/* `bytes` of each lane's string, which go to heap + at. */
__device__ static inline void pack_characters(const struct sx_string &view, int64_t bytes, int64_t at,
                                              char *heap, struct warp_strings &strings) {
    const int64_t first = __shfl_sync(ALL_LANES, at, 0),
                  end = __shfl_sync(ALL_LANES, at + bytes, CUDA_WARP - 1);
    strings.views[warp_lane()] = view;
    strings.begins[warp_lane()] = at - first;
    __syncwarp();
    copy_strings(strings, end - first, heap + first);
    __syncwarp();
}

/* A view as it goes into a frame. */
__device__ static inline struct sx_string stored_view(struct sx_string view, int64_t at) {
    if (view.length_bytes > SX_STRING_INLINE_BYTES)
        view.u.ref.pointer = (const char *)(uintptr_t)at;
    return view;
}

template <bool PACKED>
__global__ void pack_strings(const struct cuda_column column, const struct cuda_rows_parts parts,
                             const struct cuda_rows_blocks blocks, const struct cuda_rows_measured measured,
                             const struct cuda_rows_place *places) {
    __shared__ uint64_t values[SX_PACK_BLOCK];
    __shared__ struct warp_strings strings[CUDA_THREADS / CUDA_WARP];
    const int64_t *sums =
        cuda_rows_series(&measured, blocks.n, PACKED ? CUDA_ROWS_CHARACTERS : CUDA_ROWS_LONG);
    for (int64_t b = blockIdx.x; b < blocks.n; b += gridDim.x) {
        const struct block_rows rows = find_block(parts, blocks, b);
        const struct cuda_rows_place place = places[rows.part];
        int64_t used = sums[b] - place.heap_first, total;
        if (PACKED)
            pack_vectors<struct sx_string>(column, parts, rows, b, measured, place, (uint64_t)used, values);
        for (int first = 0; first < rows.n; first += CUDA_THREADS, used += total) {
            const int i = first + (int)threadIdx.x;
            bool valid;
            const struct sx_string view = load_view(column, parts, rows, i, &valid);
            const int64_t bytes = heap_bytes(view, PACKED), at = used + block_exclusive(bytes, &total);
            if (!PACKED && i < rows.n) {
                const int64_t to = rows.index * SX_PACK_BLOCK + i;
                ((struct sx_string *)place.values)[to] = stored_view(view, at);
                if (place.valid)
                    place.valid[to] = valid;
            }
            pack_characters(view, bytes, at, place.heap, strings[threadIdx.x / CUDA_WARP]);
        }
    }
}

/* ---- unpacking ---- */

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

/* Where a block's characters are in the heap. */
struct block_heap {
    const char *bytes;
    int64_t room;
    bool is_right;
};

/* They end where those of the next block begin. */
__device__ static inline struct block_heap find_heap(const struct cuda_rows_packed &packed, int64_t b,
                                                     uint64_t first) {
    const bool is_last = b + 1 == pack_blocks_of(packed.rows);
    const uint64_t end = is_last ? packed.heap_bytes : packed.entries[(b + 1) * packed.n_vectors].first;
    struct block_heap heap = {packed.heap, 0, first <= end && end <= packed.heap_bytes};
    if (heap.is_right) {
        heap.bytes += first;
        heap.room = (int64_t)(end - first);
    }
    return heap;
}

/* More than there is room for where there can be no such string. */
__device__ static inline int64_t checked_length(uint64_t length, int64_t room, bool has_long) {
    const uint64_t most = has_long ? UINT32_MAX : (uint32_t)SX_STRING_INLINE_BYTES;
    return length <= most && length <= (uint64_t)room ? (int64_t)length : room + 1;
}

__global__ void unpack_strings(const struct cuda_rows_packed packed, struct sx_string *out_views,
                               uint8_t *out_valid, struct cuda_control *control) {
    for (int64_t b = blockIdx.x; b < pack_blocks_of(packed.rows); b += gridDim.x) {
        const int n = pack_block_length(packed.rows, b);
        const struct sx_pack_block lengths = find_entry(packed, b, n, 0, control);
        const struct block_heap heap = find_heap(packed, b, lengths.first);
        struct sx_pack_block valid = {};
        if (out_valid)
            valid = find_entry(packed, b, n, 1, control);
        int64_t used = 0, total;
        for (int first = 0; first < n; first += CUDA_THREADS, used += total) {
            const int i = first + (int)threadIdx.x;
            const int64_t row = b * SX_PACK_BLOCK + i,
                          length = i < n ? checked_length(read_integer(lengths, packed.words, i), heap.room,
                                                          packed.has_long)
                                         : 0,
                          at = used + block_exclusive(length, &total);
            if (i >= n)
                continue;
            const bool fits = at <= heap.room && length <= heap.room - at;
            out_views[row] = fits ? view_of(heap.bytes + at, (uint32_t)length) : sx_string{};
            if (out_valid)
                out_valid[row] = (uint8_t)read_integer(valid, packed.words, i);
        }
        if (threadIdx.x == 0 && (!heap.is_right || used != heap.room))
            cuda_fault_set(control, CUDA_FAULT_ROWS, (uint32_t)packed.column, b * SX_PACK_BLOCK);
    }
}

extern "C" {

void cuda_rows_measure_strings(cudaStream_t stream, struct cuda_column column,
                               const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                               const struct cuda_rows_measured *measured) {
    SX_LAUNCH(measure_strings, cuda_blocks(blocks->n, 1), CUDA_THREADS, 0, stream, column, *parts, *blocks,
              *measured);
}

void cuda_rows_pack_strings(cudaStream_t stream, struct cuda_column column,
                            const struct cuda_rows_parts *parts, const struct cuda_rows_blocks *blocks,
                            const struct cuda_rows_measured *measured, bool packed,
                            const struct cuda_rows_place *places) {
    const unsigned grid = cuda_blocks(blocks->n, 1);
    if (packed)
        SX_LAUNCH(pack_strings<true>, grid, CUDA_THREADS, 0, stream, column, *parts, *blocks, *measured,
                  places);
    else
        SX_LAUNCH(pack_strings<false>, grid, CUDA_THREADS, 0, stream, column, *parts, *blocks, *measured,
                  places);
}

void cuda_rows_place_strings(cudaStream_t stream, struct sx_string *views, int64_t n, const char *heap,
                             uint64_t heap_bytes, int number, struct cuda_control *control) {
    SX_LAUNCH(place_strings, cuda_blocks(n), CUDA_THREADS, 0, stream, views, n, heap, heap_bytes, number,
              control);
}

void cuda_rows_unpack_strings(cudaStream_t stream, const struct cuda_rows_packed *packed,
                              struct sx_string *out_views, uint8_t *out_valid, struct cuda_control *control) {
    SX_LAUNCH(unpack_strings, cuda_blocks(pack_blocks_of(packed->rows), 1), CUDA_THREADS, 0, stream, *packed,
              out_views, out_valid, control);
}
}
