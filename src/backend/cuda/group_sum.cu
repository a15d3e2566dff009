/* COUNT, SUM and AVG. A sum is a wide integer to which every value is added exactly: see struct
 * cuda_group_sum. Without keys a thread has a sum of integers, or a count, in registers, and one launch is of
 * all of them. Up to some dozen groups each thread adds to words of its own; up to some thousand the threads
 * of a block share words in shared memory; else, where rows come in runs of one group, a thread adds up a
 * run; else atomics go to the groups in global memory. Floating point is read twice: first for the digits
 * that the batch has, 8 bytes a row. */
#include "backend/cuda/group_kernel.h"

/* Stands for the type of a value where rows are only counted. */
struct nothing {};

/* A value: words `low`, `high` and from there on `extension` (0 or all bits), from word `word` of the sum on.
 */
struct addend {
    group_word low, high, extension;
    int32_t word;
};

/* Words that a batch's sum of the type needs, rows below 2^31 included. */
template <typename T> struct words_of {
    static constexpr int value = 2;
};
template <> struct words_of<nothing> {
    static constexpr int value = 0;
};
template <> struct words_of<sx_i128> {
    static constexpr int value = 3;
};
template <> struct words_of<float> {
    static constexpr int value = 3;
};
template <> struct words_of<double> {
    static constexpr int value = 3;
};

template <typename T> static constexpr bool is_float = words_of<T>::value == 3 && sizeof(T) <= 8;

/* ---- values as addends ---- */

template <typename T> __device__ static inline struct addend addend_of(T value, int32_t) {
    const group_word extension = group_is_signed<T> ? (group_word)((int64_t)value >> 63) : 0;
    return {(group_word)value, extension, extension, 0};
}
__device__ static inline struct addend addend_of(sx_i128 value, int32_t) {
    return {(group_word)value, (group_word)(value >> 64), value < 0 ? ~(group_word)0 : 0, 0};
}

/* A finite value is mantissa * 2^(bit - 1074), the mantissa being odd or 0. */
struct float_parts {
    group_word mantissa;
    int32_t bit;
    bool negative;
    bool finite;
};

__device__ static inline struct float_parts parts_of(double value) {
    group_word bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    struct float_parts parts = {bits & ((1ull << 52) - 1), 0, bits >> 63 != 0, exponent != 0x7ff};
    if (exponent > 0) {
        parts.mantissa |= 1ull << 52;
        parts.bit = exponent - 1;
    }
    if (parts.mantissa) {
        const int zeros = __ffsll((long long)parts.mantissa) - 1;
        parts.mantissa >>= zeros;
        parts.bit += zeros;
    }
    return parts;
}

__device__ static inline struct addend addend_of(double value, int32_t first_word) {
    const struct float_parts parts = parts_of(value);
    if (parts.mantissa == 0)
        return {0, 0, 0, 0};
    sx_u128 wide = (sx_u128)parts.mantissa << parts.bit % 64;
    if (parts.negative)
        wide = -wide;
    return {(group_word)wide, (group_word)(wide >> 64), parts.negative ? ~(group_word)0 : 0,
            parts.bit / 64 - first_word};
}
__device__ static inline struct addend addend_of(float value, int32_t first_word) {
    return addend_of((double)value, first_word);
}

/* Notes NaN and the infinities, which are not added. True: the value is finite. */
template <typename T>
__device__ static inline bool is_finite(T value, const struct cuda_group_sum &sum, int64_t group) {
    if constexpr (is_float<T>) {
        if (value - value != 0) {
            group_mark(sum.flags + group * sum.flag_bytes + (value != value ? 1 : value > 0 ? 2 : 3));
            return false;
        }
    }
    return true;
}

/* ---- adding ---- */

/* *carry is 0 or 1 before and after. */
template <typename W> __device__ static inline void add_word(W *state, W word, W *carry) {
    const W add = word + *carry;
    *carry = add < word;
    if (add != 0)
        *carry |= (W)(atomicAdd(state, add) + add) < add;
}

/* Adds N words and, above them, the extension, from state[at] on. Each wrap of a word is seen by the one
 * addition that made it, which carries on, so the whole is exact in any order of threads. */
template <int N, typename W>
__device__ static inline void add_atomic(W *state, int n_words, int at, const W *words, W extension) {
    W carry = 0;
    for (int i = 0; i < N; i++)
        if (at + i < n_words)
            add_word(&state[at + i], words[i], &carry);
    for (int w = at + N; w < n_words && (W)(extension + carry) != 0; w++)
        add_word(&state[w], extension, &carry);
}

/* To a thread's own words. */
template <int N> __device__ static inline void add_own(group_word *own, const struct addend &a) {
    group_word carry = 0;
    for (int w = 0; w < N; w++) {
        const int at = w - a.word;
        const group_word word = at == 0 ? a.low : at == 1 ? a.high : at > 1 ? a.extension : 0;
        const group_word half = own[w * GROUP_FEW_THREADS] + word;
        const group_word sum = half + carry;
        carry = (half < word) | (sum < half);
        own[w * GROUP_FEW_THREADS] = sum;
    }
}

__device__ static inline void note_rows(const struct cuda_group_sum &sum, int64_t group, group_word rows) {
    if (sum.counts)
        atomicAdd(&sum.counts[group], rows);
    if (sum.flags)
        group_mark(sum.flags + group * sum.flag_bytes);
}

template <typename T>
__device__ static inline void flush(const struct cuda_group_sums &sums, int64_t group,
                                    const group_word *words, int32_t first_word, group_word rows) {
    constexpr int N = words_of<T>::value;
    if (rows == 0)
        return;
    for (int i = 0; i < sums.n; i++) {
        const struct cuda_group_sum &sum = sums.of[i];
        note_rows(sum, group, rows);
        if constexpr (N > 0)
            add_atomic<N>(sum.words + group * sum.n_words, sum.n_words, first_word - sum.first_word, words,
                          (group_word)((int64_t)words[N - 1] >> 63));
    }
}

/* Calls f with a zero of the type of a sum of integers, or of what stands for rows. */
template <typename F> __device__ static inline void group_dispatch_sum(int32_t phys, F f) {
    switch (phys) {
    case SX_PHYS_I8: f((int8_t)0); break;
    case SX_PHYS_I16: f((int16_t)0); break;
    case SX_PHYS_I32: f((int32_t)0); break;
    case SX_PHYS_I64: f((int64_t)0); break;
    case SX_PHYS_I128: f((sx_i128)0); break;
    case SX_PHYS_U8: f((uint8_t)0); break;
    case SX_PHYS_U16: f((uint16_t)0); break;
    case SX_PHYS_U32: f((uint32_t)0); break;
    case SX_PHYS_U64: f((uint64_t)0); break;
    default: f(nothing{}); break; /* CUDA_GROUP_ROWS */
    }
}

/* ---- without keys: all sums of a batch in one launch ---- */

enum {
    ONE_ROWS = 4,  /* that a thread reads at the same time */
    ONE_BLOCKS = 8 /* of a multiprocessor, which has no room for more */
};

/* What threads have added up. */
struct total {
    sx_u128 low;
    group_word high; /* of 128-bit values alone, whose sums have a third word */
    uint32_t rows;
};

__device__ static inline sx_u128 join_words(group_word low, group_word high) {
    return (sx_u128)high << 64 | low;
}

__device__ static inline void merge_total(struct total *to, const struct total &from) {
    to->low += from.low;
    to->high += from.high + (to->low < from.low);
    to->rows += from.rows;
}

/* Of the lane that is `by` lanes further on. */
__device__ static inline struct total total_of_lane(const struct total &own, int by) {
    const group_word low = __shfl_down_sync(0xffffffffu, (group_word)own.low, by);
    const group_word middle = __shfl_down_sync(0xffffffffu, (group_word)(own.low >> 64), by);
    return {join_words(low, middle), __shfl_down_sync(0xffffffffu, own.high, by),
            __shfl_down_sync(0xffffffffu, own.rows, by)};
}

/* Of as many rows. */
__device__ static inline void add_base(const struct cuda_group_input &input, struct total *total) {
    const sx_i128 base = input.base_is_unsigned ? (sx_i128)(uint64_t)input.base : (sx_i128)input.base;
    const sx_i128 of_rows = base * total->rows;
    merge_total(total, {(sx_u128)of_rows, of_rows < 0 ? ~(group_word)0 : 0, 0});
}

/* To the group; all threads of the block. */
__device__ static inline void flush_block(const struct cuda_group_addition &addition, struct total total) {
    __shared__ struct total warps[CUDA_THREADS / CUDA_WARP];
    for (int by = CUDA_WARP / 2; by > 0; by /= 2)
        merge_total(&total, total_of_lane(total, by));
    if (threadIdx.x % CUDA_WARP == 0)
        warps[threadIdx.x / CUDA_WARP] = total;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (int w = 1; w < CUDA_THREADS / CUDA_WARP; w++)
        merge_total(&total, warps[w]);
    add_base(addition.input, &total);
    const group_word words[] = {(group_word)total.low, (group_word)(total.low >> 64), total.high};
    flush<sx_i128>(addition.sums, 0, words, 0, total.rows);
}

template <typename T> __device__ static inline void add_value(struct total *total, T value) {
    const sx_u128 add = (sx_u128)(sx_i128)value;
    total->low += add;
    if constexpr (words_of<T>::value == 3)
        total->high += (value < 0 ? ~(group_word)0 : 0) + (total->low < add);
}

/* Rows are of 32 bits in what follows, for which there are registers. */

/* Values as they are, or by their positions (CUDA_DICT), all of which count. */
template <typename T, bool HAS_POSITIONS>
__device__ static inline void add_plain(const struct cuda_group_input &input, struct total *total) {
    constexpr int ROWS = sizeof(T) > 8 ? ONE_ROWS / 2 : ONE_ROWS;
    const T *values = (const T *)(HAS_POSITIONS ? input.values.dict : input.values.values);
    const uint32_t n = (uint32_t)input.rows.n, step = (uint32_t)cuda_threads();
    for (uint32_t row = (uint32_t)cuda_thread(); row < n; row += ROWS * step) {
        uint32_t at[ROWS];
        T read[ROWS];
        for (int i = 0; i < ROWS; i++) {
            at[i] = row + i * step;
            if constexpr (HAS_POSITIONS)
                at[i] = at[i] < n ? ((const uint32_t *)input.values.values)[at[i]] : 0;
        }
        for (int i = 0; i < ROWS; i++) {
            const bool is_there = row + i * step < n;
            read[i] = is_there ? values[at[i]] : (T)0;
            total->rows += is_there;
        }
        for (int i = 0; i < ROWS; i++)
            add_value(total, read[i]);
    }
}

template <typename T>
__device__ static inline void add_taken(const struct cuda_group_input &input, struct total *total) {
    const uint32_t n = (uint32_t)input.rows.n, step = (uint32_t)cuda_threads();
    for (uint32_t row = (uint32_t)cuda_thread(); row < n; row += step)
        if (group_takes(input, row)) {
            if constexpr (words_of<T>::value > 0)
                add_value(total, cuda_load<T>(input.values, row));
            total->rows++;
        }
}

/* This thread's share of the rows. */
template <typename T> __device__ static inline struct total total_of(const struct cuda_group_input &input) {
    const bool is_plain = input.values.layout != CUDA_CONSTANT && !input.values.valid && !input.has_filter &&
                          !input.all_null && words_of<T>::value > 0;
    struct total total = {};
    if (!is_plain)
        add_taken<T>(input, &total);
    else if constexpr (words_of<T>::value > 0) {
        if (input.values.layout == CUDA_DICT)
            add_plain<T, true>(input, &total);
        else
            add_plain<T, false>(input, &total);
    }
    return total;
}

static_assert(sizeof(struct cuda_group_additions) <= 4096, "a kernel's arguments");
/* A block is of one addition, blockIdx.y. */
__global__ void __launch_bounds__(CUDA_THREADS, ONE_BLOCKS)
    sum_one(const __grid_constant__ struct cuda_group_additions additions) {
    const struct cuda_group_addition &addition = additions.of[blockIdx.y];
    struct total total = {};
    group_dispatch_sum(addition.input.values.phys,
                       [&](auto zero) { total = total_of<decltype(zero)>(addition.input); });
    flush_block(addition, total);
}

/* Of all additions, which fill the device once: what a block does at its end takes as long as some of its
 * rows.
 */
static dim3 blocks_of(const struct cuda_group_additions *additions, int64_t rows_a_block, int64_t all) {
    const int64_t blocks = additions->of[0].input.rows.n / rows_a_block + 1, most = all / additions->n;
    return dim3((unsigned)(blocks < most ? blocks : most), (unsigned)additions->n);
}

/* ---- few groups ---- */

enum {
    FEW_ROWS = 4, /* that a thread reads at the same time */
    FEW_BLOCKS = 12,
    FEW_WORDS = 4 /* of a group, its rows' number included */
};

/* One row's value, or the row alone, to the thread's own words of its group. */
template <typename T>
__device__ static inline void add_row(const struct cuda_group_sum &sum, int64_t group, T value,
                                      int32_t first_narrow, group_word *shared) {
    constexpr int N = words_of<T>::value;
    group_word *own = group_own(shared, group, N + 1);
    own[N * GROUP_FEW_THREADS]++;
    if constexpr (N > 0)
        if (is_finite(value, sum, group))
            add_own<N>(own, addend_of(value, first_narrow));
}

/* All rows count, and are read without a look at how. */
template <typename T> __device__ static inline bool are_plain(const struct cuda_group_input &input) {
    const bool count = words_of<T>::value > 0
                           ? input.values.layout == CUDA_FLAT && !input.values.valid && !input.all_null
                           : input.counts_nulls;
    return count && !input.has_filter && input.rows.width == sizeof(int32_t);
}

/* Its group; -1: the row does not count. */
template <typename T, bool ARE_PLAIN>
__device__ static inline int32_t read_row(const struct cuda_group_input &input, int64_t row, T *out_value) {
    if constexpr (ARE_PLAIN) {
        const int64_t at = row < input.rows.n ? row : 0; /* so that it is read without a condition */
        const int32_t group = ((const int32_t *)input.rows.numbers)[at];
        if constexpr (words_of<T>::value > 0)
            *out_value = ((const T *)input.values.values)[at];
        return at == row ? group : -1;
    }
    if (row >= input.rows.n || !group_takes(input, row))
        return -1;
    if constexpr (words_of<T>::value > 0)
        *out_value = cuda_load<T>(input.values, row);
    return (int32_t)group_of(input.rows, row);
}

/* This thread's share of the rows. */
template <typename T, bool ARE_PLAIN>
__device__ static inline void add_rows(const struct cuda_group_input &input, const struct cuda_group_sum &sum,
                                       int32_t first_narrow, group_word *shared) {
    const int64_t step = cuda_threads();
    for (int64_t first = cuda_thread(); first < input.rows.n; first += FEW_ROWS * step) {
        int32_t groups[FEW_ROWS];
        T values[FEW_ROWS];
        for (int i = 0; i < FEW_ROWS; i++)
            groups[i] = read_row<T, ARE_PLAIN>(input, first + i * step, &values[i]);
        for (int i = 0; i < FEW_ROWS; i++)
            if (groups[i] >= 0)
                add_row(sum, groups[i], values[i], first_narrow, shared);
    }
}

/* All threads of the block. */
template <typename T>
__device__ static inline void add_few(const struct cuda_group_input &input, int64_t n_groups,
                                      const struct cuda_group_sums &sums, int32_t first_narrow,
                                      group_word *shared) {
    constexpr int N = words_of<T>::value;
    group_few_clear(shared, n_groups, N + 1);
    if (are_plain<T>(input))
        add_rows<T, true>(input, sums.of[0], first_narrow, shared);
    else
        add_rows<T, false>(input, sums.of[0], first_narrow, shared);
    group_few_merge(shared, n_groups, N + 1, [](group_word *to, const group_word *from) {
        group_word carry = 0;
        for (int w = 0; w < N; w++) {
            const group_word half = to[w * GROUP_FEW_THREADS] + from[w * GROUP_FEW_THREADS];
            const group_word total = half + carry;
            carry = (half < from[w * GROUP_FEW_THREADS]) | (total < half);
            to[w * GROUP_FEW_THREADS] = total;
        }
        to[N * GROUP_FEW_THREADS] += from[N * GROUP_FEW_THREADS];
    });
    for (int64_t group = threadIdx.x; group < n_groups; group += GROUP_FEW_THREADS) {
        const group_word *all = shared + group * (N + 1) * GROUP_FEW_THREADS;
        group_word words[N + 1];
        for (int w = 0; w <= N; w++)
            words[w] = all[w * GROUP_FEW_THREADS];
        flush<T>(sums, group, words, first_narrow, words[N]);
    }
}

/* A block is of one addition, blockIdx.y. */
__global__ void __launch_bounds__(GROUP_FEW_THREADS, FEW_BLOCKS)
    sum_few(const __grid_constant__ struct cuda_group_additions additions, int64_t n_groups) {
    SX_DYNAMIC_SHARED(memory);
    const struct cuda_group_addition &addition = additions.of[blockIdx.y];
    group_dispatch_sum(addition.input.values.phys, [&](auto zero) {
        add_few<decltype(zero)>(addition.input, n_groups, addition.sums, 0, (group_word *)memory);
    });
}

/* Of floating point, or where there are too many groups for all sums at the same time. */
template <typename T>
__global__ void sum_few_alone(struct cuda_group_input input, int64_t n_groups, struct cuda_group_sums sums,
                              int32_t first_narrow, T) {
    SX_DYNAMIC_SHARED(memory);
    add_few<T>(input, n_groups, sums, first_narrow, (group_word *)memory);
}

/* ---- more groups ---- */

/* 32-bit words, since those of 64 bits have no atomic addition in shared memory: [group][2 N, then rows]. */
template <typename T>
__global__ void sum_shared(struct cuda_group_input input, int64_t n_groups, struct cuda_group_sums sums,
                           int32_t first_narrow, T) {
    constexpr int N = words_of<T>::value, HALVES = 2 * N, STRIDE = HALVES + 1;
    SX_DYNAMIC_SHARED(memory);
    uint32_t *shared = (uint32_t *)memory;
    for (int64_t i = threadIdx.x; i < n_groups * STRIDE; i += CUDA_THREADS)
        shared[i] = 0;
    __syncthreads();
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        if (!group_takes(input, row))
            continue;
        const int64_t group = group_of(input.rows, row);
        uint32_t *state = shared + group * STRIDE;
        atomicAdd(&state[HALVES], 1u);
        if constexpr (N > 0) {
            const T value = cuda_load<T>(input.values, row);
            if (!is_finite(value, sums.of[0], group))
                continue;
            const struct addend a = addend_of(value, first_narrow);
            const uint32_t halves[4] = {(uint32_t)a.low, (uint32_t)(a.low >> 32), (uint32_t)a.high,
                                        (uint32_t)(a.high >> 32)};
            add_atomic<4>(state, HALVES, 2 * a.word, halves, (uint32_t)a.extension);
        }
    }
    __syncthreads();
    for (int64_t group = threadIdx.x; group < n_groups; group += CUDA_THREADS) {
        const uint32_t *state = shared + group * STRIDE;
        group_word words[N + 1];
        for (int w = 0; w < N; w++)
            words[w] = state[2 * w] | (group_word)state[2 * w + 1] << 32;
        flush<T>(sums, group, words, first_narrow, state[HALVES]);
    }
}

template <typename T>
__global__ void sum_many(struct cuda_group_input input, struct cuda_group_sums sums, T) {
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        if (!group_takes(input, row))
            continue;
        const int64_t group = group_of(input.rows, row);
        for (int i = 0; i < sums.n; i++)
            note_rows(sums.of[i], group, 1);
        if constexpr (words_of<T>::value > 0) {
            const T value = cuda_load<T>(input.values, row);
            if (!is_finite(value, sums.of[0], group))
                continue;
            for (int i = 0; i < sums.n; i++) {
                const struct cuda_group_sum &sum = sums.of[i];
                const struct addend a = addend_of(value, sum.first_word);
                const group_word words[2] = {a.low, a.high};
                add_atomic<2>(sum.words + group * sum.n_words, sum.n_words, a.word, words, a.extension);
            }
        }
    }
}

/* A thread for each run. */
template <typename T>
__global__ void sum_runs(struct cuda_group_input input, struct cuda_group_sums sums, T) {
    const struct cuda_group_runs &runs = input.rows.runs;
    for (int64_t run = cuda_thread(); run < runs.n; run += cuda_threads()) {
        const int64_t end = run + 1 < runs.n ? runs.begins[run + 1] : input.rows.n;
        sx_u128 total = 0;
        group_word rows = 0;
        for (int64_t row = runs.begins[run]; row < end; row++)
            if (group_takes(input, row)) {
                if constexpr (words_of<T>::value > 0)
                    total += (sx_u128)(sx_i128)cuda_load<T>(input.values, row);
                rows++;
            }
        const group_word words[] = {(group_word)total, (group_word)(total >> 64)};
        flush<T>(sums, cuda_group_of_run(&runs, run), words, 0, rows);
    }
}

enum { SHARED_BYTES = 47 << 10, SHARED_ROWS = 32 /* a thread, at least */ };

template <typename T>
static void launch_sum(cudaStream_t stream, const struct cuda_group_input &input, int64_t n_groups,
                       const struct cuda_group_sums &sums, bool narrow, int32_t first_narrow, T zero) {
    constexpr int N = words_of<T>::value;
    const int64_t n = input.rows.n;
    const int64_t shared_bytes = n_groups * (2 * N + 1) * (int64_t)sizeof(uint32_t);
    const int64_t most = 132 * 4, blocks = n / ((int64_t)CUDA_THREADS * SHARED_ROWS) + 1;
    if constexpr (N == 0 || N == 2)
        if (input.rows.runs.are_short) {
            SX_LAUNCH(sum_runs, cuda_blocks(input.rows.runs.n), CUDA_THREADS, 0, stream, input, sums, zero);
            return;
        }
    if (narrow && group_is_few(n_groups, N + 1))
        SX_LAUNCH(sum_few_alone, group_few_blocks(n), GROUP_FEW_THREADS, group_few_bytes(n_groups, N + 1),
                  stream, input, n_groups, sums, first_narrow, zero);
    else if (narrow && shared_bytes <= SHARED_BYTES)
        SX_LAUNCH(sum_shared, (unsigned)(blocks < most ? blocks : most), CUDA_THREADS, (size_t)shared_bytes,
                  stream, input, n_groups, sums, first_narrow, zero);
    else
        SX_LAUNCH(sum_many, cuda_blocks(n), CUDA_THREADS, 0, stream, input, sums, zero);
}

/* ---- the words of floating-point sums ---- */

template <typename T> __global__ void float_range(struct cuda_group_input input, int64_t *range, T) {
    group_word highest = 0, lowest = 0;
    for (int64_t row = cuda_thread(); row < input.rows.n; row += cuda_threads()) {
        if (!group_takes(input, row))
            continue;
        const struct float_parts parts = parts_of((double)cuda_load<T>(input.values, row));
        if (!parts.finite || parts.mantissa == 0)
            continue;
        const group_word high = (group_word)(parts.bit + 64 - __clzll((long long)parts.mantissa));
        const group_word low = (group_word)(CUDA_GROUP_BITS - parts.bit);
        highest = high > highest ? high : highest;
        lowest = low > lowest ? low : lowest;
    }
    group_word *to = (group_word *)range;
    if (highest > group_peek(&to[0]))
        atomicMax(&to[0], highest);
    if (lowest > group_peek(&to[1]))
        atomicMax(&to[1], lowest);
}

__global__ void widen_sums(struct cuda_group_sum from, struct cuda_group_sum to, int64_t n) {
    for (int64_t group = cuda_thread(); group < n; group += cuda_threads()) {
        const group_word *words = from.words + group * from.n_words;
        const int below = from.first_word - to.first_word;
        const group_word extension =
            from.n_words > 0 ? (group_word)((int64_t)words[from.n_words - 1] >> 63) : 0;
        for (int w = 0; w < to.n_words; w++) {
            const int at = w - below;
            to.words[group * to.n_words + w] = at < 0 ? 0 : at < from.n_words ? words[at] : extension;
        }
    }
}

extern "C" {

void cuda_group_sum_one(cudaStream_t stream, const struct cuda_group_additions *additions) {
    const dim3 blocks = blocks_of(additions, (int64_t)CUDA_THREADS * ONE_ROWS, 132 * ONE_BLOCKS);
    SX_LAUNCH(sum_one, blocks, CUDA_THREADS, 0, stream, *additions);
}
bool cuda_group_sums_few(int64_t n_groups) {
    return group_is_few(n_groups, FEW_WORDS);
}
void cuda_group_sum_few(cudaStream_t stream, const struct cuda_group_additions *additions, int64_t n_groups) {
    const dim3 blocks = blocks_of(additions, (int64_t)GROUP_FEW_THREADS * GROUP_FEW_ROWS, 132 * FEW_BLOCKS);
    SX_LAUNCH(sum_few, blocks, GROUP_FEW_THREADS, group_few_bytes(n_groups, FEW_WORDS), stream, *additions,
              n_groups);
}
void cuda_group_count(cudaStream_t stream, struct cuda_group_input input, int64_t n_groups,
                      unsigned long long *counts) {
    struct cuda_group_sums sums = {};
    sums.of[sums.n++].counts = counts;
    launch_sum(stream, input, n_groups, sums, true, 0, nothing{});
}
void cuda_group_sum(cudaStream_t stream, struct cuda_group_input input, int64_t n_groups,
                    struct cuda_group_sums sums, bool narrow, int32_t first_narrow) {
    if (input.values.phys == SX_PHYS_I128)
        launch_sum(stream, input, n_groups, sums, narrow, first_narrow, (sx_i128)0);
    else
        group_dispatch_small(input.values.phys, [=](auto zero) {
            launch_sum(stream, input, n_groups, sums, narrow, first_narrow, zero);
        });
}
void cuda_group_range(cudaStream_t stream, struct cuda_group_input input, int64_t *range) {
    if (input.values.phys == SX_PHYS_F32)
        SX_LAUNCH(float_range, cuda_blocks(input.rows.n), CUDA_THREADS, 0, stream, input, range, 0.0F);
    else
        SX_LAUNCH(float_range, cuda_blocks(input.rows.n), CUDA_THREADS, 0, stream, input, range, 0.0);
}
void cuda_group_widen(cudaStream_t stream, struct cuda_group_sum from, struct cuda_group_sum to, int64_t n) {
    SX_LAUNCH(widen_sums, cuda_blocks(n), CUDA_THREADS, 0, stream, from, to, n);
}
}
