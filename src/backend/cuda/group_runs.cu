/* Groups of batches whose rows come in the order of their key: runs of equal keys are groups, and nothing has
 * to be looked for. */
#include "backend/cuda/group_kernel.h"

enum { ROWS_A_WARP = 1024 };

template <typename T> __global__ void begin_runs(const T *keys, int64_t n, uint8_t *flags, int64_t *facts) {
    bool descends = false, is_long = false;
    if (group_peek(&facts[CUDA_GROUP_DESCENT])) /* nobody will look at the flags */
        return;
    for (int64_t row = cuda_thread(); row < n; row += cuda_threads()) {
        const T key = keys[row], before = row > 0 ? keys[row - 1] : key;
        flags[row] = row == 0 || key != before;
        descends |= key < before;
        is_long |= row >= CUDA_GROUP_SHORT_RUN && keys[row - CUDA_GROUP_SHORT_RUN] == key;
        if (row == 0)
            facts[CUDA_GROUP_FIRST_KEY] = (int64_t)key;
        if (row == n - 1)
            facts[CUDA_GROUP_LAST_KEY] = (int64_t)key;
    }
    if (descends)
        facts[CUDA_GROUP_DESCENT] = 1;
    if (is_long)
        facts[CUDA_GROUP_LONG_RUN] = 1;
}

/* How many runs begin in front of the row. */
__device__ static inline int64_t runs_before(const struct cuda_group_runs &runs, int64_t row) {
    int64_t low = 0, high = runs.n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (runs.begins[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

template <typename I>
__global__ void number_runs(const uint8_t *flags, struct cuda_group_runs runs, I *numbers, int64_t n) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    const int64_t step = cuda_threads() / CUDA_WARP * ROWS_A_WARP;
    for (int64_t first = cuda_thread() / CUDA_WARP * ROWS_A_WARP; first < n; first += step) {
        int64_t before = runs_before(runs, first);
        for (int64_t row = first + lane; row - lane < first + ROWS_A_WARP; row += CUDA_WARP) {
            const unsigned begins = __ballot_sync(0xffffffffu, row < n && flags[row]);
            if (row < n)
                numbers[row] = (I)cuda_group_of_run(
                    &runs, before + __popc(begins & (0xffffffffu >> (CUDA_WARP - 1 - lane))) - 1);
            before += __popc(begins);
        }
    }
}

template <typename T>
static void launch_begin(cudaStream_t stream, const void *keys, int64_t n, uint8_t *flags, int64_t *facts) {
    SX_LAUNCH(begin_runs, cuda_blocks(n), CUDA_THREADS, 0, stream, (const T *)keys, n, flags, facts);
}

extern "C" {
void cuda_group_begin_runs(cudaStream_t stream, struct cuda_column key, int64_t n, uint8_t *flags,
                           int64_t *facts) {
    switch (key.phys) {
    case SX_PHYS_I32: launch_begin<int32_t>(stream, key.values, n, flags, facts); break;
    case SX_PHYS_U32: launch_begin<uint32_t>(stream, key.values, n, flags, facts); break;
    case SX_PHYS_U64: /* in the order of the same bits with a sign */
    case SX_PHYS_I64: launch_begin<int64_t>(stream, key.values, n, flags, facts); break;
    default: break;
    }
}
void cuda_group_number_runs(cudaStream_t stream, const uint8_t *flags, struct cuda_group_numbers numbers) {
    const unsigned blocks = cuda_blocks((numbers.n + ROWS_A_WARP - 1) / ROWS_A_WARP * CUDA_WARP);
    if (numbers.width == 4)
        SX_LAUNCH(number_runs, blocks, CUDA_THREADS, 0, stream, flags, numbers.runs,
                  (int32_t *)numbers.numbers, numbers.n);
    else
        SX_LAUNCH(number_runs, blocks, CUDA_THREADS, 0, stream, flags, numbers.runs,
                  (int64_t *)numbers.numbers, numbers.n);
}
}
