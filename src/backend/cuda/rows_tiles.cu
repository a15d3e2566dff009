/* Rows to the places of their parts, a block a tile of the batch's rows: what a tile reads of a column lies
 * together, however many parts its rows go to, so it comes from memory once; what goes to a part is written
 * side by side. A row costs the 4 bytes of its order, and of each column 2 w, 1.5 w of a NARROW one. */
#include "backend/cuda/block.h"
#include "backend/cuda/rows_kernel.h"

enum {
    ITEMS = (int)CUDA_TILE_ROWS / (int)CUDA_THREADS /* of a thread in a tile */
};
static_assert((int)CUDA_TILE_RUNS == (int)CUDA_THREADS, "a thread for each run");

__global__ void find_bounds(const int32_t *order, const struct cuda_rows_tiles tiles) {
    for (int64_t i = cuda_thread(); i < (tiles.n_tiles + 1) * tiles.n; i += cuda_threads()) {
        const int64_t run = i % tiles.n, first_row = i / tiles.n * CUDA_TILE_ROWS;
        int64_t low = tiles.runs[run], high = tiles.runs[run + 1];
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (order[middle] < first_row)
                low = middle + 1;
            else
                high = middle;
        }
        tiles.bounds[i] = (int32_t)low;
    }
}

/* A tile's rows, run after run. */
struct tile_runs {
    int32_t begins[CUDA_TILE_RUNS]; /* where in the order */
    int32_t before[CUDA_TILE_RUNS]; /* rows of the runs before */
    int32_t parts[CUDA_TILE_RUNS];
};

/* A thread's rows: number k is row (k * CUDA_THREADS + threadIdx.x) of the tile's. In few registers, since
 * what a block has on its way is what its multiprocessor has room for. */
struct tile_items {
    int32_t rows[ITEMS]; /* of the batch; -1: there is no such row */
    uint64_t runs;       /* a byte for each */
    uint32_t owns;       /* a bit for each that is of the own part */
};
static_assert(ITEMS * 8 <= 64 && CUDA_TILE_RUNS <= 256, "a byte for each run");

__device__ static inline int32_t tile_row(int k) {
    return k * (int)CUDA_THREADS + (int)threadIdx.x;
}

__device__ static inline int32_t load_runs(const struct cuda_rows_parts &parts,
                                           const struct cuda_rows_tiles &tiles, int64_t tile,
                                           struct tile_runs &runs) {
    const int run = (int)threadIdx.x;
    const bool inside = run < tiles.n;
    const int32_t begin = inside ? tiles.bounds[tile * tiles.n + run] : 0,
                  end = inside ? tiles.bounds[(tile + 1) * tiles.n + run] : 0;
    int32_t total;
    const int32_t before = block_exclusive(end - begin, &total);
    runs.begins[run] = begin;
    runs.before[run] = before;
    runs.parts[run] = end > begin ? part_of(parts.offsets, parts.n_parts, begin) : 0;
    __syncthreads();
    return total;
}

/* The run of the tile's row j. */
__device__ static inline int run_of(const struct tile_runs &runs, int32_t j) {
    int run = 0;
    for (int step = CUDA_TILE_RUNS / 2; step > 0; step /= 2)
        if (runs.before[run + step] <= j)
            run += step;
    return run;
}

__device__ static inline void find_items(const struct cuda_rows_parts &parts, const struct tile_runs &runs,
                                         int32_t total, int own, struct tile_items &items) {
    items.runs = 0;
    items.owns = 0;
    SX_UNROLL
    for (int k = 0; k < ITEMS; k++) {
        const int32_t j = tile_row(k);
        const int run = run_of(runs, j < total ? j : 0);
        items.rows[k] = j < total ? parts.order[runs.begins[run] + j - runs.before[run]] : -1;
        items.runs |= (uint64_t)run << k * 8;
        items.owns |= (uint32_t)(runs.parts[run] == own) << k;
    }
}

/* Of a column, by run: where the tile's row 0 would be if it were of that run; 0: nowhere. */
struct tile_targets {
    uintptr_t values[CUDA_TILE_RUNS];
    uintptr_t valid[CUDA_TILE_RUNS];
};

__device__ static inline void find_targets(const struct cuda_tile_column &column,
                                           const struct cuda_rows_parts &parts,
                                           const struct cuda_rows_tiles &tiles, const struct tile_runs &runs,
                                           struct tile_targets &targets) {
    const int run = (int)threadIdx.x, part = runs.parts[run];
    __syncthreads();
    if (run < tiles.n) {
        const struct cuda_rows_place place = column.places[part];
        const int64_t first = runs.begins[run] - runs.before[run] - parts.offsets[part];
        const int width = column.is_narrow && part != tiles.own ? column.width / 2 : column.width;
        targets.values[run] = place.values ? (uintptr_t)place.values + (uintptr_t)(first * width) : 0;
        targets.valid[run] = place.valid ? (uintptr_t)place.valid + (uintptr_t)first : 0;
    }
    __syncthreads();
}

/* Calls put(k, target, value, valid) for each of a thread's rows that has a target. IS_PLAIN: FLAT, without
 * nulls. */
template <typename T, bool IS_PLAIN, typename F>
__device__ static inline void for_items(const struct cuda_column &column, const struct tile_items &items,
                                        const struct tile_targets &targets, F put) {
    constexpr int AT_ONCE = sizeof(T) > sizeof(uint64_t) ? ITEMS / 2 : ITEMS;
    SX_UNROLL
    for (int first = 0; first < ITEMS; first += AT_ONCE) {
        T values[AT_ONCE];
        bool valid[AT_ONCE];
        SX_UNROLL
        for (int i = 0; i < AT_ONCE; i++) {
            const int k = first + i;
            const bool wanted = items.rows[k] >= 0 && targets.values[items.runs >> k * 8 & 0xff];
            valid[i] = wanted && (IS_PLAIN || cuda_is_valid(column, items.rows[k]));
            values[i] = !valid[i]  ? T{}
                        : IS_PLAIN ? ((const T *)column.values)[items.rows[k]]
                                   : cuda_load<T>(column, items.rows[k]);
        }
        SX_UNROLL
        for (int i = 0; i < AT_ONCE; i++) {
            const int k = first + i, run = (int)(items.runs >> k * 8 & 0xff);
            if (items.rows[k] < 0 || !targets.values[run])
                continue;
            put(k, targets.values[run], values[i], valid[i]);
            if (!IS_PLAIN && targets.valid[run])
                ((uint8_t *)targets.valid[run])[tile_row(k)] = valid[i];
        }
    }
}

template <typename T, bool IS_PLAIN>
__device__ static inline void copy_items(const struct cuda_tile_column &column,
                                         const struct tile_items &items, const struct tile_targets &targets) {
    for_items<T, IS_PLAIN>(column.column, items, targets, [](int k, uintptr_t target, T value, bool) {
        ((T *)target)[tile_row(k)] = value;
    });
}

/* Offsets of type H, and of the own part the values. */
template <typename T, typename H, bool IS_PLAIN>
__device__ static inline void narrow_items(const struct cuda_tile_column &column,
                                           const struct tile_items &items, const struct tile_targets &targets,
                                           int64_t *misfits) {
    const T base = (T)(sx_i128)column.base;
    bool fits = true;
    for_items<T, IS_PLAIN>(column.column, items, targets, [&](int k, uintptr_t target, T value, bool valid) {
        if (items.owns >> k & 1) {
            ((T *)target)[tile_row(k)] = value;
            return;
        }
        const T offset = valid ? value - base : T{};
        fits = fits && (T)(H)offset == offset;
        ((H *)target)[tile_row(k)] = (H)offset;
    });
    if (!fits)
        atomicOr((unsigned long long *)misfits, 1ull << column.bit);
}

template <bool IS_PLAIN>
__device__ static inline void put_items(const struct cuda_tile_column &column, const struct tile_items &items,
                                        const struct tile_targets &targets, int64_t *misfits) {
    switch (column.width) {
    case 1: copy_items<uint8_t, IS_PLAIN>(column, items, targets); break;
    case 2: copy_items<uint16_t, IS_PLAIN>(column, items, targets); break;
    case 4: copy_items<uint32_t, IS_PLAIN>(column, items, targets); break;
    case 8:
        if (column.is_narrow)
            narrow_items<uint64_t, uint32_t, IS_PLAIN>(column, items, targets, misfits);
        else
            copy_items<uint64_t, IS_PLAIN>(column, items, targets);
        break;
    default:
        if (column.is_narrow)
            narrow_items<sx_u128, uint64_t, IS_PLAIN>(column, items, targets, misfits);
        else
            copy_items<sx_u128, IS_PLAIN>(column, items, targets);
    }
}

enum { BLOCKS = 4 /* of a multiprocessor, at least */ };

__global__ void __launch_bounds__(CUDA_THREADS, BLOCKS)
    pack_tiles(const struct cuda_tile_column *columns, int n_columns, const struct cuda_rows_parts parts,
               const struct cuda_rows_tiles tiles) {
    __shared__ struct tile_runs runs;
    __shared__ struct tile_targets targets;
    struct tile_items items;
    const int32_t total = load_runs(parts, tiles, blockIdx.x, runs);
    find_items(parts, runs, total, tiles.own, items);
    for (int c = 0; c < n_columns; c++) {
        const struct cuda_tile_column column = columns[c];
        find_targets(column, parts, tiles, runs, targets);
        if (column.column.layout == CUDA_FLAT && !column.column.valid)
            put_items<true>(column, items, targets, tiles.misfits);
        else
            put_items<false>(column, items, targets, tiles.misfits);
    }
}

extern "C" {

void cuda_rows_find_bounds(cudaStream_t stream, const int32_t *order, const struct cuda_rows_tiles *tiles) {
    SX_LAUNCH(find_bounds, cuda_blocks((tiles->n_tiles + 1) * tiles->n), CUDA_THREADS, 0, stream, order,
              *tiles);
}

void cuda_rows_pack_tiles(cudaStream_t stream, const struct cuda_tile_column *columns, int n_columns,
                          const struct cuda_rows_parts *parts, const struct cuda_rows_tiles *tiles) {
    SX_LAUNCH(pack_tiles, (unsigned)tiles->n_tiles, CUDA_THREADS, 0, stream, columns, n_columns, *parts,
              *tiles);
}
}
