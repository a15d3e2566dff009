/* The kernels of a decode. Each is launched once for all columns that need it: a column's are a chain of
 * short ones, and most of them leave the device idle. */
#include <stdlib.h>

#include "backend/cuda/decode.h"

/* The call's columns that have pages, dictionaries among them, and the keys of the kernel at hand: columns of
 * one key go together, and those of a key below 0 are left out. */
struct issue {
    struct decode_call *call;
    struct decode_column **columns;
    int *keys;
    int n;
};

enum { NO_KEY = -1, ANY_KEY = 0 };

typedef int key_of(const struct decode_column *column);
typedef void launch_works(cudaStream_t stream, const struct decode_works *works, int key);

static void add_work(struct decode_works *works, const struct decode_work *work) {
    works->of[works->n++] = *work;
    works->most_pages = work->n_pages > works->most_pages ? work->n_pages : works->most_pages;
    works->most_tiles = work->n_tiles > works->most_tiles ? work->n_tiles : works->most_tiles;
    works->any_selection |= work->selection != NULL;
    works->any_levels |= work->in_tile != NULL;
}

/* From column `first` on, up to as many as one launch takes; they have no key then. */
static void take_works(struct issue *issue, int first, struct decode_works *works) {
    const int key = issue->keys[first];
    works->n = works->most_pages = works->most_tiles = 0;
    works->any_selection = works->any_levels = false;
    for (int i = first; i < issue->n && works->n < DECODE_WORKS; i++)
        if (issue->keys[i] == key) {
            add_work(works, &issue->columns[i]->work);
            issue->keys[i] = NO_KEY;
        }
}

static void launch_together(struct issue *issue, key_of *key_of_column, launch_works *launch) {
    struct decode_works works;
    for (int i = 0; i < issue->n; i++)
        issue->keys[i] = key_of_column(issue->columns[i]);
    for (int i = 0; i < issue->n; i++) {
        const int key = issue->keys[i];
        if (key == NO_KEY)
            continue;
        take_works(issue, i, &works);
        launch(issue->call->stream->handle, &works, key);
    }
}

/* ---- to stored values, codes, or where strings are ---- */

static int key_of_all(const struct decode_column *column) {
    (void)column;
    return ANY_KEY;
}

static void open_works(cudaStream_t stream, const struct decode_works *works, int key) {
    (void)key;
    cuda_decode_open(stream, works);
    cuda_decode_levels(stream, works);
}

/* KERNEL(name, condition, key, launch): a key_of and its launch_works, the key of which is `key`. */
#define KERNEL(name, condition, column_key, launching)                                          \
    static int key_of_##name(const struct decode_column *column) {                              \
        return (condition) ? (int)(column_key) : NO_KEY;                                        \
    }                                                                                           \
    static void launch_##name(cudaStream_t stream, const struct decode_works *works, int key) { \
        (void)key;                                                                              \
        launching;                                                                              \
    }
KERNEL(bits, decode_has_source(column, DECODE_BITS), ANY_KEY, cuda_decode_bits(stream, works))
KERNEL(rle_bits, decode_has_source(column, DECODE_RLE_BITS), ANY_KEY, cuda_decode_rle_bits(stream, works))
KERNEL(split, decode_has_source(column, DECODE_SPLIT), ANY_KEY, cuda_decode_split(stream, works))
KERNEL(codes, decode_has_source(column, DECODE_CODES), ANY_KEY, cuda_decode_codes(stream, works))
KERNEL(plain_bytes, decode_has_source(column, DECODE_PLAIN_BYTES), ANY_KEY,
       cuda_decode_plain_bytes(stream, works))
KERNEL(deltas, decode_has_source(column, DECODE_DELTA), column->work.stored_bytes,
       cuda_decode_deltas(stream, works, (uint32_t)key))
KERNEL(coded_lengths,
       decode_has_source(column, DECODE_LENGTHS) || decode_has_source(column, DECODE_FRONT_CODED), ANY_KEY,
       cuda_decode_coded_lengths(stream, works))
KERNEL(lengths, decode_has_source(column, DECODE_LENGTHS), ANY_KEY, cuda_decode_lengths(stream, works))

/* Memory for the values of front-coded pages, whose size only their lengths tell; one more synchronisation.
 */
static enum sx_status rebuild(struct decode_call *call, struct decode_column *column) {
    struct cuda_stream *stream = call->stream;
    struct decode_work *work = &column->work;
    struct decode_state *states = calloc((size_t)column->n_pages, sizeof *states);
    int64_t *at = calloc((size_t)column->n_pages, sizeof *at), bytes = 0;
    enum sx_status status;
    if (!states || !at)
        SX_GO(sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of pages"));
    SX_GO(cuda_download(stream, states, work->states, (size_t)column->n_pages * sizeof *states,
                        "lengths of front-coded strings"));
    for (int32_t i = 0; i < column->n_pages; i++) {
        at[i] = bytes;
        bytes += states[i].text_bytes;
    }
    SX_GO(sx_buffer_create(stream->base.pool, (size_t)bytes, &column->rebuilt, &stream->base.error));
    SX_GO(cuda_upload_buffer(stream, at, (size_t)column->n_pages * sizeof *at,
                             &column->arrays[ARRAY_REBUILT_AT]));
    cuda_decode_rebuild(stream->handle, work, column->rebuilt->data, column->arrays[ARRAY_REBUILT_AT]->data);
out:
    free(states);
    free(at);
    return status;
}

static enum sx_status decode_front_coded(struct decode_call *call, struct decode_column *column) {
    const struct sx_decoder *first = column->first;
    const bool is_fixed = first->chunk.spec.physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
    cuda_decode_front_coded(call->stream->handle, &column->work,
                            is_fixed ? (uint32_t)first->stored_bytes : 0);
    SX_TRY(cuda_launched(call->stream, "front-coded lengths"));
    return rebuild(call, column);
}

static enum sx_status decode_stored(struct issue *issue) {
    launch_together(issue, key_of_all, open_works);
    launch_together(issue, key_of_bits, launch_bits);
    launch_together(issue, key_of_rle_bits, launch_rle_bits);
    launch_together(issue, key_of_split, launch_split);
    launch_together(issue, key_of_codes, launch_codes);
    launch_together(issue, key_of_plain_bytes, launch_plain_bytes);
    launch_together(issue, key_of_deltas, launch_deltas);
    launch_together(issue, key_of_coded_lengths, launch_coded_lengths);
    launch_together(issue, key_of_lengths, launch_lengths);
    for (int i = 0; i < issue->n; i++)
        if (decode_has_source(issue->columns[i], DECODE_FRONT_CODED))
            SX_TRY(decode_front_coded(issue->call, issue->columns[i]));
    return SX_OK;
}

/* ---- to the column's values ---- */

/* Other pages than those of codes have values that are still to be moved. */
static bool has_rows(const struct decode_column *column) {
    return (column->sources & ~(1u << DECODE_CODES)) && !decode_stages_column(column);
}
static bool is_converted(const struct decode_column *column) {
    return column->first->conversion != DECODE_NO_CONVERSION;
}
static bool has_bytes(const struct decode_column *column) {
    return !is_converted(column) && column->first->chunk.spec.physical == SX_PARQUET_BYTE_ARRAY;
}
static bool is_text(const struct decode_column *column) {
    return column->first->chunk.spec.type.id == SX_TYPE_VARCHAR;
}

KERNEL(rows, has_rows(column) && is_converted(column), column->first->conversion,
       cuda_decode_convert(stream, works, (enum decode_conversion)key))
KERNEL(fixed_views, has_rows(column) && !is_converted(column) && !has_bytes(column), ANY_KEY,
       cuda_decode_fixed_views(stream, works))
KERNEL(views, has_rows(column) && has_bytes(column) && is_text(column), ANY_KEY,
       cuda_decode_views(stream, works))
KERNEL(decimals, has_rows(column) && has_bytes(column) && !is_text(column), column->work.value_bytes,
       cuda_decode_byte_decimals(stream, works, (uint32_t)key))
KERNEL(as_codes, decode_has_source(column, DECODE_CODES) && column->as_codes, ANY_KEY,
       cuda_decode_take_codes(stream, works))
KERNEL(entries, decode_has_source(column, DECODE_CODES) && !column->as_codes, column->work.value_bytes,
       cuda_decode_take_entries(stream, works, (uint32_t)key))
#undef KERNEL

/* Entries come last: dictionaries are columns, too. */
static void decode_rows(struct issue *issue) {
    launch_together(issue, key_of_rows, launch_rows);
    launch_together(issue, key_of_fixed_views, launch_fixed_views);
    launch_together(issue, key_of_views, launch_views);
    launch_together(issue, key_of_decimals, launch_decimals);
    launch_together(issue, key_of_as_codes, launch_as_codes);
    launch_together(issue, key_of_entries, launch_entries);
}

/* ---- all ---- */

static void list_columns(struct issue *issue) {
    struct decode_call *call = issue->call;
    for (int r = 0; r < call->n_reads; r++) {
        if (call->dictionaries[r].n_tiles > 0)
            issue->columns[issue->n++] = &call->dictionaries[r];
        if (call->columns[r].n_tiles > 0)
            issue->columns[issue->n++] = &call->columns[r];
    }
}

enum sx_status decode_columns_issue(struct decode_call *call) {
    const size_t most = 2 * (size_t)call->n_reads + 1;
    struct issue issue = {.call = call,
                          .columns = calloc(most, sizeof(struct decode_column *)),
                          .keys = calloc(most, sizeof *issue.keys)};
    enum sx_status status = SX_OK;
    if (!issue.columns || !issue.keys)
        SX_GO(sx_error_set(&call->stream->base.error, SX_OUT_OF_MEMORY, "no memory for a decode"));
    SX_GO(cuda_uploads_issue(call->stream, &call->uploads));
    list_columns(&issue);
    if (issue.n == 0)
        goto out;
    SX_GO(decode_stored(&issue));
    decode_rows(&issue);
    status = cuda_launched(call->stream, "decoding pages");
out:
    free(issue.columns);
    free(issue.keys);
    return status;
}
