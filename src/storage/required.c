#include "storage/scan_state.h"

enum sx_status sx_storage_is_required(struct sx_storage *storage, const char *const *files, int n_files,
                                      const char *column, bool *out_required, struct sx_error *error) {
    bool required = true;
    for (int f = 0; required && f < n_files; f++) {
        struct sx_footer *footer;
        struct sx_file_stamp stamp;
        SX_TRY(sx_footer_cache_get(storage->footers, files[f], &footer, &stamp, error));
        int at = sx_footer_find(footer, column);
        required = at >= 0 && !footer->columns[at].is_optional;
        sx_footer_release(footer);
    }
    *out_required = required;
    return SX_OK;
}
