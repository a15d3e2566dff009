/* Keys of one physical type: SX_PHYS, SX_C, SX_NORMAL(x). */
#define SX_NAME(x)         SX_NAME_(x, SX_PHYS)
#define SX_NAME_(x, phys)  SX_NAME__(x, phys)
#define SX_NAME__(x, phys) x##_##phys

static void SX_NAME(encode)(const struct key_source *from, int32_t n, char *to, size_t stride) {
    const SX_C *values = from->values;
    for (int32_t i = 0; i < n; i++) {
        SX_C value = SX_NORMAL(values[source_row(from, i)]);
        memcpy(to + (size_t)i * stride, &value, sizeof value);
    }
}

#undef SX_NAME
#undef SX_NAME_
#undef SX_NAME__
#undef SX_PHYS
#undef SX_C
#undef SX_NORMAL
