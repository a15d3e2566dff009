#include "storage/page_index.h"

#include "storage/file.h"

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a page index");
}

/* Leaves *out_bytes NULL when there is nothing to read. */
static enum sx_status read_index(int fd, int64_t file_bytes, int64_t offset, int32_t length_bytes,
                                 struct sx_arena *arena, uint8_t **out_bytes, struct sx_error *error) {
    *out_bytes = NULL;
    if (offset < 4 || length_bytes <= 0 || offset > file_bytes - length_bytes)
        return SX_OK;
    uint8_t *bytes = sx_arena_alloc(arena, (size_t)length_bytes);
    if (!bytes)
        return no_memory(error);
    if (sx_file_read(fd, offset, (size_t)length_bytes, bytes, NULL) == SX_OK)
        *out_bytes = bytes;
    return SX_OK;
}

/* ---- offset index ---- */

static void read_place(struct sx_thrift *in, struct sx_page_place *place) {
    struct sx_thrift_field field = {0};
    place->first_row = -1;
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: place->offset = sx_thrift_i64(in, &field); break;
        case 2: place->stored_bytes = sx_thrift_i64(in, &field); break;
        case 3: place->first_row = sx_thrift_i64(in, &field); break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static enum sx_status read_places(struct sx_thrift *in, struct sx_arena *arena, struct sx_page_places *out,
                                  struct sx_error *error) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id != 1 || out->places) {
            sx_thrift_skip(in, &field);
            continue;
        }
        uint32_t count = sx_thrift_list(in, &field, SX_THRIFT_STRUCT);
        out->places = SX_ARENA_ARRAY(arena, count, struct sx_page_place);
        if (!out->places)
            return no_memory(error);
        for (uint32_t i = 0; i < count && !in->wrong; i++)
            read_place(in, &out->places[i]);
        out->count = (int)count;
    }
    return SX_OK;
}

/* Pages in order of rows and of bytes, none empty, all within the chunk. Sets their rows. */
static bool are_consistent(const struct sx_page_places *pages, const struct sx_chunk_meta *chunk,
                           int64_t n_rows) {
    int64_t at = sx_chunk_begin(chunk), end;
    if (pages->count == 0 || __builtin_add_overflow(at, chunk->stored_bytes, &end))
        return false;
    for (int i = 0; i < pages->count; i++) {
        struct sx_page_place *place = &pages->places[i];
        bool is_last = i + 1 == pages->count;
        int64_t next_row = is_last ? n_rows : pages->places[i + 1].first_row;
        if (place->offset < at || place->stored_bytes <= 0 || place->stored_bytes > end - place->offset ||
            place->first_row < 0 || next_row <= place->first_row || next_row > n_rows)
            return false;
        place->rows = next_row - place->first_row;
        at = place->offset + place->stored_bytes;
    }
    return pages->places[0].first_row == 0;
}

enum sx_status sx_offset_index_read(int fd, int64_t file_bytes, const struct sx_chunk_meta *chunk,
                                    int64_t n_rows, struct sx_arena *arena, struct sx_page_places *out_places,
                                    struct sx_error *error) {
    uint8_t *bytes = NULL;
    struct sx_page_places pages = {0};
    *out_places = pages;
    SX_TRY(read_index(fd, file_bytes, chunk->offset_index_offset, chunk->offset_index_bytes, arena, &bytes,
                      error));
    if (!bytes)
        return SX_OK;
    struct sx_thrift in = sx_thrift_from(bytes, (size_t)chunk->offset_index_bytes);
    SX_TRY(read_places(&in, arena, &pages, error));
    if (!in.wrong && pages.places && are_consistent(&pages, chunk, n_rows))
        *out_places = pages;
    return SX_OK;
}

/* ---- column index ---- */

struct column_index {
    struct sx_bounds *bounds;
    uint32_t count;
    bool has_nulls, has_min, has_max;
};

static void read_null_pages(struct sx_thrift *in, struct column_index *index) {
    for (uint32_t i = 0; i < index->count; i++)
        if (sx_thrift_element_bool(in))
            index->bounds[i].n_nulls = index->bounds[i].n_rows;
}

static void read_null_counts(struct sx_thrift *in, struct column_index *index) {
    for (uint32_t i = 0; i < index->count; i++)
        index->bounds[i].n_nulls = sx_thrift_element_i64(in);
}

static void read_bound_list(struct sx_thrift *in, struct column_index *index, bool is_max) {
    for (uint32_t i = 0; i < index->count; i++) {
        struct sx_slice bound = sx_thrift_element_binary(in);
        if (is_max)
            index->bounds[i].max = bound;
        else
            index->bounds[i].min = bound;
    }
}

/* Every list has one element for each page, else the index is of no use. */
static bool begin_list(struct sx_thrift *in, const struct sx_thrift_field *field, enum sx_thrift_type type,
                       const struct column_index *index) {
    if (sx_thrift_list(in, field, type) == index->count && !in->wrong)
        return true;
    sx_thrift_fail(in, "a list of the page index has not one element for each page");
    return false;
}

static void read_bounds(struct sx_thrift *in, struct column_index *index) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id == 1 && begin_list(in, &field, SX_THRIFT_TRUE, index)) {
            read_null_pages(in, index);
            index->has_nulls = true;
        } else if ((field.id == 2 || field.id == 3) && begin_list(in, &field, SX_THRIFT_BINARY, index)) {
            read_bound_list(in, index, field.id == 3);
            *(field.id == 3 ? &index->has_max : &index->has_min) = true;
        } else if (field.id == 5 && begin_list(in, &field, SX_THRIFT_I64, index)) {
            read_null_counts(in, index);
        } else if (!in->wrong) {
            sx_thrift_skip(in, &field);
        }
    }
}

/* Bounds of pages with nulls only are empty texts. */
static void clear_null_pages(struct column_index *index) {
    for (uint32_t i = 0; i < index->count; i++)
        if (index->bounds[i].n_nulls == index->bounds[i].n_rows)
            index->bounds[i].min = index->bounds[i].max = (struct sx_slice){0};
}

enum sx_status sx_column_index_read(int fd, int64_t file_bytes, const struct sx_chunk_meta *chunk,
                                    const struct sx_page_places *places, struct sx_arena *arena,
                                    struct sx_bounds **out_bounds, struct sx_error *error) {
    uint8_t *bytes = NULL;
    *out_bounds = NULL;
    SX_TRY(read_index(fd, file_bytes, chunk->column_index_offset, chunk->column_index_bytes, arena, &bytes,
                      error));
    if (!bytes || !places->places)
        return SX_OK;
    struct column_index index = {.count = (uint32_t)places->count};
    index.bounds = SX_ARENA_ARRAY(arena, places->count, struct sx_bounds);
    if (!index.bounds)
        return no_memory(error);
    for (int i = 0; i < places->count; i++)
        index.bounds[i] = (struct sx_bounds){.n_rows = places->places[i].rows, .n_nulls = -1};
    struct sx_thrift in = sx_thrift_from(bytes, (size_t)chunk->column_index_bytes);
    read_bounds(&in, &index);
    clear_null_pages(&index);
    if (!in.wrong && index.has_nulls && index.has_min && index.has_max)
        *out_bounds = index.bounds;
    return SX_OK;
}

/* ---- row ranges ---- */

enum sx_status sx_row_ranges_intersect(struct sx_arena *arena, struct sx_row_ranges *kept,
                                       const struct sx_row_ranges *with, struct sx_error *error) {
    struct sx_row_range *out = SX_ARENA_ARRAY(arena, kept->count + with->count, struct sx_row_range);
    if (!out)
        return no_memory(error);
    int count = 0;
    for (int a = 0, b = 0; a < kept->count && b < with->count;) {
        const struct sx_row_range *x = &kept->ranges[a], *y = &with->ranges[b];
        int64_t first = x->first > y->first ? x->first : y->first;
        int64_t end_x = x->first + x->rows, end_y = y->first + y->rows;
        int64_t end = end_x < end_y ? end_x : end_y;
        if (first < end)
            out[count++] = (struct sx_row_range){first, end - first};
        if (end_x <= end_y)
            a++;
        else
            b++;
    }
    *kept = (struct sx_row_ranges){out, count};
    return SX_OK;
}

int64_t sx_row_ranges_rows(const struct sx_row_ranges *ranges) {
    int64_t rows = 0;
    for (int i = 0; i < ranges->count; i++)
        rows += ranges->ranges[i].rows;
    return rows;
}

bool sx_row_ranges_touch(const struct sx_row_ranges *ranges, int64_t first, int64_t rows) {
    int low = 0, high = ranges->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (ranges->ranges[middle].first + ranges->ranges[middle].rows <= first)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges->count && ranges->ranges[low].first < first + rows;
}
