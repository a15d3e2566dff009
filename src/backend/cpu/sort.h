/* Sorting, shared by sort_*.c.
 *
 * Every key becomes an unsigned number per row, in the wanted order: the value less the smallest one, so that
 * it takes few bits (strings: their first bytes). The keys' numbers, as many as fit, and the row make one
 * entry of 64 or 128 bits; entries are sorted as numbers by radix. Where entries do not hold the keys
 * completely, runs of equal ones are put in order by comparing the columns. */
#ifndef SX_BACKEND_CPU_SORT_H
#define SX_BACKEND_CPU_SORT_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"

enum { SX_SORT_BLOCK = 512 };

struct sx_sort_column {
    struct sx_tensor values; /* FLAT, owned */
    struct sx_sort_key order;
    bool is_wide;          /* codes take 128 bits */
    uint32_t shared_bytes; /* strings: first bytes that all have in common, left out */
    bool is_short_string;  /* the code holds all of the rest */
    bool has_null;
    bool has_value;   /* some row is not null */
    sx_u128 min, max; /* codes */
    /* the number: distance from min (descending: to max) >> halved, + 1 with nulls in front */
    int halved; /* 1 where the null would not fit otherwise */
    int bits;   /* of the number */
    int drop;   /* its low bits that are left out of the entry */
    int shift;  /* where the rest stands in the entry */
};

struct sx_sort_plan {
    struct sx_sort_column *columns;
    int n_columns;
    int64_t rows;
    int row_bits;    /* low bits of an entry: the row */
    int n_encoded;   /* columns that entries hold, the last perhaps in part */
    bool is_exact;   /* entries hold all of all columns */
    int first_loose; /* !is_exact: the column that decides between equal entries */
    bool is_wide;    /* entries take 128 bits */
};

/* Codes of rows first, … as unsigned numbers in ascending order of the values: u64 each, or u128 for a wide
 * column. */
void sx_sort_codes(const struct sx_sort_column *column, int64_t first, int64_t rows, void *out_codes);
/* Fills in what the plan needs to know of the column. */
enum sx_status sx_sort_measure(struct sx_stream *stream, struct sx_sort_column *column);
/* < 0, 0, > 0 in the wanted order, by the columns from `first_column` on. */
int sx_sort_compare(const struct sx_sort_plan *plan, int first_column, int64_t row_a, int64_t row_b);

/* Orders the rows by entries; `limit` as in sort. */
SX_MUST_CHECK enum sx_status sx_sort_narrow(struct sx_stream *stream, const struct sx_sort_plan *plan,
                                            int64_t limit, int64_t *out_rows);
SX_MUST_CHECK enum sx_status sx_sort_wide(struct sx_stream *stream, const struct sx_sort_plan *plan,
                                          int64_t limit, int64_t *out_rows);
/* Orders a run of rows with equal entries. `scratch` has room for as many. */
SX_MUST_CHECK enum sx_status sx_sort_run(struct sx_stream *stream, const struct sx_sort_plan *plan,
                                         int64_t *rows, int64_t n, int64_t *scratch);

#endif
