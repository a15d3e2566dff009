#include "backend/cpu/decode.h"
#include "tensor/semantics_stored.h"

enum { MAX_DELTA_BITS = 64, READ_AHEAD_BYTES = 40 }; /* bytes behind a group that unpacking may touch */

const char *decode_delta_start(struct decode_delta *delta, struct decode_bytes bytes) {
    uint64_t block, miniblocks, count, first;
    if (!decode_varint(&bytes, &block) || !decode_varint(&bytes, &miniblocks) ||
        !decode_varint(&bytes, &count) || !decode_varint(&bytes, &first))
        return "the header of DELTA_BINARY_PACKED values is cut off";
    if (block == 0 || block > UINT32_MAX || miniblocks == 0 || miniblocks > block || block % miniblocks ||
        block / miniblocks % DECODE_DELTA_GROUP)
        return "DELTA_BINARY_PACKED values in blocks of a wrong size";
    *delta = (struct decode_delta){
        .bytes = bytes,
        .values_left = count,
        .miniblock_values = block / miniblocks,
        .n_miniblocks = (uint32_t)miniblocks,
        .miniblock = (uint32_t)miniblocks,
        .last = sx_stored_zigzag(first),
        .is_first = count > 0,
    };
    return NULL;
}

/* Enters the next miniblock. */
static const char *start_miniblock(struct decode_delta *delta) {
    struct decode_bytes *bytes = &delta->bytes;
    if (delta->miniblock == delta->n_miniblocks) {
        uint64_t min_delta;
        if (!decode_varint(bytes, &min_delta) || decode_left(bytes) < delta->n_miniblocks)
            return "a block of DELTA_BINARY_PACKED values is cut off";
        delta->min_delta = sx_stored_zigzag(min_delta);
        delta->widths = bytes->at;
        bytes->at += delta->n_miniblocks;
        delta->miniblock = 0;
    }
    delta->width = delta->widths[delta->miniblock++];
    if (delta->width > MAX_DELTA_BITS)
        return "DELTA_BINARY_PACKED values of more than 64 bits";
    uint64_t size = delta->miniblock_values / 8 * delta->width;
    delta->packed = bytes->at;
    delta->packed_bytes = size < decode_left(bytes) ? (size_t)size : decode_left(bytes);
    delta->miniblock_left = delta->miniblock_values;
    bytes->at += delta->packed_bytes;
    return NULL;
}

/* READ_AHEAD_BYTES behind the values are readable. */
static void unpack_deltas(const uint8_t *bits, uint32_t width, uint64_t *out) {
    const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    for (uint32_t i = 0; i < DECODE_DELTA_GROUP; i++) {
        uint32_t bit = i * width, shift = bit % 8;
        uint64_t low = decode_load_u64(bits + bit / 8) >> shift;
        uint64_t high = (uint64_t)bits[bit / 8 + 8] << 1 << (63 - shift);
        out[i] = (low | high) & mask;
    }
}

static void unpack_narrow_deltas(const uint8_t *bits, uint32_t width, uint64_t *out) {
    uint32_t narrow[DECODE_DELTA_GROUP];
    decode_unpack(bits, (size_t)DECODE_DELTA_GROUP / 8 * width, READ_AHEAD_BYTES, width, DECODE_DELTA_GROUP,
                  narrow);
    for (uint32_t i = 0; i < DECODE_DELTA_GROUP; i++)
        out[i] = narrow[i];
}

/* Makes the next values, 1 to DECODE_DELTA_GROUP of them. */
static const char *fill_group(struct decode_delta *delta) {
    if (delta->values_left == 0)
        return "more values than the DELTA_BINARY_PACKED header tells";
    delta->group_at = 0;
    if (delta->is_first) {
        delta->is_first = false;
        delta->group[0] = delta->last;
        delta->group_length = 1;
        return NULL;
    }
    if (delta->miniblock_left == 0) {
        const char *problem = start_miniblock(delta);
        if (problem)
            return problem;
    }
    uint64_t wanted = delta->values_left < DECODE_DELTA_GROUP ? delta->values_left : DECODE_DELTA_GROUP;
    size_t group_bytes = (size_t)DECODE_DELTA_GROUP / 8 * delta->width;
    size_t there = delta->packed_bytes < group_bytes ? delta->packed_bytes : group_bytes;
    if (there * 8 < wanted * delta->width)
        return "a block of DELTA_BINARY_PACKED values is cut off";
    uint8_t copy[DECODE_DELTA_GROUP * MAX_DELTA_BITS / 8 + READ_AHEAD_BYTES];
    const uint8_t *bits = delta->packed;
    if ((size_t)(delta->bytes.end - bits) + delta->bytes.slack < group_bytes + READ_AHEAD_BYTES) {
        memset(copy, 0, sizeof copy);
        memcpy(copy, bits, there);
        bits = copy;
    }
    if (delta->width <= 32)
        unpack_narrow_deltas(bits, delta->width, delta->group);
    else
        unpack_deltas(bits, delta->width, delta->group);
    uint64_t value = delta->last;
    for (uint32_t i = 0; i < wanted; i++)
        delta->group[i] = value += delta->group[i] + delta->min_delta;
    delta->last = value;
    delta->group_length = (uint32_t)wanted;
    delta->packed += there;
    delta->packed_bytes -= there;
    delta->miniblock_left -= DECODE_DELTA_GROUP;
    return NULL;
}

static void copy_group(const uint64_t *values, uint32_t n, size_t value_bytes, void *out) {
    if (value_bytes == sizeof(uint64_t)) {
        memcpy(out, values, n * sizeof *values);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t low = (uint32_t)values[i];
        memcpy((char *)out + i * sizeof low, &low, sizeof low);
    }
}

const char *decode_delta_read(struct decode_delta *delta, int64_t count, size_t value_bytes,
                              void *out_values) {
    for (int64_t done = 0; done < count;) {
        if (delta->group_at == delta->group_length) {
            const char *problem = fill_group(delta);
            if (problem)
                return problem;
        }
        uint32_t there = delta->group_length - delta->group_at;
        uint32_t n = count - done < there ? (uint32_t)(count - done) : there;
        copy_group(delta->group + delta->group_at, n, value_bytes,
                   (char *)out_values + (size_t)done * value_bytes);
        delta->group_at += n;
        delta->values_left -= n;
        done += n;
    }
    return NULL;
}

const char *decode_delta_skip(struct decode_delta *delta, int64_t count) {
    while (count > 0) {
        uint64_t passed[DECODE_DELTA_GROUP];
        int64_t n = count < DECODE_DELTA_GROUP ? count : DECODE_DELTA_GROUP;
        const char *problem = decode_delta_read(delta, n, sizeof *passed, passed);
        if (problem)
            return problem;
        count -= n;
    }
    return NULL;
}

const char *decode_delta_end(const struct decode_delta *delta, const uint8_t **out_end) {
    struct decode_delta copy = *delta;
    uint64_t deltas = copy.values_left ? copy.values_left - 1 : 0;
    while (deltas > 0) {
        const char *problem = start_miniblock(&copy);
        if (problem)
            return problem;
        /* without bits the rest may be a long run of blocks that take no bytes but their headers */
        deltas -= deltas < copy.miniblock_values ? deltas : copy.miniblock_values;
    }
    *out_end = copy.bytes.at;
    return NULL;
}
