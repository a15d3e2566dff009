/* NARROW columns of frames. */
#include <string.h>

#include "backend/cpu/rows.h"

static sx_i128 load(const void *from, size_t width_bytes) {
    int64_t value;
    sx_i128 wide;
    if (width_bytes > sizeof value) {
        memcpy(&wide, from, sizeof wide);
        return wide;
    }
    memcpy(&value, from, sizeof value);
    return value;
}

static struct sx_rows_range find_range(const struct cpu_picked *picked) {
    struct sx_rows_range range = SX_ROWS_NO_RANGE;
    for (int64_t i = 0; i < picked->n; i++) {
        if (!cpu_picked_is_valid(picked, i))
            continue;
        const sx_i128 value = load(cpu_picked_value(picked, i), picked->width_bytes);
        const int64_t low = (int64_t)value;
        if (low != value)
            return SX_ROWS_TOO_WIDE;
        range.least = low < range.least ? low : range.least;
        range.most = low > range.most ? low : range.most;
    }
    return range;
}

static bool fits(const struct cpu_picked *picked, int64_t base) {
    const uint64_t limit = picked->width_bytes > sizeof limit ? UINT64_MAX : UINT32_MAX;
    for (int64_t i = 0; i < picked->n; i++)
        if (cpu_picked_is_valid(picked, i)) {
            const sx_i128 value = load(cpu_picked_value(picked, i), picked->width_bytes);
            if ((sx_u128)value - (sx_u128)(sx_i128)base > limit)
                return false;
        }
    return true;
}

bool cpu_rows_fits(const struct cpu_picked *picked, struct sx_rows_narrow *narrow) {
    if (!sx_rows_can_narrow(picked->column->type))
        return false;
    if (narrow->fit == SX_ROWS_FIT_UNKNOWN)
        *narrow = sx_rows_narrow_of(picked->width_bytes, find_range(picked));
    if (narrow->fit == SX_ROWS_FITS && !fits(picked, narrow->base))
        narrow->fit = SX_ROWS_FITS_NOT;
    return narrow->fit == SX_ROWS_FITS;
}

void cpu_rows_write_narrow(const struct cpu_picked *picked, const struct sx_rows_column *place, char *frame) {
    const size_t bytes = picked->width_bytes / 2;
    char *out = frame + place->values;
    for (int64_t i = 0; i < picked->n; i++, out += bytes) {
        const bool is_valid = cpu_picked_is_valid(picked, i);
        const sx_i128 value = is_valid ? load(cpu_picked_value(picked, i), picked->width_bytes) : place->base;
        const uint64_t offset = (uint64_t)((sx_u128)value - (sx_u128)(sx_i128)place->base);
        const uint32_t few = (uint32_t)offset;
        memcpy(out, bytes == sizeof few ? (const void *)&few : (const void *)&offset, bytes);
        if (place->valid)
            frame[place->valid + (uint64_t)i] = (char)is_valid;
    }
}

void cpu_rows_read_narrow(const struct sx_rows_column *place, const char *frame, struct sx_tensor *column) {
    const char *from = frame + place->values;
    for (int64_t i = 0; i < column->length; i++)
        if (sx_type_bytes(column->type) == sizeof(uint64_t)) {
            uint32_t offset;
            memcpy(&offset, from + (size_t)i * sizeof offset, sizeof offset);
            ((uint64_t *)column->values)[i] = (uint64_t)place->base + offset;
        } else {
            uint64_t offset;
            memcpy(&offset, from + (size_t)i * sizeof offset, sizeof offset);
            ((sx_u128 *)column->values)[i] = (sx_u128)(sx_i128)place->base + offset;
        }
}
