/* Probing a table whose keys are unique, and the payload of what is found, in one pass.
 *
 * Bytes a probe row moves: 8 of the key, a sector at random for its bucket (of a ranked table a quarter of a
 * byte for each place, mostly in the cache), and where it matches the row's sectors, which have its key, too,
 * and per pair 4 and w written. Finding, and taking rows afterwards (join_probe.cu, take_rows) has a sector
 * more for each match, and 13 + 20 bytes of lists. */
#include "backend/cuda/join_find.h"
#include "backend/cuda/look_back.h"

/* ---- finding ---- */

/* The only key's values where they have 8 bytes each and no NULLs, so that nothing is asked for each row. */
struct plain_key {
    const int64_t *values;
};
__device__ static inline bool can_match(const struct plain_key &, int64_t) {
    return true;
}
__device__ static inline uint64_t place_hash(const struct plain_key &keys, int64_t row) {
    return cuda_near_hash((uint64_t)keys.values[row]);
}

/* Keys of build rows, as they lie in rows with their payload. */
struct laid_keys {
    const uint8_t *keys; /* of row 0 */
    uint32_t step;
    int32_t phys;
};
__device__ static inline bool rows_equal(const struct plain_key &a, int64_t row_a, const struct laid_keys &b,
                                         int64_t row_b) {
    return a.values[row_a] == *(const int64_t *)(b.keys + row_b * b.step);
}
__device__ static inline bool rows_equal(const struct word_key &a, int64_t row_a, const struct laid_keys &b,
                                         int64_t row_b) {
    struct cuda_column one = {};
    one.values = b.keys + row_b * b.step;
    one.layout = CUDA_FLAT;
    one.phys = b.phys;
    return join_word(a.key.column, row_a) == join_word(one, 0);
}

/* Each tells a probe row's build row, or -1. */
struct find_ranked_row {
    __device__ static inline int64_t row_of(const struct cuda_join_take &take, int64_t i) {
        const struct word_key keys = {take.keys.first};
        return can_match(keys, i) ? find_ranked(take.table, keys, i, true).row : -1;
    }
};
template <typename K> __device__ static inline K keys_as(const struct cuda_join_take &take);
template <> __device__ inline struct word_key keys_as(const struct cuda_join_take &take) {
    return {take.keys.first};
}
template <> __device__ inline struct plain_key keys_as(const struct cuda_join_take &take) {
    return {(const int64_t *)take.keys.first.column.values};
}
template <typename K> struct find_hashed_row {
    __device__ static inline int64_t row_of(const struct cuda_join_take &take, int64_t i) {
        const K keys = keys_as<K>(take);
        const struct laid_keys laid = {take.rows + take.key_at, take.step, take.table.keys.first.column.phys};
        if (!can_match(keys, i))
            return -1;
        return find_hashed(take.table, keys, laid, (const uint32_t *)take.table.slots, i).row;
    }
};

/* ---- taking ---- */

/* A row, held by a thread until it is known where it goes. */
template <int WORDS> struct held_row {
    uint64_t words[WORDS];
};
struct alignas(16) two_words {
    uint64_t low, high;
};
template <int WORDS> __device__ static inline struct held_row<WORDS> hold_row(const uint8_t *from) {
    struct held_row<WORDS> row;
    if constexpr (WORDS == 1) {
        row.words[0] = *(const uint64_t *)from;
    } else {
        SX_UNROLL
        for (int k = 0; k < WORDS; k += 2) {
            const struct two_words two = ((const struct two_words *)from)[k / 2];
            row.words[k] = two.low;
            row.words[k + 1] = two.high;
        }
    }
    return row;
}

__device__ static inline void
put_piece(const struct cuda_join_piece &piece, uint64_t word, int64_t at) {
    uint8_t *to = piece.to + at * piece.step;
    word >>= piece.shift_bits;
    switch (piece.width) {
    case 1: *to = (uint8_t)word; break;
    case 2: *(uint16_t *)to = (uint16_t)word; break;
    case 4: *(uint32_t *)to = (uint32_t)word; break;
    default: *(uint64_t *)to = word;
    }
}

/* A thread a probe row, as many as a multiprocessor has room for where a row is short. */
template <int WORDS, typename F>
__global__ void __launch_bounds__(CUDA_THREADS, WORDS > 4 ? 6 : 8)
    take_found(const __grid_constant__ struct cuda_join_take take) {
    __shared__ int64_t shared_before;
    struct tile_scratch *scratch = (struct tile_scratch *)take.scratch;
    const int64_t tile = begin_tile(scratch), i = tile * CUDA_THREADS + threadIdx.x;
    const int64_t row = i < take.n ? F::row_of(take, i) : -1;
    struct held_row<WORDS> held = {};
    if (row >= 0)
        held = hold_row<WORDS>(take.rows + row * take.step);
    uint32_t total;
    const uint32_t rank = block_rank(row >= 0, &total);
    if (threadIdx.x < CUDA_WARP) {
        const int64_t before = tell_and_look_back(scratch->told, tile, total);
        if (threadIdx.x == 0)
            shared_before = before;
    }
    __syncthreads();
    const int64_t at = shared_before + rank;
    if (row >= 0) {
        take.out_probe_rows[at] = (int32_t)i;
        if (take.out_build_rows)
            take.out_build_rows[at] = row;
        SX_UNROLL
        for (int k = 0; k < WORDS; k++)
            for (int p = take.first_piece[k]; p < take.first_piece[k + 1]; p++)
                put_piece(take.pieces[p], held.words[k], at);
    }
    if (tile == (int64_t)gridDim.x - 1 && threadIdx.x == 0)
        *take.out_count = shared_before + total;
    leave_zeroed(scratch);
}

template <typename F> static void take_by(cudaStream_t stream, const struct cuda_join_take &take) {
    const unsigned tiles = (unsigned)cuda_join_take_tiles(take.n);
    switch (take.step / sizeof(uint64_t)) {
    case 1: SX_LAUNCH((take_found<1, F>), tiles, CUDA_THREADS, 0, stream, take); break;
    case 2: SX_LAUNCH((take_found<2, F>), tiles, CUDA_THREADS, 0, stream, take); break;
    case 4: SX_LAUNCH((take_found<4, F>), tiles, CUDA_THREADS, 0, stream, take); break;
    default: SX_LAUNCH((take_found<8, F>), tiles, CUDA_THREADS, 0, stream, take);
    }
}

extern "C" {

int64_t cuda_join_take_tiles(int64_t n) {
    return (n + CUDA_THREADS - 1) / CUDA_THREADS;
}
void cuda_join_take(cudaStream_t stream, const struct cuda_join_take *take) {
    const struct cuda_column &key = take->keys.first.column;
    const bool is_plain = key.layout == CUDA_FLAT && !key.valid && key.phys == SX_PHYS_I64;
    if (take->table.ranked)
        take_by<struct find_ranked_row>(stream, *take);
    else if (is_plain)
        take_by<struct find_hashed_row<struct plain_key>>(stream, *take);
    else
        take_by<struct find_hashed_row<struct word_key>>(stream, *take);
}
}
