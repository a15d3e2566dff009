/* Kernels of the group by. All pointers lead to device memory; each function launches on `stream` and returns
 * at once. */
#ifndef SX_BACKEND_CUDA_LAUNCH_GROUP_H
#define SX_BACKEND_CUDA_LAUNCH_GROUP_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"
#include "tensor/semantics.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- group_find.cu: the hash table ---- */

/* A key of a batch, and of the groups so far. */
struct cuda_group_key {
    struct cuda_column input;
    struct cuda_column stored;    /* FLAT, with validity; NULL rows have zeroed values */
    const uint64_t *entry_hashes; /* of a DICT input's entries, or NULL */
    int32_t n_entries;            /* where they have hashes */
    bool all_null;
    bool is_borrowed; /* strings' bytes stay where the input has them */
};

/* A batch whose rows come in the order of their key: run r is of the rows from begins[r] to begins[r + 1]. */
enum { CUDA_GROUP_SHORT_RUN = 32 };
struct cuda_group_runs {
    const int32_t *begins; /* NULL: no such batch */
    int64_t n;             /* at least one */
    bool are_short;        /* none has more than CUDA_GROUP_SHORT_RUN rows */
    int64_t head, tail;    /* groups of the first and of the last run; -1: new */
    int64_t first;         /* number of the first new group; the others follow, as their runs do */
};

SX_BOTH int64_t cuda_group_of_run(const struct cuda_group_runs *runs, int64_t run) {
    if (run == 0 && runs->head >= 0)
        return runs->head;
    if (run == runs->n - 1 && runs->tail >= 0)
        return runs->tail;
    return runs->first + run - (runs->head >= 0);
}

/* Group numbers of n rows. `width` 0: no keys, every row is of group 0; otherwise int32_t or int64_t. While
 * groups are looked for, ~slot where the row's group is new. */
struct cuda_group_numbers {
    void *numbers;
    int32_t width;
    int64_t n;
    struct cuda_group_runs runs;
};

/* Open addressing with linear probing. A slot is zero (empty), or the hash's high 24 bits, a bit that tells
 * whether the group is new in this batch, and 39 bits: 1 + the group's number, or 1 + the first row with its
 * keys. So threads compare keys with rows of the batch or with groups of earlier batches, both of which
 * nobody writes at the time: there is nothing to wait for. */
struct cuda_group_table {
    unsigned long long *slots;
    uint64_t mask; /* their number is a power of two */
};

/* hashes[i] of n valid values */
void cuda_group_hash_entries(cudaStream_t stream, struct cuda_column entries, int64_t n, uint64_t *hashes);
/* Finds or claims each row's slot. The table has room for all rows. Bytes per row: the keys and the number;
 * a slot at a random place, and the group's keys, where these are not in a cache; the latter only once for
 * equal rows that follow each other with `compares_rows`, which is worth it for keys that are cheap to
 * compare. */
void cuda_group_find(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys, bool compares_rows,
                     struct cuda_group_table table, struct cuda_group_numbers numbers);
/* The same for keys whose entries have hashes, all valid, of so many combinations (the product of n_entries)
 * and no more: a block finds out first which groups they have, so that most rows cost their codes alone. */
enum { CUDA_GROUP_COMBINATIONS = 256 };
void cuda_group_find_coded(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys,
                           int32_t combinations, struct cuda_group_table table,
                           struct cuda_group_numbers numbers);
/* flags[row] = it is the first one of a new group */
void cuda_group_flag_new(cudaStream_t stream, struct cuda_group_table table,
                         struct cuda_group_numbers numbers, uint8_t *flags);
/* Adds to *bytes those that the string keys of the new rows (*n_new of n_rows) have outside of their views.
 */
void cuda_group_new_bytes(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys, int64_t n_rows,
                          const int32_t *new_rows, const int64_t *n_new, int64_t *bytes);
/* New group i gets number `first` + i: writes keys (views as they are) and hash, and the slot, unless the
 * table has none. */
void cuda_group_publish(cudaStream_t stream, const struct cuda_group_key *keys, int n_keys,
                        struct cuda_group_table table, struct cuda_group_numbers numbers,
                        const int32_t *new_rows, int64_t n_new, int64_t first, uint64_t *hashes);
/* Rows of new groups get their numbers. */
void cuda_group_resolve(cudaStream_t stream, struct cuda_group_table table,
                        struct cuda_group_numbers numbers);
/* Puts n groups into an empty table. */
void cuda_group_rehash(cudaStream_t stream, struct cuda_group_table table, const uint64_t *hashes, int64_t n);

/* ---- group_runs.cu: rows in the order of their key ---- */

enum {
    CUDA_GROUP_DESCENT,
    CUDA_GROUP_LONG_RUN,
    CUDA_GROUP_FIRST_KEY,
    CUDA_GROUP_LAST_KEY,
    CUDA_GROUP_RUN_FACTS
};
/* flags[row] = a run begins there; `key` is FLAT, of 32 or 64 bits and without NULL. All facts
 * are zero before. The first two are 1 where a key is less than the one in front of it, and where a run has
 * more than CUDA_GROUP_SHORT_RUN rows; the others are the ends' keys. Bytes per row: the key, and 1. */
void cuda_group_begin_runs(cudaStream_t stream, struct cuda_column key, int64_t n, uint8_t *flags,
                           int64_t *facts);
/* The numbers by numbers.runs. Bytes per row: 1, and the number. */
void cuda_group_number_runs(cudaStream_t stream, const uint8_t *flags, struct cuda_group_numbers numbers);

/* ---- aggregates ---- */

/* What an aggregate reads of a batch. */
struct cuda_group_input {
    struct cuda_column values;
    struct cuda_column filter;
    int64_t base; /* what each value is more than `values` says: of sums of integers without keys */
    bool base_is_unsigned;
    bool has_filter;
    bool counts_nulls; /* COUNT_STAR, FIRST */
    bool all_null;     /* no value is read */
    struct cuda_group_numbers rows;
};

/* A sum is an integer of n_words 64-bit words (lowest first, two's complement), in units of
 * 2^(64 * first_word): exact, hence independent of the order. Integers: two words, of 128 bits three, the
 * third for overflow. Floating point: bit 0 of word 0 stands for 2^-1074, and words cover the digits met so
 * far, with 64 bits above for the number of rows: mostly 2 to 4 words, 34 at most. */
struct cuda_group_sum {
    unsigned long long *words; /* [groups * n_words] */
    int32_t n_words;
    int32_t first_word;
    unsigned long long *counts; /* of AVG, else NULL */
    uint8_t *flags;             /* [groups * flag_bytes]: had a value; NaN; infinity; -infinity */
    int32_t flag_bytes;         /* 1 or, with floating point, 4 */
};

/* Sums that get the same values; of rows without values only `counts` is there. All but the first are of
 * integers. */
enum { CUDA_GROUP_SUMS = 4 };
struct cuda_group_sums {
    struct cuda_group_sum of[CUDA_GROUP_SUMS];
    int32_t n;
};

/* What is added of a batch at once. Sums of integers and counts. */
enum { CUDA_GROUP_ROWS = SX_PHYS_COUNT }; /* what `phys` says where rows are only counted */
struct cuda_group_addition {
    struct cuda_group_input input;
    struct cuda_group_sums sums;
};
enum { CUDA_GROUP_ADDITIONS = 12 }; /* a kernel's arguments are 4 KB at most */
struct cuda_group_additions {
    struct cuda_group_addition of[CUDA_GROUP_ADDITIONS];
    int32_t n;
};

/* ---- group_sum.cu ---- */

/* Of rows without keys, the same number of all. At least one. Bytes per row: the values. */
void cuda_group_sum_one(cudaStream_t stream, const struct cuda_group_additions *additions);
/* With keys that make few groups. Bytes per row: the values, and the groups' numbers, which are read from the
 * cache but once. */
bool cuda_group_sums_few(int64_t n_groups);
void cuda_group_sum_few(cudaStream_t stream, const struct cuda_group_additions *additions, int64_t n_groups);
/* The others. */
void cuda_group_count(cudaStream_t stream, struct cuda_group_input input, int64_t n_groups,
                      unsigned long long *counts);
/* `narrow`: the batch's values lie within three words above first_narrow, bits for the number of rows
 * included (always true of integers, whose first_narrow is 0). Bytes per row: the value and its group's
 * number; with many groups a sector of sums at a random place to read and write, but in runs the sums once a
 * run. */
void cuda_group_sum(cudaStream_t stream, struct cuda_group_input input, int64_t n_groups,
                    struct cuda_group_sums sums, bool narrow, int32_t first_narrow);
/* range[0] = max of 1 + highest bit, range[1] = max of CUDA_GROUP_BITS - lowest bit, over finite values. */
enum { CUDA_GROUP_BITS = 2112 };
void cuda_group_range(cudaStream_t stream, struct cuda_group_input input, int64_t *range);
/* Sums of other words with the same meaning; `to` covers `from`. */
void cuda_group_widen(cudaStream_t stream, struct cuda_group_sum from, struct cuda_group_sum to, int64_t n);

/* ---- group_best.cu ---- */

/* MIN and MAX of values to 64 bits: best[g] is the greatest of the values' images in unsigned order (MIN:
 * of their complements), seen[g] 1 if there is one. */
void cuda_group_best(cudaStream_t stream, struct cuda_group_input input, int64_t n_groups, bool max,
                     unsigned long long *best, uint8_t *seen);

enum cuda_group_choice { CUDA_GROUP_MIN, CUDA_GROUP_MAX, CUDA_GROUP_FIRST };
/* All others: the batch's best row of a group is found by compare-and-swap, then its value is kept. */
struct cuda_group_kept {
    void *values;
    uint8_t *seen;     /* 0 nothing, 1 a value, 2 NULL (FIRST) */
    uint32_t *winners; /* 0, but between choose and keep */
    int32_t width;     /* bytes of a value */
    int32_t choice;    /* enum cuda_group_choice */
};
void cuda_group_choose(cudaStream_t stream, struct cuda_group_input input, struct cuda_group_kept kept);
/* Adds to *bytes what cuda_group_keep will take of the heap. */
void cuda_group_kept_bytes(cudaStream_t stream, struct cuda_group_input input, struct cuda_group_kept kept,
                           unsigned long long *bytes);
/* *used: bytes of `heap` in use so far. Strings that fit go where the group's last one was. */
void cuda_group_keep(cudaStream_t stream, struct cuda_group_input input, struct cuda_group_kept kept,
                     char *heap, unsigned long long *used);

/* ---- group_emit.cu: results of groups first to first + n - 1 ---- */

/* Whether there was a value (or what sum.flags tells of another aggregate), and of a sum of integers the sum.
 */
struct cuda_group_result {
    struct cuda_group_sum sum;
    sx_i128 *values; /* NULL: not wanted */
    uint8_t *valid;
};
enum { CUDA_GROUP_RESULTS = 16 }; /* in one launch */
struct cuda_group_results {
    struct cuda_group_result of[CUDA_GROUP_RESULTS];
    int32_t n; /* at least one */
};
void cuda_group_emit_results(cudaStream_t stream, const struct cuda_group_results *results, int64_t first,
                             int64_t n);
void cuda_group_emit_float_sum(cudaStream_t stream, struct cuda_group_sum sum, int64_t first, int64_t n,
                               double *out, uint8_t *valid);
/* `is_small`: a sum of 16-bit values is divided in double, others as by long double. */
void cuda_group_emit_average(cudaStream_t stream, struct cuda_group_sum sum, double scale, bool is_small,
                             int64_t first, int64_t n, double *out, uint8_t *valid);
void cuda_group_emit_best(cudaStream_t stream, const unsigned long long *best, int32_t phys, bool max,
                          int64_t first, int64_t n, void *out);
/* Sums of three words; one that does not fit two is a CUDA_FAULT_SUM; detail: its words. */
struct cuda_group_checks {
    struct cuda_group_sum of[CUDA_GROUP_RESULTS];
    int32_t n; /* at least one */
};
void cuda_group_check_sums(cudaStream_t stream, const struct cuda_group_checks *checks, int64_t n,
                           struct cuda_control *control);

#ifdef __cplusplus
}
#endif
#endif
