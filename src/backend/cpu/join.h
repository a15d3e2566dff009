/* Hash join, shared by join_*.c.
 *
 * Build: every worker copies its batches into chunks of its own (join_append.c), with the keys in normal
 * form: types of up to 64 bits and floats as one 64-bit word, wider numbers as 128 bits, strings as views.
 * join_finish numbers the rows (chunk after chunk), looks at the ranges of the keys and picks the table:
 *   DIRECT   the key words, taken as digits of a number, make a small range: an array over that range
 *   SPARSE   that number fits 64 bits: open addressing with the number in the slot
 *   GENERIC  everything else: open addressing with a tag of the hash in the slot, keys compared by column
 *   CROSS    no keys
 * A table maps keys to an entry, 0 being none. While it is built that is a build row + 1, and `groups` has
 * for every row the entry of its key. With unique keys it stays so; otherwise build rows are then sorted by
 * group into `runs`, and an entry is a position in there + 1 (join_runs.c). Parts insert ranges of rows at
 * the same time. */
#ifndef SX_BACKEND_CPU_JOIN_H
#define SX_BACKEND_CPU_JOIN_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"
#include "backend/cpu/move_unify.h"

enum { SX_JOIN_BLOCK = 512 }; /* rows that are looked up or inserted together */

#define SX_JOIN_NONE UINT64_MAX /* number of a row that matches nothing */

/* From so many rows on, rows and entries take 64 bits. Tests lower it. */
#ifndef SX_JOIN_WIDE_ROWS
#define SX_JOIN_WIDE_ROWS (INT64_C(1) << 31)
#endif

enum sx_join_form { SX_JOIN_WORD, SX_JOIN_WIDE, SX_JOIN_TEXT };
enum sx_join_kind { SX_JOIN_DIRECT, SX_JOIN_SPARSE, SX_JOIN_GENERIC, SX_JOIN_CROSS };

/* Words of one key over the build rows. */
struct sx_join_range {
    int64_t min, max; /* min > max: no row is valid */
    bool has_null;
};

struct sx_join_chunk {
    int64_t first_row; /* set by join_finish */
    int64_t rows;
    int64_t capacity;
    struct sx_tensor *columns; /* keys in normal form, then payload; FLAT; length = capacity */
};

/* A worker's column of payload strings. */
struct sx_join_codes {
    bool on; /* the chunks hold I32 numbers of the following instead of views */
    struct sx_unified unified;
    int64_t flat_rows; /* rows that came FLAT */
};

struct sx_join_worker {
    struct sx_join_chunk *chunks;
    int n_chunks;
    struct sx_string_heap heap;   /* of all string columns */
    struct sx_join_range *ranges; /* [n_keys] */
    struct sx_join_codes *codes;  /* [n_payload] */
    int64_t rows;
};

/* One key as a digit: (word - min) * stride, for words within `count` of min. */
struct sx_join_digit {
    int64_t min;
    uint64_t count;
    uint64_t stride;
    uint64_t null_digit; /* what NULL counts as, times stride; SX_JOIN_NONE: matches nothing */
};

struct sx_join_slot {
    uint64_t number; /* + 1; 0: empty */
    uint64_t entry;
};

struct sx_join {
    int n_keys, n_payload, n_workers;
    struct sx_type *key_types;
    struct sx_type *column_types; /* as stored: keys in normal form, then payload */
    enum sx_join_form *forms;     /* [n_keys] */
    bool *null_equal;             /* [n_keys] */
    bool track_matches;
    bool shows_range; /* join_info gives the range of the only key, */
    bool is_unsigned; /* which is UBIGINT */
    struct sx_join_worker *workers;
    struct sx_pool *pool;

    /* set by join_finish */
    int64_t rows;
    struct sx_join_chunk **chunks; /* of all workers, by first_row */
    int n_chunks;
    enum sx_join_kind kind;
    struct sx_join_range *ranges; /* [n_keys] */
    struct sx_join_digit *digits; /* [n_keys]; DIRECT and SPARSE */
    uint64_t none;                /* what `number` is for rows without a match: the last entry of `direct`, or
                                     SX_JOIN_NONE */
    uint64_t table_slots;
    size_t table_bytes;
    void *table;
    uint32_t *direct;            /* the table as DIRECT[table_slots], */
    struct sx_join_slot *sparse; /* as SPARSE[table_slots], */
    uint64_t *generic;           /* as GENERIC[table_slots]: tag in the high 16 bits, entry below */
    struct sx_tensor *keys;      /* [n_keys], GENERIC: all build rows in normal form */
    bool is_wide;                /* the elements of the following are u64, otherwise u32 */
    size_t groups_bytes;         /* of each */
    void *groups;                /* [rows], while building */
    void *runs;                  /* [rows], NULL: keys are unique; the high bit marks the last of a run */
    void *starts;                /* [rows], GENERIC with runs: where the run of a group begins */
    size_t filter_bytes;
    uint64_t *filter;     /* one key only, may be NULL: */
    uint64_t filter_bits; /* a bit a number, and one for no match, which is never set; 0: a bloom filter */
    uint64_t filter_words;
    struct sx_buffer *heap;
    struct sx_tensor *payload; /* [n_payload] */
    uint8_t *marks;            /* [rows] */
    int n_parts;

    /* join_build */
    atomic_int next_payload;
    atomic_int parts_left;
    atomic_bool has_duplicates;
};

/* ---- keys: join_key.c ---- */

enum sx_join_form sx_join_form_of(struct sx_type type);
struct sx_type sx_join_form_type(enum sx_join_form form);
/* Values `first` to first + rows of a FLAT key in normal form. Returns `scratch`, or a pointer into the key
 * where that is its normal form already. */
const void *sx_join_normalise(const struct sx_tensor *key, int64_t first, int64_t rows, void *scratch);
void sx_join_widen_range(struct sx_join_range *range, const int64_t *words, const uint8_t *valid,
                         int64_t rows);

/* Up to SX_JOIN_BLOCK rows of the keys, in normal form. */
struct sx_join_keys {
    const void **values;   /* [n_keys] */
    const uint8_t **valid; /* [n_keys], NULL: no nulls */
};

/* DIRECT, SPARSE: each row's number, join->none where it can't match. */
void sx_join_numbers(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                     uint64_t *out_numbers);
/* GENERIC: hashes, and whether the row can match. */
void sx_join_hashes(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                    uint64_t *out_hashes, uint8_t *out_matchable);

/* ---- build side: join_build.c ---- */

/* Column i of all chunks, cut to their rows; the only chunk's is shared. Strings are views. */
SX_MUST_CHECK enum sx_status sx_join_concat_chunks(struct sx_stream *stream, const struct sx_join *join,
                                                   int i, struct sx_tensor *out);

/* ---- payload strings: join_payload.c ---- */

/* What a worker's next chunk holds for a column (payload behind keys). */
struct sx_type sx_join_stored_type(const struct sx_join *join, const struct sx_join_worker *worker,
                                   int column);
/* Puts the codes of payload column k behind the chunk's; when they are not worth it, the worker's codes are
 * stopped and nothing is put. */
SX_MUST_CHECK enum sx_status sx_join_codes_append(struct sx_stream *stream, const struct sx_join *join,
                                                  struct sx_join_worker *worker,
                                                  const struct sx_join_chunk *chunk, int k,
                                                  const struct sx_tensor *column);
/* Turns codes into views. */
SX_MUST_CHECK enum sx_status sx_join_codes_stop(struct sx_stream *stream, const struct sx_join *join,
                                                struct sx_join_worker *worker, int k);
/* Payload column k over all chunks. */
SX_MUST_CHECK enum sx_status sx_join_payload_strings(struct sx_stream *stream, const struct sx_join *join,
                                                     int k, struct sx_tensor *out);

/* ---- tables: join_table.c ---- */

/* Inserts build rows first, first + 1, …; true when some key was there already. */
bool sx_join_insert(struct sx_join *join, const struct sx_join_keys *keys, int64_t first, int64_t rows);
/* Entry of the first build row with equal keys, or 0. */
void sx_join_lookup(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                    uint64_t *out_entries);

/* ---- comparing: join_compare.c ---- */

/* GENERIC: whether rows[l] of the block, up to SX_JOIN_BLOCK of them, has the keys of build_rows[l]. Of two
 * NULLs it says yes. */
void sx_join_compare(const struct sx_join *join, const struct sx_join_keys *keys, const uint16_t *rows,
                     const uint64_t *build_rows, int64_t n, uint8_t *out_equal);

/* ---- runs of equal keys: join_runs.c ---- */

/* Sorts the rows by group and points the table at the runs. */
SX_MUST_CHECK enum sx_status sx_join_make_runs(struct sx_stream *stream, struct sx_join *join);

/* GENERIC: entries that are rows become entries of their runs. */
void sx_join_run_entries(const struct sx_join *join, uint64_t *entries, int64_t n);

/* Entries become the build rows + 1 that come first under them; 0 stays. */
void sx_join_first_rows(const struct sx_join *join, uint64_t *entries, int64_t n);

/* Pairs of probe rows row, row + 1, … with the runs under their entries; there is room for `room`. */
struct sx_join_emission {
    int64_t row, n_rows;   /* in, and what is left */
    uint64_t *entries;     /* [n_rows], likewise; the first may point into the middle of a run */
    int64_t room, n_pairs; /* in; out */
    int32_t *probe_rows;
    int64_t *build_rows;
};
void sx_join_emit_runs(const struct sx_join *join, struct sx_join_emission *emission);

/* ---- filter: join_filter.c ---- */

/* Sets filter_words and filter_bytes; 0: there is none, or the table serves. */
void sx_join_filter_size(struct sx_join *join);
void sx_join_filter_insert(struct sx_join *join, const uint64_t *numbers_or_hashes, int64_t rows);

/* ---- probe side: join_probe.c ---- */

/* The columns of a probe batch, made FLAT, and room for a block of them in normal form. */
struct sx_join_probe {
    const struct sx_join *join;
    struct sx_tensor *columns; /* [n_keys] */
    void **scratch;            /* [n_keys], SX_JOIN_BLOCK values each */
    struct sx_join_keys keys;
    void *memory;
    size_t memory_bytes;
};

SX_MUST_CHECK enum sx_status sx_join_probe_open(struct sx_stream *stream, const struct sx_join *join,
                                                const struct sx_tensor *keys,
                                                struct sx_join_probe *out_probe);
/* Points probe->keys at rows [first, first + rows). */
void sx_join_probe_block(struct sx_join_probe *probe, int64_t first, int64_t rows);
void sx_join_probe_close(struct sx_join_probe *probe);

#endif
