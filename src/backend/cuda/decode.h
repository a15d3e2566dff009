/* Decoding of Parquet pages: what the files decode*.c share. decode.c has the primitives; decode_list.c lists
 * the pages that a read needs; decode_stored.c brings their bytes to the device, or finds them in its cache
 * (decode_image.c), and decompresses them (decode_inflate.c); decode_column.c makes columns of them; the
 * kernels are in decode_*.cu behind launch_decode.h. */
#ifndef SX_BACKEND_CUDA_DECODE_H
#define SX_BACKEND_CUDA_DECODE_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/launch_decode.h"
#include "tensor/codec.h"

/* What a decoder has of a span on the device. */
struct decode_copy {
    struct sx_buffer *stored; /* has the span's bytes, and maybe those of others; NULL: not brought */
    const uint8_t *at;        /* in `stored` */
    struct cuda_image *image; /* of the cache, or for it; NULL: none */
    bool was_sought;          /* in the cache */
};

struct sx_decoder {
    struct sx_stored_chunk chunk;
    int dictionary_page; /* -1: none */
    size_t stored_bytes, value_bytes;
    enum decode_conversion conversion; /* DECODE_NO_CONVERSION: strings, and decimals in BYTE_ARRAY */
    int64_t page_rows;                 /* of all data pages */
    int64_t *first_rows;               /* of each page, and page_rows; a dictionary page has none */
    int64_t row;                       /* no row in front of it is asked for again */
    struct decode_copy *copies;        /* of each span; without spans, of each page */
    int n_copies;
    size_t ahead_bytes;   /* that were brought ahead, and are not asked for yet */
    int64_t ahead_ticket; /* the last one of those; 0: none */
    bool is_ahead_here;   /* some were few, and came on the stream */
    int last_span;        /* that a page was found in: the next one's is this or one behind it */
};

/* Whether a page has rows of the column, so that its bytes are looked at. */
static inline bool decode_has_rows(const struct sx_page *page) {
    return page->kind != SX_PAGE_DICTIONARY && page->n_values > 0;
}

/* SX_INTERNAL where the spec asks for a combination that there is none for. */
SX_MUST_CHECK enum sx_status decode_conversion_find(struct cuda_stream *stream, struct sx_decoder *decoder);

/* A page of a decode, on the host's side. */
struct decode_listed {
    struct sx_decoder *decoder;
    int part, index;      /* of the read; in the chunk */
    int64_t plain_at;     /* where in the column's `plain` it is decompressed to; -1: it is not compressed */
    int32_t same_as;      /* the same page, listed before for rows that another part wants; -1: none */
    uint32_t lead_bytes;  /* V2: levels, which are never compressed */
    const uint8_t *image; /* on the device, the decoder's: has the page decompressed, where */
    const struct cuda_image_page *in_image; /* this tells; NULL: it has not */
};

enum decode_array {
    ARRAY_TOLD,
    ARRAY_PAGES,
    ARRAY_TILES,
    ARRAY_MINIBLOCKS,
    ARRAY_STATES,
    ARRAY_RUNS,
    ARRAY_TILE_VALUES,
    ARRAY_IN_TILE,
    ARRAY_VALID,
    ARRAY_SELECTED,
    ARRAY_STAGED,
    ARRAY_CODES,
    ARRAY_OFFSETS,
    ARRAY_LENGTHS,
    ARRAY_PREFIXES,
    ARRAY_SOURCES,
    ARRAY_REBUILT_AT,
    N_ARRAYS
};

/* Pages that become one column: of data, or the dictionaries of such. */
struct decode_column {
    int read;
    const struct sx_decoder *first; /* one of the decoders, for what all have in common */
    bool is_dictionary;
    bool as_codes; /* the column's values are codes of the dictionaries' entries */
    struct decode_listed *listed;
    struct decode_page_told *pages;
    int32_t n_pages, n_tiles;
    int64_t rows;     /* of all pages */
    int64_t out_rows; /* of the column */
    uint32_t sources; /* bit of each decode_source that there is */
    bool has_levels;
    int64_t n_miniblocks;
    size_t plain_bytes;
    struct sx_buffer *plain; /* decompressed pages */
    struct sx_buffer *rebuilt;
    struct sx_buffer *arrays[N_ARRAYS];
    struct decode_work work;
    int counter; /* the first of its two in the control block, which are zero */
    /* For later scans, what of it is a whole chunk: all rows are decoded, to `whole` where a selection is
     * then taken from it. */
    bool is_to_keep;
    struct sx_tensor whole;
    /* Values that the column is taken from (n 0: none), the last of which are in the buffer, which `whole` or
     * an image keeps. `out` while they are to be moved. */
    struct decode_pieces pieces;
    struct sx_buffer *pieces_buffer;
    struct sx_tensor column;
};

/* A span whose image is made by a call. */
struct decode_begun {
    struct sx_decoder *decoder;
    int copy;
    struct cuda_image *image;
};

/* Instead of a page's number in faults: a page that the call itself may not need. */
#define DECODE_NO_NUMBER UINT32_MAX

/* How a call goes about it, and what another way may help against. */
struct decode_way {
    bool inflates_here; /* pages are decompressed on the host */
    bool makes_images;  /* for the cache */
    bool was_inflating; /* the fault is one of the device's decompression, or of an image */
    bool has_begun;     /* an image */
    bool is_whole;      /* more rows are decoded than are wanted */
};

/* One call of the primitive: each read has a column of dictionaries, mostly empty, and its own. */
struct decode_call {
    struct cuda_stream *stream;
    const struct sx_column_read *reads;
    int n_reads;
    const struct sx_tensor *selection;
    struct decode_column *dictionaries, *columns; /* one a read */
    struct decode_column **numbers;               /* of faults: the column of each page, */
    int32_t *numbered;                            /* and which of its pages */
    uint32_t n_numbers;
    struct sx_decode_place place;
    struct decode_way *way;
    struct decode_begun *begun;
    int n_begun, room_begun;
    struct cuda_bring_copy *copies; /* that are still to be issued */
    int64_t n_copies, room_copies;
    int64_t hit_bytes;          /* as stored, that the cache had */
    struct cuda_copies uploads; /* that are still to be issued */
    /* Who described the stream's faults before. */
    enum sx_status (*outer_describe)(struct cuda_stream *stream, const struct cuda_fault *fault,
                                     const void *context);
    const void *outer_context;
};

/* ---- decode_list.c ---- */

/* Lists the pages of read number `r`, and of the dictionaries that they need. Damage that headers show is an
 * error at call->place. */
SX_MUST_CHECK enum sx_status decode_list(struct decode_call *call, int r);
void decode_column_release(struct decode_column *column);

/* ---- decode_stored.c ---- */

/* Pages' images on the device: their stored bytes, or what they decompress to. Only issued. */
SX_MUST_CHECK enum sx_status decode_bring(struct decode_call *call);
/* Issues the copies that are listed: in front of work that reads them. */
SX_MUST_CHECK enum sx_status decode_bring_listed(struct decode_call *call);

/* Whether its bytes are in memory that the device copies from by itself. */
bool decode_span_is_pinned(const struct sx_stored_span *span);

/* ---- decode_runs.c ---- */

struct decode_wanted {
    struct sx_decoder *decoder;
    int span;
};
/* Whether the span's bytes have to come over the link, and may come before a call looks for them. */
bool decode_span_is_wanted(const struct cuda_device *device, const struct sx_decoder *decoder, int span);
/* Whether CUDA_BRING_FEW is for their copies. May sort them. */
bool decode_runs_are_few(struct decode_wanted *wanted, int64_t n);
/* Sorts the n spans, gives them memory on the device, and lists the copies that fill it `way`: one for all
 * that are near to each other in one buffer of the host's. `copies` has room for n. Returns how many copies
 * there are; spans that there is no memory for have none. */
int64_t decode_runs_place(struct cuda_stream *stream, enum cuda_bring_way way, struct decode_wanted *wanted,
                          int64_t n, struct cuda_bring_copy *copies);
SX_MUST_CHECK enum sx_status decode_runs_issue(struct cuda_stream *stream, enum cuda_bring_way way,
                                               const struct cuda_bring_copy *copies, int64_t n);

/* ---- decode_ahead.c ---- */

/* The calling thread waits for what was brought ahead. */
void decode_ahead_join(struct cuda_stream *stream, const struct sx_decoder *decoder);
/* What was brought ahead counts no more: it is decoded now, or never. */
void decode_ahead_end(struct cuda_stream *stream, struct sx_decoder *decoder);

/* ---- decode_image.c ---- */

/* What the cache has of the span, which the decoder's copy keeps; NULL: it is not there. */
struct cuda_image *decode_image_seek(struct decode_call *call, struct sx_decoder *decoder, int copy,
                                     const struct sx_stored_span *span);
/* At the end of a call: what it has made for the cache is good, and goes there, or is given up. */
void decode_images_end(struct decode_call *call, bool is_good);

/* ---- decode_kept.c ---- */

/* Whether the cache has all values of the read: then column->pieces and out_rows are set. */
bool decode_kept_find(struct decode_call *call, const struct sx_column_read *read,
                      struct decode_column *column);
/* Makes the columns that have pieces, or are selected of whole ones. */
SX_MUST_CHECK enum sx_status decode_kept_issue(struct decode_call *call);
/* Whether later scans want values of the column, which may be kept. */
bool decode_is_to_keep(const struct decode_call *call, const struct decode_column *column);
/* The image gets the values of its chunk, if the call has decoded them. */
void decode_kept_note(const struct decode_call *call, const struct decode_begun *begun);

/* ---- decode_issue.c ---- */

/* Issues the kernels of all columns, which have been prepared. */
SX_MUST_CHECK enum sx_status decode_columns_issue(struct decode_call *call);

/* ---- decode_column.c ---- */

static inline bool decode_has_source(const struct decode_column *column, enum decode_source source) {
    return column->sources >> source & 1;
}
/* Whether values are staged as they are wanted and where: then nothing is left to be moved. */
bool decode_stages_column(const struct decode_column *column);
/* Memory, and what the kernels get, lists of which are among call->uploads; `entries`, prepared before, may
 * be NULL. */
SX_MUST_CHECK enum sx_status decode_column_prepare(struct decode_call *call, struct decode_column *column,
                                                   const struct decode_column *entries);
/* After the synchronisation. */
SX_MUST_CHECK enum sx_status decode_column_finish(struct decode_call *call, struct decode_column *column,
                                                  struct decode_column *entries,
                                                  struct sx_tensor *out_column);

#endif
