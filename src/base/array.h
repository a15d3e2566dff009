/* Arrays from malloc that grow by doubling. */
#ifndef SX_BASE_ARRAY_H
#define SX_BASE_ARRAY_H

#include <stdint.h>
#include <stdlib.h>

/* Room for one more item behind the first `count`: the array, which may have moved, and its new capacity.
 * NULL: no memory, and nothing has changed. */
static inline void *sx_array_grow(void *items, size_t item_bytes, int64_t count, int64_t *capacity) {
    enum { LEAST = 16 };
    if (count < *capacity)
        return items;
    const int64_t wanted = *capacity ? 2 * *capacity : LEAST;
    void *grown = realloc(items, (size_t)wanted * item_bytes);
    if (grown)
        *capacity = wanted;
    return grown;
}

#endif
