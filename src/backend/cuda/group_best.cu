/* MIN, MAX, FIRST and ANY_VALUE. */
#include "backend/cuda/group_kernel.h"

/* ---- values to 64 bits: as unsigned words in the same order ---- */

static constexpr group_word TOP_BIT = 1ull << 63;

template <typename T> __device__ static inline group_word image_of(T value) {
    if constexpr (group_is_signed<T>)
        return (group_word)(int64_t)value ^ TOP_BIT;
    else
        return (group_word)value;
}
__device__ static inline group_word image_of(double value) {
    group_word bits = 0x7ff8000000000000ull; /* NaN is the greatest */
    if (value == value)
        memcpy(&bits, &value, sizeof bits);
    return bits & TOP_BIT ? ~bits : bits | TOP_BIT;
}
__device__ static inline group_word image_of(float value) {
    return image_of((double)value);
}

enum { BEST_WORDS = 2 /* the best image; whether there is one */ };

template <typename T>
__global__ void best_few(struct cuda_group_input input, int64_t n_groups, group_word flip, group_word *best,
                         uint8_t *seen, T) {
    SX_DYNAMIC_SHARED(memory);
    group_word *shared = (group_word *)memory;
    group_few_clear(shared, n_groups, BEST_WORDS);
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        if (!group_takes(input, row))
            continue;
        const group_word image = image_of(cuda_load<T>(input.values, row)) ^ flip;
        group_word *own = group_own(shared, group_of(input.rows, row), BEST_WORDS);
        own[0] = image > own[0] ? image : own[0];
        own[GROUP_FEW_THREADS] = 1;
    }
    group_few_merge(shared, n_groups, BEST_WORDS, [](group_word *to, const group_word *from) {
        to[0] = from[0] > to[0] ? from[0] : to[0];
        to[GROUP_FEW_THREADS] |= from[GROUP_FEW_THREADS];
    });
    for (int64_t group = threadIdx.x; group < n_groups; group += GROUP_FEW_THREADS) {
        const group_word *all = shared + group * BEST_WORDS * GROUP_FEW_THREADS;
        if (all[GROUP_FEW_THREADS] == 0)
            continue;
        atomicMax(&best[group], all[0]);
        group_mark(&seen[group]);
    }
}

template <typename T>
__global__ void best_many(struct cuda_group_input input, group_word flip, group_word *best, uint8_t *seen,
                          T) {
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        if (!group_takes(input, row))
            continue;
        const int64_t group = group_of(input.rows, row);
        const group_word image = image_of(cuda_load<T>(input.values, row)) ^ flip;
        if (image > group_peek(&best[group]))
            atomicMax(&best[group], image);
        group_mark(&seen[group]);
    }
}

template <typename T>
static void launch_best(cudaStream_t stream, const struct cuda_group_input &input, int64_t n_groups,
                        group_word flip, group_word *best, uint8_t *seen, T zero) {
    const int64_t n = input.rows.n;
    if (group_is_few(n_groups, BEST_WORDS))
        SX_LAUNCH(best_few, group_few_blocks(n), GROUP_FEW_THREADS, group_few_bytes(n_groups, BEST_WORDS),
                  stream, input, n_groups, flip, best, seen, zero);
    else
        SX_LAUNCH(best_many, cuda_blocks(n), CUDA_THREADS, 0, stream, input, flip, best, seen, zero);
}

/* ---- the others: by row ---- */

template <typename T> __device__ static inline int compare_as(const void *a, const void *b) {
    const T x = *(const T *)a, y = *(const T *)b;
    return x < y ? -1 : x > y;
}

/* Values of 16 bytes: strings and 128-bit integers. */
__device__ static inline int compare_values(int32_t phys, const void *a, const void *b) {
    if (phys == SX_PHYS_STRING)
        return sx_string_compare((const struct sx_string *)a, (const struct sx_string *)b);
    return phys == SX_PHYS_U128 ? compare_as<sx_u128>(a, b) : compare_as<sx_i128>(a, b);
}

struct value16 {
    uint64_t words[2];
};

/* What stands in winners[] for a row. FIRST: greater for earlier rows. */
__device__ static inline uint32_t winner_of(int32_t choice, int64_t row) {
    return choice == CUDA_GROUP_FIRST ? UINT32_MAX - (uint32_t)row : (uint32_t)row + 1;
}

/* Best is what others are compared with: values of the batch's rows and of the groups, which nobody writes
 * at the time. */
__device__ static inline void choose_best(const struct cuda_group_input &input,
                                          const struct cuda_group_kept &kept, int64_t row, int64_t group) {
    const value16 *own = cuda_value_at<value16>(input.values, row);
    uint32_t winner = group_peek(&kept.winners[group]);
    for (;;) {
        const value16 *other = winner             ? cuda_value_at<value16>(input.values, (int64_t)winner - 1)
                               : kept.seen[group] ? (const value16 *)kept.values + group
                                                  : NULL;
        const int order = other ? compare_values(input.values.phys, own, other) : 0;
        if (other && (kept.choice == CUDA_GROUP_MIN ? order >= 0 : order <= 0))
            return;
        const uint32_t found = atomicCAS(&kept.winners[group], winner, winner_of(kept.choice, row));
        if (found == winner)
            return;
        winner = found;
    }
}

__global__ void choose_rows(struct cuda_group_input input, struct cuda_group_kept kept) {
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        if (!group_takes(input, row))
            continue;
        const int64_t group = group_of(input.rows, row);
        if (kept.choice != CUDA_GROUP_FIRST)
            choose_best(input, kept, row, group);
        else if (!kept.seen[group] && group_peek(&kept.winners[group]) < winner_of(kept.choice, row))
            atomicMax(&kept.winners[group], winner_of(kept.choice, row));
    }
}

/* The row's group if the row is its winner, else -1. */
__device__ static inline int64_t won_group(const struct cuda_group_input &input,
                                           const struct cuda_group_kept &kept, int64_t row) {
    const int64_t group = group_of(input.rows, row);
    return group_peek(&kept.winners[group]) == winner_of(kept.choice, row) ? group : -1;
}

/* Bytes of the string outside of its view that do not fit where the group's last string was. */
__device__ static inline uint32_t fresh_bytes(const struct cuda_group_input &input,
                                              const struct cuda_group_kept &kept, int64_t row,
                                              int64_t group) {
    if (!group_has_value(input, row))
        return 0;
    const uint32_t length = cuda_value_at<struct sx_string>(input.values, row)->length_bytes;
    const bool fits =
        kept.seen[group] == 1 && ((const struct sx_string *)kept.values)[group].length_bytes >= length;
    return length > SX_STRING_INLINE_BYTES && !fits ? length : 0;
}

__global__ void kept_bytes(struct cuda_group_input input, struct cuda_group_kept kept, group_word *bytes) {
    group_word sum = 0;
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        const int64_t group = won_group(input, kept, row);
        if (group >= 0)
            sum += fresh_bytes(input, kept, row, group);
    }
    if (sum)
        atomicAdd(bytes, sum);
}

__device__ static inline void keep_string(const struct cuda_group_input &input,
                                          const struct cuda_group_kept &kept, int64_t row, int64_t group,
                                          char *heap, group_word *used) {
    struct sx_string *place = (struct sx_string *)kept.values + group;
    struct sx_string view = *cuda_value_at<struct sx_string>(input.values, row);
    if (view.length_bytes > SX_STRING_INLINE_BYTES) {
        const uint32_t fresh = fresh_bytes(input, kept, row, group);
        char *to = fresh ? heap + atomicAdd(used, (group_word)fresh) : (char *)place->u.ref.pointer;
        for (uint32_t i = 0; i < view.length_bytes; i++)
            to[i] = view.u.ref.pointer[i];
        view.u.ref.pointer = to;
    }
    *place = view;
}

template <typename T>
__device__ static inline void keep_value(const struct cuda_group_input &input,
                                         const struct cuda_group_kept &kept, int64_t row, int64_t group) {
    ((T *)kept.values)[group] = *cuda_value_at<T>(input.values, row);
}

__global__ void keep_rows(struct cuda_group_input input, struct cuda_group_kept kept, char *heap,
                          group_word *used) {
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        const int64_t group = won_group(input, kept, row);
        if (group < 0)
            continue;
        const bool has_value = group_has_value(input, row);
        if (has_value && input.values.phys == SX_PHYS_STRING)
            keep_string(input, kept, row, group, heap, used);
        else if (has_value)
            switch (kept.width) {
            case 1: keep_value<uint8_t>(input, kept, row, group); break;
            case 2: keep_value<uint16_t>(input, kept, row, group); break;
            case 4: keep_value<uint32_t>(input, kept, row, group); break;
            case 8: keep_value<uint64_t>(input, kept, row, group); break;
            default: keep_value<value16>(input, kept, row, group);
            }
        kept.seen[group] = has_value ? 1 : 2;
        kept.winners[group] = 0;
    }
}

extern "C" {

void cuda_group_best(cudaStream_t stream, struct cuda_group_input input, int64_t n_groups, bool max,
                     unsigned long long *best, uint8_t *seen) {
    group_dispatch_small(input.values.phys, [=](auto zero) {
        launch_best(stream, input, n_groups, max ? 0 : ~(group_word)0, best, seen, zero);
    });
}
void cuda_group_choose(cudaStream_t stream, struct cuda_group_input input, struct cuda_group_kept kept) {
    SX_LAUNCH(choose_rows, cuda_blocks(input.rows.n), CUDA_THREADS, 0, stream, input, kept);
}
void cuda_group_kept_bytes(cudaStream_t stream, struct cuda_group_input input, struct cuda_group_kept kept,
                           unsigned long long *bytes) {
    SX_LAUNCH(kept_bytes, cuda_blocks(input.rows.n), CUDA_THREADS, 0, stream, input, kept, bytes);
}
void cuda_group_keep(cudaStream_t stream, struct cuda_group_input input, struct cuda_group_kept kept,
                     char *heap, unsigned long long *used) {
    SX_LAUNCH(keep_rows, cuda_blocks(input.rows.n), CUDA_THREADS, 0, stream, input, kept, heap, used);
}
}
