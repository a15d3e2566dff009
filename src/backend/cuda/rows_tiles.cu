/* Rows to the places of their parts, a block a tile of the batch's rows: what a tile reads of a column lies
 * together, however many parts its rows go to, so it comes from memory once; what goes to a part is written
 * side by side. A row costs the 4 bytes of its order, and of each column 2 w. */
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

/* A thread's rows. */
struct tile_items {
    int32_t rows[ITEMS];
    int32_t places[ITEMS]; /* within the part */
    int32_t parts[ITEMS];  /* -1: there is no such row */
};

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
                                         int32_t total, struct tile_items &items) {
    for (int k = 0; k < ITEMS; k++) {
        const int32_t j = k * (int)CUDA_THREADS + (int)threadIdx.x;
        const int run = run_of(runs, j < total ? j : 0);
        const int32_t at = runs.begins[run] + j - runs.before[run];
        items.parts[k] = j < total ? runs.parts[run] : -1;
        items.rows[k] = j < total ? parts.order[at] : 0;
        items.places[k] = j < total ? (int32_t)(at - parts.offsets[runs.parts[run]]) : 0;
    }
}

struct tile_targets {
    char *values[CUDA_TILE_RUNS];
    uint8_t *valid[CUDA_TILE_RUNS];
};

template <typename T>
__device__ static inline void copy_items(const struct cuda_column &column, const struct tile_items &items,
                                         const struct tile_targets &targets) {
    T values[ITEMS];
    bool valid[ITEMS];
    for (int k = 0; k < ITEMS; k++) {
        const bool wanted = items.parts[k] >= 0 && targets.values[items.parts[k]];
        valid[k] = wanted && cuda_is_valid(column, items.rows[k]);
        values[k] = valid[k] ? cuda_load<T>(column, items.rows[k]) : T{};
    }
    for (int k = 0; k < ITEMS; k++) {
        if (items.parts[k] < 0 || !targets.values[items.parts[k]])
            continue;
        ((T *)targets.values[items.parts[k]])[items.places[k]] = values[k];
        if (targets.valid[items.parts[k]])
            targets.valid[items.parts[k]][items.places[k]] = valid[k];
    }
}

__global__ void pack_tiles(const struct cuda_tile_column *columns, int n_columns,
                           const struct cuda_rows_parts parts, const struct cuda_rows_tiles tiles) {
    __shared__ struct tile_runs runs;
    __shared__ struct tile_targets targets;
    struct tile_items items;
    const int32_t total = load_runs(parts, tiles, blockIdx.x, runs);
    find_items(parts, runs, total, items);
    for (int c = 0; c < n_columns; c++) {
        const struct cuda_tile_column column = columns[c];
        __syncthreads();
        if ((int)threadIdx.x < parts.n_parts) {
            targets.values[threadIdx.x] = column.places[threadIdx.x].values;
            targets.valid[threadIdx.x] = column.places[threadIdx.x].valid;
        }
        __syncthreads();
        switch (column.width) {
        case 1: copy_items<uint8_t>(column.column, items, targets); break;
        case 2: copy_items<uint16_t>(column.column, items, targets); break;
        case 4: copy_items<uint32_t>(column.column, items, targets); break;
        case 8: copy_items<uint64_t>(column.column, items, targets); break;
        default: copy_items<sx_u128>(column.column, items, targets);
        }
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
