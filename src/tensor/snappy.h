/* Decompression of snappy, which most writers of Parquet take by default (docs/architecture.md, Scans). */
#ifndef SX_TENSOR_SNAPPY_H
#define SX_TENSOR_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the plain bytes' number, of at most 32 bits, in front of a stream. Returns how many bytes it takes;
 * 0: it is damaged. */
size_t sx_snappy_length(const uint8_t *stored, size_t stored_bytes, size_t *out_plain_bytes);

/* False: damaged, or not `plain_bytes` long. Nothing beyond either side is touched; `plain`, which then has
 * anything, must not overlap `stored`. */
bool sx_snappy_open(const uint8_t *stored, size_t stored_bytes, uint8_t *plain, size_t plain_bytes);

#endif
