/* Column chunks for the tests of page decoding, with what they were made from. */
#ifndef TEST_CONFORMANCE_DECODE_CHUNK_H
#define TEST_CONFORMANCE_DECODE_CHUNK_H

#include "decode_encode.h"

struct column_case {
    enum sx_parquet_physical physical;
    int32_t type_length;
    struct sx_type type;
    enum sx_conversion conversion;
    uint32_t encodings; /* a bit for each */
};
extern const struct column_case decode_cases[];
extern const int decode_n_cases;

enum { DECODE_MAX_PAGES = 64 };

struct chunk {
    const struct column_case *kind;
    struct sx_tensor host; /* the values */
    struct sx_chunk_spec spec;
    struct sx_page pages[DECODE_MAX_PAGES];
    size_t offsets[DECODE_MAX_PAGES]; /* in bytes */
    int n_pages;
    /* Set before: one page, REQUIRED where nothing is null; the latter alone. */
    bool is_whole, is_required;
    struct bytes bytes;
    struct sx_buffer *owner;
    struct sx_stored_span spans[1 + DECODE_MAX_PAGES]; /* all bytes; each page */
};

static inline uint64_t below(struct conformance *c, uint64_t end) {
    return conformance_random(c) % end;
}

/* Random values in pages of random kinds, codec and lengths. Starts zeroed; release it also after a failure.
 */
SX_MUST_CHECK enum sx_status chunk_make(struct conformance *c, const struct column_case *kind,
                                        enum sx_parquet_encoding encoding, int64_t rows, double nulls,
                                        struct chunk *out_chunk);
void chunk_release(struct chunk *chunk);
/* After its bytes have changed: the spans get other ids. */
void chunk_renew(struct chunk *chunk);
/* As a backend gets it: at random without spans, in one, or with one a page. */
struct sx_stored_chunk chunk_stored(struct conformance *c, const struct chunk *chunk);
/* A decoder of it; now and then what is stored is on its way already. */
SX_MUST_CHECK enum sx_status chunk_open(struct conformance *c, const struct sx_stored_chunk *stored,
                                        struct sx_decoder **out);

/* Some of `rows` rows, ascending. */
SX_MUST_CHECK enum sx_status chunk_select(struct conformance *c, int64_t rows, struct sx_tensor *out);

/* decode_cache.c: what stays on the device */
void conform_decode_cache(struct conformance *c);
/* decode_columns.c: several columns of several chunks at once */
void conform_decode_columns(struct conformance *c);
/* decode_strings.c: long pages of PLAIN strings */
void conform_decode_strings(struct conformance *c);

#endif
