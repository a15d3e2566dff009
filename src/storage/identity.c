#include "base/hash_table.h"
#include "storage/scan_state.h"

enum sx_status sx_storage_hash_files(struct sx_storage *storage, const char *const *files, int n_files,
                                     uint64_t *out_hash, struct sx_error *error) {
    uint64_t hash = sx_hash_mix(0, (uint64_t)n_files);
    for (int f = 0; f < n_files; f++) {
        struct sx_footer *footer;
        struct sx_file_stamp stamp;
        SX_TRY(sx_footer_cache_get(storage->footers, files[f], &footer, &stamp, error));
        hash = sx_hash_mix(sx_hash_mix(hash, (uint64_t)footer->file_bytes), footer->hash);
        sx_footer_release(footer);
    }
    *out_hash = hash;
    return SX_OK;
}
