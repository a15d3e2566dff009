/* Bytes that grow, in a pool. The first failure sticks, so that writers check once, at the end. */
#ifndef SX_STORAGE_BYTES_H
#define SX_STORAGE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

struct sx_bytes {
    struct sx_pool *pool;
    struct sx_error *error; /* gets the text of a failure; may be NULL */
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool failed;
};

static inline struct sx_bytes sx_bytes_in(struct sx_pool *pool, struct sx_error *error) {
    return (struct sx_bytes){.pool = pool, .error = error};
}

/* `n` bytes more, unset; NULL after a failure. */
uint8_t *sx_bytes_take(struct sx_bytes *bytes, size_t n);
/* Room for `n` bytes in all, since growing copies; a failure is none yet. */
void sx_bytes_reserve(struct sx_bytes *bytes, size_t n);
void sx_bytes_append(struct sx_bytes *bytes, const void *data, size_t n);
void sx_bytes_append_byte(struct sx_bytes *bytes, uint8_t byte);
void sx_bytes_append_u32(struct sx_bytes *bytes, uint32_t value);
/* ULEB128. */
void sx_bytes_append_varint(struct sx_bytes *bytes, uint64_t value);
void sx_bytes_append_zigzag(struct sx_bytes *bytes, int64_t value);

SX_MUST_CHECK static inline enum sx_status sx_bytes_status(const struct sx_bytes *bytes) {
    return bytes->failed ? SX_OUT_OF_MEMORY : SX_OK;
}
/* Gives back what is allocated beyond the size, where that is much. */
void sx_bytes_trim(struct sx_bytes *bytes);
/* Leaves it empty, of the same pool. */
void sx_bytes_release(struct sx_bytes *bytes);

#endif
