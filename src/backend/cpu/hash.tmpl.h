/* Hash of keys of one physical type: SX_PHYS, SX_C, SX_HASH(pointer to value). */
#define SX_NAME(x)         SX_NAME_(x, SX_PHYS)
#define SX_NAME_(x, phys)  SX_NAME__(x, phys)
#define SX_NAME__(x, phys) x##_##phys

static void SX_NAME(hash)(const struct hash_source *from, int64_t n, bool combine, uint64_t *hashes) {
    const SX_C *values = from->values;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = from->codes ? from->codes[i] : i;
        const bool valid = !from->valid || from->valid[i];
        const uint64_t hash = valid ? SX_HASH(&values[at]) : SX_HASH_NULL;
        hashes[i] = combine ? sx_hash_combine(hashes[i], hash) : hash;
    }
}

#undef SX_NAME
#undef SX_NAME_
#undef SX_NAME__
#undef SX_PHYS
#undef SX_C
#undef SX_HASH
