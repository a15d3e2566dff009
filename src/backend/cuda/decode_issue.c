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

/* From column `first` on, up to as many as one launch takes; they have no key then. */
static void take_works(struct issue *issue, int first, struct decode_works *works) {
    const int key = issue->keys[first];
    works->n = 0;
    for (int i = first; i < issue->n && works->n < DECODE_WORKS; i++)
        if (issue->keys[i] == key) {
            works->of[works->n++] = issue->columns[i]->work;
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

/* A list of kernels: X(name, condition, key, launch), which the columns that meet the condition need. A
 * key_of and a launch_works of each, which reads the key that they have, and all launches in the list's
 * order. */
#define DEFINE_KERNEL(name, condition, column_key, launching)                                   \
    static int key_of_##name(const struct decode_column *column) {                              \
        (void)column;                                                                           \
        return (condition) ? (int)(column_key) : NO_KEY;                                        \
    }                                                                                           \
    static void launch_##name(cudaStream_t stream, const struct decode_works *works, int key) { \
        (void)key;                                                                              \
        launching;                                                                              \
    }
#define LAUNCH_KERNEL(name, condition, column_key, launching) \
    launch_together(issue, key_of_##name, launch_##name);

#define HAS(source) decode_has_source(column, DECODE_##source)
#define STORED_KERNEL_LIST(X)                                                                             \
    X(open, true, ANY_KEY, cuda_decode_open(stream, works))                                               \
    X(levels, true, ANY_KEY, cuda_decode_levels(stream, works))                                           \
    X(bits, HAS(BITS), ANY_KEY, cuda_decode_bits(stream, works))                                          \
    X(rle_bits, HAS(RLE_BITS), ANY_KEY, cuda_decode_rle_bits(stream, works))                              \
    X(split, HAS(SPLIT), ANY_KEY, cuda_decode_split(stream, works))                                       \
    X(find_codes, HAS(CODES), ANY_KEY, cuda_decode_find_codes(stream, works))                             \
    X(codes, HAS(CODES) && column->has_levels, ANY_KEY, cuda_decode_codes(stream, works))                 \
    X(plain_bytes, HAS(PLAIN_BYTES), ANY_KEY, cuda_decode_plain_bytes(stream, works))                     \
    X(deltas, HAS(DELTA), column->work.stored_bytes, cuda_decode_deltas(stream, works, (uint32_t)key))    \
    X(coded_lengths, HAS(LENGTHS) || HAS(FRONT_CODED), ANY_KEY, cuda_decode_coded_lengths(stream, works)) \
    X(lengths, HAS(LENGTHS), ANY_KEY, cuda_decode_lengths(stream, works))
STORED_KERNEL_LIST(DEFINE_KERNEL)

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
    STORED_KERNEL_LIST(LAUNCH_KERNEL)
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

/* Of entries, or of codes; the last bit: each value is a row. */
static int take_key(const struct decode_column *column) {
    return 2 * (column->as_codes ? 0 : (int)column->work.value_bytes) + !column->has_levels;
}

/* Entries come last: dictionaries are columns, too. */
#define ROW_KERNEL_LIST(X)                                                                           \
    X(rows, has_rows(column) && is_converted(column), column->first->conversion,                     \
      cuda_decode_convert(stream, works, (enum decode_conversion)key))                               \
    X(fixed_views, has_rows(column) && !is_converted(column) && !has_bytes(column), ANY_KEY,         \
      cuda_decode_fixed_views(stream, works))                                                        \
    X(views, has_rows(column) && has_bytes(column) && is_text(column), ANY_KEY,                      \
      cuda_decode_views(stream, works))                                                              \
    X(decimals, has_rows(column) && has_bytes(column) && !is_text(column), column->work.value_bytes, \
      cuda_decode_byte_decimals(stream, works, (uint32_t)key))                                       \
    X(entries, HAS(CODES), take_key(column), cuda_decode_take(stream, works, (uint32_t)key / 2, key % 2 != 0))
ROW_KERNEL_LIST(DEFINE_KERNEL)

static void decode_rows(struct issue *issue) {
    ROW_KERNEL_LIST(LAUNCH_KERNEL)
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
