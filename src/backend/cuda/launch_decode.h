/* Decoding of Parquet pages on the device: what the host tells the kernels, and their launches.
 *
 * A decode is about a list of pages, of one or several column chunks, that become one column. Its arrays
 * count rows through all pages: a page's are [first_row, first_row + n_rows). Of those the column gets the
 * wanted ones, row i of the page at out_row + i; with a selection only those of them that it lists. Values
 * are counted within their page; a page has at most as many as rows, so per-value arrays have room for one a
 * row, and a page's values stand at first_row + value. Pages fall into tiles of DECODE_TILE rows; the same
 * numbers serve for tiles of values. */
#ifndef SX_BACKEND_CUDA_LAUNCH_DECODE_H
#define SX_BACKEND_CUDA_LAUNCH_DECODE_H

#include <cuda_runtime_api.h>

#include "backend/cuda/column.h"

enum { DECODE_TILE = 1024 };
/* Tiles of so many rows, up to INT32_MAX. */
#define DECODE_TILES(rows) ((rows) / DECODE_TILE + ((rows) % DECODE_TILE > 0))
/* Kernels may read so many bytes in front of a page's bytes and behind them, since they read whole words. */
enum { DECODE_SLACK_BYTES = 16 };

/* What is wrong with a page: the low byte of fault.detail[0], with a number above it (`high`); another is in
 * fault.row. X(name, text, numbers): the text is printf's, with up to two numbers (%llu), first `high`. */
#define DECODE_PROBLEM_LIST(X)                                             \
    X(LEVELS, "the definition levels are cut off or damaged")              \
    X(TOO_FEW, "%llu values (%s) where %llu are needed")                   \
    X(NO_DICTIONARY, "dictionary codes, but there is no dictionary page")  \
    X(CODE, "dictionary code %llu of %llu entries")                        \
    X(CONVERSION, "a value does not fit the column's type")                \
    X(MILLIS, "a timestamp in milliseconds is out of range")               \
    X(STRING_END, "a string reaches past the end of the page")             \
    X(TEXT, "a string is invalid UTF-8")                                   \
    X(PREFIX, "a prefix of %llu bytes of a string of %llu")                \
    X(LENGTH, "a value of %llu bytes where all have %llu")                 \
    X(DELTA_HEADER, "the header of DELTA_BINARY_PACKED values is cut off") \
    X(DELTA_SIZES, "DELTA_BINARY_PACKED values in blocks of a wrong size") \
    X(DELTA_BLOCK, "a block of DELTA_BINARY_PACKED values is cut off")     \
    X(DELTA_WIDTH, "DELTA_BINARY_PACKED values of more than 64 bits")      \
    X(DELTA_MORE, "more values than the DELTA_BINARY_PACKED header tells") \
    X(CODE_WIDTH, "dictionary codes of more than 32 bits")                 \
    X(RLE_END, "the RLE values are cut off")                               \
    X(SPLIT_END, "BYTE_STREAM_SPLIT values are cut off")                   \
    X(LEVEL_END, "the definition levels are cut off")                      \
    X(INFLATE, "the compressed data is damaged")
enum decode_problem {
    DECODE_GOOD,
#define DECODE_PROBLEM_ENUM(name, text) DECODE_##name,
    DECODE_PROBLEM_LIST(DECODE_PROBLEM_ENUM)
#undef DECODE_PROBLEM_ENUM
};

enum decode_levels { DECODE_NO_LEVELS, DECODE_HYBRID_LEVELS, DECODE_BIT_PACKED_LEVELS };

/* How a page's values are stored. */
enum decode_source {
    DECODE_PLAIN, /* of fixed length */
    DECODE_BITS,
    DECODE_RLE_BITS,
    DECODE_SPLIT,
    DECODE_DELTA,
    DECODE_CODES,
    DECODE_PLAIN_BYTES, /* BYTE_ARRAY */
    DECODE_LENGTHS,
    DECODE_FRONT_CODED,
    DECODE_N_SOURCES
};

/* Kinds of stored values of fixed length; the functions of tensor/semantics_stored.h: X(name, C type, word
 * that stored values are read as) */
#define DECODE_CONVERSION_LIST(X) \
    X(1_to_1, uint8_t, uint8_t)   \
    X(4_to_1, uint8_t, uint32_t)  \
    X(4_to_2, uint16_t, uint32_t) \
    X(4_to_4, uint32_t, uint32_t) \
    X(4_to_8, int64_t, uint32_t)  \
    X(4_to_16, sx_i128, uint32_t) \
    X(8_to_8, uint64_t, uint64_t) \
    X(8_to_16, sx_i128, uint64_t) \
    X(be_to_8, int64_t, uint8_t)  \
    X(be_to_16, sx_i128, uint8_t) \
    X(int96, int64_t, uint8_t)    \
    X(millis, int64_t, uint64_t)  \
    X(nanos, int64_t, uint64_t)   \
    X(f16, float, uint8_t)
enum decode_conversion {
#define DECODE_CONVERSION_ENUM(name, type, word) DECODE_##name,
    DECODE_CONVERSION_LIST(DECODE_CONVERSION_ENUM)
#undef DECODE_CONVERSION_ENUM
        DECODE_NO_CONVERSION
};

/* A miniblock of DELTA_BINARY_PACKED: deltas of `width` bits from byte `at` of the body on. */
struct decode_miniblock {
    uint64_t min_delta;
    uint32_t at;
    uint32_t width;
};

struct decode_deltas {
    uint64_t first;
    int64_t n_there; /* values that the bytes hold */
    uint32_t miniblock_values;
    uint32_t problem; /* why there are no more: enum decode_problem */
};

/* What the host tells of a page: the lists of large decodes are bytes on the link like others. */
struct decode_page_told {
    const uint8_t *image;  /* the page's bytes on the device, decompressed */
    const uint8_t *levels; /* NULL, though there are some: at the image's begin */
    const uint8_t *stored; /* values of fixed length side by side, where they are staged; else NULL */
    uint32_t image_bytes, level_bytes;
    int64_t first_row, out_row;
    int64_t n_entries; /* of its dictionary; -1: there is none */
    int32_t n_rows, first_wanted, end_wanted;
    int32_t first_tile;
    uint32_t number;    /* for faults */
    uint32_t code_base; /* where its dictionary begins in the column's */
    int32_t first_miniblock[2];
    uint8_t level_kind, source;
};

/* And what cuda_decode_open finds: `levels`, and `stored` of all (strings: what their offsets count from),
 * too. */
#ifdef __cplusplus
struct decode_page : decode_page_told {
    uint8_t code_width;
    uint32_t body_bytes, text_at; /* LENGTHS, FRONT_CODED: where in the body the strings' bytes begin */
    const uint8_t *body;
    int64_t n_there;                /* values that the body holds; -1: not known before they are decoded */
    struct decode_deltas deltas[2]; /* values, or lengths; of FRONT_CODED prefixes and suffixes */
};
#endif
enum { DECODE_PAGE_BYTES = 192 }; /* of a decode_page, at most */

struct decode_tile {
    int32_t page;
    int32_t first; /* row or value in the page */
};

/* Entries of the selection that are in a tile. */
struct decode_selected {
    int32_t begin, end;
};

struct decode_state {
    int32_t n_values;   /* rows that are not null */
    int32_t is_bad;     /* a fault was recorded: nothing more is done for the page */
    int64_t text_bytes; /* FRONT_CODED: of all values */
};

/* Run of a hybrid in which a tile begins. */
struct decode_run_at {
    uint32_t header; /* the run's first byte */
    uint32_t unused;
    uint64_t passed; /* values of the run in front of the tile */
};

/* One decode. Arrays may be NULL where nothing needs them. */
struct decode_work {
    const struct decode_page_told *told;
    struct decode_page *pages; /* made of those by cuda_decode_open, as are `tiles` */
    struct decode_state *states;
    struct decode_tile *tiles;
    struct decode_miniblock *miniblocks;
    int32_t n_pages, n_tiles;
    int64_t rows;
    struct decode_run_at *runs; /* one a tile */
    int32_t *tile_values;       /* of a tile's rows; then of all tiles in front of it in the page */
    uint16_t *in_tile;          /* per row: values in front of it in its tile; NULL: no page has levels */
    uint8_t *valid;             /* per row */
    const int32_t *selection;   /* NULL: all */
    int64_t n_selected;
    struct decode_selected *selected; /* one a tile */
    uint8_t *staged;                  /* stored bytes of fixed length */
    uint32_t *codes;                  /* of dictionary entries */
    int64_t *offsets;                 /* of strings, from the page's `stored` on */
    uint32_t *lengths;
    uint32_t *prefixes;
    int64_t *sources; /* FRONT_CODED: of suffixes, in the body */
    uint32_t stored_bytes, value_bytes;
    const void *entries; /* values of the dictionaries, one after another */
    bool is_text;        /* strings must be UTF-8 */
    void *out;
    uint8_t *out_valid; /* NULL: no row can be null */
    int64_t *n_null;
    int64_t *n_long; /* becomes 1 when a string has bytes outside of its view */
    struct cuda_control *control;
};

/* Several at a time, none of which is without tiles: each a row of blocks. As arguments, which kernels read
 * like constants: from the device's memory they took Q1 a tenth longer. */
enum { DECODE_WORKS = 8 };
struct decode_works {
    struct decode_work of[DECODE_WORKS];
    int32_t n;
};

/* A column whose values are there, in several pieces: row r of all is in the last piece that begins at r or
 * in front of it. */
enum { DECODE_PIECES = 16 };
struct decode_pieces {
    const uint8_t *values[DECODE_PIECES]; /* the piece's first */
    int32_t begins[DECODE_PIECES];
    int32_t n;
    const int32_t *selection; /* NULL: all */
    int64_t n_rows;           /* that are taken, to `out` */
    void *out;
};
struct decode_pieces_list {
    struct decode_pieces of[DECODE_WORKS];
    int32_t n;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Levels and body of each page, and what stands in front of values; which entries of the selection are in
 * which tile. */
void cuda_decode_open(cudaStream_t stream, const struct decode_works *works);
/* Validity of all rows, where their values are, and states. */
void cuda_decode_levels(cudaStream_t stream, const struct decode_works *works);
/* `staged` of pages in that encoding. */
void cuda_decode_bits(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_rle_bits(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_split(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_deltas(cudaStream_t stream, const struct decode_works *works, uint32_t stored_bytes);
/* lengths, and prefixes, of pages that have them in DELTA_BINARY_PACKED. */
void cuda_decode_coded_lengths(cudaStream_t stream, const struct decode_works *works);
/* Where runs of codes begin; their codes, where values are not rows. */
void cuda_decode_find_codes(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_codes(cudaStream_t stream, const struct decode_works *works);
/* offsets and lengths. */
void cuda_decode_plain_bytes(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_lengths(cudaStream_t stream, const struct decode_works *works);
/* Also the states' text_bytes. `fixed_bytes` not 0: all values must have that length. */
void cuda_decode_front_coded(cudaStream_t stream, const struct decode_work *work, uint32_t fixed_bytes);
/* Front-coded values one after another, those of page p at rebuilt + at[p]. */
void cuda_decode_rebuild(cudaStream_t stream, const struct decode_work *work, uint8_t *rebuilt,
                         const int64_t *at);
/* Rows of `out`: from stored values of fixed length; from codes, or where each value is a row from their
 * runs, entries of that many bytes, 0: codes; from strings. Each leaves the rows of other pages alone. */
void cuda_decode_convert(cudaStream_t stream, const struct decode_works *works,
                         enum decode_conversion conversion);
void cuda_decode_take(cudaStream_t stream, const struct decode_works *works, uint32_t value_bytes,
                      bool from_runs);
/* Values of so many bytes. */
void cuda_decode_take_pieces(cudaStream_t stream, const struct decode_pieces_list *list,
                             uint32_t value_bytes);
void cuda_decode_views(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_fixed_views(cudaStream_t stream, const struct decode_works *works);
void cuda_decode_byte_decimals(cudaStream_t stream, const struct decode_works *works, uint32_t value_bytes);

#ifdef __cplusplus
}
#endif
#endif
