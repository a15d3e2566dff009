/* Rows of several columns as one, on the host's side. */
#include <stdlib.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch.h"

enum {
    MOST_DICTIONARIES = 64, /* that become one */
    ROWS_AN_ENTRY = 4       /* at least, of dictionaries put together */
};

/* ---- strings ---- */

/* Copies the strings' bytes to a heap of their own. */
static enum sx_status compact_strings(struct cuda_stream *stream, struct sx_tensor *column) {
    struct sx_buffer *offsets = NULL, *scratch = NULL, *heap = NULL;
    const int64_t n = column->length;
    int64_t total = 0;
    enum sx_status status;
    SX_GO(sx_buffer_create(stream->base.pool, ((size_t)n + 1) * sizeof(int64_t), &offsets,
                           &stream->base.error));
    SX_GO(sx_buffer_create(stream->base.pool, cuda_exclusive_sum_bytes(n), &scratch, &stream->base.error));
    cuda_string_lengths(stream->handle, column->values, column->valid, n, offsets->data);
    cuda_exclusive_sum(stream->handle, offsets->data, n, offsets->data, scratch->data);
    SX_GO(cuda_launched(stream, "string lengths"));
    SX_GO(cuda_download(stream, &total, (int64_t *)offsets->data + n, sizeof total,
                        "string bytes of a column"));
    SX_GO(sx_buffer_create(stream->base.pool, (size_t)total, &heap, &stream->base.error));
    cuda_string_copy(stream->handle, column->values, column->valid, n, offsets->data, heap->data, heap->data,
                     column->values);
    SX_GO(cuda_launched(stream, "string copy"));
    sx_buffer_release(column->heap);
    column->heap = heap;
    heap = NULL;
out:
    sx_buffer_release(offsets);
    sx_buffer_release(scratch);
    sx_buffer_release(heap);
    return status;
}

static enum sx_status join_heaps(struct cuda_stream *stream, const struct sx_tensor *const *columns,
                                 int64_t n, struct sx_buffer **out_heap) {
    struct sx_buffer **heaps = calloc((size_t)n + 1, sizeof *heaps);
    if (!heaps)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a column");
    for (int64_t i = 0; i < n; i++)
        heaps[i] = cuda_heap_of(columns[i]);
    enum sx_status status = sx_buffer_join(stream->base.pool, heaps, (int)n, out_heap, &stream->base.error);
    free(heaps);
    return status;
}

/* ---- dictionaries ---- */

/* The parts' dictionaries, each once, and where the entries of each begin among those of all. */
struct dictionaries {
    const struct sx_tensor *entries[MOST_DICTIONARIES];
    struct sx_dict *dicts[MOST_DICTIONARIES];
    int64_t begins[MOST_DICTIONARIES + 1];
    int n;
};

/* -1: it is not among them. The last ones first: parts of one dictionary follow each other. */
static int find_dictionary(const struct dictionaries *all, const struct sx_dict *dict) {
    int i = all->n - 1;
    while (i >= 0 && all->dicts[i] != dict)
        i--;
    return i;
}

/* Whether the parts can be codes of one dictionary: theirs, or all of theirs if these have few entries. */
static bool find_dictionaries(const struct sx_tensor *const *parts, int64_t n, struct dictionaries *all) {
    int64_t rows = 0;
    all->n = 0;
    all->begins[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (parts[i]->layout != SX_DICT || parts[i]->dict->values.length == 0)
            return false;
        rows += parts[i]->length;
        if (find_dictionary(all, parts[i]->dict) >= 0)
            continue;
        if (all->n == MOST_DICTIONARIES)
            return false;
        all->dicts[all->n] = parts[i]->dict;
        all->entries[all->n] = &parts[i]->dict->values;
        all->begins[all->n + 1] = all->begins[all->n] + parts[i]->dict->values.length;
        all->n++;
    }
    const int64_t n_entries = all->begins[all->n];
    return all->n == 1 || (all->n > 1 && n_entries <= rows / ROWS_AN_ENTRY && n_entries <= INT32_MAX);
}

static enum sx_status join_dictionaries(struct cuda_stream *stream, const struct dictionaries *all,
                                        struct sx_dict **out_dict) {
    struct sx_tensor entries;
    if (all->n == 1) {
        *out_dict = sx_dict_retain(all->dicts[0]);
        return SX_OK;
    }
    SX_TRY(sx_cuda_concat(&stream->base, all->entries[0]->type, all->entries, all->n, SX_CONCAT_SHARED,
                          &entries));
    enum sx_status status = sx_dict_create(&entries, out_dict, &stream->base.error);
    if (status != SX_OK)
        sx_tensor_release(&entries);
    return status;
}

/* ---- rows ---- */

/* Kernels for many small parts at a time, and one for each large part that is no more than bytes. */
enum { LARGE_PART = 4 << 20 }; /* bytes */

static bool is_copied(const struct sx_tensor *column, size_t width, const char *to, const uint8_t *to_valid) {
    const bool are_words = ((uintptr_t)to | (uintptr_t)column->values) % sizeof(uint64_t) == 0;
    return column->layout == SX_FLAT && !column->valid && !to_valid && are_words &&
           (size_t)column->length * width >= LARGE_PART;
}

/* `codes`: the parts' codes, as entries of these dictionaries together; NULL: their values. */
static void concat_parts(struct cuda_stream *stream, const struct sx_tensor *const *columns, int64_t n,
                         const struct dictionaries *codes, struct sx_tensor *out) {
    const size_t width = codes ? sizeof(int32_t) : sx_type_bytes(out->type);
    struct cuda_concat some = {0};
    int64_t at = 0;
    for (int64_t i = 0; i < n; at += columns[i++]->length) {
        char *to = (char *)out->values + (size_t)at * width;
        struct cuda_column column = cuda_column_of(columns[i]);
        if (columns[i]->length == 0)
            continue;
        if (columns[i]->layout == SX_NARROW) {
            cuda_widen(stream, columns[i], to, out->valid ? out->valid + at : NULL);
            continue;
        }
        if (is_copied(columns[i], width, to, out->valid)) {
            cuda_copy_bytes(stream->handle, to, columns[i]->values, (size_t)columns[i]->length * width);
            continue;
        }
        if (some.n == CUDA_CONCAT_PARTS) {
            cuda_concat_values(stream->handle, &some, (int)width, out->values, out->valid);
            some = (struct cuda_concat){0};
        }
        if (codes)
            column.layout = CUDA_FLAT;
        some.parts[some.n++] = (struct cuda_concat_part){
            .column = column,
            .begin = at,
            .rows = columns[i]->length,
            .first_code = codes ? (int32_t)codes->begins[find_dictionary(codes, columns[i]->dict)] : 0};
        some.rows += columns[i]->length;
    }
    if (some.n > 0)
        cuda_concat_values(stream->handle, &some, (int)width, out->values, out->valid);
}

static enum sx_status concat_coded(struct cuda_stream *stream, const struct sx_tensor *const *columns,
                                   int64_t n, int64_t rows, bool has_valid,
                                   const struct dictionaries *dictionaries, struct sx_tensor *out) {
    struct sx_dict *dict;
    SX_TRY(join_dictionaries(stream, dictionaries, &dict));
    enum sx_status status =
        sx_tensor_create_codes(stream->base.pool, dict, rows, has_valid, out, &stream->base.error);
    sx_dict_release(dict);
    if (status == SX_OK)
        concat_parts(stream, columns, n, dictionaries, out);
    return status;
}

enum sx_status sx_cuda_concat(struct sx_stream *base, struct sx_type type,
                              const struct sx_tensor *const *columns, int64_t n, enum sx_concat how,
                              struct sx_tensor *out_column) {
    struct cuda_stream *stream;
    struct sx_tensor made = {0};
    struct dictionaries dictionaries;
    int64_t rows = 0;
    bool has_valid = false;
    enum sx_status status;
    SX_TRY(cuda_enter(base, &stream));
    for (int64_t i = 0; i < n; i++) {
        rows += columns[i]->length;
        has_valid |= columns[i]->valid != NULL;
    }
    if (how == SX_CONCAT_CODED && find_dictionaries(columns, n, &dictionaries)) {
        SX_GO(concat_coded(stream, columns, n, rows, has_valid, &dictionaries, &made));
        SX_GO(cuda_launched(stream, "concat of codes"));
    } else {
        SX_GO(sx_tensor_create(base->pool, type, rows, has_valid, &made, &base->error));
        concat_parts(stream, columns, n, NULL, &made);
        SX_GO(cuda_launched(stream, "concat"));
        if (type.id == SX_TYPE_VARCHAR)
            SX_GO(join_heaps(stream, columns, n, &made.heap));
        if (type.id == SX_TYPE_VARCHAR && how == SX_CONCAT_COMPACT)
            SX_GO(compact_strings(stream, &made));
    }
    *out_column = made;
    return SX_OK;
out:
    sx_tensor_release(&made);
    return status;
}
