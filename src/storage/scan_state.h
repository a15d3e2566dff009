/* Shared by the parts of a scan: reader pool, columns, selection, fetching. */
#ifndef SX_STORAGE_SCAN_STATE_H
#define SX_STORAGE_SCAN_STATE_H

#include <pthread.h>

#include "observe/trace.h"
#include "storage/cache.h"
#include "storage/device_reader.h"
#include "storage/file.h"
#include "storage/footprint.h"
#include "storage/page_index.h"
#include "storage/page_walk.h"
#include "storage/scan.h"

/* Of notes on what the device has. */
enum { SX_PLACES_BYTES = 64 << 20, SX_REUSE_PARTS = 16 };

struct sx_storage {
    struct sx_pool *pool;
    struct sx_pool *budget; /* for what is not read from files */
    struct sx_footer_cache *footers;
    struct sx_stand_ins *stand_ins; /* NULL: none yet */
    struct sx_chunk_cache *cache;   /* NULL: none */
    struct sx_reader *reader;
    struct sx_device_reader *device_reader; /* NULL: none */
    const struct sx_backend *backend;       /* NULL: none */
    /* Where the device's cache may have what was read to the device: entries without bytes. NULL: there is no
     * such cache. */
    struct sx_chunk_cache *on_device;
    atomic_uint_fast64_t places_bytes; /* that have been given to such entries */
    pthread_t *threads;
    int n_threads;
    pthread_mutex_t lock; /* also of the scans' queues */
    pthread_cond_t work;
    struct sx_scan *scans;  /* in order of opening */
    size_t in_flight_bytes; /* that reader threads are waiting for, about */
    bool stopping;
};

/* See reuse.h. */
struct sx_reuse {
    const struct sx_backend *backend;
    size_t limit_bytes, values_bytes;
    /* Entries without bytes, whose numbers the device's cache knows; several, since all workers tell of their
     * row groups at about the same time. */
    struct sx_chunk_cache *places[SX_REUSE_PARTS];
};

struct scan_file {
    const char *path;
    const char *trace_name; /* lives as long as the trace */
    struct sx_footer *footer;
    struct sx_file_stamp stamp;
    int *columns; /* index into the footer's columns for each column of the request */
    /* Under files_lock. */
    int fd; /* -1 before the first use and after the last */
    int n_units_left;
    bool was_offered;                /* to the device reader, */
    struct sx_device_source *device; /* which took it */
};

/* A row group of the table. */
struct scan_unit {
    int file;
    int group;
    int64_t first_row;
    int batch; /* that it is in */
};

enum batch_state { BATCH_WAITING, BATCH_READING, BATCH_DONE };

/* Consecutive row groups that go to one caller. */
struct scan_batch {
    int first_unit, n_units;
    /* Under the storage's lock. */
    enum batch_state state;
    bool is_ahead;          /* being read by a reader thread, */
    size_t left_bytes;      /* which waits for so many, about, */
    size_t in_flight_bytes; /* so many of them at the same time */
};

struct scan_layout; /* scan_layout.h */

/* What pruning did to the row groups of a batch. */
struct scan_tally {
    int64_t pruned_rows;
    int64_t pruned_groups, rows_of_pruned_groups;
};

/* The first of a batch stands for all of it. */
struct scan_group {
    struct sx_row_group group;
    struct sx_scan *scan; /* one reference */
    struct sx_page_list pages;
    struct sx_stored_span *spans; /* of all columns */
    int n_spans;
    int unit;
    int batch;           /* of the first one in it */
    size_t queued_bytes; /* what it counts for in the queue */
    struct scan_tally tally;
    struct scan_group *next; /* first of the next batch in the queue */
};

/* Rows of a row group that may pass, and where their pages are. */
struct scan_selection {
    struct sx_arena *arena;        /* the batch's */
    struct sx_row_ranges rows;     /* none: pruned */
    struct sx_page_places *places; /* for each column of the request; NULL: every page is wanted */
    bool *is_whole;                /* for each of them: read as a whole, though some pages are not wanted */
};
/* NULL: the column's chunk has no page index, or every page of it is wanted. */
static inline const struct sx_page_places *scan_index(const struct scan_selection *selection, int column) {
    return selection->places && selection->places[column].places ? &selection->places[column] : NULL;
}
/* NULL: the column's chunk is read as a whole. */
static inline const struct sx_page_places *scan_places(const struct scan_selection *selection, int column) {
    const struct sx_page_places *places = scan_index(selection, column);
    return places && !selection->is_whole[column] ? places : NULL;
}

/* How much a way of pruning looked at and dropped; it is given up when it does not pay. */
struct scan_profit {
    atomic_int tried;
    atomic_int_fast64_t rows_in, rows_dropped;
};

struct sx_scan {
    struct sx_storage *storage;
    struct sx_arena arena;
    const atomic_bool *cancel;
    struct sx_trace *trace;
    struct sx_footprint *footprint; /* may be NULL */

    const char *table;
    const char **column_names;
    struct sx_type *column_types;
    struct sx_prune *prunes;
    int n_columns;
    int n_prunes;
    bool keep_dictionaries;
    int64_t batch_rows; /* 0: one row group at a time */
    size_t queue_bytes;
    struct sx_reuse *reuse; /* NULL: none */
    int *n_readers;         /* of each column; with `reuse` */

    struct scan_file *files;
    int64_t files_bytes; /* of all files that are read, together */
    struct scan_unit *units;
    struct scan_batch *batches;
    int n_files, n_units, n_batches;
    int64_t stored_bytes; /* of the columns in all units, about */
    atomic_int references;
    pthread_mutex_t files_lock;

    /* Under the storage's lock. */
    struct sx_scan *next;
    pthread_cond_t changed;
    bool *is_restricted; /* for each column */
    int64_t *restricted_min, *restricted_max;
    atomic_int n_restrictions; /* that there have been */
    int cursor;                /* no batch in front of it is waiting */
    int front;                 /* nor being read ahead */
    struct scan_group *ready;  /* in the order of the batches */
    int n_ready;
    int n_taken;
    int n_reading; /* by anyone */
    int n_ahead;   /* by the reader threads */
    int64_t n_releases;
    size_t queued_bytes;
    bool is_started;
    bool is_starved; /* the pool refused memory for reading ahead */
    bool is_closed;
    struct sx_error error;

    atomic_int cold_batches; /* batches still to be read ahead, since the page cache lacked one */
    struct scan_profit index_profit, bloom_profit;
    int64_t total_rows;
    atomic_int_fast64_t done_rows, pruned_rows, read_bytes, device_bytes, cached_bytes, pruned_groups;
};

/* ---- scan_batches.c ---- */

/* Of the row groups that the scan has. */
SX_MUST_CHECK enum sx_status scan_list_batches(struct sx_scan *scan, struct sx_error *error);

/* ---- scan_columns.c ---- */

/* Matches the request's columns with the file's and checks that every row group can be read. */
SX_MUST_CHECK enum sx_status scan_match_columns(struct sx_scan *scan, int file, struct sx_error *error);

/* ---- scan_select.c ---- */

/* Of each of the batch's units; what is in out_selections is in `arena`. SX_CANCELLED: the scan was. */
SX_MUST_CHECK enum sx_status scan_select(struct sx_scan *scan, const struct scan_batch *batch,
                                         struct sx_arena *arena, struct scan_selection *out_selections,
                                         struct sx_error *error);

/* ---- scan_fetch.c ---- */

/* Reads the selected pages of a row group. *out_is_cold: the page cache did not have all of it. */
SX_MUST_CHECK enum sx_status scan_fetch(struct sx_scan *scan, const struct scan_unit *unit,
                                        const struct scan_selection *selection, struct scan_layout *layout,
                                        struct scan_group **out_group, bool *out_is_cold,
                                        struct sx_error *error);

/* ---- scan_device.c ---- */

/* *out_source: the file of the unit as it is read straight into the device's memory; NULL: it is not. */
SX_MUST_CHECK enum sx_status scan_device_source(struct sx_scan *scan, const struct scan_unit *unit,
                                                struct sx_device_source **out_source, struct sx_error *error);
/* Whether the column's chunk of the unit is, too. */
bool scan_column_on_device(const struct sx_scan *scan, const struct scan_unit *unit, int column);
/* The file may be closed: under files_lock, or when nobody else has the scan. */
void scan_file_close(struct sx_scan *scan, struct scan_file *file);

/* ---- scan_group.c ---- */

/* Selects and fetches the batch's row groups; *out_first NULL: all are pruned. */
SX_MUST_CHECK enum sx_status scan_read_batch(struct sx_scan *scan, int batch, struct scan_group **out_first,
                                             bool *out_is_cold, struct sx_error *error);
/* The batch waits again. */
void scan_unread_batch(struct sx_scan *scan, const struct scan_group *first);
/* The whole batch; NULL allowed. Drops the groups' references to the scan. */
void scan_group_free(struct scan_group *first);
void scan_unreference(struct sx_scan *scan);

/* Opens the file if need be; it stays open until the last of its units is read. */
SX_MUST_CHECK enum sx_status scan_file_fd(struct sx_scan *scan, int file, int *out_fd,
                                          struct sx_error *error);

/* Estimate from above of the bytes that a row group, or a batch takes. */
size_t scan_unit_bytes(const struct sx_scan *scan, const struct scan_unit *unit);
/* The share of a row group: that in which its middle byte is. `total` is not 0. */
static inline int sx_share_of(sx_u128 before, size_t bytes, sx_u128 total, int n_shares) {
    return (int)((before + bytes / 2) * (unsigned)n_shares / total);
}
size_t scan_batch_bytes(const struct sx_scan *scan, const struct scan_batch *batch);

static inline const struct sx_chunk_meta *scan_chunk(const struct sx_scan *scan, const struct scan_unit *unit,
                                                     int column) {
    const struct scan_file *file = &scan->files[unit->file];
    const struct sx_file_column *found = &file->footer->columns[file->columns[column]];
    return &file->footer->groups[unit->group].chunks[found->leaf];
}

/* Where the caches have the whole chunk. */
static inline struct sx_chunk_place scan_chunk_place(const struct sx_scan *scan, const struct scan_unit *unit,
                                                     int column) {
    const struct sx_chunk_meta *chunk = scan_chunk(scan, unit, column);
    return (struct sx_chunk_place){scan->files[unit->file].stamp, sx_chunk_begin(chunk), chunk->stored_bytes};
}

static inline struct sx_file_column *scan_column(const struct sx_scan *scan, const struct scan_unit *unit,
                                                 int column) {
    const struct scan_file *file = &scan->files[unit->file];
    return &file->footer->columns[file->columns[column]];
}

static inline int64_t scan_unit_rows(const struct sx_scan *scan, const struct scan_unit *unit) {
    return scan->files[unit->file].footer->groups[unit->group].n_rows;
}

static inline bool scan_is_cancelled(const struct sx_scan *scan) {
    return scan->cancel && atomic_load_explicit(scan->cancel, memory_order_relaxed);
}

/* ---- scan_queue.c: under the storage's lock ---- */

/* First waiting batch, or -1. */
int scan_peek(struct sx_scan *scan);

/* The batch waits again. */
void scan_give_back(struct sx_scan *scan, int batch);

/* Reads a waiting batch, letting go of the lock meanwhile. Failures but lack of memory become the scan's;
 * then, and when all of it is pruned, *out_first is NULL. After lack of memory the batch is still the
 * caller's: to read it again, or give it back. */
SX_MUST_CHECK enum sx_status scan_read_claimed(struct sx_scan *scan, int batch, struct scan_group **out_first,
                                               struct sx_error *error);
/* The first batch that is ready, or NULL where a batch in front of it waits or is being read ahead: a caller
 * gets batches in ascending order. */
struct scan_group *scan_take_ready(struct sx_scan *scan);
void scan_push_ready(struct sx_scan *scan, struct scan_group *first);

/* Gives up what other scans have read ahead; false: there was nothing. */
bool scan_reclaim_others(struct sx_scan *scan);

/* Drops what is ready; the batches wait again. */
bool scan_drop_ready(struct sx_scan *scan);

/* Bytes of the batch have come from the file: reader threads may begin with the next. Takes the lock. */
void scan_note_arrived(struct sx_scan *scan, int batch, int64_t bytes);

/* Body of a reader thread; the context is the storage. */
void *scan_reader_main(void *context);

#endif
