/* Hash and search for heads of a number of words: SX_NAME(x), SX_WORDS (a constant, or an expression of
 * `layout`). */

static inline bool SX_NAME(words_equal)(const struct sx_group_layout *layout, const sx_group_word *a,
                                        const sx_group_word *b) {
    const uint32_t n_words = SX_WORDS;
    uint64_t different = 0;
    for (uint32_t w = 0; w + 1 < n_words; w++)
        different |= a[w] ^ b[w];
    if (n_words > 0)
        different |= (a[n_words - 1] ^ b[n_words - 1]) & layout->last_mask;
    return different == 0;
}

static inline bool SX_NAME(heads_equal)(const struct sx_group_layout *layout, const char *a, const char *b) {
    if (!SX_NAME(words_equal)(layout, (const sx_group_word *)a, (const sx_group_word *)b))
        return false;
    return layout->n_strings == 0 || strings_equal(layout, a, b);
}

static void SX_NAME(hash)(const struct sx_group_layout *layout, const char *base, size_t stride, int64_t n,
                          uint64_t *hashes) {
    for (int64_t i = 0; i < n; i++)
        hashes[i] = sx_group_hash_words((const sx_group_word *)(base + (size_t)i * stride), SX_WORDS,
                                        layout->last_mask);
}

/* The row with this head, or NULL and the empty slot where it belongs. */
static inline char *SX_NAME(lookup)(const struct sx_group_layout *layout, const struct sx_group_index *index,
                                    const char *head, uint64_t hash, uint64_t *out_slot) {
    const uint64_t tag = hash >> SX_GROUP_TAG_SHIFT;
    for (uint64_t at = hash & index->mask;; at = (at + 1) & index->mask) {
        const uint64_t slot = index->slots[at];
        *out_slot = at;
        if (!slot)
            return NULL;
        char *row = row_of(slot);
        if (slot >> SX_GROUP_TAG_SHIFT == tag && SX_NAME(heads_equal)(layout, row, head))
            return row;
    }
}

static enum sx_status SX_NAME(find)(const struct sx_group_probe *probe) {
    const struct sx_group_layout *layout = probe->layout;
    struct sx_group_index *index = probe->index;
    const uint64_t *hashes = probe->hashes;
    char *previous = NULL;
    for (int64_t i = 0; i < probe->n; i++) {
        char *head = probe->base + (size_t)i * probe->stride;
        fetch_ahead(probe, i);
        if (previous && hashes[i] == hashes[i - 1] && SX_NAME(heads_equal)(layout, head, previous)) {
            probe->rows[i] = previous;
            continue;
        }
        uint64_t slot;
        char *row = SX_NAME(lookup)(layout, index, head, hashes[i], &slot);
        if (!row && probe->worker && index->count >= index->limit) {
            SX_TRY(sx_group_index_full(probe->worker, layout, probe->stream));
            row = SX_NAME(lookup)(layout, index, head, hashes[i], &slot);
        }
        if (!row) {
            row = head;
            if (probe->worker)
                SX_TRY(sx_group_append(probe->worker, layout, hashes[i], head, probe->stream, &row));
            index->slots[slot] = slot_of(hashes[i], row);
            index->count++;
        }
        probe->rows[i] = previous = row;
    }
    return SX_OK;
}

#undef SX_NAME
#undef SX_WORDS
