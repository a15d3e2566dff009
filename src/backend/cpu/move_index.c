#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/move.h"

enum sx_status sx_cpu_iota(struct sx_stream *stream, enum sx_type_id id, int64_t first, int64_t length,
                           struct sx_tensor *out_index) {
    SX_TRY(sx_tensor_create_index(stream->pool, id, length, out_index, &stream->error));
    if (id == SX_TYPE_I64) {
        int64_t *values = out_index->values;
        for (int64_t i = 0; i < length; i++)
            values[i] = first + i;
    } else {
        int32_t *values = out_index->values;
        for (int64_t i = 0; i < length; i++)
            values[i] = (int32_t)(first + i);
    }
    return SX_OK;
}

enum sx_status sx_cpu_index_to_mask(struct sx_stream *stream, const struct sx_tensor *index, int64_t rows,
                                    struct sx_tensor *out_mask) {
    SX_TRY(sx_tensor_create(stream->pool, sx_type_of(SX_TYPE_BOOL), rows, false, out_mask, &stream->error));
    uint8_t *mask = out_mask->values;
    const int32_t *positions = index->values;
    memset(mask, 0, (size_t)rows);
    for (int64_t i = 0; i < index->length; i++)
        mask[positions[i]] = 1;
    return SX_OK;
}

/* Positions of the bytes that are 1; `bytes` hold 0 and 1 only. */
static int64_t positions_of_ones(const uint8_t *bytes, int64_t rows, int32_t *out_positions) {
    int64_t found = 0, i = 0;
    for (; i + 8 <= rows; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        if (!word)
            continue;
        for (int k = 0; k < 8; k++) {
            out_positions[found] = (int32_t)(i + k);
            found += bytes[i + k];
        }
    }
    for (; i < rows; i++) {
        out_positions[found] = (int32_t)i;
        found += bytes[i];
    }
    return found;
}

enum { MASK_BLOCK = 1024 };

static int64_t positions_where(const struct sx_tensor *mask, bool wanted, int32_t *out_positions) {
    const uint8_t *values = mask->values;
    const uint8_t flip = !wanted;
    uint8_t hit[MASK_BLOCK];
    int64_t found = 0;
    for (int64_t at = 0; at < mask->length; at += MASK_BLOCK) {
        int64_t n = mask->length - at < MASK_BLOCK ? mask->length - at : MASK_BLOCK;
        for (int64_t i = 0; i < n; i++)
            hit[i] = values[at + i] ^ flip;
        if (mask->valid)
            for (int64_t i = 0; i < n; i++)
                hit[i] &= mask->valid[at + i];
        int64_t first = found;
        found += positions_of_ones(hit, n, out_positions + found);
        for (int64_t i = first; i < found; i++)
            out_positions[i] += (int32_t)at;
    }
    return found;
}

static enum sx_status all_or_none(struct sx_stream *stream, const struct sx_tensor *mask, bool wanted,
                                  struct sx_tensor *out_index) {
    bool valid = !mask->valid || mask->valid[0];
    bool all = valid && *(const uint8_t *)mask->values == wanted;
    return sx_cpu_iota(stream, SX_TYPE_I32, 0, all ? mask->length : 0, out_index);
}

enum sx_status sx_cpu_mask_to_index(struct sx_stream *stream, const struct sx_tensor *mask, bool wanted,
                                    struct sx_tensor *out_index) {
    SX_TRY(sx_cpu_check_cancel(stream));
    if (mask->layout == SX_CONSTANT)
        return all_or_none(stream, mask, wanted, out_index);
    struct sx_tensor flat = {0}, index = {0};
    enum sx_status status = SX_OK;
    SX_GO(sx_cpu_flatten(stream, mask, &flat));
    SX_GO(sx_tensor_create_index(stream->pool, SX_TYPE_I32, mask->length + 1, &index, &stream->error));
    index.length = positions_where(&flat, wanted, index.values);
    *out_index = index;
out:
    sx_tensor_release(&flat);
    return status;
}
