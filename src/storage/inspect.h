/* How a Parquet file is laid out: row groups, pages, encodings, bytes. Reads footer and page headers. */
#ifndef SX_STORAGE_INSPECT_H
#define SX_STORAGE_INSPECT_H

#include "storage/footer.h"

enum { SX_INSPECT_ENCODINGS = 10 };

struct sx_inspect_column {
    const char *name;
    struct sx_type type;
    const char *unreadable; /* why the engine can't read it, or NULL; then `type` says nothing */
    bool is_optional;
    int64_t pages[SX_INSPECT_ENCODINGS]; /* data pages by the number of their encoding */
    uint32_t codecs;                     /* bits by the codecs' numbers */
    int64_t stored_bytes;
    int64_t plain_bytes;
};

struct sx_inspect {
    int64_t rows;
    int64_t bytes; /* of the file */
    int64_t row_groups;
    int64_t pages; /* data pages */
    struct sx_inspect_column *columns;
    int n_columns;
};

/* Strings and arrays are in `arena`. */
SX_MUST_CHECK enum sx_status sx_inspect_file(struct sx_arena *arena, const char *path,
                                             struct sx_inspect *out_inspect, struct sx_error *error);

#endif
