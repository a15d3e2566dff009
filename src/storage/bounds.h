/* What the smallest and largest stored value of some rows say about a conjunct. */
#ifndef SX_STORAGE_BOUNDS_H
#define SX_STORAGE_BOUNDS_H

#include "storage/footer.h"
#include "storage/scan.h"

/* Both ends may be wider than the values; absent slices: not known. In the order of the column's type. */
struct sx_bounds {
    struct sx_slice min, max;
    int64_t n_rows;
    int64_t n_nulls; /* -1: not known */
};

struct sx_bounds sx_chunk_bounds(const struct sx_file_column *column, const struct sx_chunk_meta *chunk);

/* Widens `into` to hold both; what one of them does not tell is not known of both. */
void sx_bounds_join(const struct sx_file_column *column, struct sx_bounds *into,
                    const struct sx_bounds *bounds);

/* Both ends as numbers; false: one is not known, or they are none of 64 bits. */
bool sx_bounds_integers(const struct sx_file_column *column, const struct sx_bounds *bounds, int64_t *out_min,
                        int64_t *out_max);

/* True: none of the rows can make the conjunct true. */
bool sx_bounds_exclude(const struct sx_file_column *column, const struct sx_bounds *bounds,
                       const struct sx_prune *prune);

/* The value as a file stores it (little-endian numbers, decimals as the column has them, bare text);
 * false: not known for certain. `buffer` serves for what is not text. */
enum { SX_STORED_VALUE_BYTES = 16 };
bool sx_stored_value(const struct sx_file_column *column, const struct sx_scalar *value,
                     uint8_t buffer[SX_STORED_VALUE_BYTES], struct sx_slice *out_stored);

#endif
