/* A Parquet file's footer: what a scan needs of it, decoded. Immutable once parsed. */
#ifndef SX_STORAGE_FOOTER_H
#define SX_STORAGE_FOOTER_H

#include "base/arena.h"
#include "storage/thrift.h"
#include "tensor/page.h"

/* Bounds as stored, in the physical type's plain encoding; a slice without bytes is absent. */
struct sx_statistics {
    struct sx_slice min, max;         /* in the order of the logical type */
    struct sx_slice old_min, old_max; /* in the signed order of the physical type */
    int64_t n_nulls;                  /* -1: unknown */
    bool min_is_exact, max_is_exact;  /* false: they may lie outside of the values */
};

struct sx_chunk_meta {
    int64_t n_values;
    int64_t stored_bytes; /* of all pages and their headers */
    int64_t plain_bytes;
    int64_t data_offset;
    int64_t dictionary_offset;                                      /* 0: none */
    int64_t column_index_offset, offset_index_offset, bloom_offset; /* 0: none */
    int32_t column_index_bytes, offset_index_bytes;
    int32_t codec;
    int32_t physical;
    bool is_present; /* has its metadata in the footer */
    bool is_encrypted;
    bool is_elsewhere; /* in another file */
    struct sx_statistics statistics;
};

struct sx_group_meta {
    int64_t n_rows;
    struct sx_chunk_meta *chunks; /* one for each leaf */
};

enum sx_logical_kind {
    SX_LOGICAL_NONE = 0,
    SX_LOGICAL_STRING = 1,
    SX_LOGICAL_ENUM = 4,
    SX_LOGICAL_DECIMAL = 5,
    SX_LOGICAL_DATE = 6,
    SX_LOGICAL_TIME = 7,
    SX_LOGICAL_TIMESTAMP = 8,
    SX_LOGICAL_INTEGER = 10,
    SX_LOGICAL_UNKNOWN = 11,
    SX_LOGICAL_JSON = 12,
    SX_LOGICAL_FLOAT16 = 15
};

enum sx_time_unit { SX_UNIT_NONE = 0, SX_UNIT_MILLIS = 1, SX_UNIT_MICROS = 2, SX_UNIT_NANOS = 3 };

/* As in the file. */
struct sx_schema_element {
    const char *name;
    int32_t physical; /* -1: a group */
    int32_t type_length;
    int32_t repetition; /* 0 required, 1 optional, 2 repeated */
    int32_t n_children;
    int32_t converted; /* -1: none */
    int32_t scale, precision;
    int32_t logical; /* enum sx_logical_kind, or another number of the format */
    int32_t bit_width;
    bool is_signed;
    bool is_utc;
    enum sx_time_unit unit;
};

/* A column of the table: a child of the schema's root. */
struct sx_file_column {
    const char *name;
    const char *unreadable; /* why the engine can't read it, or NULL */
    int leaf;               /* index of its (first) column chunk in each row group */
    enum sx_parquet_physical physical;
    int32_t type_length;
    struct sx_type type;
    enum sx_conversion conversion;
    enum sx_time_unit unit;
    bool is_optional;
    bool has_order; /* false: the order of min and max is not the type's */
    /* What changes later: */
    atomic_bool is_checked;    /* its chunks in all row groups have been found to be readable */
    atomic_bool has_checksums; /* some page has one */
};

struct sx_footer {
    atomic_int references;
    struct sx_arena arena;
    uint8_t *bytes; /* statistics point into them */
    uint32_t length_bytes;
    uint64_t hash; /* of the bytes */
    int64_t file_bytes;
    int64_t n_rows;
    struct sx_schema_element *elements;
    int n_elements;
    int n_leaves;
    struct sx_file_column *columns; /* in the file's order */
    int n_columns;
    int *by_name;   /* columns by name without case */
    bool has_twins; /* names that differ in case at most */
    struct sx_group_meta *groups;
    int n_groups;
};

/* Decodes the footer in `bytes` (taken over, from malloc, also on failure). The text of an error does not
 * name the file. One reference, the caller's. */
SX_MUST_CHECK enum sx_status sx_footer_parse(uint8_t *bytes, uint32_t length_bytes, int64_t file_bytes,
                                             struct sx_footer **out_footer, struct sx_error *error);
struct sx_footer *sx_footer_retain(struct sx_footer *footer);
void sx_footer_release(struct sx_footer *footer); /* NULL allowed */

/* Derives `columns` from `elements` by DuckDB's reading rules. */
SX_MUST_CHECK enum sx_status sx_schema_derive(struct sx_footer *footer, struct sx_error *error);

/* Index into `columns`, or -1: the exact name, else the name without regard to case. */
int sx_footer_find(const struct sx_footer *footer, const char *name);
/* Whether values of two columns, of one file or two, have the same type and the same form in their pages. */
bool sx_column_stored_alike(const struct sx_file_column *a, const struct sx_file_column *b);

/* Where a chunk's pages begin: at its dictionary, if that comes first. */
static inline int64_t sx_chunk_begin(const struct sx_chunk_meta *chunk) {
    bool has_dictionary = chunk->dictionary_offset >= 4 && chunk->dictionary_offset < chunk->data_offset;
    return has_dictionary ? chunk->dictionary_offset : chunk->data_offset;
}

/* "ZSTD (6)" and the like; "unknown (50)". Returns `buffer`. */
enum { SX_FORMAT_NAME_BYTES = 48 };
const char *sx_codec_name(int32_t codec, char buffer[SX_FORMAT_NAME_BYTES]);
const char *sx_encoding_name(int32_t encoding, char buffer[SX_FORMAT_NAME_BYTES]);
bool sx_codec_is_known(int32_t codec);
bool sx_encoding_is_known(int32_t encoding);

#endif
