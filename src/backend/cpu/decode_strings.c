#include "backend/cpu/decode.h"
#include "tensor/semantics_utf8.h"

_Static_assert(sizeof(void *) == 8, "the pointer fills a view's second half");

enum { VIEW_BYTES = sizeof(struct sx_string), LENGTH_BYTES = 4 };

/* A window of 16 keeps the length and as many of the bytes behind it as the string has. */
static const uint8_t keep[VIEW_BYTES + SX_STRING_INLINE_BYTES] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

/* `head` and `tail`: length and 12 bytes of the string, or of what follows it. The views of long strings
 * begin with the same 8 bytes. */
static inline void make_view(uint64_t head, uint64_t tail, const uint8_t *bytes, struct sx_string *out) {
    uint32_t length = (uint32_t)head;
    uint64_t words[2] = {head, (uint64_t)(uintptr_t)bytes};
    if (length <= SX_STRING_INLINE_BYTES) {
        const uint8_t *window = keep + SX_STRING_INLINE_BYTES - length;
        words[0] = head & decode_load_u64(window);
        words[1] = tail & decode_load_u64(window + 8);
    }
    memcpy(out, words, sizeof words);
}

/* Of a string behind its length, as PLAIN stores it: 16 bytes from `stored` on are readable. */
static inline void view_stored(const uint8_t *stored, struct sx_string *out) {
    make_view(decode_load_u64(stored), decode_load_u64(stored + 8), stored + LENGTH_BYTES, out);
}

/* Of bytes that stand alone; 12 from `bytes` on are readable. */
static inline void view_bytes(const uint8_t *bytes, uint32_t length, struct sx_string *out) {
    make_view(length | (uint64_t)decode_load_u32(bytes) << 32, decode_load_u64(bytes + 4), bytes, out);
}

static enum sx_status check_text(struct sx_stream *stream, const struct sx_decoder *decoder,
                                 const struct decode_page *page, const struct sx_string *views, int64_t n) {
    if (page->is_ascii || decoder->spec.type.id != SX_TYPE_VARCHAR)
        return SX_OK;
    for (int64_t i = 0; i < n; i++)
        if (!sx_utf8_is_valid((const uint8_t *)sx_string_bytes(&views[i]), views[i].length_bytes))
            return decode_error(stream, page->index, "a string is invalid UTF-8");
    return SX_OK;
}

static enum sx_status cut_off(struct sx_stream *stream, const struct decode_page *page) {
    return decode_error(stream, page->index, "a string reaches past the end of the page");
}

/* ---- PLAIN ---- */

/* Passes one string; NULL where it reaches past the end. */
static inline const uint8_t *pass_string(struct decode_bytes *body, uint32_t *out_length) {
    const uint8_t *stored = body->at;
    if (decode_left(body) < LENGTH_BYTES)
        return NULL;
    *out_length = decode_load_u32(stored);
    if (*out_length > decode_left(body) - LENGTH_BYTES)
        return NULL;
    body->at += LENGTH_BYTES + (size_t)*out_length;
    return stored;
}

static inline bool has_window(const uint8_t *stored, const struct decode_bytes *body) {
    return (size_t)(body->end - stored) + body->slack >= VIEW_BYTES;
}

/* The next `n` strings; views unless `out` is NULL. Returns how many there were. */
static int64_t walk_plain(struct decode_bytes *body, int64_t n, struct sx_string *out) {
    struct decode_bytes bytes = *body;
    int64_t i = 0;
    for (; i < n; i++) {
        uint32_t length;
        const uint8_t *stored = pass_string(&bytes, &length);
        if (!stored)
            break;
        if (!out)
            continue;
        if (has_window(stored, &bytes))
            view_stored(stored, &out[i]);
        else
            out[i] = sx_string_make((const char *)stored + LENGTH_BYTES, length);
    }
    *body = bytes;
    return i;
}

static enum sx_status read_plain(struct sx_stream *stream, struct decode_page *page,
                                 const struct decode_pick *pick, struct sx_string *out_views) {
    int64_t done = 0;
    if (!pick->positions) {
        done = walk_plain(&page->body, pick->n_values, out_views);
        return done < pick->n_values ? cut_off(stream, page) : SX_OK;
    }
    for (int64_t i = 0; i < pick->n; i++) {
        int64_t position = pick->positions[i] - pick->base;
        if (walk_plain(&page->body, position - done, NULL) < position - done ||
            walk_plain(&page->body, 1, &out_views[i]) < 1)
            return cut_off(stream, page);
        done = position + 1;
    }
    int64_t rest = pick->n_values - done;
    return walk_plain(&page->body, rest, NULL) < rest ? cut_off(stream, page) : SX_OK;
}

/* ---- lengths apart from the bytes ---- */

static enum sx_status read_lengths(struct sx_stream *stream, const struct decode_page *page,
                                   struct decode_delta *delta, int64_t count, uint32_t *out_lengths) {
    const char *problem = decode_delta_read(delta, count, sizeof *out_lengths, out_lengths);
    return problem ? decode_error(stream, page->index, "%s", problem) : SX_OK;
}

/* Views of strings that lie one behind the other: all, or the picked ones. 12 bytes may be read wherever one
 * begins in front of `safe_end`. */
static void view_adjacent(const uint8_t *bytes, const uint8_t *safe_end, const uint32_t *lengths,
                          const struct decode_pick *pick, struct sx_string *out_views) {
    const uint8_t *at = bytes;
    int64_t next = 0;
    for (int64_t i = 0; i < pick->n_values && next < pick->n; i++) {
        if (!pick->positions || pick->positions[next] - pick->base == i) {
            if (at < safe_end)
                view_bytes(at, lengths[i], &out_views[next++]);
            else
                out_views[next++] = sx_string_make((const char *)at, lengths[i]);
        }
        at += lengths[i];
    }
}

static enum sx_status read_length_coded(struct sx_stream *stream, struct sx_decoder *decoder,
                                        struct decode_page *page, const struct decode_pick *pick,
                                        struct sx_string *out_views) {
    int64_t count = pick->n_values;
    SX_TRY(decode_reserve(stream, &decoder->lengths, (size_t)count * sizeof(uint32_t)));
    uint32_t *lengths = decoder->lengths.memory;
    SX_TRY(read_lengths(stream, page, &page->delta, count, lengths));
    uint64_t total = 0;
    for (int64_t i = 0; i < count; i++)
        total += lengths[i];
    if (total > decode_left(&page->body))
        return cut_off(stream, page);
    size_t readable = decode_left(&page->body) + page->body.slack;
    size_t safe = readable > SX_STRING_INLINE_BYTES ? readable - SX_STRING_INLINE_BYTES : 0;
    view_adjacent(page->body.at, page->body.at + safe, lengths, pick, out_views);
    page->body.at += total;
    return SX_OK;
}

/* ---- DELTA_BYTE_ARRAY: each value begins like the one before ---- */

/* Turns suffix lengths into whole lengths. */
static enum sx_status whole_lengths(struct sx_stream *stream, const struct sx_decoder *decoder,
                                    const struct decode_page *page, const uint32_t *prefixes, int64_t count,
                                    uint32_t *lengths, size_t *out_total) {
    uint64_t previous = decoder->previous_bytes, suffix_total = 0, total = 0;
    for (int64_t i = 0; i < count; i++) {
        suffix_total += lengths[i];
        uint64_t length = (uint64_t)prefixes[i] + lengths[i];
        if (prefixes[i] > previous)
            return decode_error(stream, page->index, "a prefix of %u bytes of a string of %llu", prefixes[i],
                                (unsigned long long)previous);
        if (suffix_total > decode_left(&page->body) || length > UINT32_MAX)
            return cut_off(stream, page);
        lengths[i] = (uint32_t)length;
        previous = length;
        total += length;
    }
    *out_total = total;
    return SX_OK;
}

static enum sx_status keep_previous(struct sx_stream *stream, struct sx_decoder *decoder,
                                    const uint8_t *bytes, size_t length) {
    SX_TRY(decode_reserve(stream, &decoder->previous, length + DECODE_SLACK_BYTES));
    if (length)
        memcpy(decoder->previous.memory, bytes, length);
    decoder->previous_bytes = length;
    return SX_OK;
}

/* Most pieces are short. `room`: both sides have 16 bytes. */
static inline void copy_piece(uint8_t *to, const uint8_t *from, size_t length, bool room) {
    if (length <= 16 && room) {
        uint8_t words[16];
        memcpy(words, from, sizeof words);
        memcpy(to, words, sizeof words);
    } else if (length > 0) {
        memcpy(to, from, length);
    }
}

/* Writes the values one behind the other; DECODE_SLACK_BYTES follow the last one, and `previous` has as many
 * behind it. */
static const uint8_t *rebuild(struct sx_decoder *decoder, struct decode_page *page, const uint32_t *prefixes,
                              const uint32_t *lengths, int64_t count, uint8_t *out) {
    const uint8_t *previous = decoder->previous.memory;
    for (int64_t i = 0; i < count; i++) {
        size_t suffix = lengths[i] - prefixes[i];
        copy_piece(out, previous, prefixes[i], true);
        copy_piece(out + prefixes[i], page->body.at, suffix,
                   decode_left(&page->body) + page->body.slack >= 16);
        page->body.at += suffix;
        previous = out;
        out += lengths[i];
    }
    return previous;
}

enum sx_status decode_front_coded(struct sx_stream *stream, struct sx_decoder *decoder,
                                  struct decode_page *page, int64_t count, struct sx_buffer **out_bytes) {
    struct sx_buffer *bytes = NULL;
    enum sx_status status;
    size_t total = 0;
    SX_GO(decode_reserve(stream, &decoder->previous, DECODE_SLACK_BYTES));
    SX_GO(decode_reserve(stream, &decoder->lengths, 2 * (size_t)count * sizeof(uint32_t)));
    uint32_t *lengths = decoder->lengths.memory, *prefixes = lengths + count;
    SX_GO(read_lengths(stream, page, &page->delta, count, prefixes));
    SX_GO(read_lengths(stream, page, &page->suffixes, count, lengths));
    SX_GO(whole_lengths(stream, decoder, page, prefixes, count, lengths, &total));
    SX_GO(sx_buffer_create(stream->pool, total + DECODE_SLACK_BYTES, &bytes, &stream->error));
    memset((uint8_t *)bytes->data + total, 0, DECODE_SLACK_BYTES);
    const uint8_t *last = rebuild(decoder, page, prefixes, lengths, count, bytes->data);
    if (count > 0)
        SX_GO(keep_previous(stream, decoder, last, lengths[count - 1]));
    *out_bytes = bytes;
    return SX_OK;
out:
    sx_buffer_release(bytes);
    return status;
}

/* ---- any ---- */

static bool has_outside_bytes(const struct sx_string *views, int64_t n) {
    uint32_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = views[i].length_bytes > longest ? views[i].length_bytes : longest;
    return longest > SX_STRING_INLINE_BYTES;
}

static enum sx_status read_views(struct sx_stream *stream, struct sx_decoder *decoder,
                                 struct decode_page *page, const struct decode_pick *pick,
                                 struct sx_string *out_views, struct sx_buffer **out_heap) {
    if (page->encoding == SX_ENCODING_DELTA_BYTE_ARRAY) {
        SX_TRY(decode_front_coded(stream, decoder, page, pick->n_values, out_heap));
        const uint8_t *bytes = (*out_heap)->data;
        view_adjacent(bytes, bytes + (*out_heap)->size_bytes - SX_STRING_INLINE_BYTES,
                      decoder->lengths.memory, pick, out_views);
        return SX_OK;
    }
    SX_TRY(page->encoding == SX_ENCODING_PLAIN ? read_plain(stream, page, pick, out_views)
                                               : read_length_coded(stream, decoder, page, pick, out_views));
    *out_heap = sx_buffer_retain(page->buffer);
    return SX_OK;
}

enum sx_status decode_byte_arrays(struct sx_stream *stream, struct sx_decoder *decoder,
                                  struct decode_page *page, const struct decode_pick *pick,
                                  struct sx_string *out_views, struct sx_buffer **out_heap) {
    struct sx_buffer *heap = NULL;
    SX_TRY(read_views(stream, decoder, page, pick, out_views, &heap));
    enum sx_status status = check_text(stream, decoder, page, out_views, pick->n);
    if (status != SX_OK || !has_outside_bytes(out_views, pick->n)) {
        sx_buffer_release(heap);
        heap = NULL;
    }
    *out_heap = heap;
    return status;
}
