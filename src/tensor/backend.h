/* The primitive interface. Relational operators (src/exec) are written once over these; a backend implements
 * all.
 *
 * Work is issued to a stream. On the CPU a stream is a worker thread and work is done when the call returns;
 * on a device it may be done later, in stream order. One thread uses a stream at a time.
 *
 * Rules for every primitive
 * - Arguments are borrowed. `out_` results belong to the caller and are set only on success.
 * - Input tensors may have any layout (FLAT, DICT, CONSTANT) unless a comment says otherwise; lengths agree.
 * - On failure the status is returned and stream->error holds the text.
 * - Long loops look at stream->cancel now and then (at least once per 1 M rows) and return SX_CANCELLED.
 * - All memory comes from stream->pool.
 * Objects that several workers share (group, join) say which calls may run at the same time. */
#ifndef SX_TENSOR_BACKEND_H
#define SX_TENSOR_BACKEND_H

#include "tensor/device_files.h"
#include "tensor/page.h"
#include "tensor/program.h"
#include "tensor/tensor.h"

struct sx_backend;
struct sx_lane;
struct sx_rows_narrow;

struct sx_stream {
    const struct sx_backend *backend;
    struct sx_pool *pool;
    struct sx_error error;
    const atomic_bool *cancel; /* may be NULL */
    void *state;               /* the backend's own: scratch memory, device stream */
    struct sx_lane *lane;      /* where its waits and copies are recorded (observe/trace.h); NULL: nowhere */
};

struct sx_eval;
struct sx_group;
struct sx_join;
struct sx_decoder;

/* ---- aggregation ---- */

/* X(name): FIRST takes the first value that is not skipped, NULL included; ANY_VALUE the first that is not
 * null. SUM of integers and decimals is HUGEINT or DECIMAL(38,s) in 128 bits and fails on overflow; SUM of
 * FLOAT and DOUBLE is a DOUBLE kept in two doubles, so that it does not depend on the order. AVG is DOUBLE.
 * COUNT is BIGINT. */
#define SX_AGGREGATE_LIST(X) \
    X(COUNT_STAR)            \
    X(COUNT)                 \
    X(SUM)                   \
    X(AVG)                   \
    X(MIN)                   \
    X(MAX)                   \
    X(FIRST)                 \
    X(ANY_VALUE)

enum sx_aggregate {
#define SX_AGGREGATE_ENUM(name) SX_AGG_##name,
    SX_AGGREGATE_LIST(SX_AGGREGATE_ENUM)
#undef SX_AGGREGATE_ENUM
};

struct sx_aggregate_spec {
    enum sx_aggregate function;
    struct sx_type input; /* ignored for COUNT_STAR */
    struct sx_type output;
};

struct sx_group_spec {
    int n_keys; /* 0: one group, which exists even when no row came */
    const struct sx_type *key_types;
    int n_aggregates; /* 0: distinct keys */
    const struct sx_aggregate_spec *aggregates;
    int n_workers;
    double expected_rows; /* a guess at how many there will be, for memory; 0: none */
};

/* ---- join ---- */

struct sx_join_spec {
    int n_keys; /* 0: every pair matches */
    const struct sx_type *key_types;
    const bool *null_equal; /* per key: IS NOT DISTINCT FROM; otherwise NULL matches nothing */
    int n_payload;
    const struct sx_type *payload_types;
    bool track_matches; /* join_mark will be called */
    int n_workers;
};

enum sx_probe_mode {
    SX_PROBE_ALL,  /* every matching pair */
    SX_PROBE_FIRST /* at most one pair per probe row: whether it matches */
};

/* Where a probe of one batch stands; starts zeroed. */
struct sx_probe_cursor {
    int64_t row;   /* probe rows below are done */
    int64_t entry; /* backend's position within that row's matches; 0: at its start */
    bool done;
};

struct sx_join_info {
    int64_t rows;      /* appended on the build side */
    bool has_null_key; /* some appended row had a NULL in a key that is not null_equal */
    bool keys_unique;  /* proven: no two build rows have equal keys */
    bool has_range;    /* one key of integer, date, timestamp or decimal (to 18 digits) type, and rows > 0: */
    int64_t key_min, key_max; /* over keys that are not NULL */
};

/* ---- moving rows ---- */

enum sx_concat {
    SX_CONCAT_SHARED,  /* the bytes of strings are shared */
    SX_CONCAT_COMPACT, /* they are copied to a heap of their own, so that the parts' buffers go free */
    SX_CONCAT_CODED    /* shared, and DICT if the backend likes that better and all parts are */
};

/* ---- Parquet pages ---- */

/* Rows [first, first + rows) of a column chunk. */
struct sx_decode_part {
    struct sx_decoder *decoder;
    int64_t first, rows;
};

/* A column whose rows are those of its parts, one after another; all parts have the same type, in the same
 * physical type and conversion. */
struct sx_column_read {
    const struct sx_decode_part *parts;
    int n_parts;
    struct sx_tensor *out_column;
};

/* Which part of which read an error is about; -1: none in particular. */
struct sx_decode_place {
    int read, part;
};

/* ---- sort ---- */

struct sx_sort_key {
    bool descending;
    bool nulls_first;
};

/* ---- rows for other ranks ---- */

/* Rows of a batch that belong together: those of part p are order[offsets[p]] … order[offsets[p + 1] - 1]. */
struct sx_row_parts {
    const struct sx_tensor *order; /* I32; NULL: the batch's own order */
    const int64_t *offsets;        /* n_parts + 1, ascending */
    int n_parts;
    int own; /* a part that stays where it is; -1: none */
    /* Within a run, order[runs[r]] … order[runs[r + 1] - 1], rows ascend, and they are of one part; the
     * n_runs runs are those of all parts, one after another. NULL: nothing is known of the order. */
    const int64_t *runs;
    int n_runs;
};

/* ---- what a backend tells about itself ---- */

struct sx_backend_traits {
    int64_t chunk_rows;  /* rows that a scan should put into a batch */
    bool joins_groups;   /* a batch may be of several row groups */
    bool is_host;        /* tensors are in host memory and calls are synchronous */
    size_t memory_bytes; /* of its own that its streams may take together; 0: it has none of its own */
    double memory_bytes_per_second; /* at best, of its own; 0: not known */
};

/* Pairs that a round of a probe should give at most. */
static inline int64_t sx_round_pairs(const struct sx_backend_traits *traits) {
    enum { LEAST_PAIRS = 32768 };
    return traits->chunk_rows > LEAST_PAIRS ? traits->chunk_rows : LEAST_PAIRS;
}

struct sx_backend_ops {
    SX_MUST_CHECK enum sx_status (*stream_create)(const struct sx_backend *backend, struct sx_pool *pool,
                                                  const atomic_bool *cancel, struct sx_stream **out_stream,
                                                  struct sx_error *error);
    void (*stream_destroy)(struct sx_stream *stream);

    /* Waits until the work issued to the stream is done: other streams may then read what it made. Gives the
     * errors that were found since the last wait. The executor calls it where work passes from one worker to
     * others: at the end of a worker's pipeline whose rows others get, and of each part of a sink's end.
     * `why`: a literal, for the trace. */
    SX_MUST_CHECK enum sx_status (*synchronise)(struct sx_stream *stream, const char *why);
    /* Whether what is issued to the stream from now on gets the device's room before what other streams wait
     * for. On a host backend nothing. */
    SX_MUST_CHECK enum sx_status (*prioritise)(struct sx_stream *stream, bool is_first);
    /* Reads the row count of a batch to the host: the one explicit synchronisation. */
    SX_MUST_CHECK enum sx_status (*batch_rows)(struct sx_stream *stream, struct sx_batch *batch);
    /* A copy in host memory with FLAT columns. On a host backend columns that are FLAT already are shared. */
    SX_MUST_CHECK enum sx_status (*batch_to_host)(struct sx_stream *stream, const struct sx_batch *batch,
                                                  struct sx_batch *out_batch);

    /* Makes tensors of the backend's memory from host memory. On a host backend the columns are shared. */
    SX_MUST_CHECK enum sx_status (*batch_from_host)(struct sx_stream *stream, const struct sx_batch *batch,
                                                    struct sx_batch *out_batch);

    /* CONSTANT tensor of `length` rows in the backend's memory; a VARCHAR's bytes are copied. */
    SX_MUST_CHECK enum sx_status (*constant)(struct sx_stream *stream, const struct sx_scalar *scalar,
                                             int64_t length, struct sx_tensor *out_column);

    /* -- expressions -- one eval object per worker and program; `program` must outlive it. It keeps registers
     * and, per dictionary, results of expressions over that dictionary's entries. */
    SX_MUST_CHECK enum sx_status (*eval_create)(struct sx_stream *stream, const struct sx_program *program,
                                                struct sx_eval **out_eval);
    void (*eval_destroy)(struct sx_stream *stream, struct sx_eval *eval);
    /* All outputs over all rows of `batch` (columns = the program's inputs; an input that no instruction and
     * no output uses may be a zeroed tensor). out_columns[program->n_outputs]. An output that is an input is
     * shared, not copied. Inputs may be SELECTED, of FLAT; those that are outputs alone of NARROW, too. An
     * error of a row may be told by the stream's next synchronisation; until then the object is needed for
     * its words. */
    SX_MUST_CHECK enum sx_status (*eval_run)(struct sx_stream *stream, struct sx_eval *eval,
                                             const struct sx_batch *batch, struct sx_tensor *out_columns);
    /* The outputs are BOOL conjuncts, evaluated one after another on the rows that are left. Rows that pass
     * all, as ascending I32 positions. `selection` (I32, ascending, or NULL for all rows) limits the rows
     * looked at. */
    SX_MUST_CHECK enum sx_status (*eval_select)(struct sx_stream *stream, struct sx_eval *eval,
                                                const struct sx_batch *batch,
                                                const struct sx_tensor *selection,
                                                struct sx_tensor *out_selection);

    /* -- moving rows -- */
    /* out[i] = column[index[i]]; index is FLAT I32 or I64; a negative index gives NULL. DICT stays DICT and
     * CONSTANT stays CONSTANT (on a host backend) where no index is negative; VARCHAR shares the string
     * bytes. */
    SX_MUST_CHECK enum sx_status (*gather)(struct sx_stream *stream, const struct sx_tensor *column,
                                           const struct sx_tensor *index, struct sx_tensor *out_column);
    /* The same of n columns, by an index without negative positions. On failure nothing is owned. */
    SX_MUST_CHECK enum sx_status (*gather_columns)(struct sx_stream *stream,
                                                   const struct sx_tensor *const *columns, int n,
                                                   const struct sx_tensor *index,
                                                   struct sx_tensor *out_columns);
    /* All rows of `n` columns of one type, in order, FLAT, but for SX_CONCAT_CODED. n may be 0 (then `type`
     * says what is empty). */
    SX_MUST_CHECK enum sx_status (*concat)(struct sx_stream *stream, struct sx_type type,
                                           const struct sx_tensor *const *columns, int64_t n,
                                           enum sx_concat how, struct sx_tensor *out_column);
    /* Rows first, first + 1, … as an index tensor of type `id` (I32 or I64). */
    SX_MUST_CHECK enum sx_status (*iota)(struct sx_stream *stream, enum sx_type_id id, int64_t first,
                                         int64_t length, struct sx_tensor *out_index);
    /* mask: BOOL FLAT without nulls, `rows` long, 1 where the row is in `index` (FLAT I32, any order). */
    SX_MUST_CHECK enum sx_status (*index_to_mask)(struct sx_stream *stream, const struct sx_tensor *index,
                                                  int64_t rows, struct sx_tensor *out_mask);
    /* Positions (I32, ascending) where the BOOL column is valid and equals `wanted`. */
    SX_MUST_CHECK enum sx_status (*mask_to_index)(struct sx_stream *stream, const struct sx_tensor *mask,
                                                  bool wanted, struct sx_tensor *out_index);

    /* -- hash and partition -- */
    /* U64 FLAT: hash of the row's keys as tensor/semantics.h defines it: equal on every backend and rank. */
    SX_MUST_CHECK enum sx_status (*hash)(struct sx_stream *stream, const struct sx_tensor *keys, int n_keys,
                                         int64_t rows, struct sx_tensor *out_hashes);
    /* Stable order of rows by part = high bits of the hash: out_index (I32) lists the rows part after part;
     * out_offsets (host array of n_parts + 1, the caller's) where each begins. n_parts is a power of two. */
    SX_MUST_CHECK enum sx_status (*partition)(struct sx_stream *stream, const struct sx_tensor *hashes,
                                              int n_parts, struct sx_tensor *out_index, int64_t *out_offsets);
    /* The same by the hashes of keys. `words`: a bloom filter; rows whose hashes have not been added to it
     * may be left out, and mostly are. NULL: none is. */
    SX_MUST_CHECK enum sx_status (*partition_keys)(struct sx_stream *stream, const struct sx_tensor *keys,
                                                   int n_keys, int64_t rows, const struct sx_tensor *words,
                                                   int n_parts, struct sx_tensor *out_index,
                                                   int64_t *out_offsets);

    /* A bloom filter over hashes: `words` is U64 FLAT without nulls, zeroed at first. Which
     * bits belong to a hash is in tensor/semantics.h, so that filters of as many words are merged by OR of
     * their words, whichever backends and ranks made them. bloom_add sets the hashes' bits, bloom_add_keys
     * those of the hashes that `hash` has of the keys; they may run at the same time on one filter. */
    SX_MUST_CHECK enum sx_status (*bloom_add)(struct sx_stream *stream, const struct sx_tensor *hashes,
                                              struct sx_tensor *words);
    SX_MUST_CHECK enum sx_status (*bloom_add_keys)(struct sx_stream *stream, const struct sx_tensor *keys,
                                                   int n_keys, int64_t rows, struct sx_tensor *words);
    /* words |= other, which is FLAT or CONSTANT and has as many. */
    SX_MUST_CHECK enum sx_status (*bloom_merge)(struct sx_stream *stream, const struct sx_tensor *other,
                                                struct sx_tensor *words);
    /* Positions (I32, ascending) of hashes that may have been added; those that were are among them. */
    SX_MUST_CHECK enum sx_status (*bloom_test)(struct sx_stream *stream, const struct sx_tensor *hashes,
                                               const struct sx_tensor *words,
                                               struct sx_tensor *out_selection);

    /* -- rows as bytes, for other ranks -- */
    /* One frame (tensor/rows.h) in the backend's memory for each part but the own one that has rows:
     * out_parts[p], else NULL. With `packs` columns are PACKED where that is worth it; else, unless
     * `narrow` is NULL, those may be NARROW that fit: `narrow` has what is known of each column (zeroed:
     * nothing yet), and gets what is found out, so that FITS may become FITS_NOT. *out_plain_bytes: what the
     * frames would take PLAIN. They are there when the call returns, for whoever reads them. *out_own: the
     * own part's rows; zeroed if it has none. */
    SX_MUST_CHECK enum sx_status (*rows_pack)(struct sx_stream *stream, const struct sx_batch *batch,
                                              const struct sx_row_parts *parts, int64_t sequence, bool packs,
                                              struct sx_rows_narrow *narrow, struct sx_buffer **out_parts,
                                              size_t *out_plain_bytes, struct sx_batch *out_own);
    /* The frame of `bytes` bytes at the begin of a buffer of the backend's memory, or of the host's
     * (`from_host`; it may be released then), which no work writes any more, as a batch that keeps it: values
     * are not copied, but for PACKED columns and NARROW ones. The latter may stay NARROW where are_moved[c]
     * (NULL: nowhere) says that nothing but gather, gather_columns, concat, or join_append as payload, gets
     * the column, or SELECTED rows of it. Views of strings are changed in the frame, once. SX_INTERNAL: it is
     * no such frame; what is within columns may be told at the next synchronisation. */
    SX_MUST_CHECK enum sx_status (*rows_unpack)(struct sx_stream *stream, struct sx_buffer *frame,
                                                size_t bytes, bool from_host, const struct sx_type *types,
                                                int n_columns, const bool *are_moved,
                                                struct sx_batch *out_batch, int64_t *out_sequence);
    /* Buffers in host memory, of `pool` (faster where that is pinned), and the first bytes of one back in the
     * backend's: there when the call returns. On a host backend buffers are shared. */
    SX_MUST_CHECK enum sx_status (*bytes_to_host)(struct sx_stream *stream, struct sx_buffer *const *buffers,
                                                  int n, struct sx_pool *pool,
                                                  struct sx_buffer **out_buffers);
    SX_MUST_CHECK enum sx_status (*bytes_from_host)(struct sx_stream *stream, struct sx_buffer *buffer,
                                                    size_t bytes, struct sx_buffer **out_buffer);
    /* A copy of bytes [first, first + bytes) as a message, where other ranks reach it if they reach any of
     * the backend's memory: there when the call returns. */
    SX_MUST_CHECK enum sx_status (*bytes_to_send)(struct sx_stream *stream, const struct sx_buffer *buffer,
                                                  size_t first, size_t bytes, struct sx_buffer **out_buffer);

    /* -- group by -- group_update may run at the same time for different workers; then all updates end; then
     * group_finish once; then group_emit may run at the same time for different parts. */
    SX_MUST_CHECK enum sx_status (*group_create)(struct sx_stream *stream, const struct sx_group_spec *spec,
                                                 struct sx_group **out_group);
    void (*group_destroy)(struct sx_stream *stream, struct sx_group *group);
    /* inputs[a]: column of aggregate a; a tensor with length -1 means: leave this aggregate alone in this
     * update; it may be SELECTED, of FLAT, or of NARROW where there are no keys and nothing but SUM and COUNT
     * gets it. filters[a] (or filters NULL, or filters[a].length -1): BOOL, rows that are not true do not
     * count. rows: less than 2^31. */
    SX_MUST_CHECK enum sx_status (*group_update)(struct sx_stream *stream, struct sx_group *group, int worker,
                                                 const struct sx_tensor *keys, const struct sx_tensor *inputs,
                                                 const struct sx_tensor *filters, int64_t rows);
    /* No more updates. Tells into how many parts the result falls, and how many rows it has at the most. A
     * sum that is too large may be told by the stream's next synchronisation. */
    SX_MUST_CHECK enum sx_status (*group_finish)(struct sx_stream *stream, struct sx_group *group,
                                                 int *out_parts, int64_t *out_most_rows);
    /* Next rows of a part: keys, then aggregates (FLAT or DICT). *cursor starts 0; an empty batch (rows 0)
     * ends. The part's memory may be given back once it has ended. */
    SX_MUST_CHECK enum sx_status (*group_emit)(struct sx_stream *stream, struct sx_group *group, int part,
                                               int64_t *cursor, int64_t max_rows, struct sx_batch *out_batch);

    /* -- hash join -- join_append may run at the same time for different workers; then all appends end;
     * join_finish once; join_build at the same time for different parts; after all parts, and where their
     * streams have been synchronised for those of others, the table is read-only, and everything below may
     * run at the same time on it. */
    SX_MUST_CHECK enum sx_status (*join_create)(struct sx_stream *stream, const struct sx_join_spec *spec,
                                                struct sx_join **out_join);
    void (*join_destroy)(struct sx_stream *stream, struct sx_join *join);
    /* Before the first append, at most once: about so many rows will be appended. A backend may make its
     * table while they come; more or fewer are no error. */
    void (*join_expect)(struct sx_join *join, int64_t rows);
    SX_MUST_CHECK enum sx_status (*join_append)(struct sx_stream *stream, struct sx_join *join, int worker,
                                                const struct sx_tensor *keys, const struct sx_tensor *payload,
                                                int64_t rows);
    SX_MUST_CHECK enum sx_status (*join_finish)(struct sx_stream *stream, struct sx_join *join,
                                                int *out_parts);
    SX_MUST_CHECK enum sx_status (*join_build)(struct sx_stream *stream, struct sx_join *join, int part);
    void (*join_info)(const struct sx_join *join, struct sx_join_info *out_info);
    /* Payload columns payload[0] to payload[n - 1] of build rows (I64, none negative), as gather_columns
     * gives them. Build rows are numbered from 0 to info's rows, in any order. On a host backend strings that
     * all came DICT or CONSTANT, of whatever dictionaries, are one DICT column over distinct entries if those
     * are at most 4096, and may be one if they are more. */
    SX_MUST_CHECK enum sx_status (*join_gather)(struct sx_stream *stream, const struct sx_join *join,
                                                const int32_t *payload, int n,
                                                const struct sx_tensor *build_rows,
                                                struct sx_tensor *out_columns);
    /* Matching pairs, at most max_pairs of them from where the cursor stands: probe rows (I32, ascending) and
     * build rows (I64). Sets cursor->done when the batch is through. */
    SX_MUST_CHECK enum sx_status (*join_probe)(struct sx_stream *stream, const struct sx_join *join,
                                               const struct sx_tensor *keys, int64_t rows,
                                               enum sx_probe_mode mode, int64_t max_pairs,
                                               struct sx_probe_cursor *cursor,
                                               struct sx_tensor *out_probe_rows,
                                               struct sx_tensor *out_build_rows);
    /* The pairs that join_probe gives with SX_PROBE_ALL, and payload columns of theirs as join_gather gives
     * them; out_build_rows is NULL where build rows are not wanted. Memory of the results may be some more
     * than their rows need. */
    SX_MUST_CHECK enum sx_status (*join_take)(struct sx_stream *stream, const struct sx_join *join,
                                              const struct sx_tensor *keys, int64_t rows, int64_t max_pairs,
                                              struct sx_probe_cursor *cursor, const int32_t *payload, int n,
                                              struct sx_tensor *out_probe_rows,
                                              struct sx_tensor *out_build_rows,
                                              struct sx_tensor *out_columns);
    /* Runtime filter: positions (I32, ascending) whose key may have a match; false positives allowed. For
     * joins with one key. `selection` as in eval_select. */
    SX_MUST_CHECK enum sx_status (*join_filter)(struct sx_stream *stream, const struct sx_join *join,
                                                const struct sx_tensor *key,
                                                const struct sx_tensor *selection,
                                                struct sx_tensor *out_selection);
    /* Remembers that these build rows (I64) matched. Thread-safe. */
    SX_MUST_CHECK enum sx_status (*join_mark)(struct sx_stream *stream, struct sx_join *join,
                                              const struct sx_tensor *build_rows);
    /* Build rows in [first, first + count) that were marked (wanted) or were not: I64, ascending. */
    SX_MUST_CHECK enum sx_status (*join_marked)(struct sx_stream *stream, const struct sx_join *join,
                                                bool wanted, int64_t first, int64_t count,
                                                struct sx_tensor *out_build_rows);

    /* -- sort -- */
    /* Stable order of all rows: I64 FLAT, the first `limit` of them (limit < 0: all). n_keys >= 1. Strings by
     * bytes. */
    SX_MUST_CHECK enum sx_status (*sort)(struct sx_stream *stream, const struct sx_tensor *keys,
                                         const struct sx_sort_key *orders, int n_keys, int64_t rows,
                                         int64_t limit, struct sx_tensor *out_order);

    /* -- Parquet pages -- a decoder reads the rows of one column chunk, forwards. `chunk` is copied, but what
     * it points to must outlive the decoder; its owner is retained by the decoder and by tensors that point
     * into it. */
    SX_MUST_CHECK enum sx_status (*decoder_create)(struct sx_stream *stream,
                                                   const struct sx_stored_chunk *chunk,
                                                   struct sx_decoder **out_decoder);
    void (*decoder_destroy)(struct sx_stream *stream, struct sx_decoder *decoder);
    /* Several columns at once, all of as many rows: all of them, or the positions in `selection` (I32,
     * ascending, counted through the parts) only. A decoder's parts come in ascending order, in one call and
     * from call to call; what lies between is skipped, and only pages that a part touches need to be there.
     * After an error, of which *out_place tells the part, the decoders are of no more use. */
    SX_MUST_CHECK enum sx_status (*decode)(struct sx_stream *stream, const struct sx_column_read *reads,
                                           int n_reads, const struct sx_tensor *selection,
                                           struct sx_decode_place *out_place);
    /* A hint: these decoders will be asked for most of their rows soon, and by this stream. What that needs
     * first, and takes long, may begin now; SX_OK also where it can't. */
    SX_MUST_CHECK enum sx_status (*decode_ahead)(struct sx_stream *stream, struct sx_decoder *const *decoders,
                                                 int n);
};

struct sx_backend {
    const char *name; /* "cpu", "cuda" */
    struct sx_backend_traits traits;
    struct sx_backend_ops ops;
    /* Makes a pool of host memory that the device copies from and to at full speed: for what is read from
     * files. Its memory counts in `budget`, which outlives it. A block is released only once no copy uses it.
     * Destroyed with sx_pool_destroy before the backend is closed. NULL: any host memory will do. */
    SX_MUST_CHECK enum sx_status (*io_pool_create)(const struct sx_backend *backend, struct sx_pool *budget,
                                                   struct sx_pool **out_pool, struct sx_error *error);
    /* Copies some of `io_pool`'s memory to the device, for some milliseconds, and tells bytes per second.
     * NULL: tensors are in host memory. */
    SX_MUST_CHECK enum sx_status (*link_measure)(const struct sx_backend *backend, struct sx_pool *io_pool,
                                                 double *out_bytes_per_second, struct sx_error *error);
    /* A cache of what decoders bring to the device: bytes of spans with a cache_id, decompressed, up to
     * `limit_bytes` of traits.memory_bytes (0: none, and at first); and up to `values_bytes` of what spans
     * with several n_readers were decoded to. Given up before an allocation is refused. Any thread; all four
     * NULL: there is no such cache. */
    void (*cache_limit)(const struct sx_backend *backend, size_t limit_bytes, size_t values_bytes);
    struct sx_cache_usage (*cache_usage)(const struct sx_backend *backend);
    /* What it has for that cache_id, to stay until it is released (before the backend is closed); NULL: it
     * has nothing. Counts for one of the span's readers. Any thread. */
    void *(*cache_hold)(const struct sx_backend *backend, uint64_t cache_id);
    void (*cache_release)(void *held);
    /* Of traits.memory_bytes. Any thread; NULL: tensors are in host memory. */
    struct sx_pool_usage (*memory_usage)(const struct sx_backend *backend);
    const struct sx_device_files_ops *files; /* NULL: files are read to the host's memory only */
};

/* For backends that have nothing quicker, by primitives that they have (within which traces show these):
 * partition_keys by hash, bloom_test, gather and partition, */
SX_MUST_CHECK enum sx_status sx_partition_hashed(struct sx_stream *stream, const struct sx_tensor *keys,
                                                 int n_keys, int64_t rows, const struct sx_tensor *words,
                                                 int n_parts, struct sx_tensor *out_index,
                                                 int64_t *out_offsets);
/* bloom_add_keys by hash and bloom_add, */
SX_MUST_CHECK enum sx_status sx_bloom_add_hashed(struct sx_stream *stream, const struct sx_tensor *keys,
                                                 int n_keys, int64_t rows, struct sx_tensor *words);
/* join_expect where it makes no difference, */
void sx_join_expect_nothing(struct sx_join *join, int64_t rows);
/* and join_take by join_probe and join_gather. */
SX_MUST_CHECK enum sx_status sx_join_take_pairs(struct sx_stream *stream, const struct sx_join *join,
                                                const struct sx_tensor *keys, int64_t rows, int64_t max_pairs,
                                                struct sx_probe_cursor *cursor, const int32_t *payload, int n,
                                                struct sx_tensor *out_probe_rows,
                                                struct sx_tensor *out_build_rows,
                                                struct sx_tensor *out_columns);

/* SX_INTERNAL naming the slot when a slot is empty. */
SX_MUST_CHECK enum sx_status sx_backend_check(const struct sx_backend *backend, struct sx_error *error);

#endif
