/* Copying rows: what the move, join and sort primitives share. */
#ifndef SX_BACKEND_CPU_MOVE_H
#define SX_BACKEND_CPU_MOVE_H

#include "tensor/backend.h"

static inline enum sx_status sx_cpu_check_cancel(struct sx_stream *stream) {
    if (stream->cancel && atomic_load_explicit(stream->cancel, memory_order_relaxed))
        return sx_error_set(&stream->error, SX_CANCELLED, "cancelled");
    return SX_OK;
}

/* Zeroed memory of the stream's pool; large ones look at stream->cancel on the way. On failure nothing is
 * allocated. */
SX_MUST_CHECK enum sx_status sx_cpu_alloc_zeroed(struct sx_stream *stream, size_t size_bytes,
                                                 void **out_memory);

/* Whether a row may be null. */
static inline bool sx_cpu_has_nulls(const struct sx_tensor *column) {
    return column->valid != NULL || column->type.id == SX_TYPE_NULLTYPE;
}

/* Rows [first, first + rows) of `column` as FLAT values; strings as views of the same bytes. */
void sx_cpu_copy_values(const struct sx_tensor *column, int64_t first, int64_t rows, void *out_values);
/* Their validity, for columns without nulls too. */
void sx_cpu_copy_valid(const struct sx_tensor *column, int64_t first, int64_t rows, uint8_t *out_valid);

/* A FLAT column of the same rows; one that is FLAT is shared. */
SX_MUST_CHECK enum sx_status sx_cpu_flatten(struct sx_stream *stream, const struct sx_tensor *column,
                                            struct sx_tensor *out_column);

/* out[i] = source[index[i]] for values of `value_bytes` (1, 2, 4, 8 or 16); `index_id` is I32 or I64. With
 * `some_negative`, negative indices give zero bytes. */
void sx_cpu_gather_values(const void *source, size_t value_bytes, const void *index, enum sx_type_id index_id,
                          bool some_negative, int64_t rows, void *out_values);

/* Bytes of strings, in blocks that are never moved. Starts zeroed, may be released zeroed. */
struct sx_string_heap {
    struct sx_buffer **blocks;
    int n_blocks;
    size_t used_bytes; /* of the last block */
};

/* Copies the bytes behind `rows` views into the heap and points the views there. Null rows (`valid` 0) become
 * empty strings. */
SX_MUST_CHECK enum sx_status sx_string_heap_take(struct sx_stream *stream, struct sx_string_heap *heap,
                                                 struct sx_string *views, const uint8_t *valid, int64_t rows);
/* Keeps another buffer alive along with the blocks. NULL allowed. */
SX_MUST_CHECK enum sx_status sx_string_heap_keep(struct sx_stream *stream, struct sx_string_heap *heap,
                                                 struct sx_buffer *buffer);
void sx_string_heap_release(struct sx_string_heap *heap);

#endif
