/* Functions of join_*.cu. As in launch.h each launches on `stream`, and pointers lead to device memory. */
#ifndef SX_BACKEND_CUDA_LAUNCH_JOIN_H
#define SX_BACKEND_CUDA_LAUNCH_JOIN_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"
#include "backend/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How values of a key are held against each other: WORD are types of up to 64 bits and floats, WIDE those of
 * 128 bits and intervals. */
enum cuda_join_form { CUDA_JOIN_WORD, CUDA_JOIN_WIDE, CUDA_JOIN_TEXT };

struct cuda_join_key {
    struct cuda_column column;
    int32_t form;       /* enum cuda_join_form */
    int32_t null_equal; /* else NULL matches nothing */
};

struct cuda_join_keys {
    struct cuda_join_key first;
    const struct cuda_join_key *all; /* [n]; NULL for one key of the form WORD, which kernels get by value */
    int32_t n;
};

/* Of a key's words: values, but for UBIGINT with the high bit flipped, so that they are in order. As the
 * device keeps it, all zero while there are no rows: max is the greatest word with its high bit flipped, and
 * below the greatest of their complements. */
struct cuda_join_bounds {
    uint64_t below, max;
    int64_t has_null;
};
enum { CUDA_JOIN_BOUNDS_WORDS = 3 };

/* Places of a ranked table: which of them are taken, and how many are in front of them. */
enum { CUDA_JOIN_PLACES = 32 };
struct __attribute__((aligned(8))) cuda_join_rank {
    uint32_t taken, before;
};

/* Slots of open addressing lie in buckets, each a sector of the device's memory, which a look-up reads at
 * once: what is accessed at random costs by sectors. */
enum { CUDA_JOIN_BUCKET_BYTES = 32 };
/* Slots of 4 bytes are for fewer build rows than CUDA_JOIN_NARROW_ROWS, so that 4 bits and more of each are
 * a tag. One block ranks up to CUDA_JOIN_FEW_RANKS. */
#ifdef SX_CUDA_EMULATED
enum { CUDA_JOIN_NARROW_ROWS = 1 << 12, CUDA_JOIN_FEW_RANKS = 3 << 9 };
#else
enum { CUDA_JOIN_NARROW_ROWS = 1 << 28, CUDA_JOIN_FEW_RANKS = 8 << 10 };
#endif

/* A table maps keys to slots, and a slot to a build row.
 *   ranked    one WORD key of a small range: word - min is its place, and one more is that of NULL where it
 *             matches; a slot is how many places are taken in front of the key's
 *   otherwise open addressing; a slot has the row + 1 in its low row_bits bits and a tag of the hash above
 * The row stands for all build rows with its keys. Those are runs[starts[slot]] to runs[starts[slot + 1]],
 * unless keys are unique. */
struct cuda_join_table {
    struct cuda_join_keys keys;    /* of the build rows, FLAT */
    void *slots;                   /* [n_slots] of uint32_t, or of uint64_t; whole buckets */
    struct cuda_join_rank *ranked; /* [n_words / CUDA_JOIN_PLACES + 1], or NULL */
    uint32_t *row_of;              /* ranked: [n_slots]; NULL: a slot is its row */
    uint64_t n_slots;
    uint32_t row_bits, slot_bytes;
    int64_t min;      /* ranked: */
    uint64_t n_words; /* words from min to the greatest */
    uint32_t *filter; /* a bloom filter; NULL: none yet, or ranked */
    uint64_t filter_words;
    const int64_t *starts; /* [n_slots + 1]; NULL: keys are unique */
    const int64_t *runs;
};

/* ---- build: join_build.cu ---- */

/* Widens *bounds by `rows` rows; of a key that is no WORD only has_null. */
void cuda_join_widen(cudaStream_t stream, const struct cuda_join_key *key, int64_t rows,
                     struct cuda_join_bounds *bounds);
/* Takes places of a ranked table, which is all zero before, and sets *duplicates when two rows have one. */
void cuda_join_take_places(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows,
                           int64_t *duplicates);
/* Tells how many places are taken in front of each of ranked[0 … n - 1], and *out_slots of all; n up to
 * CUDA_JOIN_FEW_RANKS. The two that follow do the same for more. */
void cuda_join_rank_few(cudaStream_t stream, struct cuda_join_rank *ranked, int64_t n, int64_t *out_slots);
/* counts[i]: places taken of ranked[i], i < n */
void cuda_join_count_places(cudaStream_t stream, const struct cuda_join_rank *ranked, int64_t n,
                            int32_t *out_counts);
/* From those counts' sums, [n + 1]; the last one is *out_slots. */
void cuda_join_set_ranks(cudaStream_t stream, struct cuda_join_rank *ranked, int64_t n, const int64_t *sums,
                         int64_t *out_slots);
/* Of each build row, in a ranked table that is whole: its slot, -1 where it matches nothing. */
void cuda_join_list_slots(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows,
                          int64_t *out_slots);
/* The same to the table's row_of: one of the rows of each slot. */
void cuda_join_list_rows(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows);
/* Gives build rows first … first + rows - 1 their slots in open addressing, out_slots[row], -1 where a row
 * matches nothing, and sets *duplicates when two have one. The table is all zero before the first ones. */
void cuda_join_claim(cudaStream_t stream, const struct cuda_join_table *table, int64_t first, int64_t rows,
                     int64_t *out_slots, int64_t *duplicates);
/* Adds the rows of each slot to counts[slot]; out_ranks[i] rows of row i's slot came before it. */
void cuda_join_count(cudaStream_t stream, const int64_t *slots, int64_t rows, int64_t *counts,
                     int64_t *out_ranks);
/* runs[starts[slots[i]] + ranks[i]] = i */
void cuda_join_fill(cudaStream_t stream, const int64_t *slots, const int64_t *ranks, int64_t rows,
                    const int64_t *starts, int64_t *runs);
/* Fills the bloom filter of a table that is not ranked; it is all zero before. */
void cuda_join_fill_filter(cudaStream_t stream, const struct cuda_join_table *table, int64_t rows);

/* ---- probe: join_probe.cu ---- */

/* What was found for the entries of a dictionary, of which the only key's rows are codes; any may be NULL. */
struct cuda_join_found {
    const int64_t *entries;
    const int64_t *counts;
    const uint8_t *flags;
};

/* Looks probe rows up. With `out_counts`: how many build rows match, and in out_entries where their run
 * begins. Otherwise out_flags tells whether any does, and out_entries has one of them. */
void cuda_join_find(cudaStream_t stream, const struct cuda_join_table *table,
                    const struct cuda_join_keys *keys, const struct cuda_join_found *by_code, int64_t rows,
                    int64_t *out_entries, int64_t *out_counts, uint8_t *out_flags);
/* flags[i]: whether row selection[i] (NULL: i) may have a match. */
void cuda_join_test(cudaStream_t stream, const struct cuda_join_table *table,
                    const struct cuda_join_keys *keys, const struct cuda_join_found *by_code,
                    const int32_t *selection, int64_t n, uint8_t *out_flags);

/* Pairs that a call gives: `n` from number `start` on; and where the next call goes on. */
struct cuda_join_round {
    int64_t start, n;
    int64_t row, entry;
};
/* The round that begins at `row`, whose `entry` first matches were given. `index`: *n_index rows with a match
 * each. */
void cuda_join_round_of_index(cudaStream_t stream, const int32_t *index, const int64_t *n_index, int64_t rows,
                              int64_t row, int64_t max_pairs, struct cuda_join_round *out_round);
/* `sums`: matches of the rows before, [rows + 1] */
void cuda_join_round_of_sums(cudaStream_t stream, const int64_t *sums, int64_t rows, int64_t row,
                             int64_t entry, int64_t max_pairs, struct cuda_join_round *out_round);

/* out_build_rows[j] = entries[index[j]] */
void cuda_join_emit_first(cudaStream_t stream, const int32_t *index, const int64_t *entries, int64_t n,
                          int64_t *out_build_rows);
/* Pairs start, start + 1, … of rows whose runs begin at entries[row]. */
void cuda_join_emit_runs(cudaStream_t stream, const int64_t *sums, int64_t rows, const int64_t *entries,
                         const int64_t *runs, int64_t start, int64_t n, int32_t *out_probe_rows,
                         int64_t *out_build_rows);
/* Pairs of row `row`'s build row `entry` on, every row having `build_rows` of them. */
void cuda_join_emit_cross(cudaStream_t stream, int64_t row, int64_t entry, int64_t build_rows, int64_t n,
                          int32_t *out_probe_rows, int64_t *out_build_rows);
/* marks[rows[i]] = 1 */
void cuda_join_set_marks(cudaStream_t stream, const int64_t *rows, int64_t n, uint8_t *marks);

/* ---- probe and payload: join_take.cu ---- */

/* What of a row's word of 8 bytes goes to a pair's place of a column, or of its validity. */
struct cuda_join_piece {
    uint8_t *to;        /* the first pair's */
    uint8_t step;       /* bytes from pair to pair */
    uint8_t width;      /* 1, 2, 4 or 8 */
    uint8_t shift_bits; /* into the word */
};
/* Of rows of 8, 16, 32 or 64 bytes. */
enum { CUDA_JOIN_MOST_TAKEN = 64, CUDA_JOIN_TAKEN_WORDS = CUDA_JOIN_MOST_TAKEN / 8 };
struct cuda_join_take {
    struct cuda_join_table table; /* unique keys; ranked, or narrow */
    struct cuda_join_keys keys;   /* of probe rows: one of the form WORD that matches no NULL, or ranked */
    int64_t n;                    /* probe rows, at least one */
    const uint8_t *rows;          /* of the build side */
    uint32_t step, key_at;        /* not ranked: where a row has its key */
    struct cuda_join_piece pieces[3 * CUDA_MOVES]; /* by words: */
    uint8_t first_piece[CUDA_JOIN_TAKEN_WORDS + 1];
    int32_t *out_probe_rows; /* ascending; room for n of these and of each column */
    int64_t *out_build_rows; /* NULL: not wanted */
    int64_t *out_count;      /* pairs */
    void *scratch;           /* cuda_tile_bytes of: */
};
int64_t cuda_join_take_tiles(int64_t n);
void cuda_join_take(cudaStream_t stream, const struct cuda_join_take *take);

#ifdef __cplusplus
}
#endif
#endif
