#include "backend/cpu/join.h"
#include "tensor/semantics.h"

/* Slot for a hash in a table of any size: the high bits decide. */
static uint64_t slot_of(uint64_t hash, uint64_t n_slots) {
    return (uint64_t)((sx_u128)hash * n_slots >> 64);
}

static uint64_t after(uint64_t slot, uint64_t n_slots) {
    return slot + 1 == n_slots ? 0 : slot + 1;
}

static void set_group(struct sx_join *join, int64_t row, uint64_t entry) {
    if (join->is_wide)
        ((uint64_t *)join->groups)[row] = entry;
    else
        ((uint32_t *)join->groups)[row] = (uint32_t)entry;
}

/* Whether parts may insert at the same time. */
static bool is_shared(const struct sx_join *join) {
    return join->n_parts > 1;
}

/* ---- DIRECT ---- */

static bool direct_insert(struct sx_join *join, const uint64_t *numbers, int64_t first, int64_t rows) {
    uint32_t *direct = join->direct, *groups = (uint32_t *)join->groups + first;
    bool met = false;
    for (int64_t i = 0; i < rows; i++)
        __builtin_prefetch(&direct[numbers[i]], 1);
    for (int64_t i = 0; i < rows; i++) {
        uint32_t entry = (uint32_t)(first + i + 1), found = 0;
        if (numbers[i] == join->none)
            entry = 0;
        else if (is_shared(join))
            __atomic_compare_exchange_n(&direct[numbers[i]], &found, entry, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        else if (!(found = direct[numbers[i]]))
            direct[numbers[i]] = entry;
        groups[i] = found ? found : entry;
        met |= found != 0;
    }
    return met;
}

static void direct_lookup(const struct sx_join *join, const uint64_t *numbers, int64_t rows,
                          uint64_t *out_entries) {
    const uint32_t *direct = join->direct;
    for (int64_t i = 0; i < rows; i++)
        out_entries[i] = direct[numbers[i]];
}

/* ---- SPARSE ---- */

static void sparse_slots(const struct sx_join *join, const uint64_t *numbers, int64_t rows, bool to_write,
                         uint64_t *out_slots) {
    for (int64_t i = 0; i < rows; i++) {
        out_slots[i] = slot_of(sx_hash_u64(numbers[i]), join->table_slots);
        if (to_write)
            __builtin_prefetch(&join->sparse[out_slots[i]], 1);
        else
            __builtin_prefetch(&join->sparse[out_slots[i]], 0);
    }
}

/* The slot that holds `key`, taken for it when it was nowhere. */
static struct sx_join_slot *sparse_claim(struct sx_join *join, uint64_t slot, uint64_t key) {
    for (;; slot = after(slot, join->table_slots)) {
        struct sx_join_slot *place = &join->sparse[slot];
        uint64_t found = __atomic_load_n(&place->number, __ATOMIC_RELAXED);
        if (found == key)
            return place;
        if (found)
            continue;
        if (!is_shared(join)) {
            place->number = key;
            return place;
        }
        if (__atomic_compare_exchange_n(&place->number, &found, key, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            found == key)
            return place;
    }
}

static bool sparse_insert(struct sx_join *join, const uint64_t *numbers, int64_t first, int64_t rows) {
    uint64_t slots[SX_JOIN_BLOCK];
    bool met = false;
    sparse_slots(join, numbers, rows, true, slots);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t entry = (uint64_t)(first + i + 1), found = 0;
        if (numbers[i] == SX_JOIN_NONE) {
            set_group(join, first + i, 0);
            continue;
        }
        struct sx_join_slot *place = sparse_claim(join, slots[i], numbers[i] + 1);
        if (is_shared(join))
            __atomic_compare_exchange_n(&place->entry, &found, entry, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        else if (!(found = place->entry))
            place->entry = entry;
        set_group(join, first + i, found ? found : entry);
        met |= found != 0;
    }
    return met;
}

/* Rows whose slots did not decide look at the next slot, all together, so that loads overlap and no branch is
 * guessed. */
static void sparse_lookup(const struct sx_join *join, const uint64_t *numbers, int64_t rows,
                          uint64_t *out_entries) {
    uint64_t slots[SX_JOIN_BLOCK];
    uint16_t left[SX_JOIN_BLOCK];
    int64_t n_left = 0;
    sparse_slots(join, numbers, rows, false, slots);
    for (int64_t i = 0; i < rows; i++) {
        /* SX_JOIN_NONE + 1 is the mark of an empty slot, whose entry is 0 */
        const struct sx_join_slot *slot = &join->sparse[slots[i]];
        out_entries[i] = slot->entry;
        left[n_left] = (uint16_t)i;
        n_left += (slot->number != numbers[i] + 1) & (slot->number != 0);
    }
    while (n_left) {
        int64_t n = n_left;
        n_left = 0;
        for (int64_t l = 0; l < n; l++) {
            uint16_t i = left[l];
            slots[i] = after(slots[i], join->table_slots);
            const struct sx_join_slot *slot = &join->sparse[slots[i]];
            out_entries[i] = slot->entry;
            left[n_left] = i;
            n_left += (slot->number != numbers[i] + 1) & (slot->number != 0);
        }
    }
}

/* ---- GENERIC ---- */

enum { TAG_SHIFT = 48 };

static uint64_t tagged(uint64_t hash, uint64_t entry) {
    return hash << TAG_SHIFT | entry;
}
static uint64_t entry_of(uint64_t slot) {
    return slot & ((UINT64_C(1) << TAG_SHIFT) - 1);
}
static bool tag_matches(uint64_t slot, uint64_t hash) {
    return slot >> TAG_SHIFT == (hash & 0xffff);
}

/* Row i of the block against a build row. NULLs get here only where they are equal. */
static bool keys_equal(const struct sx_join *join, const struct sx_join_keys *keys, int64_t i,
                       uint64_t entry) {
    const uint16_t row = (uint16_t)i;
    const uint64_t build_row = entry - 1;
    uint8_t equal;
    sx_join_compare(join, keys, &row, &build_row, 1, &equal);
    return equal;
}

static void generic_slots(const struct sx_join *join, const uint64_t *hashes, int64_t rows,
                          uint64_t *out_slots) {
    for (int64_t i = 0; i < rows; i++) {
        out_slots[i] = slot_of(hashes[i], join->table_slots);
        __builtin_prefetch(&join->generic[out_slots[i]]);
    }
}

/* True when the keys were there already. */
static bool generic_insert_row(struct sx_join *join, const struct sx_join_keys *keys, int64_t i,
                               uint64_t hash, uint64_t slot, int64_t row) {
    uint64_t entry = (uint64_t)row + 1;
    for (;; slot = after(slot, join->table_slots)) {
        uint64_t found = __atomic_load_n(&join->generic[slot], __ATOMIC_RELAXED);
        if (!found) {
            if (!is_shared(join))
                join->generic[slot] = tagged(hash, entry);
            else
                __atomic_compare_exchange_n(&join->generic[slot], &found, tagged(hash, entry), false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        bool is_equal = found && tag_matches(found, hash) && keys_equal(join, keys, i, entry_of(found));
        if (found && !is_equal)
            continue;
        set_group(join, row, found ? entry_of(found) : entry);
        return is_equal;
    }
}

static bool generic_insert(struct sx_join *join, const struct sx_join_keys *keys, const uint64_t *hashes,
                           const uint8_t *matchable, int64_t first, int64_t rows) {
    uint64_t slots[SX_JOIN_BLOCK];
    bool met = false;
    generic_slots(join, hashes, rows, slots);
    for (int64_t i = 0; i < rows; i++)
        if (matchable[i])
            met |= generic_insert_row(join, keys, i, hashes[i], slots[i], first + i);
        else
            set_group(join, first + i, 0);
    return met;
}

/* One look at the slots of the rows in `left`. Rows that need another are left in there; returns how many. */
static int64_t generic_round(const struct sx_join *join, const struct sx_join_keys *keys,
                             const uint64_t *hashes, uint64_t *slots, uint16_t *left, int64_t n_left,
                             uint64_t *entries) {
    uint16_t candidates[SX_JOIN_BLOCK];
    uint64_t build_rows[SX_JOIN_BLOCK];
    uint8_t equal[SX_JOIN_BLOCK];
    int64_t n_candidates = 0, n = n_left;
    n_left = 0;
    for (int64_t l = 0; l < n; l++) {
        uint16_t i = left[l]; /* NOLINT(clang-analyzer-core.uninitialized.Assign): the caller set n of them */
        uint64_t found = join->generic[slots[i]];
        bool may_equal = found && tag_matches(found, hashes[i]);
        entries[i] = entry_of(found);
        candidates[n_candidates] = i;
        build_rows[n_candidates] = entries[i] - 1;
        n_candidates += may_equal;
        left[n_left] = i;
        n_left += found && !may_equal;
    }
    sx_join_compare(join, keys, candidates, build_rows, n_candidates, equal);
    for (int64_t l = 0; l < n_candidates; l++) {
        left[n_left] = candidates[l];
        n_left += !equal[l];
    }
    for (int64_t l = 0; l < n_left; l++)
        slots[left[l]] = after(slots[left[l]], join->table_slots);
    return n_left;
}

static void generic_lookup(const struct sx_join *join, const struct sx_join_keys *keys,
                           const uint64_t *hashes, const uint8_t *matchable, int64_t rows,
                           uint64_t *out_entries) {
    uint64_t slots[SX_JOIN_BLOCK];
    uint16_t left[SX_JOIN_BLOCK];
    int64_t n_left = 0;
    generic_slots(join, hashes, rows, slots);
    for (int64_t i = 0; i < rows; i++) {
        out_entries[i] = 0;
        left[n_left] = (uint16_t)i;
        n_left += matchable[i];
    }
    while (n_left)
        n_left = generic_round(join, keys, hashes, slots, left, n_left, out_entries);
}

/* ---- all ---- */

bool sx_join_insert(struct sx_join *join, const struct sx_join_keys *keys, int64_t first, int64_t rows) {
    uint64_t numbers[SX_JOIN_BLOCK];
    uint8_t matchable[SX_JOIN_BLOCK];
    bool met;
    if (join->kind == SX_JOIN_GENERIC) {
        sx_join_hashes(join, keys, rows, numbers, matchable);
        met = generic_insert(join, keys, numbers, matchable, first, rows);
    } else {
        sx_join_numbers(join, keys, rows, numbers);
        met = join->kind == SX_JOIN_DIRECT ? direct_insert(join, numbers, first, rows)
                                           : sparse_insert(join, numbers, first, rows);
    }
    if (join->filter)
        sx_join_filter_insert(join, numbers, rows);
    return met;
}

void sx_join_lookup(const struct sx_join *join, const struct sx_join_keys *keys, int64_t rows,
                    uint64_t *out_entries) {
    uint64_t numbers[SX_JOIN_BLOCK];
    uint8_t matchable[SX_JOIN_BLOCK];
    if (join->kind == SX_JOIN_GENERIC) {
        sx_join_hashes(join, keys, rows, numbers, matchable);
        generic_lookup(join, keys, numbers, matchable, rows, out_entries);
        if (join->starts)
            sx_join_run_entries(join, out_entries, rows);
        return;
    }
    sx_join_numbers(join, keys, rows, numbers);
    if (join->kind == SX_JOIN_DIRECT)
        direct_lookup(join, numbers, rows, out_entries);
    else
        sparse_lookup(join, numbers, rows, out_entries);
}
