/* SX_NAME(stem), SX_VALUE: type of the column's values; SX_LOAD(stored, stored_bytes, out): reads one and
 * tells whether it can be converted. */
static bool SX_NAME(convert)(const uint8_t *stored, size_t stored_bytes, const int32_t *positions,
                             int32_t base, int64_t n, void *out_values) {
    SX_VALUE *out = out_values;
    bool good = true;
    if (!positions)
        for (int64_t i = 0; i < n; i++)
            good &= SX_LOAD(stored + (size_t)i * stored_bytes, stored_bytes, &out[i]);
    else
        for (int64_t i = 0; i < n; i++)
            good &= SX_LOAD(stored + (size_t)(positions[i] - base) * stored_bytes, stored_bytes, &out[i]);
    return good;
}

#undef SX_NAME
#undef SX_VALUE
#undef SX_LOAD
