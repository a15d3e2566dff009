/* Moving rows. */
#include "backend/cuda/kernel.h"
#include "backend/cuda/launch.h"

struct word16 {
    uint64_t low, high;
};
struct alignas(16) word16_aligned {
    uint64_t low, high;
};

/* In one piece, for the host. */
__device__ static inline void publish(uint64_t *to, uint64_t value) {
#ifdef SX_CUDA_EMULATED
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
#else
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#endif
}

/* One block. The fault stays. A fence waits until the host's memory has all that was written to it, which
 * takes long while the link is busy. */
__global__ void read_control(struct cuda_control *control, bool takes_counters, bool fences, uint32_t number,
                             struct cuda_reply *out) {
    const uint64_t high = (uint64_t)number << 32;
    if (fences)
        __threadfence_system();
    if (threadIdx.x == 0)
        publish(&out->fault_kind, high | control->fault.kind);
    for (int i = (int)threadIdx.x; i < (int)CUDA_COUNTERS; i += CUDA_THREADS) {
        const uint64_t counter = (uint64_t)control->counters[i];
        publish(&out->counters[i][0], high | (uint32_t)counter);
        publish(&out->counters[i][1], high | counter >> 32);
        if (takes_counters)
            control->counters[i] = 0;
    }
}

/* Words, some of a thread on their way at the same time, and then bytes that are left. */
__device__ static inline void copy_all(uint8_t *to, const uint8_t *from, int64_t bytes) {
    constexpr int EACH = 4;
    const int64_t n = bytes / (int64_t)sizeof(uint64_t), rest = n * (int64_t)sizeof(uint64_t);
    const uint64_t *words = (const uint64_t *)from;
    int64_t i = cuda_thread();
    for (; i < n - (EACH - 1) * cuda_threads(); i += EACH * cuda_threads()) {
        uint64_t held[EACH];
        for (int k = 0; k < EACH; k++)
            held[k] = words[i + k * cuda_threads()];
        for (int k = 0; k < EACH; k++)
            ((uint64_t *)to)[i + k * cuda_threads()] = held[k];
    }
    for (; i < n; i += cuda_threads())
        ((uint64_t *)to)[i] = words[i];
    for (int64_t i = rest + cuda_thread(); i < bytes; i += cuda_threads())
        to[i] = from[i];
}

__global__ void copy_bytes(uint8_t *to, const uint8_t *from, int64_t bytes) {
    copy_all(to, from, bytes);
}

__device__ static inline void zero_all(uint8_t *to, int64_t bytes) {
    const int64_t n = bytes / (int64_t)sizeof(uint64_t), rest = n * (int64_t)sizeof(uint64_t);
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        ((uint64_t *)to)[i] = 0;
    for (int64_t i = rest + cuda_thread(); i < bytes; i += cuda_threads())
        to[i] = 0;
}

/* A row of blocks each. */
__global__ void copy_several(const __grid_constant__ struct cuda_copies copies) {
    const struct cuda_copy copy = copies.of[blockIdx.y];
    if (copy.from)
        copy_all((uint8_t *)copy.to, (const uint8_t *)copy.from, copy.bytes);
    else
        zero_all((uint8_t *)copy.to, copy.bytes);
}

template <typename T, typename I>
__global__ void gather_values(struct cuda_column column, const I *index, int64_t n, T *out,
                              uint8_t *out_valid) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t row = index ? (int64_t)index[i] : i;
        const bool valid = row >= 0 && cuda_is_valid(column, row);
        out[i] = valid ? cuda_load<T>(column, row) : T{};
        if (out_valid)
            out_valid[i] = valid;
    }
}

template <typename T>
static void gather_width(cudaStream_t stream, struct cuda_column column, const void *index, bool is_i64,
                         int64_t n, void *out, uint8_t *out_valid) {
    if (is_i64)
        SX_LAUNCH(gather_values, cuda_blocks(n), CUDA_THREADS, 0, stream, column, (const int64_t *)index, n,
                  (T *)out, out_valid);
    else
        SX_LAUNCH(gather_values, cuda_blocks(n), CUDA_THREADS, 0, stream, column, (const int32_t *)index, n,
                  (T *)out, out_valid);
}

/* Rows are numbered through the parts, whatever lies between these in the result. */
template <typename T>
__global__ void concat_values(const __grid_constant__ struct cuda_concat concat, T *out, uint8_t *out_valid) {
    int p = 0;
    int64_t before = 0; /* rows of parts in front of p */
    for (int64_t i = cuda_thread(); i < concat.rows; i += cuda_threads()) {
        while (i - before >= concat.parts[p].rows)
            before += concat.parts[p++].rows;
        const struct cuda_concat_part &part = concat.parts[p];
        const int64_t row = i - before, to = part.begin + row;
        const bool valid = cuda_is_valid(part.column, row);
        T value = {};
        if (valid)
            value = cuda_load<T>(part.column, row);
        if constexpr (sizeof(T) == sizeof(int32_t))
            value += valid ? (uint32_t)part.first_code : 0;
        out[to] = value;
        if (out_valid)
            out_valid[to] = valid;
    }
}

template <typename T>
static void concat_width(cudaStream_t stream, const struct cuda_concat *concat, void *out,
                         uint8_t *out_valid) {
    SX_LAUNCH(concat_values, cuda_blocks(concat->rows), CUDA_THREADS, 0, stream, *concat, (T *)out,
              out_valid);
}

template <typename T>
__device__ static inline void move_value(const struct cuda_move &move, int64_t from, int64_t to) {
    *(T *)(move.to + to * move.to_step) = *(const T *)(move.from + from * move.from_step);
}

/* Rows may be at odd multiples of 8 bytes. */
__device__ static inline void widen_row(const struct cuda_move &move, int64_t from, int64_t to) {
    const uint8_t *offset = move.from + from * move.from_step;
    uint8_t *place = move.to + to * move.to_step;
    if (move.width == sizeof(uint64_t)) {
        *(uint64_t *)place = (uint64_t)move.base + *(const uint32_t *)offset;
    } else {
        const sx_u128 value = (sx_u128)(sx_i128)move.base + *(const uint64_t *)offset;
        *(struct word16 *)place = {(uint64_t)value, (uint64_t)(value >> 64)};
    }
}

__device__ static inline void move_row(const struct cuda_move &move, int64_t from, int64_t to) {
    switch (move.is_narrow ? 0 : move.width) {
    case 0: widen_row(move, from, to); break;
    case 1: move_value<uint8_t>(move, from, to); break;
    case 2: move_value<uint16_t>(move, from, to); break;
    case 4: move_value<uint32_t>(move, from, to); break;
    case 8: move_value<uint64_t>(move, from, to); break;
    default: move_value<word16>(move, from, to);
    }
    if (move.to_valid)
        move.to_valid[to * move.to_valid_step] =
            !move.from_valid || move.from_valid[from * move.from_valid_step];
}

/* Bytes a row moves: 4 or 8 of the index, and for each column 2 w. */
template <typename I>
__global__ void move_rows(const __grid_constant__ struct cuda_moves moves, const I *index, int64_t n) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const int64_t row = index ? (int64_t)index[i] : i;
        for (int c = 0; c < moves.n; c++)
            move_row(moves.columns[c], row, i);
    }
}

/* Rows of `step` bytes of a block's threads in shared memory: moved in pieces, and `stride` bytes from each
 * other. */
struct tile_shape {
    uint32_t piece, pieces, stride;
};
__device__ static inline struct tile_shape shape_of(uint32_t step) {
    const uint32_t word = (uint32_t)sizeof(uint64_t), two = (uint32_t)sizeof(struct word16);
    const uint32_t piece = step < two ? word : two;
    return {piece, step / piece, step + word}; /* banks apart */
}
__device__ static inline uint32_t rows_of_tile(int64_t left) {
    return left < CUDA_THREADS ? (uint32_t)left : (uint32_t)CUDA_THREADS;
}

/* The other way: columns to rows. A block reads each column in order, and writes its rows, which lie together
 * in shared memory by then, 16 bytes a thread side by side. `to` of a column leads into the row 0. */
__global__ void lay_rows(const __grid_constant__ struct cuda_moves moves, uint8_t *rows, uint32_t step,
                         const int64_t *places, int64_t n) {
    SX_DYNAMIC_SHARED(tile);
    const struct tile_shape shape = shape_of(step);
    const uint32_t piece = shape.piece, pieces = shape.pieces, stride = shape.stride;
    for (int64_t base = (int64_t)blockIdx.x * CUDA_THREADS; base < n;
         base += (int64_t)gridDim.x * CUDA_THREADS) {
        const uint32_t count = rows_of_tile(n - base);
        for (int c = 0; c < moves.n && threadIdx.x < count; c++) {
            struct cuda_move move = moves.columns[c];
            move.to = tile + (move.to - rows);
            move.to_valid = move.to_valid ? tile + (move.to_valid - rows) : NULL;
            move.to_step = move.to_valid_step = stride;
            move_row(move, base + threadIdx.x, threadIdx.x);
        }
        __syncthreads();
        for (uint32_t p = threadIdx.x; p < count * pieces; p += CUDA_THREADS) {
            const int64_t row = base + p / pieces;
            const uint32_t at = p % pieces * piece;
            const uint64_t *from = (const uint64_t *)(tile + p / pieces * stride + at);
            uint8_t *to = rows + (places ? places[row] : row) * step + at;
            if (piece == sizeof(struct word16))
                *(struct word16_aligned *)to = {from[0], from[1]};
            else
                *(uint64_t *)to = from[0];
        }
        __syncthreads();
    }
}

/* Rows of `step` bytes, 16 at a time by neighbours, so that a row costs one access and not one a column; from
 * shared memory each column is written in order. `from` of a column leads into the row 0. */
template <typename I>
__global__ void take_rows(const __grid_constant__ struct cuda_moves moves, const uint8_t *rows, uint32_t step,
                          const I *index, int64_t n) {
    SX_DYNAMIC_SHARED(tile);
    const struct tile_shape shape = shape_of(step);
    const uint32_t piece = shape.piece, pieces = shape.pieces, stride = shape.stride;
    for (int64_t base = (int64_t)blockIdx.x * CUDA_THREADS; base < n;
         base += (int64_t)gridDim.x * CUDA_THREADS) {
        const uint32_t count = rows_of_tile(n - base);
        for (uint32_t p = threadIdx.x; p < count * pieces; p += CUDA_THREADS) {
            const uint32_t at = p % pieces * piece;
            const uint8_t *from = rows + (int64_t)index[base + p / pieces] * step + at;
            uint64_t *to = (uint64_t *)(tile + p / pieces * stride + at);
            if (piece == sizeof(struct word16)) {
                const struct word16_aligned word = *(const struct word16_aligned *)from;
                to[0] = word.low;
                to[1] = word.high;
            } else
                to[0] = *(const uint64_t *)from;
        }
        __syncthreads();
        for (int c = 0; c < moves.n && threadIdx.x < count; c++) {
            struct cuda_move move = moves.columns[c];
            move.from = tile + (move.from - rows);
            move.from_valid = move.from_valid ? tile + (move.from_valid - rows) : NULL;
            move.from_step = move.from_valid_step = stride;
            move_row(move, threadIdx.x, base + threadIdx.x);
        }
        __syncthreads();
    }
}

template <typename I> __global__ void fill_iota(I *out, int64_t first, int64_t n) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        out[i] = (I)(first + i);
}

__global__ void mark_index(const int32_t *index, int64_t n, uint8_t *mask) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        mask[index[i]] = 1;
}

__global__ void mask_flags(struct cuda_column mask, bool wanted, int64_t n, uint8_t *flags) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        flags[i] = cuda_is_valid(mask, i) && (cuda_load<uint8_t>(mask, i) != 0) == wanted;
}

/* ---- strings ---- */

__global__ void string_lengths(const struct sx_string *views, const uint8_t *valid, int64_t n, int64_t *out) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads()) {
        const uint32_t length = valid && !valid[i] ? 0 : views[i].length_bytes;
        out[i] = length > SX_STRING_INLINE_BYTES ? (int64_t)length : 0;
    }
}

/* A warp copies a string. */
__global__ void string_copy(const struct sx_string *views, const uint8_t *valid, int64_t n,
                            const int64_t *offsets, char *heap, const char *base,
                            struct sx_string *out_views) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    for (int64_t i = cuda_thread() / CUDA_WARP; i < n; i += cuda_threads() / CUDA_WARP) {
        struct sx_string view = {};
        if (!valid || valid[i])
            view = views[i];
        if (view.length_bytes > SX_STRING_INLINE_BYTES) {
            const char *from = view.u.ref.pointer;
            for (uint32_t k = (uint32_t)lane; k < view.length_bytes; k += CUDA_WARP)
                heap[offsets[i] + k] = from[k];
            view.u.ref.pointer = base + offsets[i];
        }
        __syncwarp(); /* all lanes have read the view: out_views may be the same place */
        if (lane == 0)
            out_views[i] = view;
    }
}

extern "C" {

void cuda_gather_values(cudaStream_t stream, struct cuda_column column, const void *index, bool index_is_i64,
                        int width, int64_t n, void *out_values, uint8_t *out_valid) {
    switch (width) {
    case 1: gather_width<uint8_t>(stream, column, index, index_is_i64, n, out_values, out_valid); break;
    case 2: gather_width<uint16_t>(stream, column, index, index_is_i64, n, out_values, out_valid); break;
    case 4: gather_width<uint32_t>(stream, column, index, index_is_i64, n, out_values, out_valid); break;
    case 8: gather_width<uint64_t>(stream, column, index, index_is_i64, n, out_values, out_valid); break;
    default: gather_width<word16>(stream, column, index, index_is_i64, n, out_values, out_valid);
    }
}
void cuda_concat_values(cudaStream_t stream, const struct cuda_concat *concat, int width, void *out_values,
                        uint8_t *out_valid) {
    switch (width) {
    case 1: concat_width<uint8_t>(stream, concat, out_values, out_valid); break;
    case 2: concat_width<uint16_t>(stream, concat, out_values, out_valid); break;
    case 4: concat_width<uint32_t>(stream, concat, out_values, out_valid); break;
    case 8: concat_width<uint64_t>(stream, concat, out_values, out_valid); break;
    default: concat_width<word16>(stream, concat, out_values, out_valid);
    }
}
void cuda_move_rows(cudaStream_t stream, const struct cuda_moves *moves, const void *index, bool index_is_i64,
                    int64_t n) {
    if (index_is_i64)
        SX_LAUNCH(move_rows, cuda_blocks(n), CUDA_THREADS, 0, stream, *moves, (const int64_t *)index, n);
    else
        SX_LAUNCH(move_rows, cuda_blocks(n), CUDA_THREADS, 0, stream, *moves, (const int32_t *)index, n);
}
void cuda_lay_rows(cudaStream_t stream, const struct cuda_moves *moves, uint8_t *rows, uint32_t step,
                   const int64_t *places, int64_t n) {
    const size_t shared = (size_t)(step + sizeof(uint64_t)) * CUDA_THREADS;
    SX_LAUNCH(lay_rows, cuda_blocks(n), CUDA_THREADS, shared, stream, *moves, rows, step, places, n);
}
void cuda_take_rows(cudaStream_t stream, const struct cuda_moves *moves, const uint8_t *rows, uint32_t step,
                    const void *index, bool index_is_i64, int64_t n) {
    const size_t shared = (size_t)(step + sizeof(uint64_t)) * CUDA_THREADS;
    if (index_is_i64)
        SX_LAUNCH(take_rows, cuda_blocks(n), CUDA_THREADS, shared, stream, *moves, rows, step,
                  (const int64_t *)index, n);
    else
        SX_LAUNCH(take_rows, cuda_blocks(n), CUDA_THREADS, shared, stream, *moves, rows, step,
                  (const int32_t *)index, n);
}
void cuda_copy_bytes(cudaStream_t stream, void *to, const void *from, size_t bytes) {
    const int64_t words = (int64_t)(bytes / sizeof(uint64_t)) + 1;
    SX_LAUNCH(copy_bytes, cuda_blocks(words), CUDA_THREADS, 0, stream, (uint8_t *)to, (const uint8_t *)from,
              (int64_t)bytes);
}
void cuda_copy_several(cudaStream_t stream, const struct cuda_copies *copies) {
    int64_t most = 0;
    for (int32_t i = 0; i < copies->n; i++)
        most = copies->of[i].bytes > most ? copies->of[i].bytes : most;
    const dim3 grid(cuda_blocks(most / (int64_t)sizeof(uint64_t) + 1), (unsigned)copies->n);
    SX_LAUNCH(copy_several, grid, CUDA_THREADS, 0, stream, *copies);
}
void cuda_read_control(cudaStream_t stream, struct cuda_control *control, bool takes_counters, bool fences,
                       uint32_t number, struct cuda_reply *out) {
    SX_LAUNCH(read_control, 1, CUDA_THREADS, 0, stream, control, takes_counters, fences, number, out);
}
void cuda_fill_iota_i32(cudaStream_t stream, int32_t *out, int64_t first, int64_t n) {
    SX_LAUNCH(fill_iota, cuda_blocks(n), CUDA_THREADS, 0, stream, out, first, n);
}
void cuda_fill_iota_i64(cudaStream_t stream, int64_t *out, int64_t first, int64_t n) {
    SX_LAUNCH(fill_iota, cuda_blocks(n), CUDA_THREADS, 0, stream, out, first, n);
}
void cuda_mark_index(cudaStream_t stream, const int32_t *index, int64_t n, uint8_t *mask) {
    SX_LAUNCH(mark_index, cuda_blocks(n), CUDA_THREADS, 0, stream, index, n, mask);
}
void cuda_mask_flags(cudaStream_t stream, struct cuda_column mask, bool wanted, int64_t n, uint8_t *flags) {
    SX_LAUNCH(mask_flags, cuda_blocks(n), CUDA_THREADS, 0, stream, mask, wanted, n, flags);
}
void cuda_string_lengths(cudaStream_t stream, const struct sx_string *views, const uint8_t *valid, int64_t n,
                         int64_t *out_lengths) {
    SX_LAUNCH(string_lengths, cuda_blocks(n), CUDA_THREADS, 0, stream, views, valid, n, out_lengths);
}
void cuda_string_copy(cudaStream_t stream, const struct sx_string *views, const uint8_t *valid, int64_t n,
                      const int64_t *offsets, char *heap, const char *base, struct sx_string *out_views) {
    SX_LAUNCH(string_copy, cuda_blocks(n * CUDA_WARP), CUDA_THREADS, 0, stream, views, valid, n, offsets,
              heap, base, out_views);
}
}
