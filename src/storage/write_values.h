/* Inside of writing: a column chunk's values in memory, on the way from tensors to pages. */
#ifndef SX_STORAGE_WRITE_VALUES_H
#define SX_STORAGE_WRITE_VALUES_H

#include "storage/encode.h"
#include "storage/write.h"

/* Distinct values in the order in which they first came. Starts with pool, width and physical set. */
struct sx_write_dictionary {
    struct sx_pool *pool;
    struct sx_stored entries; /* its values are `memory` */
    void *memory;
    int32_t n_entries;
    int32_t capacity;
    int32_t *slots; /* hash table: codes, -1 where free; a power of two of them */
    int64_t n_slots;
    int64_t plain_bytes; /* of the dictionary's page */
    int64_t most_bytes;  /* of dictionary and codes together; more: it is given up */
    int64_t n_codes;     /* to come in all, for that */
};

enum sx_write_coded { SX_CODED, SX_CODED_TOO_LARGE, SX_CODED_NO_MEMORY };

/* The codes of `count` values; may be called again with more of them. */
enum sx_write_coded sx_write_dictionary_add(struct sx_write_dictionary *dictionary, const void *values,
                                            int64_t count, int32_t *out_codes, struct sx_error *error);
/* Bits of a code; at least 1. */
unsigned sx_write_dictionary_bits(const struct sx_write_dictionary *dictionary);
void sx_write_dictionary_release(struct sx_write_dictionary *dictionary);

/* What is known of a column chunk before its pages are made. */
struct sx_write_values {
    struct sx_pool *pool;
    const struct sx_write_column *column;
    int64_t rows;
    int64_t count;           /* rows that are not null */
    uint8_t *valid;          /* one a row; NULL: no nulls */
    struct sx_stored stored; /* its values are `memory`, or NULL: there are codes only */
    void *memory;
    size_t memory_bytes;
    int32_t *codes; /* into the dictionary; NULL: none */
    struct sx_write_dictionary dictionary;
};

/* ---- write_load.c ---- */

/* From `n` pieces; strings point into theirs. `keep_codes`: where all pieces have dictionaries, codes come
 * instead of values, unless the dictionaries are large together. */
SX_MUST_CHECK enum sx_status sx_write_values_load(struct sx_write_values *values,
                                                  const struct sx_tensor *pieces, int64_t n, bool keep_codes,
                                                  struct sx_error *error);
/* Values in place of codes. */
SX_MUST_CHECK enum sx_status sx_write_values_expand(struct sx_write_values *values, struct sx_error *error);
void sx_write_values_release(struct sx_write_values *values);

/* ---- write_bounds.c ---- */

/* A value in a form that compares. */
struct sx_write_key {
    sx_i128 integer;
    double number;
    struct sx_string text;
};

/* The least and the greatest of some values. */
struct sx_write_range {
    struct sx_write_key min, max;
    bool is_known; /* false: of no values */
    bool has_nan;  /* bounds say nothing then */
    int64_t n_nulls;
    int64_t rows;
};

/* Of `count` values from `first` on. */
void sx_write_range_of(const struct sx_write_values *values, int64_t first, int64_t count,
                       struct sx_write_range *range);
/* `into` becomes the range of both. */
void sx_write_range_join(const struct sx_write_column *column, struct sx_write_range *into,
                         const struct sx_write_range *range);
/* The struct Statistics. */
void sx_write_statistics(const struct sx_write_column *column, const struct sx_write_range *range,
                         struct sx_bytes *out);
/* The struct ColumnIndex of these pages; nothing where some page's bounds say nothing. */
void sx_write_column_index(const struct sx_write_column *column, const struct sx_write_range *pages,
                           int n_pages, struct sx_bytes *out);

/* ---- write_choose.c ---- */

/* Rows of a data page and their values that are not null. */
struct sx_write_span {
    int64_t row, rows;
    int64_t value, values;
};

/* Compresses pages; the scratch of one thread. */
struct sx_write_packer {
    enum sx_parquet_codec codec;
    int level;
    struct sx_compressor *compressor;
    struct sx_bytes packed;
};
/* The bytes compressed in packer->packed, and true, if that makes them fewer. */
SX_MUST_CHECK enum sx_status sx_write_pack(struct sx_write_packer *packer, const uint8_t *bytes,
                                           size_t length_bytes, bool *out_smaller, struct sx_error *error);

/* Chooses the encoding; afterwards values->codes is there exactly where that is RLE_DICTIONARY. */
SX_MUST_CHECK enum sx_status sx_write_choose(const struct sx_write_options *options,
                                             struct sx_write_values *values,
                                             const struct sx_write_span *spans, int n_spans,
                                             struct sx_write_packer *packer,
                                             enum sx_parquet_encoding *out_encoding, struct sx_error *error);

#endif
