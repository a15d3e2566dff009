/* Buffers, tensors (columns) and batches (chunks of a table). */
#ifndef SX_TENSOR_TENSOR_H
#define SX_TENSOR_TENSOR_H

#include <stdatomic.h>

#include "base/memory.h"
#include "base/status.h"
#include "tensor/type.h"

/* Counted bytes on one device. Thread-safe counting; the contents are immutable once a second owner exists.
 */
struct sx_buffer {
    atomic_int references;
    void *data;
    size_t size_bytes;
    struct sx_pool *pool;
    struct sx_buffer **keeps; /* other buffers that pointers in this one lead to (string bytes) */
    int n_keeps;
};

/* One reference, the caller's. */
SX_MUST_CHECK enum sx_status sx_buffer_create(struct sx_pool *pool, size_t size_bytes,
                                              struct sx_buffer **out_buffer, struct sx_error *error);

/* A buffer without bytes of its own that keeps `n` others alive (NULLs and repeats allowed); each is
 * retained. With n == 1 returns that one, retained. With none: *out is NULL. */
SX_MUST_CHECK enum sx_status sx_buffer_join(struct sx_pool *pool, struct sx_buffer *const *buffers, int n,
                                            struct sx_buffer **out_buffer, struct sx_error *error);

static inline struct sx_buffer *sx_buffer_retain(struct sx_buffer *buffer) {
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}
void sx_buffer_release(struct sx_buffer *buffer); /* NULL allowed */

enum sx_layout {
    SX_FLAT, /* values[length] */
    SX_DICT, /* values: int32_t codes[length] into dict->values; a null row's code is 0 or any valid code */
    SX_CONSTANT, /* values[1], valid[1] stand for every row */
    SX_NARROW,   /* values: unsigned offsets from `base`, of half the type's bytes. Only in a backend's own
                  * memory, and only what rows_unpack gives of columns that are to be moved alone */
    SX_SELECTED  /* values: int32_t rows[length] of dict->values, which is FLAT, or NARROW, without nulls: a
                  * gather that is put off. Only in a backend's own memory, and only what sx_tensor_select
                  * makes for who reads it so */
};

struct sx_dict;

/* A column of `length` rows. `values` and `valid` may point into the middle of their buffers (slices).
 * Validity is one byte a row, 1 valid and 0 null; NULL pointer: no nulls. Values of null rows are
 * unspecified, but safe to read (strings: a valid view). Starts zeroed and may be released zeroed. Copying
 * the struct moves ownership; sx_tensor_share makes a second owner. */
struct sx_tensor {
    struct sx_type type;
    enum sx_layout layout;
    int64_t length;
    void *values;
    uint8_t *valid;
    struct sx_dict *dict;            /* SX_DICT and SX_SELECTED only; one reference is held */
    int64_t base;                    /* SX_NARROW only */
    struct sx_buffer *values_buffer; /* may be NULL for borrowed memory that outlives the tensor */
    struct sx_buffer *valid_buffer;
    struct sx_buffer *heap; /* VARCHAR: keeps the bytes behind the views alive; may be NULL */
};

/* A dictionary shared by the tensors of a row group. Immutable. */
struct sx_dict {
    atomic_int references;
    uint64_t id;             /* unique in the process: the key for caches of what was computed per entry */
    struct sx_tensor values; /* FLAT (of SX_SELECTED NARROW, too), no nulls, distinctness not promised */
};

/* Takes over `values` on success. */
SX_MUST_CHECK enum sx_status sx_dict_create(struct sx_tensor *values, struct sx_dict **out_dict,
                                            struct sx_error *error);
struct sx_dict *sx_dict_retain(struct sx_dict *dict);
void sx_dict_release(struct sx_dict *dict);

/* FLAT tensor with room for `length` values, and for validity bytes if asked; contents unset. */
SX_MUST_CHECK enum sx_status sx_tensor_create(struct sx_pool *pool, struct sx_type type, int64_t length,
                                              bool with_valid, struct sx_tensor *out_tensor,
                                              struct sx_error *error);
/* DICT tensor: `length` int32 codes; retains `dict`. */
SX_MUST_CHECK enum sx_status sx_tensor_create_codes(struct sx_pool *pool, struct sx_dict *dict,
                                                    int64_t length, bool with_valid,
                                                    struct sx_tensor *out_tensor, struct sx_error *error);
/* CONSTANT tensor of `length` rows; a VARCHAR's bytes are copied. */
SX_MUST_CHECK enum sx_status sx_tensor_create_constant(struct sx_pool *pool, const struct sx_scalar *scalar,
                                                       int64_t length, struct sx_tensor *out_tensor,
                                                       struct sx_error *error);
/* Index tensor: FLAT, type I32 or I64. */
SX_MUST_CHECK enum sx_status sx_tensor_create_index(struct sx_pool *pool, enum sx_type_id id, int64_t length,
                                                    struct sx_tensor *out_tensor, struct sx_error *error);

/* A second owner of the same bytes. */
void sx_tensor_share(const struct sx_tensor *tensor, struct sx_tensor *out_tensor);
/* A second owner of rows [first, first + length). */
void sx_tensor_slice(const struct sx_tensor *tensor, int64_t first, int64_t length,
                     struct sx_tensor *out_tensor);
/* SELECTED: rows of `column`, which is FLAT or NARROW without nulls and no VARCHAR, by an I32 index. Shares
 * both. */
SX_MUST_CHECK enum sx_status sx_tensor_select(const struct sx_tensor *column, const struct sx_tensor *index,
                                              struct sx_tensor *out_tensor, struct sx_error *error);
/* Leaves it zeroed. */
void sx_tensor_release(struct sx_tensor *tensor);

/* Reads one row of host memory, through every layout; a VARCHAR scalar borrows the tensor's bytes. */
void sx_tensor_scalar(const struct sx_tensor *tensor, int64_t row, struct sx_scalar *out_scalar);
/* Bytes that a value takes (views with the string bytes behind them), for budgets and reports. */
size_t sx_tensor_bytes(const struct sx_tensor *tensor);
/* From one row's value, code or offset to the next one's; of CONSTANT that of its only value. */
static inline size_t sx_tensor_step(const struct sx_tensor *tensor) {
    const size_t bytes = sx_type_bytes(tensor->type);
    switch (tensor->layout) {
    case SX_DICT:
    case SX_SELECTED: return sizeof(int32_t);
    case SX_NARROW: return bytes / 2;
    case SX_FLAT:
    case SX_CONSTANT: break;
    }
    return bytes;
}

static inline const char *sx_string_bytes(const struct sx_string *string) {
    return string->length_bytes <= SX_STRING_INLINE_BYTES ? string->u.inlined : string->u.ref.pointer;
}
/* `bytes` must outlive the view when the length is above SX_STRING_INLINE_BYTES. */
struct sx_string sx_string_make(const char *bytes, uint32_t length_bytes);

/* Rows of several columns. `rows` is on the host; while it is still on the device it is -1 and sx_batch_rows
 * reads it (the one explicit synchronisation); `rows_bound` is always an upper bound. On the CPU rows ==
 * rows_bound always. Starts zeroed, may be released zeroed. */
struct sx_batch {
    int64_t rows;
    int64_t rows_bound;
    const void *device_rows;
    int n_columns;
    struct sx_tensor *columns; /* array from malloc, owned */
};

SX_MUST_CHECK enum sx_status sx_batch_create(int n_columns, int64_t rows, struct sx_batch *out_batch,
                                             struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_batch_share(const struct sx_batch *batch, struct sx_batch *out_batch,
                                            struct sx_error *error);
SX_MUST_CHECK enum sx_status sx_batch_slice(const struct sx_batch *batch, int64_t first, int64_t rows,
                                            struct sx_batch *out_batch, struct sx_error *error);
void sx_batch_release(struct sx_batch *batch);
size_t sx_batch_bytes(const struct sx_batch *batch);

#endif
