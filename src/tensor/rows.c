#include "tensor/rows.h"

#include <string.h>

#include "tensor/pack_words.h"

_Static_assert(sizeof(struct sx_rows_frame) % SX_ROWS_ALIGNMENT == 0 &&
                   sizeof(struct sx_rows_column) % SX_ROWS_ALIGNMENT == 0,
               "heads align");

enum { HALF_BYTES = 8 };

static uint64_t aligned(uint64_t bytes) {
    return (bytes + SX_ROWS_ALIGNMENT - 1) & ~(uint64_t)(SX_ROWS_ALIGNMENT - 1);
}

/* ---- dictionaries ---- */

bool sx_rows_sends_dictionary(const struct sx_tensor *column, int64_t rows, int n_frames) {
    enum { FEW_ROWS_AN_ENTRY = 4 };
    int64_t entries;
    return column->layout == SX_DICT && column->type.id == SX_TYPE_VARCHAR &&
           column->dict->values.length > 0 &&
           !__builtin_mul_overflow(column->dict->values.length, n_frames, &entries) &&
           entries <= rows / FEW_ROWS_AN_ENTRY;
}

struct sx_tensor sx_rows_codes(const struct sx_tensor *column) {
    return (struct sx_tensor){.type = {.id = SX_TYPE_I32},
                              .layout = SX_FLAT,
                              .length = column->length,
                              .values = column->values,
                              .valid = column->valid};
}

static struct sx_type type_of(const struct sx_rows_column *column) {
    return (struct sx_type){(enum sx_type_id)column->type_id, column->precision, column->scale};
}

static struct sx_type stored_type(const struct sx_rows_column *column, struct sx_type type) {
    return column->n_entries > 0 ? (struct sx_type){.id = SX_TYPE_I32} : type;
}

enum sx_status sx_rows_add_dictionary(const struct sx_rows_column *place, struct sx_buffer *block,
                                      struct sx_tensor *column, struct sx_error *error) {
    const bool has_long = place->heap_bytes > sx_rows_entries_bytes(place->n_entries);
    struct sx_tensor entries = {.type = type_of(place),
                                .layout = SX_FLAT,
                                .length = (int64_t)place->n_entries,
                                .values = block->data,
                                .values_buffer = sx_buffer_retain(block),
                                .heap = has_long ? sx_buffer_retain(block) : NULL};
    struct sx_dict *dict = NULL;
    const enum sx_status status = sx_dict_create(&entries, &dict, error);
    sx_tensor_release(&entries);
    if (status != SX_OK)
        return status;
    column->type = type_of(place);
    column->layout = SX_DICT;
    column->dict = dict;
    return SX_OK;
}

/* ---- narrow columns ---- */

bool sx_rows_can_narrow(struct sx_type type) {
    switch (sx_type_phys(type)) {
    case SX_PHYS_I64:
    case SX_PHYS_U64:
    case SX_PHYS_I128:
    case SX_PHYS_U128: return true;
    default: return false;
    }
}

struct sx_rows_narrow sx_rows_narrow_of(size_t width_bytes, struct sx_rows_range range) {
    const int64_t least = range.least, most = range.most;
    const uint64_t span = (uint64_t)most - (uint64_t)least;
    if (least == SX_ROWS_NO_RANGE.least && most == SX_ROWS_NO_RANGE.most)
        return (struct sx_rows_narrow){.fit = SX_ROWS_FIT_UNKNOWN};
    if (least > most || (width_bytes <= HALF_BYTES && span > UINT32_MAX))
        return (struct sx_rows_narrow){.fit = SX_ROWS_FITS_NOT};
    struct sx_rows_narrow narrow = {.fit = SX_ROWS_FITS};
    if (width_bytes > HALF_BYTES) {
        narrow.base = INT64_MIN; /* all of 64 bits fit */
    } else if (least < 0 || most > UINT32_MAX) {
        /* As much room below as above. What is not negative mostly grows. */
        const uint64_t below = (UINT32_MAX - span) / 2, most_below = (uint64_t)least - (uint64_t)INT64_MIN;
        narrow.base = (int64_t)((uint64_t)least - (most_below < below ? most_below : below));
    }
    return narrow;
}

static uint64_t narrow_bytes(struct sx_type type) {
    return sx_type_bytes(type) / 2;
}

/* ---- sizes ---- */

int sx_rows_vectors(struct sx_type type, bool has_valid) {
    const bool has_halves = type.id != SX_TYPE_VARCHAR && sx_type_bytes(type) > HALF_BYTES;
    return (has_halves ? 2 : 1) + has_valid;
}

uint64_t sx_rows_directory_bytes(int64_t rows, int n_vectors) {
    return aligned((uint64_t)pack_blocks_of(rows) * (uint64_t)n_vectors * sizeof(struct sx_pack_block));
}

enum sx_rows_encoding sx_rows_choose(struct sx_type type, bool has_valid, int64_t rows, int64_t n_blocks,
                                     const struct sx_rows_shape *shape) {
    const uint64_t blocks = (uint64_t)n_blocks * (uint64_t)sx_rows_vectors(type, has_valid);
    const uint64_t packed =
                       blocks * sizeof(struct sx_pack_block) + shape->words_bytes + shape->characters_bytes,
                   plain = (uint64_t)rows * (sx_type_bytes(type) + has_valid) + shape->long_bytes;
    return shape->words_bytes <= UINT32_MAX && packed <= plain / 10 * 9 ? SX_ROWS_PACKED : SX_ROWS_PLAIN;
}

/* ---- making ---- */

static uint64_t values_bytes(const struct sx_tensor *column, int64_t rows,
                             const struct sx_rows_shape *shape) {
    if (shape->encoding == SX_ROWS_PLAIN)
        return (uint64_t)rows * sx_type_bytes(column->type);
    if (shape->encoding == SX_ROWS_NARROW)
        return (uint64_t)rows * narrow_bytes(column->type);
    return sx_rows_directory_bytes(rows, sx_rows_vectors(column->type, column->valid != NULL)) +
           shape->words_bytes;
}

static uint64_t heap_bytes(const struct sx_rows_shape *shape) {
    if (shape->n_entries > 0)
        return shape->dictionary_bytes;
    return shape->encoding == SX_ROWS_PACKED ? shape->characters_bytes : shape->long_bytes;
}

/* A column that is stored from `at` on. Returns where it ends. */
static uint64_t make_column(const struct sx_tensor *column, int64_t rows, const struct sx_rows_shape *shape,
                            uint64_t at, struct sx_rows_column *out) {
    const bool is_packed = shape->encoding == SX_ROWS_PACKED, is_coded = shape->n_entries > 0;
    *out = (struct sx_rows_column){.values = at,
                                   .values_bytes = values_bytes(column, rows, shape),
                                   .valid = column->valid ? at : 0,
                                   .heap_bytes = heap_bytes(shape),
                                   .n_entries = shape->n_entries,
                                   .long_bytes = is_packed ? shape->long_bytes : 0,
                                   .type_id = (uint32_t)(is_coded ? SX_TYPE_VARCHAR : column->type.id),
                                   .precision = column->type.precision,
                                   .scale = column->type.scale,
                                   .encoding = (uint8_t)shape->encoding,
                                   .base = shape->base};
    at += aligned(out->values_bytes);
    if (column->valid && !is_packed) {
        out->valid = at;
        at += aligned((uint64_t)rows);
    }
    out->heap = at;
    return at + aligned(out->heap_bytes);
}

size_t sx_rows_make_head(const struct sx_batch *batch, int64_t rows, int64_t sequence,
                         const struct sx_rows_shape *shapes, void *head) {
    uint64_t at = sx_rows_head_bytes(batch->n_columns);
    struct sx_rows_column *columns = sx_rows_columns(head);
    for (int c = 0; c < batch->n_columns; c++)
        at = make_column(&batch->columns[c], rows, &shapes[c], at, &columns[c]);
    const struct sx_rows_frame frame = {
        .bytes = at, .rows = rows, .sequence = sequence, .n_columns = batch->n_columns};
    memcpy(head, &frame, sizeof frame);
    return at;
}

size_t sx_rows_plain_bytes(const struct sx_batch *batch, int64_t rows, const struct sx_rows_shape *shapes) {
    uint64_t at = sx_rows_head_bytes(batch->n_columns);
    for (int c = 0; c < batch->n_columns; c++) {
        struct sx_rows_shape plain = shapes[c];
        struct sx_rows_column made;
        plain.encoding = SX_ROWS_PLAIN;
        at = make_column(&batch->columns[c], rows, &plain, at, &made);
    }
    return at;
}

/* ---- reading ---- */

static bool is_inside(uint64_t at, uint64_t bytes, uint64_t all) {
    return at % SX_ROWS_ALIGNMENT == 0 && at <= all && bytes <= all - at;
}

/* Values of `width` bytes, one behind the other, and validity. */
static bool is_flat(const struct sx_rows_column *column, uint64_t rows, uint64_t all, uint64_t width) {
    uint64_t bytes;
    return !__builtin_mul_overflow(rows, width, &bytes) && bytes == column->values_bytes &&
           is_inside(column->valid, column->valid ? rows : 0, all);
}

static bool is_packed(const struct sx_rows_column *column, int64_t rows, struct sx_type type) {
    return (uint64_t)rows / SX_PACK_BLOCK <= column->values_bytes &&
           sx_rows_directory_bytes(rows, sx_rows_vectors(type, column->valid != 0)) <= column->values_bytes;
}

static bool is_dictionary(const struct sx_rows_column *column) {
    return column->n_entries <= INT32_MAX && sx_rows_entries_bytes(column->n_entries) <= column->heap_bytes;
}

static bool is_column(const struct sx_rows_column *column, int64_t rows, uint64_t all, struct sx_type type) {
    const struct sx_type stored = stored_type(column, type);
    const bool is_heap_packed = column->encoding == SX_ROWS_PACKED && column->n_entries == 0;
    if (!sx_type_equal(type_of(column), type) || !is_inside(column->values, column->values_bytes, all) ||
        !is_inside(column->heap, column->heap_bytes, all) || !is_dictionary(column) ||
        (type.id != SX_TYPE_VARCHAR && (column->heap_bytes > 0 || column->n_entries > 0)) ||
        column->long_bytes > (is_heap_packed ? column->heap_bytes : 0))
        return false;
    switch (column->encoding) {
    case SX_ROWS_PLAIN: return is_flat(column, (uint64_t)rows, all, sx_type_bytes(stored));
    case SX_ROWS_NARROW:
        return sx_rows_can_narrow(stored) && is_flat(column, (uint64_t)rows, all, narrow_bytes(stored));
    case SX_ROWS_PACKED: return is_packed(column, rows, stored);
    default: return false;
    }
}

enum sx_status sx_rows_check_head(const void *head, size_t bytes, const struct sx_type *types, int n_columns,
                                  struct sx_error *error) {
    struct sx_rows_frame frame;
    memcpy(&frame, head, sizeof frame);
    if (frame.bytes != bytes || frame.rows < 0 || frame.n_columns != n_columns)
        return sx_error_set(error, SX_INTERNAL,
                            "rows of another rank: a frame of %llu bytes with %d columns, of %zu and %d",
                            (unsigned long long)frame.bytes, frame.n_columns, bytes, n_columns);
    const struct sx_rows_column *columns =
        (const struct sx_rows_column *)((const struct sx_rows_frame *)head + 1);
    for (int c = 0; c < n_columns; c++)
        if (!is_column(&columns[c], frame.rows, frame.bytes, types[c]))
            return sx_error_set(error, SX_INTERNAL, "rows of another rank: column %d is another one", c);
    return SX_OK;
}

static void point_at_validity(const struct sx_rows_column *place, struct sx_buffer *frame,
                              struct sx_tensor *column) {
    if (!place->valid)
        return;
    column->valid = (uint8_t *)frame->data + place->valid;
    column->valid_buffer = sx_buffer_retain(frame);
}

/* A PLAIN column, in the frame. */
static void point_at(const struct sx_rows_column *place, struct sx_buffer *frame, struct sx_tensor *column) {
    column->values = (char *)frame->data + place->values;
    column->values_buffer = sx_buffer_retain(frame);
    point_at_validity(place, frame, column);
    if (place->heap_bytes && !place->n_entries)
        column->heap = sx_buffer_retain(frame);
}

static void place_narrow(const struct sx_rows_column *place, struct sx_buffer *frame,
                         struct sx_tensor *column) {
    column->layout = SX_NARROW;
    column->base = place->base;
    point_at(place, frame, column);
}

enum sx_status sx_rows_place(const void *head, struct sx_buffer *frame, struct sx_pool *pool,
                             const bool *stay_narrow, struct sx_batch *out_batch, struct sx_error *error) {
    const struct sx_rows_frame *known = head;
    const struct sx_rows_column *columns = (const struct sx_rows_column *)(known + 1);
    enum sx_status status = SX_OK;
    SX_TRY(sx_batch_create(known->n_columns, known->rows, out_batch, error));
    for (int c = 0; c < known->n_columns && status == SX_OK; c++) {
        const struct sx_type type = stored_type(&columns[c], type_of(&columns[c]));
        struct sx_tensor *column = &out_batch->columns[c];
        *column = (struct sx_tensor){.type = type, .layout = SX_FLAT, .length = known->rows};
        const bool is_narrow = columns[c].encoding == SX_ROWS_NARROW;
        const bool stays_narrow = is_narrow && stay_narrow && stay_narrow[c];
        if (columns[c].encoding == SX_ROWS_PLAIN)
            point_at(&columns[c], frame, column);
        else if (stays_narrow)
            place_narrow(&columns[c], frame, column);
        else
            status = sx_tensor_create(pool, type, known->rows,
                                      columns[c].valid != 0 && columns[c].encoding == SX_ROWS_PACKED, column,
                                      error);
        if (status == SX_OK && is_narrow && !stays_narrow)
            point_at_validity(&columns[c], frame, column);
        if (status == SX_OK && columns[c].encoding == SX_ROWS_PACKED && columns[c].long_bytes > 0)
            column->heap = sx_buffer_retain(frame);
    }
    if (status != SX_OK)
        sx_batch_release(out_batch);
    return status;
}
