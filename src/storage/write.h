/* Writing Parquet: columns in host memory become column chunks (any number at a time), chunks become row
 * groups, row groups files. */
#ifndef SX_STORAGE_WRITE_H
#define SX_STORAGE_WRITE_H

#include "storage/bytes.h"
#include "storage/thrift_write.h"
#include "tensor/codec.h"

/* Which encodings a column chunk may have. */
enum sx_write_encoding {
    SX_WRITE_AUTO,       /* the smallest of all */
    SX_WRITE_PLAIN,      /* PLAIN */
    SX_WRITE_DICTIONARY, /* RLE_DICTIONARY, unless the dictionary gets too large: PLAIN */
    SX_WRITE_V2          /* DELTA_*, BYTE_STREAM_SPLIT or RLE where the type has one, else PLAIN */
};

/* The rows are in the order of this column. */
struct sx_write_order {
    int column;
    bool descending;
    bool nulls_first;
};

struct sx_write_options {
    int64_t row_group_rows; /* most rows of a row group */
    int64_t pages;          /* about so many data pages a column chunk */
    bool data_page_v1;
    bool checksums; /* a CRC in every page header */
    enum sx_write_encoding encoding;
    enum sx_parquet_codec codec; /* UNCOMPRESSED, SNAPPY, LZ4_RAW or ZSTD */
    int codec_level;             /* ZSTD */
    int64_t file_rows;           /* a new file after so many rows; 0: never */
    int64_t file_bytes;          /* a new file rather than one of more bytes; 0: never */
    int n_partition;             /* the first columns, all VARCHAR, name folders COLUMN=VALUE */
    const struct sx_write_order *orders;
    int n_orders;
};

/* A column of the files, and how it is stored. */
struct sx_write_column {
    const char *name;
    struct sx_type type;
    bool is_optional;
    enum sx_parquet_physical physical; /* from here on: sx_write_column_store */
    int32_t type_length;               /* FIXED_LEN_BYTE_ARRAY: bytes */
};

/* ---- write_column.c ---- */

/* Chooses the physical type; SX_QUERY names the column and its type where Parquet has none that keeps
 * all values. */
SX_MUST_CHECK enum sx_status sx_write_column_store(struct sx_write_column *column, struct sx_error *error);
/* Bytes of a stored value in memory; BYTE_ARRAY: of a view. */
size_t sx_write_column_width(const struct sx_write_column *column);
/* The list of schema elements, root included, as field `field`. */
void sx_write_schema(struct sx_thrift_out *out, int16_t field, const struct sx_write_column *columns,
                     int n_columns);

/* ---- write_chunk.c ---- */

struct sx_write_page {
    uint32_t stored_bytes; /* header included */
    uint32_t rows;
};

/* An encoded column chunk. Starts zeroed, may be released zeroed. */
struct sx_write_chunk {
    struct sx_bytes bytes;        /* all pages with their headers */
    struct sx_bytes column_index; /* Thrift; empty: none */
    struct sx_bytes statistics;   /* Thrift, the struct's fields */
    struct sx_write_page *pages;  /* data pages; in the pool */
    int n_pages;
    size_t dictionary_bytes; /* of the page in front of the data pages; 0: none */
    int64_t n_values;
    int64_t plain_bytes; /* of all pages, decompressed, headers included */
    enum sx_parquet_encoding encoding;
    enum sx_parquet_codec codec;
};

/* Encodes `n` pieces of a column, in host memory and any layout, as one chunk. Several threads may encode at
 * the same time. `cancel` may be NULL. */
SX_MUST_CHECK enum sx_status sx_write_chunk_encode(const struct sx_write_options *options,
                                                   const struct sx_write_column *column,
                                                   const struct sx_tensor *pieces, int64_t n,
                                                   struct sx_pool *pool, const atomic_bool *cancel,
                                                   struct sx_write_chunk *out_chunk, struct sx_error *error);
void sx_write_chunk_release(struct sx_pool *pool, struct sx_write_chunk *chunk);

/* ---- write_file.c ---- */

/* One file. Calls of one thread at a time. */
struct sx_write_file;

/* Creates `path`, or empties the file there. `columns` and `options` are borrowed. */
SX_MUST_CHECK enum sx_status sx_write_file_create(struct sx_pool *pool, const char *path,
                                                  const struct sx_write_options *options,
                                                  const struct sx_write_column *columns, int n_columns,
                                                  struct sx_write_file **out_file, struct sx_error *error);
/* Appends a row group, of a chunk for each column; the chunks' bytes are given back. */
SX_MUST_CHECK enum sx_status sx_write_file_group(struct sx_write_file *file, struct sx_write_chunk *chunks,
                                                 int64_t rows, struct sx_error *error);
int64_t sx_write_file_bytes(const struct sx_write_file *file);
int sx_write_file_groups(const struct sx_write_file *file);
/* Writes page indexes and footer. */
SX_MUST_CHECK enum sx_status sx_write_file_finish(struct sx_write_file *file, struct sx_error *error);
void sx_write_file_destroy(struct sx_write_file *file); /* NULL allowed; the file stays as it is */

/* ---- write_table.c ---- */

/* A table in one file or a folder of files. Calls of one thread at a time. */
struct sx_write_table;

/* `path`: the file; with file_rows, file_bytes or n_partition a folder, which is made if it is not there.
 * `columns` with those of the partition in front. All is copied but the strings. */
SX_MUST_CHECK enum sx_status sx_write_table_create(struct sx_pool *pool, const char *path,
                                                   const struct sx_write_options *options,
                                                   const struct sx_write_column *columns, int n_columns,
                                                   struct sx_write_table **out_table, struct sx_error *error);
/* The next row group, of chunks for the columns behind those of the partition. `partition`: the values of
 * those (NULL: null), one behind the other; equal ones follow each other. `is_last`: the next row group goes
 * to another file. */
SX_MUST_CHECK enum sx_status sx_write_table_group(struct sx_write_table *table, struct sx_write_chunk *chunks,
                                                  int64_t rows, const char *const *partition, bool is_last,
                                                  struct sx_error *error);
/* Ends the last file; a table without rows becomes a file without row groups. */
SX_MUST_CHECK enum sx_status sx_write_table_finish(struct sx_write_table *table, struct sx_error *error);
/* NULL allowed. Without a finish that succeeded, all that was made is removed. */
void sx_write_table_destroy(struct sx_write_table *table);

#endif
