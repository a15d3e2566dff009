/* Frames: rows of a batch as bytes of one block in the backend's memory, as rows_pack (backend.h) writes and
 * rows_unpack reads them. First the head: a sx_rows_frame and a sx_rows_column for each column; then what the
 * columns are made of, each part at a multiple of 16. The host makes and checks heads only.
 *
 * PLAIN: values, validity and long strings, FLAT; views of long strings have their offset in the column's
 * strings in place of the pointer. PACKED: vectors of 64-bit integers in frames of reference. A column has
 * one vector of its values, sign-extended (two of 16 bytes: low halves, high halves; of strings: their
 * lengths), and one of validity if it has nulls. Of each 1,024 rows each vector has a block (pack.h), all of
 * them in one directory, block after block and the vectors of each side by side; the blocks' words follow it.
 * Null rows count as any value; as strings they have no characters. The heap of PACKED strings is the
 * characters of all rows, short ones too, one after another; `first` in a block of lengths tells where those
 * of its rows begin, so that each block can be read on its own.
 *
 * NARROW: integers of 8 and 16 bytes as offsets from a base, in half of the bytes. Validity is as PLAIN has
 * it.
 *
 * Strings whose dictionary has few entries for the rows go as their codes, a column of I32 like any other,
 * PLAIN or PACKED. The dictionary is the column's heap: the entries' views, then their long strings. */
#ifndef SX_TENSOR_ROWS_H
#define SX_TENSOR_ROWS_H

#include "tensor/tensor.h"

enum { SX_ROWS_ALIGNMENT = 16, SX_ROWS_VECTORS = 3 /* of a column, at most */ };

enum sx_rows_encoding { SX_ROWS_PLAIN, SX_ROWS_PACKED, SX_ROWS_NARROW, SX_ROWS_ENCODINGS };

struct sx_rows_frame {
    uint64_t bytes; /* of the frame, with its head */
    int64_t rows;
    int64_t sequence; /* the sender's own */
    int32_t n_columns;
    int32_t unused;
};

/* Offsets are from the frame's begin. */
struct sx_rows_column {
    uint64_t values, values_bytes; /* PACKED: the directory, with the words behind it */
    uint64_t valid;                /* 0: no nulls; PACKED: else that of the values */
    uint64_t heap, heap_bytes;
    uint64_t n_entries;  /* of the dictionary; 0: there is none */
    uint64_t long_bytes; /* PACKED strings: of the heap, those that views will point at */
    uint32_t type_id;
    uint8_t precision, scale;
    uint8_t encoding; /* enum sx_rows_encoding */
    uint8_t unused[1];
    int64_t base; /* NARROW */
    int64_t unused_too;
};

/* What is known of a column's values, for frames: `base` where they FIT behind it, as far as it is known. */
enum sx_rows_fit { SX_ROWS_FIT_UNKNOWN, SX_ROWS_FITS, SX_ROWS_FITS_NOT };
struct sx_rows_narrow {
    enum sx_rows_fit fit;
    int64_t base;
};

/* What a head needs to know of a column but its type. */
struct sx_rows_shape {
    enum sx_rows_encoding encoding;
    uint64_t words_bytes;      /* if it is PACKED */
    uint64_t characters_bytes; /* of strings, if they are PACKED */
    uint64_t long_bytes;       /* of strings, of the long ones alone */
    uint64_t n_entries, dictionary_bytes;
    int64_t base; /* if it is NARROW */
};

static inline size_t sx_rows_head_bytes(int n_columns) {
    return sizeof(struct sx_rows_frame) + (size_t)n_columns * sizeof(struct sx_rows_column);
}
static inline struct sx_rows_column *sx_rows_columns(void *head) {
    return (struct sx_rows_column *)((struct sx_rows_frame *)head + 1);
}

/* Whether the column goes with its dictionary to `n_frames` frames, of so many rows together. */
bool sx_rows_sends_dictionary(const struct sx_tensor *column, int64_t rows, int n_frames);
/* What is stored of a column that does: its codes. Borrowed. */
struct sx_tensor sx_rows_codes(const struct sx_tensor *column);
/* Where long strings of a dictionary begin, from the begin of its heap. */
static inline uint64_t sx_rows_entries_bytes(uint64_t n_entries) {
    return n_entries * sizeof(struct sx_string);
}

/* Whether such columns can be NARROW. */
bool sx_rows_can_narrow(struct sx_type type);
/* Of a sample of a column's values; NO_RANGE: it has none, TOO_WIDE: one has more than 64 bits. */
struct sx_rows_range {
    int64_t least, most;
};
#define SX_ROWS_NO_RANGE ((struct sx_rows_range){INT64_MAX, INT64_MIN})
#define SX_ROWS_TOO_WIDE ((struct sx_rows_range){0, -1})
/* Of a column of values of `width_bytes`, by that. */
struct sx_rows_narrow sx_rows_narrow_of(size_t width_bytes, struct sx_rows_range range);

/* Vectors of a PACKED column. */
int sx_rows_vectors(struct sx_type type, bool has_valid);
/* Of a PACKED column: its words are behind that. */
uint64_t sx_rows_directory_bytes(int64_t rows, int n_vectors);
/* The encoding that is worth it for columns of so many values in parts, if that is what their shape would be
 * with either: packed they take a tenth less, or they stay plain. */
enum sx_rows_encoding sx_rows_choose(struct sx_type type, bool has_valid, int64_t rows, int64_t n_blocks,
                                     const struct sx_rows_shape *shape);

/* The head of a frame with `rows` rows of `batch`, whose columns are as they are stored. `shapes`: one a
 * column. `head`: sx_rows_head_bytes of it. Returns the frame's bytes. */
size_t sx_rows_make_head(const struct sx_batch *batch, int64_t rows, int64_t sequence,
                         const struct sx_rows_shape *shapes, void *head);
/* The bytes of that frame if all of its columns were PLAIN. */
size_t sx_rows_plain_bytes(const struct sx_batch *batch, int64_t rows, const struct sx_rows_shape *shapes);
/* SX_INTERNAL: this is no head of a frame of `bytes` bytes with such columns. What blocks tell has to be
 * checked by whoever reads them. */
SX_MUST_CHECK enum sx_status sx_rows_check_head(const void *head, size_t bytes, const struct sx_type *types,
                                                int n_columns, struct sx_error *error);
/* The batch whose PLAIN columns are in `frame` (retained by each): values are not copied, nor is
 * validity of NARROW ones, or anything of those that stay so (stay_narrow[c]; NULL: none does). Views of long
 * strings are still offsets. The others have room in memory of `pool`, to be filled; strings among them
 * retain the frame if any are long. `head` has been checked; it may lie elsewhere than `frame`. */
SX_MUST_CHECK enum sx_status sx_rows_place(const void *head, struct sx_buffer *frame, struct sx_pool *pool,
                                           const bool *stay_narrow, struct sx_batch *out_batch,
                                           struct sx_error *error);
/* Codes that sx_rows_place has placed become a column of strings. `block`: a copy of its heap, so that
 * whoever keeps the dictionary does not keep the frame; views of long strings are still offsets. */
SX_MUST_CHECK enum sx_status sx_rows_add_dictionary(const struct sx_rows_column *place,
                                                    struct sx_buffer *block, struct sx_tensor *column,
                                                    struct sx_error *error);

#endif
