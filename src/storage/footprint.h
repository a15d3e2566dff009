/* What a query needs of its files: stored bytes of column chunks and pages, each once, however many scans ask
 * for them. */
#ifndef SX_STORAGE_FOOTPRINT_H
#define SX_STORAGE_FOOTPRINT_H

#include "storage/file.h"

struct sx_footprint;

SX_MUST_CHECK enum sx_status sx_footprint_create(struct sx_footprint **out_footprint, struct sx_error *error);
void sx_footprint_destroy(struct sx_footprint *footprint); /* NULL allowed */

/* Bytes [offset, offset + length_bytes) of a file. */
struct sx_footprint_part {
    int64_t offset;
    int64_t length_bytes;
    bool is_cold; /* they came from the disk, not out of memory */
};
/* Parts of one file. Thread-safe. */
SX_MUST_CHECK enum sx_status sx_footprint_add(struct sx_footprint *footprint, const char *path,
                                              const struct sx_file_stamp *file,
                                              const struct sx_footprint_part *parts, int n_parts,
                                              struct sx_error *error);

struct sx_footprint_total {
    int64_t bytes;
    int64_t cold_bytes; /* of them; what came from the disk for one scan and out of memory for another is */
    const char *cold_path; /* the largest file with cold bytes; the footprint's; NULL: none */
};
/* Not while something is added. */
void sx_footprint_total(struct sx_footprint *footprint, struct sx_footprint_total *out_total);

#endif
