/* Decoding of Parquet pages: what the files decode*.c share. decode.c walks the rows of a column chunk;
 * decode_range.c decodes a range of pages into a column; decode_open.c makes pages readable; the kernels are
 * in decode_*.cu behind launch_decode.h. */
#ifndef SX_BACKEND_CUDA_DECODE_H
#define SX_BACKEND_CUDA_DECODE_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_decode.h"
#include "tensor/codec.h"

struct sx_decoder {
    struct sx_chunk_spec spec;
    const struct sx_page *pages;
    int n_pages;
    int dictionary_page; /* -1: none */
    struct sx_buffer *owner;
    size_t stored_bytes, value_bytes;
    enum decode_conversion conversion; /* DECODE_NO_CONVERSION: strings, and decimals in BYTE_ARRAY */
    int64_t page_rows;                 /* of all data pages */
    int64_t *first_rows;               /* of each page, and page_rows; a dictionary page has none */
    int64_t row;                       /* next to be read */
    struct sx_tensor ahead;            /* rows that are decoded, from ahead_row on */
    int64_t ahead_row;
    struct sx_dict *dict;
    struct sx_codecs *codecs;
    void *plain; /* one page's bytes after decompression, in host memory */
    size_t plain_bytes;
    /* The page that a fault was about, or -1; and who described the stream's faults before. */
    int fault_page;
    enum sx_status (*outer_describe)(struct cuda_stream *stream, const struct cuda_fault *fault,
                                     const void *context);
    const void *outer_context;
};

/* Whether a page has rows of the column, so that its bytes are looked at. */
static inline bool decode_has_rows(const struct sx_page *page) {
    return page->kind != SX_PAGE_DICTIONARY && page->n_values > 0;
}

/* SX_INTERNAL where the spec asks for a combination that there is none for. */
SX_MUST_CHECK enum sx_status decode_conversion_find(struct cuda_stream *stream, struct sx_decoder *decoder);

/* ---- decode_open.c ---- */

struct decode_miniblocks {
    struct decode_miniblock *all; /* from malloc */
    int32_t n, room;
    bool is_full; /* there was no memory for more */
};

/* A page made readable: `image` is its bytes in host memory (the stored ones, or decoder->plain, which the
 * next page takes), levels and body among them. In `page` all is set but the pointers and what depends on the
 * range. */
struct decode_opened {
    const uint8_t *image;
    size_t image_bytes, levels_at, body_at;
    struct decode_page page;
};
SX_MUST_CHECK enum sx_status decode_open(struct cuda_stream *stream, struct sx_decoder *decoder, int index,
                                         struct decode_miniblocks *miniblocks,
                                         struct decode_opened *out_opened);

/* SX_FILE: "page N: …". */
SX_MUST_CHECK enum sx_status decode_fail(struct cuda_stream *stream, const struct sx_decoder *decoder,
                                         int index, enum decode_problem problem, uint64_t high, uint64_t row);

/* ---- decode_range.c ---- */

/* Pages [first_page, end_page) that have rows, or (is_dictionary) the dictionary page first_page, as one
 * column. Waits for it. On failure *out_bad_page tells whose fault it is; -1: no page's. */
SX_MUST_CHECK enum sx_status decode_range(struct cuda_stream *stream, struct sx_decoder *decoder,
                                          int first_page, int end_page, bool is_dictionary, bool as_codes,
                                          struct sx_tensor *out_column, int *out_bad_page);

#endif
