/* Snappy. The library's decoder takes most of the time of reading a snappy file; this one is faster, since it
 * may write behind the end of its output. */
#include "backend/cpu/decode.h"

enum {
    MAX_TAG_LITERAL = 60, /* longer literals have their length in bytes of its own */
    MAX_COPY = 64,
    FAST_INPUT_BYTES = 80, /* a tag with all that its loads may touch */
};
_Static_assert((int)DECODE_SLACK_BYTES >= (int)MAX_COPY, "a copy may end behind the output");

struct place {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_begin, *out_end;
};

static inline void copy_8(uint8_t *to, const uint8_t *from) {
    uint64_t word;
    memcpy(&word, from, sizeof word);
    memcpy(to, &word, sizeof word);
}

static inline void copy_16(uint8_t *to, const uint8_t *from) {
    uint8_t words[16];
    memcpy(words, from, sizeof words);
    memcpy(to, words, sizeof words);
}

/* Repeats the last `offset` (1..7) bytes. */
static inline void repeat_short(uint8_t *to, size_t offset, size_t length) {
    const uint8_t *from = to - offset;
    uint8_t *end = to + length;
    for (int i = 0; i < 8; i++)
        to[i] = from[i];
    size_t period = offset * (8 / offset); /* 5 to 8: 8 bytes from `from` on repeat with it */
    for (uint8_t *at = to + period; at < end; at += period)
        copy_8(at, at - period);
}

/* Writes up to 15 bytes more than `length` (at most MAX_COPY). */
static inline void copy_back(uint8_t *to, size_t offset, size_t length) {
    const uint8_t *from = to - offset;
    if (offset >= 16) {
        copy_16(to, from);
        if (length > 16) {
            copy_16(to + 16, from + 16);
            if (length > 32) {
                copy_16(to + 32, from + 32);
                copy_16(to + 48, from + 48);
            }
        }
        return;
    }
    if (offset < 8) {
        repeat_short(to, offset, length);
        return;
    }
    copy_8(to, from);
    for (size_t at = 8; at < length; at += 8)
        copy_8(to + at, from + at);
}

/* Of copies with 1 or 2 bytes of offset, by tag: bits 0..7 length, 8..10 the offset's high bits, 16..31 which
 * of the bytes behind the tag are the offset's. */
#define COPY_1(t)  ((((t) >> 2 & 7) + 4) | ((t) >> 5) << 8 | 0xff << 16)
#define COPY_2(t)  ((((t) >> 2) + 1) | 0xffffu << 16)
#define TAGS_4(t)  0, COPY_1((t) + 1), COPY_2((t) + 2), 0
#define TAGS_16(t) TAGS_4(t), TAGS_4((t) + 4), TAGS_4((t) + 8), TAGS_4((t) + 12)
#define TAGS_64(t) TAGS_16(t), TAGS_16((t) + 16), TAGS_16((t) + 32), TAGS_16((t) + 48)
static const uint32_t copies[256] = {TAGS_64(0), TAGS_64(64), TAGS_64(128), TAGS_64(192)};

/* Tags away from both ends. Leaves at those that are rare, too. A copy's tag leads to the next without a look
 * into the table, which would be on the critical path. */
static const char *decode_fast(struct place *place) {
    const uint8_t *in = place->in;
    uint8_t *out = place->out;
    const char *problem = NULL;
    while (place->in_end - in >= FAST_INPUT_BYTES && place->out_end - out >= MAX_COPY) {
        uint32_t tag = *in;
        if ((tag & 3) == 0) {
            size_t length = (tag >> 2) + 1;
            if (length > MAX_TAG_LITERAL)
                break;
            copy_16(out, in + 1);
            if (length > 16) {
                copy_16(out + 16, in + 17);
                copy_16(out + 32, in + 33);
                copy_16(out + 48, in + 49);
            }
            in += 1 + length;
            out += length;
            continue;
        }
        uint32_t kind = tag & 3;
        if (__builtin_expect(kind == 3, 0))
            break;
        uint32_t copy = copies[tag];
        size_t length = copy & 0xff;
        size_t offset = (copy & 0x700) + (decode_load_u32(in + 1) & copy >> 16);
        in += kind + 1;
        if (offset - 1 >= (size_t)(out - place->out_begin)) {
            problem = "a copy from before the beginning";
            break;
        }
        copy_back(out, offset, length);
        out += length;
    }
    place->in = in;
    place->out = out;
    return problem;
}

static const char *decode_literal(struct place *place, uint32_t tag) {
    size_t length = (tag >> 2) + 1;
    if (length > MAX_TAG_LITERAL) {
        size_t bytes = length - MAX_TAG_LITERAL;
        if ((size_t)(place->in_end - place->in) < bytes)
            return "a literal is cut off";
        uint32_t below = 0;
        memcpy(&below, place->in, bytes);
        length = (size_t)below + 1;
        place->in += bytes;
    }
    if (length > (size_t)(place->in_end - place->in))
        return "a literal is cut off";
    if (length > (size_t)(place->out_end - place->out))
        return "more bytes than the page header tells";
    memcpy(place->out, place->in, length);
    place->in += length;
    place->out += length;
    return NULL;
}

static const char *decode_copy(struct place *place, uint32_t tag) {
    uint32_t bytes = (tag & 3) == 3 ? 4 : tag & 3, trailer = 0;
    if ((size_t)(place->in_end - place->in) < bytes)
        return "a copy is cut off";
    memcpy(&trailer, place->in, bytes);
    place->in += bytes;
    size_t length = (tag >> 2) + 1, offset = trailer;
    if (bytes == 1) {
        length = (tag >> 2 & 7) + 4;
        offset = (tag >> 5) << 8 | trailer;
    }
    if (offset - 1 >= (size_t)(place->out - place->out_begin))
        return "a copy from before the beginning";
    if (length > (size_t)(place->out_end - place->out))
        return "more bytes than the page header tells";
    copy_back(place->out, offset, length);
    place->out += length;
    return NULL;
}

static const char *decode_tags(struct place *place) {
    while (place->in < place->in_end) {
        const char *problem = decode_fast(place);
        if (problem)
            return problem;
        if (place->in == place->in_end)
            break;
        uint32_t tag = *place->in++;
        problem = tag & 3 ? decode_copy(place, tag) : decode_literal(place, tag);
        if (problem)
            return problem;
    }
    return place->out == place->out_end ? NULL : "fewer bytes than the page header tells";
}

const char *decode_snappy(const uint8_t *stored, size_t stored_bytes, uint8_t *plain, size_t plain_bytes) {
    struct decode_bytes bytes = {stored, stored + stored_bytes, 0};
    uint64_t told;
    if (!decode_varint(&bytes, &told))
        return "the length is cut off";
    if (told != plain_bytes)
        return "another length than the page header tells";
    struct place place = {bytes.at, bytes.end, plain, plain, plain + plain_bytes};
    return decode_tags(&place);
}
