#include "tensor/type.h"

#include <stdio.h>

_Static_assert(sizeof(struct sx_string) == 16, "a view is 16 bytes");

static const struct {
    const char *sql;
    enum sx_phys phys;
} types[SX_TYPE_COUNT] = {
#define SX_TYPE_ROW(name, sql, phys) [SX_TYPE_##name] = {sql, SX_PHYS_##phys},
    SX_TYPE_LIST(SX_TYPE_ROW)
#undef SX_TYPE_ROW
};

static const size_t widths[SX_PHYS_COUNT] = {
#define SX_PHYS_WIDTH(name, ctype) [SX_PHYS_##name] = sizeof(ctype),
    SX_PHYS_LIST(SX_PHYS_WIDTH)
#undef SX_PHYS_WIDTH
};

enum sx_phys sx_type_phys(struct sx_type type) {
    if (type.id == SX_TYPE_DECIMAL && type.precision > SX_DECIMAL_MAX_I64_DIGITS)
        return SX_PHYS_I128;
    return types[type.id].phys;
}

size_t sx_phys_bytes(enum sx_phys phys) {
    return widths[phys];
}

bool sx_type_equal(struct sx_type a, struct sx_type b) {
    if (a.id != b.id)
        return false;
    return a.id != SX_TYPE_DECIMAL || (a.precision == b.precision && a.scale == b.scale);
}

const char *sx_type_name(struct sx_type type, char buffer[SX_TYPE_NAME_BYTES]) {
    if (type.id == SX_TYPE_DECIMAL)
        snprintf(buffer, SX_TYPE_NAME_BYTES, "DECIMAL(%d,%d)", type.precision, type.scale);
    else
        snprintf(buffer, SX_TYPE_NAME_BYTES, "%s", types[type.id].sql);
    return buffer;
}
