/* Probing a table whose keys are unique, and the payload of what is found, in one pass.
 *
 * Bytes a probe row moves: 8 of the key, a sector at random for its bucket (of a ranked table a quarter of a
 * byte for each place, mostly in the cache), and where it matches the row's sectors, which have its key, too,
 * and per pair 4 and 2 w written. Finding, and taking rows afterwards (join_probe.cu, take_rows) has a sector
 * more for each match, and 13 + 20 bytes of lists. */
#include "backend/cuda/join_find.h"
#include "backend/cuda/look_back.h"
#include "backend/cuda/move_kernel.h"

/* Keys of build rows as they lie in rows with their payload. */
struct laid_keys {
    const uint8_t *keys; /* of row 0 */
    uint32_t step;
    int32_t phys;
};
__device__ static inline bool rows_equal(const struct word_key &a, int64_t row_a, const struct laid_keys &b,
                                         int64_t row_b) {
    struct cuda_column one = {};
    one.values = b.keys + row_b * b.step;
    one.layout = CUDA_FLAT;
    one.phys = b.phys;
    return join_word(a.key.column, row_a) == join_word(one, 0);
}

__device__ static inline int64_t row_to_take(const struct cuda_join_take &take, int64_t i) {
    const struct word_key keys = {take.keys.first};
    if (take.table.ranked)
        return find(take.table, keys, (const uint32_t *)NULL, i, true).row;
    if (!cuda_is_valid(keys.key.column, i))
        return -1;
    const struct laid_keys laid = {take.rows + take.key_at, take.step, take.table.keys.first.column.phys};
    return find_hashed(take.table, keys, laid, (const uint32_t *)take.table.slots, i).row;
}

/* A row, held by a thread until it is known where it goes. */
template <int WORDS> struct held_row {
    uint64_t words[WORDS];
};
template <int WORDS> __device__ static inline struct held_row<WORDS> hold_row(const uint8_t *from) {
    struct held_row<WORDS> row;
    if constexpr (WORDS == 1) {
        row.words[0] = *(const uint64_t *)from;
    } else {
        SX_UNROLL
        for (int k = 0; k < WORDS; k += 2) {
            const struct word16_aligned two = ((const struct word16_aligned *)from)[k / 2];
            row.words[k] = two.low;
            row.words[k + 1] = two.high;
        }
    }
    return row;
}

/* A thread a probe row. Rows that are found lie behind each other in shared memory, from where each column is
 * written in order. */
template <int WORDS>
__global__ void take_found(const __grid_constant__ struct cuda_join_take take) {
    SX_DYNAMIC_SHARED(rows);
    __shared__ int64_t shared_before, build_rows[CUDA_THREADS];
    __shared__ uint8_t lanes[CUDA_THREADS]; /* the threads that have found them */
    struct tile_scratch *scratch = (struct tile_scratch *)take.scratch;
    const uint32_t stride = shape_of(take.step).stride;
    const int64_t tile = begin_tile(scratch), base = tile * CUDA_THREADS;
    const int64_t row = base + threadIdx.x < take.n ? row_to_take(take, base + threadIdx.x) : -1;
    struct held_row<WORDS> held = {};
    if (row >= 0)
        held = hold_row<WORDS>(take.rows + row * take.step);
    uint32_t total;
    const uint32_t at = block_exclusive<uint32_t>(row >= 0, &total);
    if (row >= 0) {
        lanes[at] = (uint8_t)threadIdx.x;
        build_rows[at] = row;
        SX_UNROLL
        for (int k = 0; k < WORDS; k++)
            ((uint64_t *)(rows + at * stride))[k] = held.words[k];
    }
    if (threadIdx.x < CUDA_WARP) {
        const int64_t before = tell_and_look_back(scratch->told, tile, total);
        if (threadIdx.x == 0)
            shared_before = before;
    }
    __syncthreads();
    const int64_t to = shared_before + threadIdx.x;
    if (threadIdx.x < total) {
        take.out_probe_rows[to] = (int32_t)(base + lanes[threadIdx.x]);
        if (take.out_build_rows)
            take.out_build_rows[to] = build_rows[threadIdx.x];
        for (int c = 0; c < take.moves.n; c++) {
            struct cuda_move move = take.moves.columns[c];
            move.from = rows + (move.from - take.rows);
            move.from_valid = move.from_valid ? rows + (move.from_valid - take.rows) : NULL;
            move.from_step = move.from_valid_step = stride;
            move_row(move, threadIdx.x, to);
        }
    }
    if (tile == (int64_t)gridDim.x - 1 && threadIdx.x == 0)
        *take.out_count = shared_before + total;
    leave_zeroed(scratch);
}

extern "C" {

int64_t cuda_join_take_tiles(int64_t n) {
    return (n + CUDA_THREADS - 1) / CUDA_THREADS;
}
void cuda_join_take(cudaStream_t stream, const struct cuda_join_take *take) {
    const unsigned tiles = (unsigned)cuda_join_take_tiles(take->n);
    const size_t shared = (size_t)(take->step + sizeof(uint64_t)) * CUDA_THREADS;
    switch (take->step / sizeof(uint64_t)) {
    case 1: SX_LAUNCH(take_found<1>, tiles, CUDA_THREADS, shared, stream, *take); break;
    case 2: SX_LAUNCH(take_found<2>, tiles, CUDA_THREADS, shared, stream, *take); break;
    case 4: SX_LAUNCH(take_found<4>, tiles, CUDA_THREADS, shared, stream, *take); break;
    default: SX_LAUNCH(take_found<8>, tiles, CUDA_THREADS, shared, stream, *take);
    }
}
}
