#include "tensor/snappy.h"

#include <string.h>

/* While so much is left of both sides a short literal and a copy are taken in one step, which goes some bytes
 * beyond their ends. */
enum { FAST_STORED = 32, FAST_PLAIN = 96 };

enum { LITERAL, COPY_1, COPY_2, COPY_4 }; /* an element's low bits; of copies by the bytes of their offset */
/* Lengths of literals: with the tag and the whole of a copy behind it in eight bytes; told by the tag. */
enum { IN_WORD = 4, LONGEST_IN_TAG = 60 };

struct cursor {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_end;
    const uint8_t *begin; /* of the plain bytes */
};

static size_t left_in(const struct cursor *c) {
    return (size_t)(c->in_end - c->in);
}

static size_t left_out(const struct cursor *c) {
    return (size_t)(c->out_end - c->out);
}

static uint64_t load_8(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static void move_8(uint8_t *to, const uint8_t *from) {
    const uint64_t word = load_8(from);
    memcpy(to, &word, sizeof word);
}

static void move_16(uint8_t *to, const uint8_t *from) {
    uint64_t words[2];
    memcpy(words, from, sizeof words);
    memcpy(to, words, sizeof words);
}

/* Little-endian, of n <= 4 bytes. */
static uint32_t load(const uint8_t *bytes, unsigned n) {
    uint32_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

/* The literal whose tag has been read, whatever its length. */
static bool take_literal(struct cursor *c, uint32_t tag) {
    size_t length = (tag >> 2) + 1;
    if (length > LONGEST_IN_TAG) {
        const unsigned n = (unsigned)(length - LONGEST_IN_TAG);
        if (left_in(c) < n)
            return false;
        length = (size_t)load(c->in, n) + 1;
        c->in += n;
    }
    if (length > left_in(c) || length > left_out(c))
        return false;
    memcpy(c->out, c->in, length);
    c->in += length;
    c->out += length;
    return true;
}

static bool take_copy(struct cursor *c, uint32_t tag) {
    const unsigned kind = tag & 3, n = kind == COPY_4 ? 4 : kind;
    if (left_in(c) < n)
        return false;
    const size_t length = kind == COPY_1 ? 4 + (tag >> 2 & 7) : (tag >> 2) + 1;
    const size_t offset = load(c->in, n) | (kind == COPY_1 ? tag >> 5 << 8 : 0);
    c->in += n;
    if (offset - 1 >= (size_t)(c->out - c->begin) || length > left_out(c))
        return false;
    for (size_t i = 0; i < length; i++)
        c->out[i] = *(c->out + i - offset);
    c->out += length;
    return true;
}

/* `length` bytes and up to 21 behind them, from `offset` bytes before `out`, which they may overlap. */
static inline void repeat(uint8_t *out, size_t offset, size_t length) {
    const uint8_t *from = out - offset, *const end = out + length;
    for (; __builtin_expect(offset < 8, false); offset *= 2) { /* until a word holds whole repetitions */
        move_8(out, from);
        out += offset;
    }
    move_8(out, from);
    move_8(out + 8, from + 8);
    if (__builtin_expect(length > 16, false))
        for (out += 16, from += 16; out < end; out += 8, from += 8)
            move_8(out, from);
}

/* Of the copies with an offset of one or two bytes, by tag: length, and from bit 8 on the offset's high bits.
 * A table: there is no telling beforehand which of both comes. */
#define COPY(tag)    ((tag)&2 ? ((tag) >> 2) + 1 : (4 + ((tag) >> 2 & 7)) | (tag) >> 5 << 8)
#define COPIES_4(t)  COPY(t), COPY((t) + 1), COPY((t) + 2), COPY((t) + 3)
#define COPIES_16(t) COPIES_4(t), COPIES_4((t) + 4), COPIES_4((t) + 8), COPIES_4((t) + 12)
#define COPIES_64(t) COPIES_16(t), COPIES_16((t) + 16), COPIES_16((t) + 32), COPIES_16((t) + 48)
static const uint16_t copies[256] = {COPIES_64(0), COPIES_64(64), COPIES_64(128), COPIES_64(192)};

/* Columns of numbers are, nearly always, a literal of a few bytes and a copy in turn: both in one step, out
 * of one word, since what takes the time is that each tag has to be there before it is known where the next
 * one is. */
static bool take_fast(struct cursor *c) {
    const uint8_t *const last_in = c->in_end - FAST_STORED, *in = c->in;
    const uint8_t *const last_out = c->out_end - FAST_PLAIN, *const begin = c->begin;
    uint8_t *out = c->out;
    bool good = true;
    while (good && in <= last_in && out <= last_out) {
        uint64_t word = load_8(in);
        uint32_t tag = word & 0xff;
        if ((tag & 3) == LITERAL && tag >> 2 < IN_WORD) {
            move_8(out, in + 1);
            in += 2 + (tag >> 2);
            out += 1 + (tag >> 2);
            word >>= 16 + 8 * (tag >> 2);
            tag = word & 0xff;
        }
        const uint32_t kind = tag & 3;
        if (__builtin_expect(kind == COPY_1 || kind == COPY_2, true)) {
            const uint32_t copy = copies[tag], low = 0xff | ((0 - (kind >> 1)) & 0xff00);
            const size_t offset = (copy & 0x700) + ((uint32_t)(word >> 8) & low);
            in += 1 + kind;
            good = offset - 1 < (size_t)(out - begin);
            if (good)
                repeat(out, offset, copy & 0xff);
            out += copy & 0xff;
        } else if (kind == LITERAL && tag >> 2 < 16) {
            move_16(out, in + 1);
            in += 2 + (tag >> 2);
            out += 1 + (tag >> 2);
        } else {
            c->in = in + 1;
            c->out = out;
            good = kind == LITERAL ? take_literal(c, tag) : take_copy(c, tag);
            in = c->in;
            out = c->out;
        }
    }
    c->in = in;
    c->out = out;
    return good;
}

size_t sx_snappy_length(const uint8_t *stored, size_t stored_bytes, size_t *out_plain_bytes) {
    enum { MOST_BYTES = 5 };
    uint64_t length = 0;
    for (size_t i = 0; i < MOST_BYTES && i < stored_bytes; i++) {
        length |= (uint64_t)(stored[i] & 0x7f) << (7 * i);
        if (stored[i] < 0x80) {
            *out_plain_bytes = (size_t)length;
            return length <= UINT32_MAX ? i + 1 : 0;
        }
    }
    return 0;
}

bool sx_snappy_open(const uint8_t *stored, size_t stored_bytes, uint8_t *plain, size_t plain_bytes) {
    size_t told = 0;
    const size_t head = sx_snappy_length(stored, stored_bytes, &told);
    struct cursor c = {stored + head, stored + stored_bytes, plain, plain + plain_bytes, plain};
    if (head == 0 || told != plain_bytes)
        return false;
    bool good = true;
    if (left_in(&c) >= FAST_STORED && plain_bytes >= FAST_PLAIN)
        good = take_fast(&c);
    while (good && c.in < c.in_end) {
        const uint32_t tag = *c.in++;
        good = (tag & 3) == LITERAL ? take_literal(&c, tag) : take_copy(&c, tag);
    }
    return good && c.out == c.out_end;
}
