#include "inflate_streams.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void inflate_make_plain(struct conformance *c, enum inflate_content content, size_t length,
                        struct bytes *out) {
    static const char *const words[] = {"the ", "quickly ", "furiously ",     "deposits ",
                                        "a",    "\n",       "final requests "};
    static const uint8_t zeros[4096];
    while (out->length < length) {
        const size_t left = length - out->length;
        const uint64_t random = conformance_random(c), number = random % 1000;
        const char *word = words[random % 7];
        switch (content) {
        case ZEROS: bytes_put(out, zeros, left < sizeof zeros ? left : sizeof zeros); break;
        case WORDS: bytes_put(out, word, left < strlen(word) ? left : strlen(word)); break;
        case NUMBERS: bytes_put(out, &number, left < 8 ? left : 8); break;
        default: bytes_put(out, &random, left < 8 ? left : 8);
        }
    }
}

/* Zstd as other writers make it: any level, a small window, with a checksum. */
void inflate_zstd_stream(struct conformance *c, struct piece *piece) {
    static const int levels[] = {-50, -5, 1, 2, 3, 5, 7, 9, 12, 15, 17, 19, 22};
    const uint64_t random = conformance_random(c);
    const size_t length = piece->plain.length;
    const struct zstd_frame frame = {
        .level = length > 1 << 17 ? 1 : levels[(random >> 8) % (sizeof levels / sizeof levels[0])],
        .window_log = random >> 2 & 1 ? (length > 1 << 10 ? 15 : 10) + (int)((random >> 16) % 5) : 0,
        .has_checksum = random >> 1 & 1};
    encode_zstd(&piece->plain, &frame, &piece->stored);
}

/* Its length in as few bytes as it takes, or more. */
static void put_literal(struct conformance *c, size_t length, struct piece *piece) {
    const uint32_t less = (uint32_t)length - 1, least = less < 60 ? 0 : less < 256 ? 1 : less < 65536 ? 2 : 3;
    const uint32_t more =
        least + (uint32_t)(conformance_random(c) % 4 ? 0 : conformance_random(c) % (5 - least));
    const uint8_t tag = (uint8_t)((more ? 59 + more : less) << 2);
    struct bytes literal = {0};
    inflate_make_plain(c, conformance_random(c) % 2 ? NOISE : WORDS, length, &literal);
    bytes_put(&piece->stored, &tag, 1);
    bytes_put(&piece->stored, &less, more);
    bytes_put(&piece->stored, literal.data, length);
    bytes_put(&piece->plain, literal.data, length);
    bytes_release(&literal);
}

/* At most as long; offsets of each size up to `most`. */
static void put_copy(struct conformance *c, size_t length, uint32_t most, struct piece *piece) {
    const uint64_t random = conformance_random(c);
    const uint32_t made = (uint32_t)piece->plain.length, bits = (uint32_t)(random % 24);
    uint32_t offset = 1 + (uint32_t)(random >> 8) % (most < made ? most : made);
    offset = offset >> bits ? (offset & ((1u << bits) - 1)) + 1 : offset;
    length = length < 1 + (random >> 40) % 64 ? length : 1 + (random >> 40) % 64;
    uint8_t copy[5] = {0};
    if (length >= 4 && length < 12 && offset < 2048) {
        copy[0] = (uint8_t)(1 | (length - 4) << 2 | offset >> 8 << 5);
        copy[1] = (uint8_t)offset;
        bytes_put(&piece->stored, copy, 2);
    } else {
        const bool is_wide = offset >= 65536 || random >> 60 == 0;
        copy[0] = (uint8_t)((is_wide ? 3 : 2) | (length - 1) << 2);
        memcpy(copy + 1, &offset, sizeof offset);
        bytes_put(&piece->stored, copy, is_wide ? 5 : 3);
    }
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = piece->plain.data[piece->plain.length - offset];
        bytes_put(&piece->plain, &byte, 1);
    }
}

/* Elements as no compressor chooses them: mostly literals or mostly copies, short or long, near or far. */
void inflate_snappy_stream(struct conformance *c, size_t length, struct piece *piece) {
    static const size_t lengths[] = {3, 20, 100, 3000, 20000};
    static const uint32_t offsets[] = {1, 9, 300, 5000, 60000, UINT32_MAX};
    const uint64_t style = conformance_random(c), literals = style % 7, longest = lengths[(style >> 8) % 5];
    bytes_put_varint(&piece->stored, length);
    while (piece->plain.length < length) {
        const size_t left = length - piece->plain.length;
        const uint64_t random = conformance_random(c), most = random % 16 ? 1 + (random >> 8) % longest : 70;
        if (piece->plain.length == 0 || (random >> 32) % 8 <= literals)
            put_literal(c, left < most ? left : most, piece);
        else
            put_copy(c, left, offsets[(style >> 16) % 6], piece);
    }
}

/* ---- gzip ---- */

struct gzip_member {
    int level, strategy, memory, window_bits;
    bool has_header; /* with all fields that there are */
};

static struct gzip_member random_member(struct conformance *c) {
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
    const uint64_t random = conformance_random(c);
    return (struct gzip_member){.level = (int)(random % 10),
                                .strategy = strategies[(random >> 8) % 5],
                                .memory = 1 + (int)((random >> 16) % MAX_MEM_LEVEL),
                                .window_bits = 9 + (int)((random >> 24) % 7),
                                .has_header = (random >> 32) % 4 == 0};
}

static void put_member(const struct gzip_member *how, uint8_t *plain, size_t length, struct bytes *out) {
    enum { GZIP = 16, HEADER_BYTES = 100 };
    uint8_t extra[] = {'x', 'y', 3, 0, 1, 0, 2}, name[] = "name", comment[] = "a comment";
    gz_header header = {
        .extra = extra, .extra_len = sizeof extra, .name = name, .comment = comment, .hcrc = 1};
    z_stream z = {0};
    int result =
        deflateInit2(&z, how->level, Z_DEFLATED, how->window_bits + GZIP, how->memory, how->strategy);
    assert(result == Z_OK);
    if (how->has_header)
        deflateSetHeader(&z, &header);
    const size_t room = deflateBound(&z, length) + HEADER_BYTES;
    uint8_t *place = malloc(room), none = 0;
    assert(place);
    z.next_in = plain ? plain : &none;
    z.avail_in = (uInt)length;
    z.next_out = place;
    z.avail_out = (uInt)room;
    result = deflate(&z, Z_FINISH);
    assert(result == Z_STREAM_END);
    bytes_put(out, place, room - z.avail_out);
    deflateEnd(&z);
    free(place);
}

void inflate_gzip_stream(struct conformance *c, struct piece *piece) {
    const int n = 1 + (int)(conformance_random(c) % 3);
    size_t done = 0;
    for (int i = 0; i < n; i++) {
        const size_t left = piece->plain.length - done;
        const size_t length = i == n - 1 ? left : conformance_random(c) % (left + 1);
        const struct gzip_member how = random_member(c);
        put_member(&how, piece->plain.data + done, length, &piece->stored);
        done += length;
    }
}
