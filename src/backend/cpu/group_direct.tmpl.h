/* Integer keys of small domains: SX_PHYS, SX_C. */
#define SX_NAME(x)         SX_NAME_(x, SX_PHYS)
#define SX_NAME_(x, phys)  SX_NAME__(x, phys)
#define SX_NAME__(x, phys) x##_##phys

/* Least and greatest of the values that are not null; false when there is none. */
static bool SX_NAME(range)(const void *from, const uint8_t *valid, int32_t n, int64_t *out_least,
                           int64_t *out_greatest) {
    const SX_C *values = from;
    int32_t i = 0;
    while (valid && i < n && !valid[i])
        i++;
    if (i == n)
        return false;
    SX_C least = values[i], greatest = values[i];
    if (valid) {
        for (; i < n; i++) {
            least = valid[i] && values[i] < least ? values[i] : least;
            greatest = valid[i] && values[i] > greatest ? values[i] : greatest;
        }
    } else {
        for (; i < n; i++) {
            least = values[i] < least ? values[i] : least;
            greatest = values[i] > greatest ? values[i] : greatest;
        }
    }
    *out_least = (int64_t)least;
    *out_greatest = (int64_t)greatest;
    return true;
}

static void SX_NAME(add_codes)(const void *from, const uint8_t *valid, int32_t n, int64_t base, int shift,
                               uint16_t *codes) {
    const SX_C *values = from;
    const uint16_t low = (uint16_t)base;
    if (valid) {
        for (int32_t i = 0; i < n; i++) {
            const uint16_t id = (uint16_t)((uint16_t)values[i] - low + 1);
            codes[i] = (uint16_t)(codes[i] + (uint16_t)((valid[i] ? id : 0) << shift));
        }
    } else {
        for (int32_t i = 0; i < n; i++) {
            const uint16_t id = (uint16_t)((uint16_t)values[i] - low + 1);
            codes[i] = (uint16_t)(codes[i] + (uint16_t)(id << shift));
        }
    }
}

#undef SX_NAME
#undef SX_NAME_
#undef SX_NAME__
#undef SX_PHYS
#undef SX_C
