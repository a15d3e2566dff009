/* Split-block bloom filters. */
#ifndef SX_STORAGE_BLOOM_H
#define SX_STORAGE_BLOOM_H

#include "storage/bounds.h"

uint64_t sx_xxhash64(const uint8_t *bytes, size_t length_bytes);

/* Looks into the chunk's filter, if it has one. True: none of an EQ or IN conjunct's values is there.
 * Anything wrong with the filter reads as false. */
bool sx_bloom_exclude(int fd, int64_t file_bytes, const struct sx_file_column *column,
                      const struct sx_chunk_meta *chunk, const struct sx_prune *prune);

#endif
