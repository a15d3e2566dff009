/* What the files group_*.c share.
 *
 * A group is a row of fixed width:
 *     compared words | flags | pointers of string keys | aggregate states
 * The compared words hold all keys in one normal form (nulls zeroed and marked, floats with one zero and one
 * NaN), so that equal keys are equal words. A string key takes two of them: length and first bytes, then the
 * other bytes or, above SX_STRING_INLINE_BYTES, the hash of all bytes; then its bytes are compared too.
 *
 * Every worker appends rows to partitions by hash and finds them through an index that is bounded to what the
 * cache holds. A full index is cleared while the rows stay, so a group may have several rows; emitting a part
 * merges them. A partition owns its rows and their strings and could be written out as it is. */
#ifndef SX_BACKEND_CPU_GROUP_STATE_H
#define SX_BACKEND_CPU_GROUP_STATE_H

#include "backend/cpu/cpu.h"
#include "tensor/semantics.h"

enum {
    SX_GROUP_BLOCK_ROWS = 2048,
    SX_GROUP_PARTITION_BITS = 8,
    SX_GROUP_PARTITIONS = 1 << SX_GROUP_PARTITION_BITS,
    SX_GROUP_SKETCH_BITS = 11,
    SX_GROUP_SKETCH_REGISTERS = 1 << SX_GROUP_SKETCH_BITS
};

/* Rows are plain bytes: they are read and written through these. */
typedef uint64_t __attribute__((may_alias)) sx_group_word;
typedef const char *__attribute__((may_alias)) sx_group_pointer;

struct sx_group_aggregate;
struct sx_group_heap;
struct sx_group_worker;

/* One aggregate over one block of input rows. */
struct sx_group_call {
    const struct sx_group_aggregate *aggregate;
    const void *values;       /* [block] of the input's physical type; unset for the counts */
    const uint8_t *valid;     /* [block], FIRST only; NULL: no nulls */
    const int32_t *selection; /* [n] positions in the block that count; NULL: 0 .. n-1 */
    int32_t n;                /* how many count */
    char *const *rows;        /* [block] the group of each input row; [0] alone for update_one */
    struct sx_group_worker *worker;
    const struct sx_group_layout *layout;
    struct sx_stream *stream;
};

static inline int32_t sx_group_position(const struct sx_group_call *call, int32_t k) {
    return call->selection ? call->selection[k] : k;
}

/* An aggregate function over one physical type. States start as zero bytes unless `init` is given. Flags are
 * the row's byte at aggregate->flag: 0 while no value came. */
struct sx_group_ops {
    uint32_t state_bytes;
    uint32_t state_align;
    void (*init)(char *state);
    /* Each input row into its group; all rows into rows[0]. */
    enum sx_status (*update)(const struct sx_group_call *call);
    enum sx_status (*update_one)(const struct sx_group_call *call);
    /* Row from[i] into row into[i]; the former is not used any more. */
    enum sx_status (*combine)(const struct sx_group_aggregate *aggregate, char *const *into,
                              char *const *from, int64_t n, struct sx_error *error);
    void (*emit)(const struct sx_group_aggregate *aggregate, char *const *rows, int64_t n,
                 struct sx_tensor *column);
    bool (*is_null)(const struct sx_group_aggregate *aggregate, const char *row); /* NULL: never */
    /* Integers: sums[group] and counts[group] of a block into the groups' rows. NULL where not possible. */
    void (*add_sums)(const struct sx_group_aggregate *aggregate, char *const *rows, int32_t n_groups,
                     const int64_t *sums, const int32_t *counts);
};

struct sx_group_key {
    struct sx_type type;
    enum sx_phys phys;
    uint32_t offset;  /* of the value or the string's two words */
    uint32_t pointer; /* string: of the pointer */
    uint32_t null_byte;
    uint8_t null_bit;
};

struct sx_group_aggregate {
    struct sx_aggregate_spec spec;
    enum sx_phys phys; /* of the input */
    uint32_t offset;   /* of the state */
    uint32_t flag;
    const struct sx_group_ops *ops;
};

struct sx_group_layout {
    int n_keys;
    struct sx_group_key *keys;
    int n_aggregates;
    struct sx_group_aggregate *aggregates;
    uint32_t n_words;
    uint64_t last_mask; /* of the last word; flags fill up the rest of it */
    uint32_t n_strings;
    uint32_t *strings;   /* [n_strings] keys that are strings */
    uint32_t head_bytes; /* compared words, flags, pointers */
    uint32_t row_bytes;
    char *init; /* [row_bytes] a row before any input */
};

enum sx_status sx_group_layout_create(const struct sx_group_spec *spec, struct sx_group_layout *out_layout,
                                      struct sx_error *error) SX_MUST_CHECK;
void sx_group_layout_release(struct sx_group_layout *layout);

/* ---- rows ---- */

struct sx_group_heap {
    struct sx_buffer **blocks;
    int n_blocks;
    int capacity;
    char *next;
    size_t left_bytes;
};

struct sx_group_chunk {
    struct sx_group_chunk *next;
    size_t size_bytes;
    int64_t n_rows; /* set when the next chunk is begun, and at the end */
    char *rows;
};

struct sx_group_partition {
    struct sx_group_chunk *first;
    struct sx_group_chunk *last;
    char *next_row;
    char *end;
    int64_t n_rows; /* in complete chunks */
    struct sx_group_heap heap;
};

SX_MUST_CHECK enum sx_status sx_group_partition_grow(struct sx_group_partition *partition, uint32_t row_bytes,
                                                     struct sx_pool *pool, struct sx_error *error);
/* Counts the rows of the last chunk. */
void sx_group_partition_close(struct sx_group_partition *partition, uint32_t row_bytes);
void sx_group_partition_release(struct sx_group_partition *partition, struct sx_pool *pool);

SX_MUST_CHECK enum sx_status sx_group_heap_alloc(struct sx_group_heap *heap, struct sx_pool *pool,
                                                 size_t size_bytes, char **out_bytes, struct sx_error *error);
void sx_group_heap_release(struct sx_group_heap *heap);

/* ---- hash index ---- */

/* A slot is 0 or a row's address with 16 bits of the hash above it. */
struct sx_group_index {
    uint64_t *slots;
    uint64_t mask;
    int64_t count;
    int64_t limit; /* rows it takes */
};

enum { SX_GROUP_TAG_SHIFT = 48, SX_GROUP_FIRST_ROWS = 1 << 10 };
/* An index that stays in the cache has this much more room than it needs: collisions cost mispredictions. */
enum { SX_GROUP_ROOM = 2 };
#define SX_GROUP_ADDRESS_MASK ((UINT64_C(1) << SX_GROUP_TAG_SHIFT) - 1)

static inline uint32_t sx_group_partition_of(uint64_t hash) {
    return (uint32_t)(hash >> (SX_GROUP_TAG_SHIFT - SX_GROUP_PARTITION_BITS)) & (SX_GROUP_PARTITIONS - 1);
}

/* Hash of a row's compared words. */
static inline uint64_t sx_group_hash_words(const sx_group_word *words, uint32_t n_words, uint64_t last_mask) {
    uint64_t hash = 0;
    for (uint32_t w = 0; w < n_words; w++) {
        hash = (hash ^ (hash >> 32)) * UINT64_C(0x9fb21c651e98df25);
        hash += w + 1 < n_words ? words[w] : words[w] & last_mask;
    }
    return sx_hash_u64(hash);
}

/* Empty, with room for at least `rows`. Frees what was there. */
SX_MUST_CHECK enum sx_status sx_group_index_create(struct sx_group_index *index, int64_t rows,
                                                   struct sx_pool *pool, struct sx_error *error);
void sx_group_index_clear(struct sx_group_index *index);
void sx_group_index_release(struct sx_group_index *index, struct sx_pool *pool);

/* The row with this hash at `from` is now at `to`. */
void sx_group_index_move(struct sx_group_index *index, uint64_t hash, const char *from, const char *to);

/* Finds the row with the keys of each of n rows at base, base + stride, …; only their heads are looked at.
 * With a worker, missing rows are appended to its partitions and the index gives way when it is full. Without
 * one, the index has room, and a missing row is put in as it lies. */
struct sx_group_probe {
    const struct sx_group_layout *layout;
    struct sx_group_index *index;
    struct sx_group_worker *worker;
    struct sx_stream *stream;
    char *base;
    size_t stride;
    int64_t n;
    const uint64_t *hashes;
    char **rows; /* [n] out */
};
SX_MUST_CHECK enum sx_status sx_group_find(const struct sx_group_probe *probe);
void sx_group_hash(const struct sx_group_layout *layout, const char *base, size_t stride, int64_t n,
                   uint64_t *hashes);

/* ---- workers ---- */

struct sx_group_direct;

struct sx_group_worker {
    struct sx_group_partition partitions[SX_GROUP_PARTITIONS];
    struct sx_group_index index;
    struct sx_group_direct *direct; /* NULL when keys have no small domains */
    struct sx_group_heap interned;  /* bytes of dictionary keys */
    bool cleared;                   /* a group may have two rows here */
    bool crowded;                   /* most of its rows would merge */
    int64_t stored_rows;
    int64_t epoch_rows; /* input rows since the index was cleared */
    int64_t total_rows;
    uint8_t sketch[SX_GROUP_SKETCH_REGISTERS];
    char *only_row; /* without keys */

    /* scratch for one block, in one allocation */
    void *scratch;
    size_t scratch_bytes;
    char *heads;        /* [block * head_bytes] */
    uint64_t *hashes;   /* [block] */
    char **rows;        /* [block] */
    char *values;       /* [block * 16] an input made flat */
    int32_t *selection; /* [block] */
    uint8_t *mask;      /* [block] */
    uint16_t *codes;    /* [block] */
    int64_t *sums;      /* [groups * lanes] */
    int32_t *counts;    /* [groups * lanes] */
    bool *done;         /* [aggregates] */
};

/* Appends a row with this head; the strings' bytes are copied. */
SX_MUST_CHECK enum sx_status sx_group_append(struct sx_group_worker *worker,
                                             const struct sx_group_layout *layout, uint64_t hash,
                                             const char *head, struct sx_stream *stream, char **out_row);
/* The index is full: widens or clears it. */
SX_MUST_CHECK enum sx_status sx_group_index_full(struct sx_group_worker *worker,
                                                 const struct sx_group_layout *layout,
                                                 struct sx_stream *stream);
/* Memory for a string of the row's aggregates. */
SX_MUST_CHECK enum sx_status sx_group_row_bytes(const struct sx_group_call *call, const char *row,
                                                size_t size_bytes, char **out_bytes);

/* ---- merging ---- */

struct sx_group_merge {
    const struct sx_group_layout *layout;
    struct sx_stream *stream;
    struct sx_group_index index; /* of the rows so far; has room for all */
    uint64_t hashes[SX_GROUP_BLOCK_ROWS];
    char *found[SX_GROUP_BLOCK_ROWS];
    char *into[SX_GROUP_BLOCK_ROWS];
    char *from[SX_GROUP_BLOCK_ROWS];
    char *kept[SX_GROUP_BLOCK_ROWS]; /* for compaction */
};

SX_MUST_CHECK enum sx_status sx_group_merge_create(const struct sx_group_layout *layout,
                                                   struct sx_stream *stream,
                                                   struct sx_group_merge **out_merge);
void sx_group_merge_destroy(struct sx_group_merge *merge); /* NULL allowed */
/* n rows, a block at most: those with new keys are appended to `kept`, the others combined into the row that
 * came before. */
SX_MUST_CHECK enum sx_status sx_group_merge_rows(struct sx_group_merge *merge, char *base, int64_t n,
                                                 char **kept, int64_t *n_kept);
/* Merges a worker's own rows, between blocks. */
SX_MUST_CHECK enum sx_status sx_group_compact(struct sx_group_worker *worker,
                                              const struct sx_group_layout *layout, struct sx_stream *stream);

/* ---- keys ---- */

/* Heads of rows [first, first + n). */
void sx_group_encode(const struct sx_group_layout *layout, const struct sx_tensor *keys, int64_t first,
                     int32_t n, char *heads);
/* Key column k of these rows. */
SX_MUST_CHECK enum sx_status sx_group_emit_key(const struct sx_group_layout *layout, int k, char *const *rows,
                                               int64_t n, struct sx_buffer *heap, struct sx_stream *stream,
                                               struct sx_tensor *out_column);

/* ---- keys of small domains ---- */

enum { SX_GROUP_FEW = 256, SX_GROUP_LANES = 8 };

/* NULL in *out_direct when the key types rule it out. */
SX_MUST_CHECK enum sx_status sx_group_direct_create(const struct sx_group_layout *layout,
                                                    struct sx_group_direct **out_direct,
                                                    struct sx_stream *stream);
void sx_group_direct_destroy(struct sx_group_direct *direct, struct sx_pool *pool);
/* Writes worker->codes: for each row of the block the number of its group among direct groups. *out_used is
 * false when the domains are too large; *out_complete when every row's group is known. */
SX_MUST_CHECK enum sx_status sx_group_direct_codes(struct sx_group_worker *worker,
                                                   const struct sx_tensor *keys, int64_t first, int32_t n,
                                                   struct sx_stream *stream, bool *out_used,
                                                   bool *out_complete);
/* Learns the groups of the block from worker->rows and completes worker->codes. */
void sx_group_direct_learn(struct sx_group_worker *worker, int32_t n);
/* Rows are about to move: no codes from now on. */
void sx_group_direct_disable(struct sx_group_worker *worker);
/* Groups that the codes number, and their rows. */
int32_t sx_group_direct_groups(const struct sx_group_worker *worker, char *const **out_rows);

/* ---- aggregates ---- */

/* NULL when the function does not take the type. */
const struct sx_group_ops *sx_group_ops_number(enum sx_aggregate function, enum sx_phys phys);
const struct sx_group_ops *sx_group_ops_value(enum sx_aggregate function, enum sx_phys phys);

/* Sums of an integer block by code in i64: sums[code], with the lanes as scratch behind. False when they
 * could overflow or the type is none of integers to 64 bits. */
bool sx_group_block_sums(const struct sx_group_call *call, const uint16_t *codes, int32_t n_groups,
                         int64_t *sums);

/* ---- the group ---- */

struct sx_group_part {
    bool merged;
    char **rows; /* one per group */
    int64_t n_rows;
    int64_t capacity;
    struct sx_buffer *heap; /* keeps the strings */
};

struct sx_group {
    struct sx_group_layout layout;
    struct sx_pool *pool;
    int n_workers;
    struct sx_group_worker **workers; /* NULL until a worker's first rows */
    int n_parts;
    struct sx_group_part *parts;
};

/* Gives back the memory of a part's rows. */
void sx_group_part_release(struct sx_group *group, int index);
void sx_group_worker_destroy(struct sx_group_worker *worker, struct sx_pool *pool);
SX_MUST_CHECK enum sx_status sx_group_worker_create(const struct sx_group_layout *layout,
                                                    struct sx_stream *stream,
                                                    struct sx_group_worker **out_worker);

#endif
