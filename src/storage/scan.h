/* Reading Parquet tables: footers (cached), pruning, and one reader pool for all scans of a query (PystachIO,
 * sections 4.2 and 5.2). Gives row groups whose bytes are in memory; decoding them is the backend's. */
#ifndef SX_STORAGE_SCAN_H
#define SX_STORAGE_SCAN_H

#include "storage/reader.h"
#include "tensor/page.h"

struct sx_backend;
struct sx_storage;
struct sx_scan;
struct sx_trace;
struct sx_footprint;
struct sx_reuse;

struct sx_storage_options {
    struct sx_pool *pool; /* for what is read from files */
    struct sx_pool
        *direct_pool;       /* for what is read past the page cache, see sx_reader_create; NULL: `pool` */
    struct sx_pool *budget; /* whose limit `pool` counts in; NULL: its own */
    int n_reader_threads;
    enum sx_io io;
    const struct sx_backend *backend; /* into whose memory files may be read; NULL: none */
    int64_t page_cache_bytes;         /* see sx_reader_create */
    size_t cache_bytes; /* most bytes of column chunks kept in `pool` for later scans; 0: none */
};

/* Footer cache, cache of column chunks, and reader threads. The pools must outlive it. */
SX_MUST_CHECK enum sx_status sx_storage_create(const struct sx_storage_options *options,
                                               struct sx_storage **out_storage, struct sx_error *error);
void sx_storage_destroy(struct sx_storage *storage);

/* Room to read ahead: row groups of 170 MB, of which one is being taken and two are being read. */
enum { SX_QUEUE_BYTES = 512 << 20 };

/* A conjunct that statistics, page index, bloom filters and dictionaries may use. */
enum sx_prune_op {
    SX_PRUNE_EQ,
    SX_PRUNE_LT,
    SX_PRUNE_LE,
    SX_PRUNE_GT,
    SX_PRUNE_GE,
    SX_PRUNE_IN,
    SX_PRUNE_NULL,
    SX_PRUNE_NOT_NULL
};
struct sx_prune {
    int column; /* index into the request's columns */
    enum sx_prune_op op;
    const struct sx_scalar *values; /* one, or several for IN; the column's type */
    int n_values;
};

struct sx_scan_request {
    const char *table; /* for messages */
    const char *const *files;
    int n_files;
    const char *const
        *column_names; /* as in the file's schema; matched by name in each file, so order may differ */
    const struct sx_type *column_types;
    int n_columns; /* may be 0: only row counts are wanted */
    const struct sx_prune *prunes;
    int n_prunes;
    bool keep_dictionaries;
    /* Row groups are given in batches of consecutive ones, with about so many rows; down to 1/8 of them where
     * the table would not make four batches, and to 1/4 towards the end. 0: each alone. */
    int64_t batch_rows;
    /* Only the row groups of share `share` out of n_shares: consecutive ones, with about as many bytes as
     * another share's. Every row group is in one share. n_shares 0: all. */
    int share, n_shares;
    const bool *is_local; /* of each file; NULL: all are. Only what is in these is read, or shared; of the
                           * others no   more than the footers has to be there */
    /* Only some row groups of those, evenly spaced, with about so many rows; one at least. 0: all. */
    int64_t sample_rows;
    size_t queue_bytes; /* most bytes read ahead and not yet taken (adaptive regulation, PystachIO, 5.4) */
    struct sx_trace *trace;         /* of reads and waits; may be NULL; outlives the scan */
    struct sx_footprint *footprint; /* gets what is read, or taken from the cache; may be NULL; outlives it */
    struct sx_reuse *reuse;         /* of the query; NULL: none; outlives the row groups */
    const int *n_readers; /* scans of the query that read a column, this one included; NULL: no other does */
};

/* Everything in the request is copied. Reads the footers (from the cache when file and mtime are unchanged)
 * and checks that every file has the columns with convertible types (SX_FILE error naming file and column;
 * SX_UNSUPPORTED for a nested column or a type that the engine has no reading for). Reading starts with the
 * first sx_scan_next or sx_scan_prefetch. `cancel` may be NULL. */
SX_MUST_CHECK enum sx_status sx_scan_open(struct sx_storage *storage, const struct sx_scan_request *request,
                                          const atomic_bool *cancel, struct sx_scan **out_scan,
                                          struct sx_error *error);
/* Waits for reads in flight. Row groups taken stay valid until they are released. */
void sx_scan_close(struct sx_scan *scan);
/* Batches of row groups and their columns' stored bytes, before any is pruned. */
void sx_scan_size(const struct sx_scan *scan, int64_t *out_batches, int64_t *out_bytes);
/* Whether all of it has been taken, or is read for those who wait for it. */
bool sx_scan_is_spent(struct sx_scan *scan);
/* Whether the cache seems to have the next batch: its first chunk, at least. */
bool sx_scan_is_cached(struct sx_scan *scan);
/* Lets the reader pool begin ahead of the first sx_scan_next. */
void sx_scan_prefetch(struct sx_scan *scan);

/* Range filter found while running (the build side's keys): row groups and pages outside [min, max] that have
 * not been read yet are dropped; NULLs too. Column of integer, decimal (to 18 digits), date or timestamp
 * type. Thread-safe. */
void sx_scan_restrict(struct sx_scan *scan, int column, int64_t min, int64_t max);

struct sx_row_range {
    int64_t first; /* row within the row group */
    int64_t rows;
};

struct sx_row_group {
    const char *path;
    int index; /* in its file */
    int64_t n_rows;
    struct sx_stored_chunk *columns; /* one for each of the request's columns */
    int n_columns;
    const struct sx_row_range *ranges; /* rows that pruning leaves, ascending, disjoint */
    int n_ranges;
    int64_t first_row; /* rows of the table in front of this row group: files and row groups in order */
    struct sx_row_group *next; /* in the batch */
};

/* Like sx_scan_next, for a caller that will not work on the batch at once: *out NULL also where that would
 * take long or much memory. */
SX_MUST_CHECK enum sx_status sx_scan_next_early(struct sx_scan *scan, struct sx_row_group **out_group,
                                                struct sx_error *error);
/* The next batch of row groups, or *out NULL at the end. Blocks until its bytes are there. Thread-safe: each
 * batch goes to one caller. Errors name file, row group and column. After an error or the end, every further
 * call tells the same. */
SX_MUST_CHECK enum sx_status sx_scan_next(struct sx_scan *scan, struct sx_row_group **out_group,
                                          struct sx_error *error);
/* The whole batch. */
void sx_row_group_release(struct sx_row_group *first);

/* Numbers that no value of a column is below or above, and whether there may be NULLs besides; false: they
 * are not known, or the column is not of integers or dates. */
bool sx_row_group_integers(const struct sx_row_group *group, int column, int64_t *out_min, int64_t *out_max,
                           bool *out_nulls);

/* Puts "FILE, row group N, column C" in front of a decoding error. */
enum sx_status sx_row_group_error(const struct sx_row_group *group, const struct sx_scan *scan, int column,
                                  struct sx_error *error);

struct sx_scan_progress {
    int64_t total_rows; /* of all row groups, before pruning */
    int64_t done_rows;  /* handed out or pruned */
    int64_t pruned_rows;
    int64_t read_bytes;
    int64_t device_bytes; /* of them, straight into the device's memory */
    int64_t cached_bytes; /* that a cache had */
    int64_t row_groups;
    int64_t pruned_row_groups;
};
void sx_scan_progress(const struct sx_scan *scan, struct sx_scan_progress *out_progress);

/* Why tables that SX_IO_AUTO would read straight into the device's memory are not; "" where none was, or they
 * are. */
enum { SX_STORAGE_REASON_BYTES = 256 };
void sx_storage_device_reason(struct sx_storage *storage, char out_reason[SX_STORAGE_REASON_BYTES]);

/* Rows of a table from its footers alone. */
SX_MUST_CHECK enum sx_status sx_storage_count_rows(struct sx_storage *storage, const char *const *files,
                                                   int n_files, int64_t *out_rows, struct sx_error *error);

/* Bytes of these columns in all files, as they are before they are compressed. A column that a file has not
 * is left out. */
SX_MUST_CHECK enum sx_status sx_storage_plain_bytes(struct sx_storage *storage, const char *const *files,
                                                    int n_files, const char *const *columns, int n_columns,
                                                    int64_t *out_bytes, struct sx_error *error);

/* ---- shares.c ---- */

/* Whether the shares of a scan of these columns (sx_scan_request.share) are ranges of columns[key] that
 * follow each other, as row groups' statistics say: no value of a share is below any of the shares before,
 * and few equal one. Then out_ends[s] is the largest value in shares 0 to s, for all but the last. Integers
 * and dates only; NULLs may be anywhere. Not found where one share has all rows, or the first one none. */
SX_MUST_CHECK enum sx_status sx_storage_share_ends(struct sx_storage *storage, const char *const *files,
                                                   int n_files, const char *const *columns, int n_columns,
                                                   int key, int n_shares, int64_t *out_ends, bool *out_found,
                                                   struct sx_error *error);

/* ---- required.c ---- */

/* Whether the schemas of all files say that the column has no nulls. */
SX_MUST_CHECK enum sx_status sx_storage_is_required(struct sx_storage *storage, const char *const *files,
                                                    int n_files, const char *column, bool *out_required,
                                                    struct sx_error *error);

/* ---- identity.c ---- */

/* Of the files' sizes and footers, and not of their names and times: the same wherever the same files are. */
SX_MUST_CHECK enum sx_status sx_storage_hash_files(struct sx_storage *storage, const char *const *files,
                                                   int n_files, uint64_t *out_hash, struct sx_error *error);

#endif
