/* PACKED columns of frames: the plain way. */
#include <string.h>

#include "backend/cpu/rows.h"

enum { HALF_BYTES = 8 };

/* ---- which rows ---- */

static int64_t row_of(const struct cpu_picked *picked, int64_t i) {
    return picked->order ? picked->order[picked->first + i] : picked->first + i;
}

bool cpu_picked_is_valid(const struct cpu_picked *picked, int64_t i) {
    const struct sx_tensor *column = picked->column;
    return !column->valid || column->valid[column->layout == SX_CONSTANT ? 0 : row_of(picked, i)];
}

const char *cpu_picked_value(const struct cpu_picked *picked, int64_t i) {
    const struct sx_tensor *column = picked->column;
    const char *values = column->values;
    int64_t at = column->layout == SX_CONSTANT ? 0 : row_of(picked, i);
    if (column->layout == SX_DICT) {
        at = ((const int32_t *)column->values)[at];
        values = column->dict->values.values;
    }
    return values + (size_t)at * picked->width_bytes;
}

struct sx_string cpu_picked_string(const struct cpu_picked *picked, int64_t i) {
    struct sx_string view = {0};
    if (cpu_picked_is_valid(picked, i))
        memcpy(&view, cpu_picked_value(picked, i), sizeof view);
    return view;
}

/* ---- writing ---- */

static bool is_string(const struct sx_tensor *column) {
    return column->type.id == SX_TYPE_VARCHAR;
}

/* Rows [first, first + n) of the column's vector; nulls are as what is before them, but for strings. */
static void load(const struct cpu_picked *picked, int vector, int64_t first, int n, int64_t *out) {
    const bool is_validity = vector + 1 == sx_rows_vectors(picked->column->type, true);
    int64_t last = 0;
    for (int i = 0; i < n; i++) {
        const bool valid = cpu_picked_is_valid(picked, first + i);
        if (is_validity)
            last = valid;
        else if (is_string(picked->column))
            last = cpu_picked_string(picked, first + i).length_bytes;
        else if (valid)
            last = pack_load(cpu_picked_value(picked, first + i) + (size_t)vector * HALF_BYTES,
                             picked->width_bytes);
        out[i] = last;
    }
}

/* Returns the bytes of its words. */
static size_t write_block(int64_t *values, int n, uint64_t offset, struct sx_pack_block *block, char *words) {
    int64_t least, most;
    pack_range(values, n, &least, &most);
    const unsigned bits = pack_bits_of((uint64_t)most - (uint64_t)least);
    if (!block)
        return pack_words_bytes(n, bits);
    *block =
        (struct sx_pack_block){.base = (uint64_t)least, .offset = (uint32_t)offset, .bits = (uint8_t)bits};
    for (int i = n; i < pack_positions(n) * SX_PACK_LANES; i++)
        values[i] = least;
    if (bits > 0)
        pack_write_words(values, n, block->base, bits, (uint64_t *)(uintptr_t)(words + offset));
    return pack_words_bytes(n, bits);
}

static uint64_t sum_of(const int64_t *values, int n) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (uint64_t)values[i];
    return sum;
}

uint64_t cpu_rows_write_blocks(const struct cpu_picked *picked, struct sx_pack_block *directory,
                               char *words) {
    const int n_vectors = sx_rows_vectors(picked->column->type, picked->column->valid != NULL);
    uint64_t used = 0, characters = 0;
    for (int64_t b = 0; b < pack_blocks_of(picked->n); b++)
        for (int v = 0; v < n_vectors; v++) {
            int64_t values[SX_PACK_BLOCK];
            const int n = pack_block_length(picked->n, b);
            load(picked, v, b * SX_PACK_BLOCK, n, values);
            used += write_block(values, n, used, directory ? &directory[b * n_vectors + v] : NULL, words);
            if (directory && v == 0 && is_string(picked->column)) {
                directory[b * n_vectors].first = characters;
                characters += sum_of(values, n);
            }
        }
    return used;
}

void cpu_rows_write_characters(const struct cpu_picked *picked, char *heap) {
    for (int64_t i = 0; i < picked->n; i++) {
        const struct sx_string view = cpu_picked_string(picked, i);
        memcpy(heap, sx_string_bytes(&view), view.length_bytes);
        heap += view.length_bytes;
    }
}

/* ---- reading ---- */

/* Strings of a block of PACKED ones: they have the characters from its `first` on, up to those of the next
 * block. */
static enum sx_status make_views(struct sx_stream *stream, const struct sx_rows_column *place,
                                 const char *frame, int64_t b, const int64_t *lengths,
                                 struct sx_tensor *column) {
    const int n_vectors = sx_rows_vectors(column->type, column->valid != NULL);
    const struct sx_pack_block *directory = (const void *)(frame + place->values);
    const bool is_last = b + 1 == pack_blocks_of(column->length);
    const uint64_t end = is_last ? place->heap_bytes : directory[(b + 1) * n_vectors].first;
    struct sx_string *views = (struct sx_string *)column->values + b * SX_PACK_BLOCK;
    uint64_t at = directory[b * n_vectors].first;
    bool is_right = at <= end && end <= place->heap_bytes;
    for (int i = 0; is_right && i < pack_block_length(column->length, b); i++) {
        const uint64_t length = (uint64_t)lengths[i];
        is_right =
            length <= end - at && length <= UINT32_MAX && (column->heap || length <= SX_STRING_INLINE_BYTES);
        if (is_right)
            views[i] = sx_string_make(frame + place->heap + at, (uint32_t)length);
        at += length;
    }
    return is_right && at == end
               ? SX_OK
               : sx_error_set(&stream->error, SX_INTERNAL,
                              "rows of another rank: the characters of packed block %lld", (long long)b);
}

/* Where a vector's integers go: `stride_bytes` from each other. */
static char *target_of(const struct sx_tensor *column, int vector, size_t *out_stride_bytes) {
    const bool is_validity = vector + 1 == sx_rows_vectors(column->type, true);
    *out_stride_bytes = is_validity ? 1 : sx_type_bytes(column->type);
    return is_validity ? (char *)column->valid : (char *)column->values + (size_t)vector * HALF_BYTES;
}

enum sx_status cpu_rows_read_blocks(struct sx_stream *stream, const struct sx_rows_column *place, char *frame,
                                    struct sx_tensor *column) {
    const int n_vectors = sx_rows_vectors(column->type, column->valid != NULL);
    const struct sx_pack_block *directory = (const void *)(frame + place->values);
    const uint64_t directory_bytes = sx_rows_directory_bytes(column->length, n_vectors),
                   words_bytes = place->values_bytes - directory_bytes;
    const char *words = frame + place->values + directory_bytes;
    for (int64_t i = 0; i < pack_blocks_of(column->length) * n_vectors; i++) {
        const int64_t b = i / n_vectors;
        const int n = pack_block_length(column->length, b);
        int64_t values[SX_PACK_BLOCK];
        size_t stride;
        char *target = target_of(column, (int)(i % n_vectors), &stride);
        if (!pack_is_inside(&directory[i], n, words_bytes))
            return sx_error_set(&stream->error, SX_INTERNAL,
                                "rows of another rank: a packed block of %d bits at %u of %llu bytes",
                                directory[i].bits, directory[i].offset, (unsigned long long)words_bytes);
        pack_read_words((const void *)(words + directory[i].offset), n, directory[i].base, directory[i].bits,
                        values);
        if (i % n_vectors == 0 && is_string(column))
            SX_TRY(make_views(stream, place, frame, b, values, column));
        else
            pack_store(values, n, stride < HALF_BYTES ? (uint32_t)stride : HALF_BYTES, (int64_t)stride,
                       target + (size_t)b * SX_PACK_BLOCK * stride);
    }
    return SX_OK;
}
