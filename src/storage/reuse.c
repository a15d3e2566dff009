#include "storage/reuse.h"

#include <stdlib.h>

#include "storage/scan_state.h"
#include "tensor/backend.h"

enum sx_status sx_reuse_create(struct sx_storage *storage, size_t limit_bytes, size_t values_bytes,
                               struct sx_reuse **out_reuse, struct sx_error *error) {
    struct sx_reuse *reuse = calloc(1, sizeof *reuse);
    if (!reuse)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for a scan");
    enum sx_status status = SX_OK;
    for (int i = 0; i < SX_REUSE_PARTS && status == SX_OK; i++)
        status = sx_chunk_cache_create(storage->budget, SX_PLACES_BYTES / SX_REUSE_PARTS, &reuse->places[i],
                                       error);
    if (status != SX_OK) {
        sx_reuse_destroy(reuse);
        return status;
    }
    reuse->backend = storage->backend;
    reuse->limit_bytes = limit_bytes;
    reuse->values_bytes = values_bytes;
    *out_reuse = reuse;
    return SX_OK;
}

void sx_reuse_destroy(struct sx_reuse *reuse) {
    if (!reuse)
        return;
    for (int i = 0; i < SX_REUSE_PARTS; i++)
        sx_chunk_cache_destroy(reuse->places[i]);
    free(reuse);
}

void sx_reuse_begin(struct sx_reuse *reuse) {
    if (reuse)
        reuse->backend->cache_limit(reuse->backend, reuse->limit_bytes, reuse->values_bytes);
}

void sx_reuse_end(struct sx_reuse *reuse) {
    if (reuse)
        reuse->backend->cache_limit(reuse->backend, 0, 0);
}
