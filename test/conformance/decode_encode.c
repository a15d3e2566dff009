#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "decode_encode.h"

#include <assert.h>

void bytes_put(struct bytes *bytes, const void *data, size_t length) {
    if (length > bytes->room - bytes->length) {
        bytes->room = 2 * bytes->room + length + 64;
        uint8_t *grown = realloc(bytes->data, bytes->room);
        assert(grown);
        bytes->data = grown;
    }
    if (length)
        memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
}

void bytes_release(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

static void put_byte(struct bytes *out, uint64_t byte) {
    uint8_t low = (uint8_t)byte;
    bytes_put(out, &low, 1);
}

void bytes_put_varint(struct bytes *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put_byte(out, value | 0x80);
    put_byte(out, value);
}

static void put_zigzag(struct bytes *out, uint64_t value) {
    bytes_put_varint(out, value << 1 ^ (0 - (value >> 63)));
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* ---- stored values ---- */

void stored_put(struct stored_values *values, const void *data, size_t length) {
    if (values->stored_bytes == 0) {
        /* where it ends */
        uint64_t end = values->bytes.length + length;
        bytes_put(&values->ends, &end, sizeof end);
    }
    bytes_put(&values->bytes, data, length);
    values->n++;
}

const uint8_t *stored_at(const struct stored_values *values, int64_t i, size_t *out_length) {
    if (values->stored_bytes) {
        *out_length = values->stored_bytes;
        return values->bytes.data + (size_t)i * values->stored_bytes;
    }
    const uint64_t *ends = (const uint64_t *)(const void *)values->ends.data;
    uint64_t begin = i ? ends[i - 1] : 0;
    *out_length = ends[i] - begin;
    return values->bytes.data + begin;
}

void stored_release(struct stored_values *values) {
    bytes_release(&values->bytes);
    bytes_release(&values->ends);
}

/* ---- bits ---- */

struct bit_writer {
    struct bytes *out;
    uint32_t bits, n;
};

static void put_bits(struct bit_writer *writer, uint64_t value, uint32_t width) {
    for (uint32_t b = 0; b < width; b++) {
        writer->bits |= (uint32_t)(value >> b & 1) << writer->n++;
        if (writer->n == 8) {
            put_byte(writer->out, writer->bits);
            writer->bits = writer->n = 0;
        }
    }
}

static void flush_bits(struct bit_writer *writer) {
    while (writer->n)
        put_bits(writer, 0, 1);
}

void encode_hybrid(const uint32_t *values, int64_t n, uint32_t width, uint64_t *random, struct bytes *out) {
    for (int64_t i = 0; i < n;) {
        int64_t same = 1;
        while (i + same < n && values[i + same] == values[i])
            same++;
        if (same >= 8 || next_random(random) % 8 == 0) {
            bytes_put_varint(out, (uint64_t)same << 1);
            bytes_put(out, &values[i], (width + 7) / 8);
            i += same;
            continue;
        }
        int64_t groups = 1 + (int64_t)(next_random(random) % 63);
        groups = groups < (n - i + 7) / 8 ? groups : (n - i + 7) / 8;
        bytes_put_varint(out, (uint64_t)groups << 1 | 1);
        struct bit_writer writer = {.out = out};
        for (int64_t k = 0; k < groups * 8; k++, i++)
            put_bits(&writer, i < n ? values[i] : 0, width);
        flush_bits(&writer);
        i = i < n ? i : n;
    }
}

/* ---- encodings ---- */

static uint64_t integer_at(const struct stored_values *values, int64_t i) {
    if (values->stored_bytes == 8) {
        uint64_t value;
        memcpy(&value, values->bytes.data + 8 * i, sizeof value);
        return value;
    }
    int32_t value;
    memcpy(&value, values->bytes.data + 4 * i, sizeof value);
    return (uint64_t)(int64_t)value;
}

static void put_miniblock(const uint64_t *deltas, uint32_t n, uint32_t width, struct bytes *out) {
    struct bit_writer writer = {.out = out};
    for (uint32_t i = 0; i < n; i++)
        put_bits(&writer, deltas[i], width);
}

/* Of DELTA_BINARY_PACKED: writers' usual one, and others that the format allows. */
struct delta_shape {
    int64_t block_values;
    int miniblocks;
};
static const struct delta_shape delta_shapes[] = {{128, 4}, {1024, 32}, {2560, 80}, {256, 2}, {128, 1}};
enum { MOST_BLOCK_VALUES = 2560, MOST_MINIBLOCKS = 80 };

/* One block: deltas above the smallest. Arithmetic wraps. */
static void put_block(const uint64_t *values, int64_t n, struct delta_shape shape, struct bytes *out) {
    const int64_t miniblock = shape.block_values / shape.miniblocks;
    uint64_t deltas[MOST_BLOCK_VALUES] = {0};
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < n; i++) {
        deltas[i] = values[i + 1] - values[i];
        least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
    }
    put_zigzag(out, (uint64_t)least);
    uint32_t widths[MOST_MINIBLOCKS] = {0};
    for (int64_t i = 0; i < n; i++) {
        deltas[i] -= (uint64_t)least;
        uint32_t width = deltas[i] ? 64 - (uint32_t)__builtin_clzll(deltas[i]) : 0;
        widths[i / miniblock] = width > widths[i / miniblock] ? width : widths[i / miniblock];
    }
    for (int m = 0; m < shape.miniblocks; m++)
        put_byte(out, widths[m]);
    for (int m = 0; m * miniblock < n; m++)
        put_miniblock(deltas + m * miniblock, (uint32_t)miniblock, widths[m], out);
}

static void put_delta(const uint64_t *values, int64_t n, struct bytes *out) {
    const struct delta_shape shape = delta_shapes[n % (int)(sizeof delta_shapes / sizeof delta_shapes[0])];
    const int64_t block = shape.block_values;
    bytes_put_varint(out, (uint64_t)block);
    bytes_put_varint(out, (uint64_t)shape.miniblocks);
    bytes_put_varint(out, (uint64_t)n);
    put_zigzag(out, n ? values[0] : 0);
    for (int64_t i = 0; i + 1 < n; i += block)
        put_block(values + i, n - 1 - i < block ? n - 1 - i : block, shape, out);
}

static void put_plain(const struct stored_values *values, int64_t first, int64_t end, struct bytes *out) {
    for (int64_t i = first; i < end; i++) {
        size_t length;
        const uint8_t *data = stored_at(values, i, &length);
        uint32_t prefix = (uint32_t)length;
        if (values->stored_bytes == 0)
            bytes_put(out, &prefix, sizeof prefix);
        bytes_put(out, data, length);
    }
}

static void put_booleans(const struct stored_values *values, int64_t first, int64_t end, struct bytes *out) {
    struct bit_writer writer = {.out = out};
    for (int64_t i = first; i < end; i++)
        put_bits(&writer, values->bytes.data[i], 1);
    flush_bits(&writer);
}

static void put_rle_booleans(const struct stored_values *values, int64_t first, int64_t end, uint64_t *random,
                             struct bytes *out) {
    struct bytes runs = {0};
    uint32_t *bits = calloc((size_t)(end - first) + 1, sizeof *bits);
    assert(bits);
    for (int64_t i = first; i < end; i++)
        bits[i - first] = values->bytes.data[i];
    encode_hybrid(bits, end - first, 1, random, &runs);
    uint32_t size = (uint32_t)runs.length;
    bytes_put(out, &size, sizeof size);
    bytes_put(out, runs.data, runs.length);
    bytes_release(&runs);
    free(bits);
}

static void put_split(const struct stored_values *values, int64_t first, int64_t end, struct bytes *out) {
    for (size_t b = 0; b < values->stored_bytes; b++)
        for (int64_t i = first; i < end; i++)
            put_byte(out, values->bytes.data[(size_t)i * values->stored_bytes + b]);
}

/* DELTA_BYTE_ARRAY with `share`, else DELTA_LENGTH_BYTE_ARRAY. */
static void put_length_coded(const struct stored_values *values, int64_t first, int64_t end, bool share,
                             struct bytes *out) {
    int64_t n = end - first;
    uint64_t *prefixes = calloc(2 * (size_t)n + 2, sizeof *prefixes), *lengths = prefixes + n + 1;
    assert(prefixes);
    struct bytes suffixes = {0};
    const uint8_t *previous = NULL;
    size_t previous_length = 0;
    for (int64_t i = 0; i < n; i++) {
        size_t length, prefix = 0;
        const uint8_t *data = stored_at(values, first + i, &length);
        while (share && prefix < length && prefix < previous_length && data[prefix] == previous[prefix])
            prefix++;
        prefixes[i] = prefix;
        lengths[i] = length - prefix;
        bytes_put(&suffixes, data + prefix, length - prefix);
        previous = data, previous_length = length;
    }
    if (share)
        put_delta(prefixes, n, out);
    put_delta(lengths, n, out);
    bytes_put(out, suffixes.data, suffixes.length);
    bytes_release(&suffixes);
    free(prefixes);
}

static void put_integers(const struct stored_values *values, int64_t first, int64_t end, struct bytes *out) {
    uint64_t *integers = calloc((size_t)(end - first) + 1, sizeof *integers);
    assert(integers);
    for (int64_t i = first; i < end; i++)
        integers[i - first] = integer_at(values, i);
    put_delta(integers, end - first, out);
    free(integers);
}

void encode_values(enum sx_parquet_encoding encoding, bool is_boolean, const struct stored_values *values,
                   int64_t first, int64_t end, uint64_t *random, struct bytes *out) {
    switch (encoding) {
    case SX_ENCODING_RLE: put_rle_booleans(values, first, end, random, out); break;
    case SX_ENCODING_DELTA_BINARY_PACKED: put_integers(values, first, end, out); break;
    case SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY: put_length_coded(values, first, end, false, out); break;
    case SX_ENCODING_DELTA_BYTE_ARRAY: put_length_coded(values, first, end, true, out); break;
    case SX_ENCODING_BYTE_STREAM_SPLIT: put_split(values, first, end, out); break;
    default:
        if (is_boolean)
            put_booleans(values, first, end, out);
        else
            put_plain(values, first, end, out);
    }
}

/* ---- codecs ---- */

static size_t gzip_member(const uint8_t *plain, size_t length, uint8_t *out, size_t room) {
    enum { GZIP = 15 + 16 };
    z_stream z = {.next_in = (Bytef *)(uintptr_t)plain, .avail_in = (uInt)length};
    int begun = deflateInit2(&z, 6, Z_DEFLATED, GZIP, 8, Z_DEFAULT_STRATEGY);
    assert(begun == Z_OK);
    z.next_out = out;
    z.avail_out = (uInt)room;
    int ended = deflate(&z, Z_FINISH);
    assert(ended == Z_STREAM_END);
    (void)begun, (void)ended;
    deflateEnd(&z);
    return room - z.avail_out;
}

/* Two members, as some writers do. */
static size_t gzip(const uint8_t *plain, size_t length, uint8_t *out, size_t room) {
    size_t half = length / 2;
    size_t first = gzip_member(plain, half, out, room);
    return first + gzip_member(plain + half, length - half, out + first, room - first);
}

static size_t lz4_block(const uint8_t *plain, size_t length, uint8_t *out, size_t room) {
    return (size_t)LZ4_compress_default((const char *)plain, (char *)out, (int)length, (int)room);
}

static size_t lz4_hadoop(const uint8_t *plain, size_t length, uint8_t *out, size_t room) {
    uint32_t stored = (uint32_t)lz4_block(plain, length, out + 8, room - 8);
    uint32_t sizes[2] = {__builtin_bswap32((uint32_t)length), __builtin_bswap32(stored)};
    memcpy(out, sizes, sizeof sizes);
    return stored + sizeof sizes;
}

bool encode_compress(enum sx_parquet_codec codec, const uint8_t *plain, size_t length, struct bytes *out) {
    size_t room = 2 * length + 1024, size = room;
    uint8_t *place = malloc(room);
    assert(place);
    static const uint8_t none[1];
    plain = plain ? plain : none;
    switch (codec) {
    case SX_CODEC_SNAPPY: (void)snappy_compress((const char *)plain, length, (char *)place, &size); break;
    case SX_CODEC_GZIP: size = gzip(plain, length, place, room); break;
    case SX_CODEC_ZSTD: size = ZSTD_compress(place, room, plain, length, 1); break;
    case SX_CODEC_LZ4: size = lz4_hadoop(plain, length, place, room); break;
    case SX_CODEC_LZ4_RAW: size = lz4_block(plain, length, place, room); break;
    default: free(place); return false;
    }
    bytes_put(out, place, size);
    free(place);
    return true;
}

void encode_zstd(const struct bytes *plain, const struct zstd_frame *frame, struct bytes *out) {
    const size_t room = ZSTD_compressBound(plain->length);
    uint8_t *place = malloc(room);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    assert(place && context);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, frame->level);
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, frame->window_log);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, frame->has_checksum);
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, !frame->is_unsized);
    const size_t size = ZSTD_compress2(context, place, room, plain->data, plain->length);
    assert(!ZSTD_isError(size));
    bytes_put(out, place, size);
    ZSTD_freeCCtx(context);
    free(place);
}
