/* Column index and offset index of a column chunk. */
#ifndef SX_STORAGE_PAGE_INDEX_H
#define SX_STORAGE_PAGE_INDEX_H

#include "storage/bounds.h"

struct sx_page_place {
    int64_t offset;
    int64_t stored_bytes; /* header included */
    int64_t first_row;
    int64_t rows;
};

struct sx_page_places {
    struct sx_page_place *places; /* NULL: the chunk has no usable index */
    int count;
};

/* An absent, unreadable or inconsistent index leaves `places` NULL; only memory can fail. */
SX_MUST_CHECK enum sx_status sx_offset_index_read(int fd, int64_t file_bytes,
                                                  const struct sx_chunk_meta *chunk, int64_t n_rows,
                                                  struct sx_arena *arena, struct sx_page_places *out_places,
                                                  struct sx_error *error);

/* Bounds of each of the `places`; NULL as above. */
SX_MUST_CHECK enum sx_status sx_column_index_read(int fd, int64_t file_bytes,
                                                  const struct sx_chunk_meta *chunk,
                                                  const struct sx_page_places *places, struct sx_arena *arena,
                                                  struct sx_bounds **out_bounds, struct sx_error *error);

/* Row ranges: ascending, disjoint, not empty. */
struct sx_row_ranges {
    struct sx_row_range *ranges;
    int count;
};

/* Leaves the rows that are in both. */
SX_MUST_CHECK enum sx_status sx_row_ranges_intersect(struct sx_arena *arena, struct sx_row_ranges *kept,
                                                     const struct sx_row_ranges *with,
                                                     struct sx_error *error);
int64_t sx_row_ranges_rows(const struct sx_row_ranges *ranges);
bool sx_row_ranges_touch(const struct sx_row_ranges *ranges, int64_t first, int64_t rows);

#endif
