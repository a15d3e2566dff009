/* Inside of wire*.c: a message's bytes, and what is sent of a column. */
#ifndef SX_TENSOR_WIRE_FORMAT_H
#define SX_TENSOR_WIRE_FORMAT_H

#include "tensor/wire.h"

enum { WIRE_ALIGNMENT = 16 };

struct wire_frame {
    uint64_t bytes; /* with this header */
    int64_t rows;
    int64_t sequence;
    int32_t n_columns;
    int32_t unused;
};

/* In front of a column's parts: values, codes (DICT), validity, bytes of long strings; each aligned. Of a
 * packed column: its values (vectors of sx_pack: one for each 8 bytes of a value; for strings their lengths,
 * then the bytes of all behind a wire_heap), codes and validity as vectors. */
struct wire_column {
    int64_t n_values;    /* rows; 1 of a CONSTANT; a dictionary's entries */
    uint64_t heap_bytes; /* unpacked */
    uint32_t type_id;
    uint8_t precision, scale;
    uint8_t layout;
    uint8_t has_valid;
    uint64_t packed_bytes; /* of the parts; 0: it is not packed */
};

/* In front of the bytes of a packed column's strings. */
struct wire_heap {
    uint64_t stored_bytes;
    uint64_t is_lz4; /* a block of LZ4; else as they are */
};

_Static_assert(sizeof(struct wire_frame) % WIRE_ALIGNMENT == 0 &&
                   sizeof(struct wire_column) % WIRE_ALIGNMENT == 0 &&
                   sizeof(struct wire_heap) % WIRE_ALIGNMENT == 0,
               "headers align");

static inline size_t wire_aligned(size_t bytes) {
    return (bytes + WIRE_ALIGNMENT - 1) & ~(size_t)(WIRE_ALIGNMENT - 1);
}

/* Rows of a column: values[code_of(row)] of `values`. */
struct wire_picked {
    const struct sx_tensor *column;
    const int32_t *rows;
    int64_t n_rows;
    enum sx_layout layout; /* on the wire */
    struct sx_type type;
    size_t width_bytes;
};

struct wire_picked wire_pick(const struct sx_tensor *column, const int32_t *rows, int64_t n_rows);
/* Values that are sent: rows, a dictionary's entries, or 1. */
int64_t wire_n_values(const struct wire_picked *picked);
/* Those of the column, or of its dictionary. */
const char *wire_stored_values(const struct wire_picked *picked);
/* Value i of those that are sent; NULL where its row is null. */
const char *wire_value_at(const struct wire_picked *picked, int64_t i);
/* Not packed, with the header. */
size_t wire_column_bytes(const struct wire_picked *picked);
struct wire_column wire_column_header(const struct wire_picked *picked);
/* Writes that; returns its end. */
char *wire_pack_column(const struct wire_picked *picked, char *out);

#endif
