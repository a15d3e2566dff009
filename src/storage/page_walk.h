/* From the bytes of a column chunk to its pages: headers decoded and checked, nothing copied. */
#ifndef SX_STORAGE_PAGE_WALK_H
#define SX_STORAGE_PAGE_WALK_H

#include "storage/device_reader.h"
#include "storage/footer.h"

struct sx_page_list {
    struct sx_page *pages; /* from malloc */
    int count, capacity;
};

/* One for each chunk; starts with the first three set, the fourth where it is needed, and the rest zero. */
struct sx_page_walk {
    struct sx_file_column *column;
    const struct sx_chunk_meta *chunk;
    struct sx_page_list *list; /* pages are appended */
    /* Has read the bytes, which are in the device's memory; NULL: they are in the host's. */
    struct sx_device_reader *device_reader;
    int64_t n_values; /* of the data pages so far */
    int n_seen;       /* pages so far, for messages */
    bool has_dictionary;
};

/* All pages of the chunk. Of bytes in the device's memory only headers are looked at: SX_UNSUPPORTED where a
 * page has a checksum, or a header is long. */
SX_MUST_CHECK enum sx_status sx_page_walk_chunk(struct sx_page_walk *walk, const uint8_t *bytes,
                                                size_t length_bytes, struct sx_error *error);
/* What stands in front of the first data page. */
SX_MUST_CHECK enum sx_status sx_page_walk_head(struct sx_page_walk *walk, const uint8_t *bytes,
                                               size_t length_bytes, struct sx_error *error);
/* One data page of that many rows. */
SX_MUST_CHECK enum sx_status sx_page_walk_page(struct sx_page_walk *walk, const uint8_t *bytes,
                                               size_t length_bytes, int64_t rows, struct sx_error *error);
/* A data page that is not read. */
SX_MUST_CHECK enum sx_status sx_page_walk_pruned(struct sx_page_walk *walk, int64_t rows,
                                                 struct sx_error *error);

/* Pages that were walked before, of the same bytes. */
SX_MUST_CHECK enum sx_status sx_page_walk_known(struct sx_page_walk *walk, const struct sx_page *pages,
                                                int n_pages, struct sx_error *error);

/* What the header at `bytes` tells, for whoever wants no page's bytes. */
struct sx_page_peek {
    size_t header_bytes;
    int64_t stored_bytes; /* behind the header */
    int32_t n_values;     /* 0 unless it is a data page */
    int32_t encoding;
    bool is_data;
};
/* False: it is damaged, or not all there. */
bool sx_page_peek(const uint8_t *bytes, size_t length_bytes, struct sx_page_peek *out_peek);

#endif
