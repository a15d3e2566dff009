/* Long pages of PLAIN strings, whose bytes look like lengths in one way or another: a device guesses where
 * strings begin. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decode_chunk.h"

/* Length of string `i`, and what it is filled with: a byte, or other strings. */
struct filler {
    const char *name;
    uint32_t least, most;    /* lengths */
    int64_t every;           /* each such string is `long_bytes` long; 0: none is */
    uint32_t long_bytes;     /* the last one, too */
    uint32_t content;        /* bytes are below it, from 0 on */
    bool has_strings_inside; /* in the long ones: lengths and strings like the others */
};
static const struct filler fillers[] = {
    {"text", 10, 43, 0, 43, 0, false},
    {"empty strings", 0, 0, 0, 0, 0, false},
    {"empty strings and others", 0, 3, 0, 3, 0, false},
    {"text and some long strings", 10, 43, 100, 3000, 0, false},
    {"strings within long ones", 10, 43, 700, 9000, 0, true},
    {"numbers of four bytes", 4, 4, 0, 4, 3, false},
    {"zeros", 90, 200, 0, 200, 1, false},
    {"small numbers", 3, 17, 50, 700, 2, false},
    {"long strings", 1500, 2500, 0, 2500, 0, false},
};

struct text_page {
    struct bytes body;
    uint32_t *ends; /* of each string in the body */
    int64_t rows;
};

static void fill(struct conformance *c, const struct filler *filler, uint32_t length, struct bytes *out) {
    const bool nests = filler->has_strings_inside && length == filler->long_bytes;
    while (length > 0) {
        uint32_t inner = filler->least + (uint32_t)below(c, filler->most - filler->least + 1);
        if (nests && length >= inner + sizeof inner) {
            bytes_put(out, &inner, sizeof inner);
            length -= (uint32_t)sizeof inner;
        } else {
            inner = length;
        }
        for (uint32_t i = 0; i < inner; i++) {
            const uint8_t byte = (uint8_t)(filler->content ? below(c, filler->content) : 'a' + below(c, 26));
            bytes_put(out, &byte, 1);
        }
        length -= inner;
    }
}

static void make_text(struct conformance *c, const struct filler *filler, int64_t rows,
                      struct text_page *page) {
    page->ends = calloc((size_t)rows + 1, sizeof *page->ends);
    page->rows = rows;
    assert(page->ends);
    for (int64_t i = 0; i < rows; i++) {
        uint32_t length = filler->least + (uint32_t)below(c, filler->most - filler->least + 1);
        if ((filler->every && i % filler->every == filler->every / 2) || i == rows - 1)
            length = filler->long_bytes;
        bytes_put(&page->body, &length, sizeof length);
        fill(c, filler, length, &page->body);
        page->ends[i] = (uint32_t)page->body.length;
    }
}

/* So many of the page are read, one after another. */
enum { PAGES = 2 };

static bool strings_agree(const struct text_page *page, const struct sx_tensor *got) {
    if (got->length != PAGES * page->rows)
        return false;
    for (int64_t row = 0; row < got->length; row++) {
        const int64_t i = row % page->rows;
        const uint32_t begin = (i ? page->ends[i - 1] : 0) + (uint32_t)sizeof(uint32_t);
        struct sx_scalar have;
        sx_tensor_scalar(got, row, &have);
        if (have.is_null || have.v.text.length_bytes != page->ends[i] - begin ||
            (begin < page->ends[i] &&
             memcmp(have.v.text.bytes, page->body.data + begin, page->ends[i] - begin) != 0))
            return false;
    }
    return true;
}

/* The first `bytes` of the body as pages of `rows` values; *out_agrees: they are the page's. */
static enum sx_status read_text(struct conformance *c, const struct text_page *page, size_t bytes,
                                bool *out_agrees) {
    const struct sx_page stored_page = {.n_values = page->rows,
                                        .bytes = page->body.data,
                                        .stored_bytes = (uint32_t)bytes,
                                        .plain_bytes = (uint32_t)bytes};
    const struct sx_page pages[PAGES] = {stored_page, stored_page};
    const int64_t rows = PAGES * page->rows;
    const struct sx_stored_chunk stored = {
        .spec = {.physical = SX_PARQUET_BYTE_ARRAY, .type = {SX_TYPE_VARCHAR, 0, 0}, .n_rows = rows},
        .pages = pages,
        .n_pages = PAGES};
    struct sx_decoder *decoder = NULL;
    struct sx_tensor out = {0}, host = {0};
    *out_agrees = false;
    c->stream->error = (struct sx_error){0};
    SX_TRY(c->backend->ops.decoder_create(c->stream, &stored, &decoder));
    struct sx_decode_part part = {decoder, 0, rows};
    struct sx_column_read read = {&part, 1, &out};
    struct sx_decode_place place = {-1, -1};
    enum sx_status status = c->backend->ops.decode(c->stream, &read, 1, NULL, &place);
    if (status == SX_OK)
        status = conformance_receive(c, &out, &host);
    *out_agrees = status == SX_OK && strings_agree(page, &host);
    sx_tensor_release(&out);
    sx_tensor_release(&host);
    c->backend->ops.decoder_destroy(c->stream, decoder);
    return status;
}

static void try_text(struct conformance *c, const struct filler *filler, int64_t rows) {
    struct text_page page = {0};
    bool agrees = false;
    make_text(c, filler, rows, &page);
    enum sx_status status = read_text(c, &page, page.body.length, &agrees);
    CONFORM(c, agrees, "decode: %s, %lld PLAIN strings: status %d: %s", filler->name, (long long)rows,
            (int)status, c->stream->error.text);
    const size_t cuts[] = {1, page.body.length / 2, page.body.length - 1};
    for (int i = 0; i < 3; i++) {
        status = read_text(c, &page, page.body.length - cuts[i], &agrees);
        CONFORM(c, status == SX_FILE && strstr(c->stream->error.text, "a string reaches past the end"),
                "decode: %s, %lld PLAIN strings cut off: status %d: %s", filler->name, (long long)rows,
                (int)status, c->stream->error.text);
    }
    bytes_put(&page.body, "behind", 6);
    status = read_text(c, &page, page.body.length, &agrees);
    CONFORM(c, agrees, "decode: %s, bytes behind %lld PLAIN strings: status %d: %s", filler->name,
            (long long)rows, (int)status, c->stream->error.text);
    bytes_release(&page.body);
    free(page.ends);
}

void conform_decode_strings(struct conformance *c) {
    const int64_t rows[] = {1, 600, 5000};
    for (size_t f = 0; f < sizeof fillers / sizeof fillers[0]; f++)
        for (int r = 0; r < 3; r++)
            try_text(c, &fillers[f], rows[r]);
}
