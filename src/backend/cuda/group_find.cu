/* The hash table of a group by. */
#include "backend/cuda/block.h"
#include "backend/cuda/group_kernel.h"

enum { TAG_SHIFT = 40 };
static constexpr group_word NEW_BIT = 1ull << (TAG_SHIFT - 1), NUMBER_MASK = NEW_BIT - 1;

__device__ static inline group_word slot_of(uint64_t hash, bool is_new, int64_t number) {
    return (hash >> TAG_SHIFT << TAG_SHIFT) | (is_new ? NEW_BIT : 0) | (group_word)(number + 1);
}
__device__ static inline bool same_tag(group_word slot, uint64_t hash) {
    return slot >> TAG_SHIFT == hash >> TAG_SHIFT;
}
__device__ static inline int64_t number_of(group_word slot) {
    return (int64_t)(slot & NUMBER_MASK) - 1;
}

/* ---- keys ---- */

__device__ static inline bool key_valid(const struct cuda_group_key &key, int64_t row) {
    return !key.all_null && cuda_is_valid(key.input, row);
}

__device__ static inline uint64_t hash_key(const struct cuda_group_key &key, int64_t row) {
    if (!key_valid(key, row))
        return SX_HASH_NULL;
    if (key.entry_hashes)
        return key.entry_hashes[((const int32_t *)key.input.values)[row]];
    return cuda_value_hash(key.input, row);
}

__device__ static inline bool integer_of(const struct cuda_column &column, int64_t row, uint64_t *out_value) {
    switch (column.phys) {
    case SX_PHYS_I32:
    case SX_PHYS_U32: *out_value = *cuda_value_at<uint32_t>(column, row); return true;
    case SX_PHYS_I64:
    case SX_PHYS_U64: *out_value = *cuda_value_at<uint64_t>(column, row); return true;
    default: return false;
    }
}

__device__ static inline uint64_t hash_keys(const struct cuda_group_key *keys, int n_keys, int64_t row) {
    uint64_t integer;
    if (n_keys == 1 && key_valid(keys[0], row) && integer_of(keys[0].input, row, &integer))
        return cuda_near_hash(integer) ^ integer << 62; /* that tags differ, too */
    uint64_t hash = hash_key(keys[0], row);
    for (int k = 1; k < n_keys; k++)
        hash = sx_hash_combine(hash, hash_key(keys[k], row));
    return hash;
}

/* Keys of the batch's row against those of another of its rows, or of a group. */
__device__ static inline bool same_keys(const struct cuda_group_key *keys, int n_keys, int64_t row,
                                        bool with_row, int64_t other) {
    for (int k = 0; k < n_keys; k++) {
        const struct cuda_group_key &key = keys[k];
        const struct cuda_column &column = with_row ? key.input : key.stored;
        const bool valid = key_valid(key, row);
        if (valid != (with_row ? key_valid(key, other) : cuda_is_valid(column, other)))
            return false;
        if (valid && !cuda_value_equal(key.input, row, column, other))
            return false;
    }
    return true;
}

__global__ void hash_entries(struct cuda_column entries, int64_t n, uint64_t *hashes) {
    for (int64_t i = cuda_thread(); i < n; i += cuda_threads())
        hashes[i] = cuda_value_hash(entries, i);
}

/* ---- finding ---- */

/* The slot is of a new group with this row's keys: the first of its rows is to stand there, which makes the
 * order of new groups that of their first rows. */
__device__ static inline void offer_row(group_word *slot, group_word seen, uint64_t hash, int64_t row) {
    while (number_of(seen) > row) {
        const group_word found = atomicCAS(slot, seen, slot_of(hash, true, row));
        if (found == seen)
            return;
        seen = found;
    }
}

/* The group's number, or ~slot when it is new. A slot read from the cache may be out of date; then the
 * compare-and-swap tells. */
__device__ static inline int64_t find(const struct cuda_group_key *keys, int n_keys,
                                      const struct cuda_group_table &table, int64_t row) {
    const uint64_t hash = hash_keys(keys, n_keys, row);
    for (uint64_t at = hash & table.mask;; at = (at + 1) & table.mask) {
        group_word slot = table.slots[at];
        if (slot == 0)
            slot = atomicCAS(&table.slots[at], (group_word)0, slot_of(hash, true, row));
        if (slot == 0)
            return ~(int64_t)at;
        const bool is_new = (slot & NEW_BIT) != 0;
        if (!same_tag(slot, hash) || !same_keys(keys, n_keys, row, is_new, number_of(slot)))
            continue;
        if (!is_new)
            return number_of(slot);
        offer_row(&table.slots[at], slot, hash, row);
        return ~(int64_t)at;
    }
}

template <typename I>
__global__ void find_groups(const struct cuda_group_key *keys, int n_keys, struct cuda_group_table table,
                            I *numbers, int64_t n) {
    for (int64_t row = cuda_thread(); row < n; row += cuda_threads())
        numbers[row] = (I)find(keys, n_keys, table, row);
}

/* The same for keys that are cheap to compare: of equal ones that follow each other in a warp the first is
 * looked for. */
template <typename I>
__global__ void find_runs(const struct cuda_group_key *keys, int n_keys, struct cuda_group_table table,
                          I *numbers, int64_t n) {
    const int lane = (int)threadIdx.x % CUDA_WARP;
    for (int64_t first = cuda_thread() - lane; first < n; first += cuda_threads()) {
        const int64_t row = first + lane;
        const bool begins = row < n && (lane == 0 || !same_keys(keys, n_keys, row, true, row - 1));
        const unsigned before = __ballot_sync(0xffffffffu, begins) & (0xffffffffu >> (CUDA_WARP - 1 - lane));
        int64_t number = 0;
        if (begins)
            number = find(keys, n_keys, table, row);
        number = __shfl_sync(0xffffffffu, number, CUDA_WARP - 1 - __clz((int)before));
        if (row < n)
            numbers[row] = (I)number;
    }
}

/* ---- keys of few combinations ---- */

static_assert((int)CUDA_GROUP_COMBINATIONS == (int)CUDA_THREADS, "a thread for each");

/* Combination c of entries: those of the last key follow each other. */
__device__ static inline int32_t code_of(const struct cuda_group_key *keys, int n_keys, int k, int32_t c) {
    for (int later = n_keys - 1; later > k; later--)
        c /= keys[later].n_entries;
    return c % keys[k].n_entries;
}

/* Whether it is the group's. */
__device__ static inline bool has_codes(const struct cuda_group_key *keys, int n_keys, int32_t c,
                                        int64_t group) {
    for (int k = 0; k < n_keys; k++) {
        struct cuda_column entries = keys[k].input;
        entries.values = entries.dict;
        entries.layout = CUDA_FLAT;
        if (!cuda_is_valid(keys[k].stored, group) ||
            !cuda_value_equal(entries, code_of(keys, n_keys, k, c), keys[k].stored, group))
            return false;
    }
    return true;
}

/* Its group of earlier batches; -1: there is none. */
__device__ static inline int64_t find_combination(const struct cuda_group_key *keys, int n_keys,
                                                  const struct cuda_group_table &table, int32_t c) {
    uint64_t hash = keys[0].entry_hashes[code_of(keys, n_keys, 0, c)];
    for (int k = 1; k < n_keys; k++)
        hash = sx_hash_combine(hash, keys[k].entry_hashes[code_of(keys, n_keys, k, c)]);
    for (uint64_t at = hash & table.mask;; at = (at + 1) & table.mask) {
        const group_word slot = table.slots[at];
        if (slot == 0)
            return -1;
        if (!(slot & NEW_BIT) && same_tag(slot, hash) && has_codes(keys, n_keys, c, number_of(slot)))
            return number_of(slot);
    }
}

template <typename I>
__global__ void find_coded(const struct cuda_group_key *keys, int n_keys, int32_t combinations,
                           struct cuda_group_table table, I *numbers, int64_t n) {
    __shared__ int64_t known[CUDA_GROUP_COMBINATIONS];
    const int32_t own = (int32_t)threadIdx.x;
    known[own] = own < combinations ? find_combination(keys, n_keys, table, own) : -1;
    __syncthreads();
    for (int64_t row = cuda_thread(); row < n; row += cuda_threads()) {
        int32_t c = 0;
        for (int k = 0; k < n_keys; k++)
            c = c * keys[k].n_entries + ((const int32_t *)keys[k].input.values)[row];
        const int64_t number = known[c];
        numbers[row] = (I)(number >= 0 ? number : find(keys, n_keys, table, row));
    }
}

template <typename I>
__global__ void flag_new(struct cuda_group_table table, const I *numbers, int64_t n, uint8_t *flags) {
    for (int64_t row = cuda_thread(); row < n; row += cuda_threads()) {
        const I number = numbers[row];
        flags[row] = number < 0 && number_of(table.slots[~number]) == row;
    }
}

__global__ void new_bytes(const struct cuda_group_key *keys, int n_keys, const int32_t *new_rows,
                          const int64_t *n_new, int64_t *bytes) {
    group_word sum = 0, total;
    for (int64_t i = cuda_thread(); i < *n_new; i += cuda_threads())
        for (int k = 0; k < n_keys; k++) {
            if (keys[k].input.phys != SX_PHYS_STRING || keys[k].is_borrowed ||
                !key_valid(keys[k], new_rows[i]))
                continue;
            const uint32_t length = cuda_value_at<struct sx_string>(keys[k].input, new_rows[i])->length_bytes;
            sum += length > SX_STRING_INLINE_BYTES ? length : 0;
        }
    (void)block_exclusive(sum, &total);
    if (threadIdx.x == 0 && total)
        atomicAdd((group_word *)bytes, total);
}

/* ---- new groups ---- */

template <typename T>
__device__ static inline void store_value(const struct cuda_group_key &key, int64_t row, int64_t group) {
    ((T *)key.stored.values)[group] = key_valid(key, row) ? *cuda_value_at<T>(key.input, row) : T{};
}

/* -0.0 becomes 0.0, and NaNs one NaN. */
template <typename T>
__device__ static inline void store_float(const struct cuda_group_key &key, int64_t row, int64_t group) {
    const uint64_t bits = key_valid(key, row) ? sx_f64_bits((double)*cuda_value_at<T>(key.input, row)) : 0;
    double value;
    memcpy(&value, &bits, sizeof value);
    ((T *)key.stored.values)[group] = (T)value;
}

__device__ static inline void store_key(const struct cuda_group_key &key, int64_t row, int64_t group) {
    ((uint8_t *)key.stored.valid)[group] = key_valid(key, row);
    switch (key.input.phys) {
    case SX_PHYS_I8:
    case SX_PHYS_U8: store_value<uint8_t>(key, row, group); break;
    case SX_PHYS_I16:
    case SX_PHYS_U16: store_value<uint16_t>(key, row, group); break;
    case SX_PHYS_I32:
    case SX_PHYS_U32: store_value<uint32_t>(key, row, group); break;
    case SX_PHYS_F32: store_float<float>(key, row, group); break;
    case SX_PHYS_F64: store_float<double>(key, row, group); break;
    case SX_PHYS_I64:
    case SX_PHYS_U64: store_value<uint64_t>(key, row, group); break;
    case SX_PHYS_STRING: store_value<struct sx_string>(key, row, group); break;
    default: store_value<sx_u128>(key, row, group);
    }
}

template <typename I>
__global__ void publish(const struct cuda_group_key *keys, int n_keys, struct cuda_group_table table,
                        const I *numbers, const int32_t *new_rows, int64_t n_new, int64_t first,
                        uint64_t *hashes) {
    for (int64_t i = cuda_thread(); i < n_new; i += cuda_threads()) {
        const int64_t row = new_rows[i], group = first + i;
        const uint64_t hash = hash_keys(keys, n_keys, row);
        for (int k = 0; k < n_keys; k++)
            store_key(keys[k], row, group);
        hashes[group] = hash;
        if (table.slots)
            table.slots[~numbers[row]] = slot_of(hash, false, group);
    }
}

template <typename I> __global__ void resolve(struct cuda_group_table table, I *numbers, int64_t n) {
    for (int64_t row = cuda_thread(); row < n; row += cuda_threads())
        if (numbers[row] < 0)
            numbers[row] = (I)number_of(table.slots[~numbers[row]]);
}

__global__ void rehash(struct cuda_group_table table, const uint64_t *hashes, int64_t n) {
    for (int64_t group = cuda_thread(); group < n; group += cuda_threads()) {
        uint64_t at = hashes[group] & table.mask;
        while (atomicCAS(&table.slots[at], (group_word)0, slot_of(hashes[group], false, group)) != 0)
            at = (at + 1) & table.mask;
    }
}

extern "C" {

void cuda_group_hash_entries(cudaStream_t stream, struct cuda_column entries, int64_t n, uint64_t *hashes) {
    SX_LAUNCH(hash_entries, cuda_blocks(n), CUDA_THREADS, 0, stream, entries, n, hashes);
}
void cuda_group_find(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys, bool compares_rows,
                     struct cuda_group_table table, struct cuda_group_numbers numbers) {
    const unsigned blocks = cuda_blocks(numbers.n);
    if (numbers.width == 4 && compares_rows)
        SX_LAUNCH(find_runs, blocks, CUDA_THREADS, 0, stream, keys, n_keys, table, (int32_t *)numbers.numbers,
                  numbers.n);
    else if (compares_rows)
        SX_LAUNCH(find_runs, blocks, CUDA_THREADS, 0, stream, keys, n_keys, table, (int64_t *)numbers.numbers,
                  numbers.n);
    else if (numbers.width == 4)
        SX_LAUNCH(find_groups, blocks, CUDA_THREADS, 0, stream, keys, n_keys, table,
                  (int32_t *)numbers.numbers, numbers.n);
    else
        SX_LAUNCH(find_groups, blocks, CUDA_THREADS, 0, stream, keys, n_keys, table,
                  (int64_t *)numbers.numbers, numbers.n);
}
void cuda_group_find_coded(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys,
                           int32_t combinations, struct cuda_group_table table,
                           struct cuda_group_numbers numbers) {
    const unsigned blocks = cuda_blocks(numbers.n);
    if (numbers.width == 4)
        SX_LAUNCH(find_coded, blocks, CUDA_THREADS, 0, stream, keys, n_keys, combinations, table,
                  (int32_t *)numbers.numbers, numbers.n);
    else
        SX_LAUNCH(find_coded, blocks, CUDA_THREADS, 0, stream, keys, n_keys, combinations, table,
                  (int64_t *)numbers.numbers, numbers.n);
}
void cuda_group_flag_new(cudaStream_t stream, struct cuda_group_table table,
                         struct cuda_group_numbers numbers, uint8_t *flags) {
    const unsigned blocks = cuda_blocks(numbers.n);
    if (numbers.width == 4)
        SX_LAUNCH(flag_new, blocks, CUDA_THREADS, 0, stream, table, (const int32_t *)numbers.numbers,
                  numbers.n, flags);
    else
        SX_LAUNCH(flag_new, blocks, CUDA_THREADS, 0, stream, table, (const int64_t *)numbers.numbers,
                  numbers.n, flags);
}
void cuda_group_new_bytes(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys, int64_t n_rows,
                          const int32_t *new_rows, const int64_t *n_new, int64_t *bytes) {
    SX_LAUNCH(new_bytes, cuda_blocks(n_rows), CUDA_THREADS, 0, stream, keys, n_keys, new_rows, n_new, bytes);
}
void cuda_group_publish(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys,
                        struct cuda_group_table table, struct cuda_group_numbers numbers,
                        const int32_t *new_rows, int64_t n_new, int64_t first, uint64_t *hashes) {
    const unsigned blocks = cuda_blocks(n_new);
    if (numbers.width == 4)
        SX_LAUNCH(publish, blocks, CUDA_THREADS, 0, stream, keys, n_keys, table,
                  (const int32_t *)numbers.numbers, new_rows, n_new, first, hashes);
    else
        SX_LAUNCH(publish, blocks, CUDA_THREADS, 0, stream, keys, n_keys, table,
                  (const int64_t *)numbers.numbers, new_rows, n_new, first, hashes);
}
void cuda_group_resolve(cudaStream_t stream, struct cuda_group_table table,
                        struct cuda_group_numbers numbers) {
    const unsigned blocks = cuda_blocks(numbers.n);
    if (numbers.width == 4)
        SX_LAUNCH(resolve, blocks, CUDA_THREADS, 0, stream, table, (int32_t *)numbers.numbers, numbers.n);
    else
        SX_LAUNCH(resolve, blocks, CUDA_THREADS, 0, stream, table, (int64_t *)numbers.numbers, numbers.n);
}
void cuda_group_rehash(cudaStream_t stream, struct cuda_group_table table, const uint64_t *hashes,
                       int64_t n) {
    SX_LAUNCH(rehash, cuda_blocks(n), CUDA_THREADS, 0, stream, table, hashes, n);
}
}
