/* The index over a group's rows, and when it gives way. */
#include <string.h>

#include "backend/cpu/group_state.h"

enum {
    BASE_BYTES = 1 << 20, /* rows and slots of an index that has not been widened */
    MIN_BASE_ROWS = 1 << 12,
    MAX_BASE_ROWS = 1 << 14,
    WIDE_BYTES = 12 << 20, /* of an index that has been widened */
    FAR_SLOTS = 1 << 16,   /* indexes above do not stay in the second-level cache */
    SLOT_AHEAD = 24,
    ROW_AHEAD = 12,
    CROWDED_BYTES = 1 << 26,
    CROWDED_ROWS = 4, /* rows a group */
    ROWS_AHEAD = 4    /* lines of a partition are fetched before their rows are written */
};

static inline char *row_of(uint64_t slot) {
    return (char *)(uintptr_t)(slot & SX_GROUP_ADDRESS_MASK);
}

static inline uint64_t slot_of(uint64_t hash, const char *row) {
    return (hash & ~SX_GROUP_ADDRESS_MASK) | (uint64_t)(uintptr_t)row;
}

static inline void fetch_ahead(const struct sx_group_probe *probe, int64_t i) {
    const struct sx_group_index *index = probe->index;
    if (index->mask < FAR_SLOTS || i + SLOT_AHEAD >= probe->n)
        return;
    __builtin_prefetch(&index->slots[probe->hashes[i + SLOT_AHEAD] & index->mask]);
    const uint64_t slot = index->slots[probe->hashes[i + ROW_AHEAD] & index->mask];
    const char *row =
        slot ? row_of(slot) : (const char *)index->slots; /* no branch: it could not be foretold */
    __builtin_prefetch(row);
}

/* The words are equal already. */
static bool strings_equal(const struct sx_group_layout *layout, const char *a, const char *b) {
    for (uint32_t s = 0; s < layout->n_strings; s++) {
        const struct sx_group_key *key = &layout->keys[layout->strings[s]];
        uint32_t length_bytes;
        memcpy(&length_bytes, a + key->offset, sizeof length_bytes);
        if (length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        const char *bytes_a = *(const sx_group_pointer *)(a + key->pointer);
        const char *bytes_b = *(const sx_group_pointer *)(b + key->pointer);
        if (bytes_a != bytes_b && memcmp(bytes_a, bytes_b, length_bytes) != 0)
            return false;
    }
    return true;
}

#define SX_NAME(x) x##_1
#define SX_WORDS   1
#include "backend/cpu/group_probe.tmpl.h"
#define SX_NAME(x) x##_2
#define SX_WORDS   2
#include "backend/cpu/group_probe.tmpl.h"
#define SX_NAME(x) x##_3
#define SX_WORDS   3
#include "backend/cpu/group_probe.tmpl.h"
#define SX_NAME(x) x##_n
#define SX_WORDS   layout->n_words
#include "backend/cpu/group_probe.tmpl.h"

enum sx_status sx_group_find(const struct sx_group_probe *probe) {
    switch (probe->layout->n_words) {
    case 1: return find_1(probe);
    case 2: return find_2(probe);
    case 3: return find_3(probe);
    default: return find_n(probe);
    }
}

void sx_group_hash(const struct sx_group_layout *layout, const char *base, size_t stride, int64_t n,
                   uint64_t *hashes) {
    switch (layout->n_words) {
    case 1: hash_1(layout, base, stride, n, hashes); break;
    case 2: hash_2(layout, base, stride, n, hashes); break;
    case 3: hash_3(layout, base, stride, n, hashes); break;
    default: hash_n(layout, base, stride, n, hashes);
    }
}

/* ---- size ---- */

void sx_group_index_release(struct sx_group_index *index, struct sx_pool *pool) {
    if (index->slots)
        sx_pool_free(pool, index->slots, (size_t)(index->mask + 1) * sizeof(uint64_t));
    *index = (struct sx_group_index){0};
}

void sx_group_index_clear(struct sx_group_index *index) {
    memset(index->slots, 0, (size_t)(index->mask + 1) * sizeof(uint64_t));
    index->count = 0;
}

enum sx_status sx_group_index_create(struct sx_group_index *index, int64_t rows, struct sx_pool *pool,
                                     struct sx_error *error) {
    uint64_t n_slots = 16;
    while (n_slots < 2 * (uint64_t)rows)
        n_slots *= 2;
    void *slots = NULL;
    SX_TRY(sx_pool_alloc(pool, (size_t)n_slots * sizeof(uint64_t), &slots, error));
    sx_group_index_release(index, pool);
    *index = (struct sx_group_index){.slots = slots, .mask = n_slots - 1, .limit = (int64_t)(n_slots / 2)};
    sx_group_index_clear(index);
    return SX_OK;
}

void sx_group_index_move(struct sx_group_index *index, uint64_t hash, const char *from, const char *to) {
    uint64_t at = hash & index->mask;
    while (row_of(index->slots[at]) != from)
        at = (at + 1) & index->mask;
    index->slots[at] = slot_of(hash, to);
}

/* Puts the rows of `old` in; all differ. */
static void refill(struct sx_group_index *index, const struct sx_group_index *old,
                   const struct sx_group_layout *layout) {
    for (uint64_t i = 0; i <= old->mask; i++) {
        if (!old->slots[i])
            continue;
        uint64_t hash;
        sx_group_hash(layout, row_of(old->slots[i]), 0, 1, &hash);
        uint64_t at = hash & index->mask;
        while (index->slots[at])
            at = (at + 1) & index->mask;
        index->slots[at] = old->slots[i];
    }
    index->count = old->count;
}

static enum sx_status widen(struct sx_group_index *index, const struct sx_group_layout *layout, int64_t rows,
                            struct sx_pool *pool, struct sx_error *error) {
    struct sx_group_index wider = {0};
    SX_TRY(sx_group_index_create(&wider, rows, pool, error));
    refill(&wider, index, layout);
    sx_group_index_release(index, pool);
    *index = wider;
    return SX_OK;
}

/* ---- how many groups there are ---- */

/* HyperLogLog (Flajolet et al. 2007) over the rows appended; its bits are none of the partition's. */
static void note_row(struct sx_group_worker *worker, uint64_t hash) {
    const uint32_t at = (uint32_t)(hash >> 30) & (SX_GROUP_SKETCH_REGISTERS - 1);
    const uint8_t rank = (uint8_t)(__builtin_ctz((uint32_t)hash | UINT32_C(1) << 30) + 1);
    if (rank > worker->sketch[at])
        worker->sketch[at] = rank;
}

static double estimate_groups(const struct sx_group_worker *worker) {
    const double m = SX_GROUP_SKETCH_REGISTERS;
    double sum = 0;
    for (int i = 0; i < SX_GROUP_SKETCH_REGISTERS; i++)
        sum += 1.0 / (double)(UINT64_C(1) << worker->sketch[i]);
    return 0.7213 / (1 + 1.079 / m) * m * m / sum;
}

static int64_t indexed_bytes(const struct sx_group_layout *layout, int64_t rows) {
    return rows * (int64_t)(layout->row_bytes + 2 * sizeof(uint64_t));
}

static int64_t base_rows(const struct sx_group_layout *layout) {
    int64_t rows = MAX_BASE_ROWS;
    while (rows > MIN_BASE_ROWS && indexed_bytes(layout, rows) > BASE_BYTES)
        rows /= 2;
    return rows;
}

/* Rows that a wider index would find again, but this one does not, are worth some cache misses. */
static int64_t wanted_rows(const struct sx_group_worker *worker, const struct sx_group_layout *layout) {
    const double groups = estimate_groups(worker);
    const double reduction = (double)worker->epoch_rows / (double)worker->index.count;
    const double possible = (double)worker->total_rows / groups;
    const int64_t rows = (int64_t)(groups * 1.1);
    return possible < 2 * reduction || indexed_bytes(layout, rows) > WIDE_BYTES ? 0 : rows;
}

/* Merging pays when it frees most of much memory. */
static bool is_crowded(const struct sx_group_worker *worker, const struct sx_group_layout *layout) {
    const int64_t bytes = worker->stored_rows * layout->row_bytes;
    return bytes > CROWDED_BYTES && (double)worker->stored_rows > CROWDED_ROWS * estimate_groups(worker);
}

enum sx_status sx_group_index_full(struct sx_group_worker *worker, const struct sx_group_layout *layout,
                                   struct sx_stream *stream) {
    struct sx_group_index *index = &worker->index;
    struct sx_error refused; /* without memory for a wider one, this one goes on */
    const bool is_small = index->limit < base_rows(layout);
    const int64_t rows = is_small ? SX_GROUP_ROOM * 4 * index->limit : wanted_rows(worker, layout);
    if (rows > index->limit && widen(index, layout, rows, stream->pool, &refused) == SX_OK) {
        if (is_small)
            index->limit /= SX_GROUP_ROOM;
        return SX_OK;
    }
    sx_group_index_clear(index);
    worker->cleared = true;
    worker->epoch_rows = 0;
    worker->crowded = is_crowded(worker, layout);
    return SX_OK;
}

/* ---- rows ---- */

static enum sx_status own_strings(const struct sx_group_layout *layout, struct sx_group_heap *heap,
                                  struct sx_stream *stream, char *row) {
    for (uint32_t s = 0; s < layout->n_strings; s++) {
        const struct sx_group_key *key = &layout->keys[layout->strings[s]];
        uint32_t length_bytes;
        memcpy(&length_bytes, row + key->offset, sizeof length_bytes);
        if (length_bytes <= SX_STRING_INLINE_BYTES)
            continue;
        char *bytes;
        SX_TRY(sx_group_heap_alloc(heap, stream->pool, length_bytes, &bytes, &stream->error));
        sx_group_pointer *pointer = (sx_group_pointer *)(row + key->pointer);
        memcpy(bytes, *pointer, length_bytes);
        *pointer = bytes;
    }
    return SX_OK;
}

/* Bytes [from_byte, to_byte), whole words. */
static inline void copy_words(char *to, const char *from, uint32_t from_byte, uint32_t to_byte) {
    for (uint32_t at = from_byte; at < to_byte; at += 8)
        *(sx_group_word *)(to + at) = *(const sx_group_word *)(from + at);
}

enum sx_status sx_group_append(struct sx_group_worker *worker, const struct sx_group_layout *layout,
                               uint64_t hash, const char *head, struct sx_stream *stream, char **out_row) {
    struct sx_group_partition *partition = &worker->partitions[sx_group_partition_of(hash)];
    if (partition->next_row == partition->end)
        SX_TRY(sx_group_partition_grow(partition, layout->row_bytes, stream->pool, &stream->error));
    char *row = partition->next_row;
    __builtin_prefetch(row + ROWS_AHEAD * layout->row_bytes, 1);
    copy_words(row, head, 0, layout->head_bytes);
    copy_words(row, layout->init, layout->head_bytes, layout->row_bytes);
    if (layout->n_strings > 0)
        SX_TRY(own_strings(layout, &partition->heap, stream, row));
    partition->next_row += layout->row_bytes;
    worker->stored_rows++;
    note_row(worker, hash);
    *out_row = row;
    return SX_OK;
}

enum sx_status sx_group_row_bytes(const struct sx_group_call *call, const char *row, size_t size_bytes,
                                  char **out_bytes) {
    uint64_t hash;
    sx_group_hash(call->layout, row, 0, 1, &hash);
    struct sx_group_heap *heap = &call->worker->partitions[sx_group_partition_of(hash)].heap;
    return sx_group_heap_alloc(heap, call->stream->pool, size_bytes, out_bytes, &call->stream->error);
}
