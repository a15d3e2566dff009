/* Codes of values. KEY: type; HASH(key), EQUAL(a, b); PLAIN_BYTES(key): bytes of an entry; NAME, GROW_NAME:
 * of the functions. */

static bool GROW_NAME(struct sx_write_dictionary *dictionary, struct sx_error *error) {
    if (!grow_memory(dictionary, error))
        return false;
    const KEY *entries = dictionary->memory;
    const uint64_t mask = (uint64_t)dictionary->n_slots - 1;
    for (int32_t code = 0; code < dictionary->n_entries; code++) {
        uint64_t at = HASH(entries[code]) & mask;
        while (dictionary->slots[at] >= 0)
            at = (at + 1) & mask;
        dictionary->slots[at] = code;
    }
    return true;
}

static enum sx_write_coded NAME(struct sx_write_dictionary *dictionary, const void *values, int64_t count,
                                int32_t *out_codes, struct sx_error *error) {
    const KEY *keys = values;
    for (int64_t i = 0; i < count; i++) {
        const KEY key = keys[i];
        if (i > 0 && EQUAL(key, keys[i - 1])) {
            out_codes[i] = out_codes[i - 1];
            continue;
        }
        if (dictionary->n_entries == dictionary->capacity) {
            if (is_too_large(dictionary))
                return SX_CODED_TOO_LARGE;
            if (!GROW_NAME(dictionary, error))
                return SX_CODED_NO_MEMORY;
        }
        KEY *entries = dictionary->memory;
        const uint64_t mask = (uint64_t)dictionary->n_slots - 1;
        uint64_t at = HASH(key) & mask;
        while (dictionary->slots[at] >= 0 && !EQUAL(entries[dictionary->slots[at]], key))
            at = (at + 1) & mask;
        if (dictionary->slots[at] < 0) {
            dictionary->plain_bytes += PLAIN_BYTES(key);
            if (dictionary->plain_bytes > dictionary->most_bytes)
                return SX_CODED_TOO_LARGE;
            entries[dictionary->n_entries] = key;
            dictionary->slots[at] = dictionary->n_entries++;
        }
        out_codes[i] = dictionary->slots[at];
    }
    return SX_CODED;
}

#undef KEY
#undef HASH
#undef EQUAL
#undef PLAIN_BYTES
#undef NAME
#undef GROW_NAME
