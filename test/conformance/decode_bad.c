/* Pages that lie: each has to be refused, and the message has to say what is wrong. */
#include <string.h>

#include "decode_encode.h"
#include "eval_late.h"

struct bad_page {
    const char *wanted; /* part of the message */
    enum sx_status status;
    struct sx_chunk_spec spec;
    struct sx_page pages[2]; /* bytes: text below; n_values 0 in the second: there is none */
    const char *bytes[2];
    uint32_t lengths[2];
    int64_t rows; /* to read */
};

#define INT32_SPEC \
    { .physical = SX_PARQUET_INT32, .type = {SX_TYPE_I32, 0, 0}, .n_rows = 100 }
#define TEXT_SPEC \
    { .physical = SX_PARQUET_BYTE_ARRAY, .type = {SX_TYPE_VARCHAR, 0, 0}, .n_rows = 100 }
#define BYTES(...) \
    { __VA_ARGS__ }
#define LENGTHS(...) \
    { __VA_ARGS__ }

static const struct bad_page bad_pages[] = {
    {"page 0: 1 values (PLAIN) where 2 are needed",
     SX_FILE,
     INT32_SPEC,
     {{.n_values = 2}},
     BYTES("1234"),
     LENGTHS(4),
     2},
    {"the pages hold 2 rows", SX_FILE, INT32_SPEC, {{.n_values = 2}}, BYTES("12345678"), LENGTHS(8), 3},
    {"encoding ALP (10)",
     SX_FILE,
     INT32_SPEC,
     {{.n_values = 2, .encoding = (enum sx_parquet_encoding)10}},
     BYTES("12345678"),
     LENGTHS(8),
     2},
    {"pruned", SX_INTERNAL, INT32_SPEC, {{.n_values = 2}}, BYTES(NULL), LENGTHS(0), 2},
    {"a string reaches past the end",
     SX_FILE,
     TEXT_SPEC,
     {{.n_values = 1}},
     BYTES("\5\0\0\0abc"),
     LENGTHS(7),
     1},
    {"invalid UTF-8", SX_FILE, TEXT_SPEC, {{.n_values = 1}}, BYTES("\3\0\0\0a\xc3z"), LENGTHS(7), 1},
    {"page 1: dictionary code 3 of 1 entries",
     SX_FILE,
     INT32_SPEC,
     {{.kind = SX_PAGE_DICTIONARY, .n_values = 1}, {.n_values = 4, .encoding = SX_ENCODING_RLE_DICTIONARY}},
     BYTES("1234", "\2\10\3"),
     LENGTHS(4, 3),
     4},
    {"no dictionary page",
     SX_FILE,
     INT32_SPEC,
     {{.n_values = 4, .encoding = SX_ENCODING_RLE_DICTIONARY}},
     BYTES("\2\10\3"),
     LENGTHS(3),
     4},
    {"a dictionary of 1000 entries in 4 bytes",
     SX_FILE,
     INT32_SPEC,
     {{.kind = SX_PAGE_DICTIONARY, .n_values = 1000},
      {.n_values = 4, .encoding = SX_ENCODING_RLE_DICTIONARY}},
     BYTES("1234", "\2\10\3"),
     LENGTHS(4, 3),
     4},
    {"definition levels are cut off",
     SX_FILE,
     {.physical = SX_PARQUET_INT32, .type = {SX_TYPE_I32, 0, 0}, .optional = true, .n_rows = 100},
     {{.n_values = 4, .definition_encoding = SX_ENCODING_RLE}},
     BYTES("\377\0\0\0\10\1"),
     LENGTHS(6),
     4},
    {"page 0: snappy: another length",
     SX_FILE,
     {.physical = SX_PARQUET_INT32, .codec = SX_CODEC_SNAPPY, .type = {SX_TYPE_I32, 0, 0}, .n_rows = 100},
     {{.n_values = 1, .is_compressed = true, .plain_bytes = 4}},
     BYTES("\5\0201234"),
     LENGTHS(6),
     1},
    {"snappy: 6 bytes can't become 4000000000",
     SX_FILE,
     {.physical = SX_PARQUET_INT32, .codec = SX_CODEC_SNAPPY, .type = {SX_TYPE_I32, 0, 0}, .n_rows = 100},
     {{.n_values = 1, .is_compressed = true, .plain_bytes = 4000000000u}},
     BYTES("\5\0201234"),
     LENGTHS(6),
     1},
    {"codec 3",
     SX_FILE,
     {.physical = SX_PARQUET_INT32,
      .codec = (enum sx_parquet_codec)3,
      .type = {SX_TYPE_I32, 0, 0},
      .n_rows = 100},
     {{.n_values = 1, .is_compressed = true, .plain_bytes = 4}},
     BYTES("1234"),
     LENGTHS(4),
     1},
    {"a prefix of 1 bytes of a string of 0",
     SX_FILE,
     TEXT_SPEC,
     {{.n_values = 1, .encoding = SX_ENCODING_DELTA_BYTE_ARRAY}},
     BYTES("\200\1\4\1\2\200\1\4\1\2a"),
     LENGTHS(11),
     1},
};

/* Reads and tells the status. */
static enum sx_status read_bad(struct conformance *c, const struct bad_page *bad) {
    struct sx_page pages[2] = {bad->pages[0], bad->pages[1]};
    struct sx_decoder *decoder = NULL;
    struct sx_tensor out = {0};
    for (int i = 0; i < 2; i++) {
        pages[i].bytes = (const uint8_t *)bad->bytes[i];
        pages[i].stored_bytes = bad->lengths[i];
        if (!pages[i].is_compressed)
            pages[i].plain_bytes = bad->lengths[i];
    }
    int n_pages = pages[1].n_values ? 2 : 1;
    struct sx_stored_chunk stored = {.spec = bad->spec, .pages = pages, .n_pages = n_pages};
    SX_TRY(c->backend->ops.decoder_create(c->stream, &stored, &decoder));
    struct sx_decode_part part = {decoder, 0, bad->rows};
    struct sx_column_read read = {&part, 1, &out};
    struct sx_decode_place place = {-1, -1};
    enum sx_status status = c->backend->ops.decode(c->stream, &read, 1, NULL, &place);
    CONFORM(c, status == SX_OK || status == SX_QUERY || (place.read == 0 && place.part == 0),
            "decode: an error at read %d, part %d", place.read, place.part);
    sx_tensor_release(&out);
    c->backend->ops.decoder_destroy(c->stream, decoder);
    return status;
}

/* An error of what came before, of which nobody has been told yet, is not lost with the page's. */
static void check_behind_error(struct conformance *c, const struct bad_page *bad) {
    struct late_sum sum = {0};
    enum sx_status status = late_sum_create(c, LATE_LEAST + 1, &sum);
    if (CONFORM(c, status == SX_OK, "a sum: %s", c->error.text) && late_sum_run(c, &sum) == SX_OK) {
        c->stream->error = (struct sx_error){0};
        status = read_bad(c, bad);
        if (status != SX_QUERY)
            status = c->backend->ops.synchronise(c->stream, "faults");
        CONFORM(c, status == SX_QUERY && strstr(c->stream->error.text, sum.words),
                "behind an error: \"%s\", status %d, where \"%s\" was wanted", c->stream->error.text, status,
                sum.words);
    }
    late_sum_destroy(c, &sum);
}

void conform_decode_bad(struct conformance *c) {
    for (size_t i = 0; i < sizeof bad_pages / sizeof bad_pages[0]; i++) {
        c->stream->error = (struct sx_error){0};
        enum sx_status status = read_bad(c, &bad_pages[i]);
        CONFORM(c, status == bad_pages[i].status, "decode: status %d where \"%s\" was wanted", status,
                bad_pages[i].wanted);
        CONFORM(c, strstr(c->stream->error.text, bad_pages[i].wanted), "decode: \"%s\" instead of \"%s\"",
                c->stream->error.text, bad_pages[i].wanted);
        check_behind_error(c, &bad_pages[i]);
    }
}
