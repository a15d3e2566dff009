/* Any bytes as a footer: decoded, or refused with a text. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "storage/bounds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const struct sx_footer *footer) {
    static const uint8_t some[16];
    for (int c = 0; c < footer->n_columns; c++) {
        const struct sx_file_column *column = &footer->columns[c];
        assert(sx_footer_find(footer, column->name) >= 0);
        assert(column->leaf >= 0 && column->leaf <= footer->n_leaves);
        if (column->unreadable)
            continue;
        struct sx_scalar value = {.type = column->type};
        if (column->type.id == SX_TYPE_VARCHAR)
            value.v.text.bytes = (const char *)some, value.v.text.length_bytes = sizeof some;
        for (int g = 0; g < footer->n_groups; g++) {
            struct sx_bounds bounds = sx_chunk_bounds(column, &footer->groups[g].chunks[column->leaf]);
            for (int op = SX_PRUNE_EQ; op <= SX_PRUNE_NOT_NULL; op++) {
                struct sx_prune prune = {.op = (enum sx_prune_op)op, .values = &value, .n_values = 1};
                (void)sx_bounds_exclude(column, &bounds, &prune);
            }
        }
        uint8_t buffer[SX_STORED_VALUE_BYTES];
        struct sx_slice stored;
        (void)sx_stored_value(column, &value, buffer, &stored);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sx_error error = {0};
    struct sx_footer *footer;
    uint8_t *bytes = malloc(size + (size == 0));
    if (!bytes || size > UINT32_MAX) {
        free(bytes);
        return 0;
    }
    if (size)
        memcpy(bytes, data, size);
    if (sx_footer_parse(bytes, (uint32_t)size, INT64_MAX, &footer, &error) == SX_OK) {
        look_at(footer);
        sx_footer_release(footer);
    } else {
        assert(error.text[0]);
    }
    return 0;
}
