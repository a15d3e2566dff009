/* Keys whose domains are small: the group's number is computed from the keys, without hashing. A key's id is
 * 0 for NULL, value - base + 1 for an integer, and for a string the number under which it was met first: ids
 * of a dictionary's entries are remembered by dictionary. The code of a row is the ids' concatenation. Codes
 * are a cache in front of the hash index: a code not met before is looked up there. */
#include <string.h>

#include "backend/cpu/group_state.h"

enum {
    CODE_BITS = 12,
    MAX_CODES = 1 << CODE_BITS,
    INTERN_SLOTS = 2 * MAX_CODES,
    REMEMBERED = 4 /* dictionaries of a key */
};

struct remembered_dict {
    uint64_t id; /* 0: none */
    uint64_t last_use;
    uint16_t ids[MAX_CODES];
};

struct interned {
    struct sx_string strings[MAX_CODES];
    uint16_t slots[INTERN_SLOTS]; /* id, 0: empty */
    struct remembered_dict dicts[REMEMBERED];
    uint64_t uses;
};

struct direct_key {
    enum sx_phys phys;
    int bits;
    int shift;
    int64_t base;
    int64_t n_ids; /* integers: of the range; strings: met so far; NULL not counted */
    struct interned *interned;
};

struct sx_group_direct {
    bool off;
    int n_keys;
    int32_t n_groups;
    int32_t n_codes;
    uint16_t groups[MAX_CODES]; /* by code: 1 + number of the group, 0: not met */
    char *rows[MAX_CODES];      /* by number */
    uint16_t block_codes[SX_GROUP_BLOCK_ROWS];
    struct direct_key keys[];
};

#define SX_PHYS I8
#define SX_C    int8_t
#include "backend/cpu/group_direct.tmpl.h"
#define SX_PHYS I16
#define SX_C    int16_t
#include "backend/cpu/group_direct.tmpl.h"
#define SX_PHYS I32
#define SX_C    int32_t
#include "backend/cpu/group_direct.tmpl.h"
#define SX_PHYS I64
#define SX_C    int64_t
#include "backend/cpu/group_direct.tmpl.h"
#define SX_PHYS U8
#define SX_C    uint8_t
#include "backend/cpu/group_direct.tmpl.h"
#define SX_PHYS U16
#define SX_C    uint16_t
#include "backend/cpu/group_direct.tmpl.h"
#define SX_PHYS U32
#define SX_C    uint32_t
#include "backend/cpu/group_direct.tmpl.h"

#define INTEGER_LIST(X) X(I8) X(I16) X(I32) X(I64) X(U8) X(U16) X(U32)

static const struct {
    bool (*range)(const void *from, const uint8_t *valid, int32_t n, int64_t *out_least,
                  int64_t *out_greatest);
    void (*add_codes)(const void *from, const uint8_t *valid, int32_t n, int64_t base, int shift,
                      uint16_t *codes);
} integers[SX_PHYS_COUNT] = {
#define INTEGER_ROW(phys) [SX_PHYS_##phys] = {range_##phys, add_codes_##phys},
    INTEGER_LIST(INTEGER_ROW)
#undef INTEGER_ROW
};

static bool may_be_small(const struct sx_group_key *key) {
    if (key->type.id == SX_TYPE_NULLTYPE)
        return false;
    return key->phys == SX_PHYS_STRING || integers[key->phys].range;
}

enum sx_status sx_group_direct_create(const struct sx_group_layout *layout,
                                      struct sx_group_direct **out_direct, struct sx_stream *stream) {
    *out_direct = NULL;
    if (layout->n_keys == 0 || layout->n_keys > CODE_BITS)
        return SX_OK;
    for (int k = 0; k < layout->n_keys; k++)
        if (!may_be_small(&layout->keys[k]))
            return SX_OK;
    struct sx_group_direct *direct;
    const size_t bytes = sizeof *direct + (size_t)layout->n_keys * sizeof direct->keys[0];
    void *memory = NULL;
    SX_TRY(sx_pool_alloc(stream->pool, bytes, &memory, &stream->error));
    memset(memory, 0, bytes);
    direct = memory;
    direct->n_keys = layout->n_keys;
    for (int k = 0; k < layout->n_keys; k++)
        direct->keys[k].phys = layout->keys[k].phys;
    *out_direct = direct;
    return SX_OK;
}

void sx_group_direct_destroy(struct sx_group_direct *direct, struct sx_pool *pool) {
    if (!direct)
        return;
    for (int k = 0; k < direct->n_keys; k++)
        if (direct->keys[k].interned)
            sx_pool_free(pool, direct->keys[k].interned, sizeof *direct->keys[k].interned);
    sx_pool_free(pool, direct, sizeof *direct + (size_t)direct->n_keys * sizeof direct->keys[0]);
}

/* ---- domains ---- */

/* Gives each key bits for its ids; the numbers of groups start anew when the codes change. */
static void assign_bits(struct sx_group_direct *direct) {
    int shift = 0;
    bool changed = false;
    for (int k = 0; k < direct->n_keys; k++) {
        struct direct_key *key = &direct->keys[k];
        int bits = key->bits;
        while ((INT64_C(1) << bits) < key->n_ids + 1)
            bits++;
        changed |= bits != key->bits || shift != key->shift;
        key->bits = bits;
        key->shift = shift;
        shift += bits;
        if (shift > CODE_BITS) {
            direct->off = true;
            return;
        }
    }
    direct->n_codes = 1 << shift;
    if (changed) {
        direct->n_groups = 0;
        memset(direct->groups, 0, sizeof direct->groups);
    }
}

/* Widens an integer key's range; false when it is too wide. */
static bool cover_range(struct sx_group_direct *direct, struct direct_key *key, int64_t least,
                        int64_t greatest) {
    const uint64_t last_id = (uint64_t)greatest - (uint64_t)key->base;
    if (key->n_ids > 0 && least >= key->base && last_id < (uint64_t)key->n_ids)
        return true;
    if (key->n_ids > 0) {
        const int64_t last = key->base + key->n_ids - 1;
        greatest = greatest > last ? greatest : last;
        if (key->base < least)
            least = key->base;
    }
    const uint64_t width = (uint64_t)greatest - (uint64_t)least;
    if (width >= MAX_CODES)
        return false;
    if (least != key->base) { /* every id changes */
        direct->n_groups = 0;
        memset(direct->groups, 0, sizeof direct->groups);
    }
    key->base = least;
    key->n_ids = (int64_t)width + 1;
    return true;
}

static bool cover_integers(struct sx_group_direct *direct, struct direct_key *key,
                           const struct sx_tensor *column, int64_t first, int32_t n) {
    const bool constant = column->layout == SX_CONSTANT;
    const int64_t at = constant ? 0 : first;
    const char *values = (const char *)column->values + (size_t)at * sx_type_bytes(column->type);
    int64_t least, greatest;
    if (!integers[key->phys].range(values, column->valid ? column->valid + at : NULL, constant ? 1 : n,
                                   &least, &greatest))
        return true;
    return cover_range(direct, key, least, greatest);
}

/* ---- strings ---- */

/* 0: no more ids. */
static enum sx_status intern(struct sx_group_worker *worker, struct direct_key *key,
                             const struct sx_string *string, struct sx_stream *stream, uint16_t *out_id) {
    struct interned *interned = key->interned;
    uint64_t at = sx_hash_string(string) % INTERN_SLOTS;
    for (; interned->slots[at]; at = (at + 1) % INTERN_SLOTS) {
        *out_id = interned->slots[at];
        if (sx_string_equal(&interned->strings[*out_id], string))
            return SX_OK;
    }
    *out_id = 0;
    if (key->n_ids + 1 >= MAX_CODES)
        return SX_OK;
    struct sx_string own = *string;
    if (string->length_bytes > SX_STRING_INLINE_BYTES) {
        char *bytes;
        SX_TRY(sx_group_heap_alloc(&worker->interned, stream->pool, string->length_bytes, &bytes,
                                   &stream->error));
        memcpy(bytes, string->u.ref.pointer, string->length_bytes);
        own.u.ref.pointer = bytes;
    }
    *out_id = (uint16_t)++key->n_ids;
    interned->strings[*out_id] = own;
    interned->slots[at] = *out_id;
    return SX_OK;
}

static struct remembered_dict *remembered(struct interned *interned, uint64_t id) {
    struct remembered_dict *oldest = &interned->dicts[0];
    for (int i = 0; i < REMEMBERED; i++) {
        struct remembered_dict *dict = &interned->dicts[i];
        if (dict->id == id) {
            dict->last_use = ++interned->uses;
            return dict;
        }
        if (dict->last_use < oldest->last_use)
            oldest = dict;
    }
    oldest->id = 0;
    oldest->last_use = ++interned->uses;
    return oldest;
}

/* The ids of the column's entries (one when it is constant); NULL in *out_ids when they are too many. */
static enum sx_status string_ids(struct sx_group_worker *worker, struct direct_key *key,
                                 const struct sx_tensor *column, struct sx_stream *stream,
                                 const uint16_t **out_ids) {
    *out_ids = NULL;
    const struct sx_dict *dict = column->dict;
    const int64_t n = dict->values.length;
    if (n >= MAX_CODES)
        return SX_OK;
    if (!key->interned) {
        void *memory = NULL;
        SX_TRY(sx_pool_alloc(stream->pool, sizeof *key->interned, &memory, &stream->error));
        key->interned = memset(memory, 0, sizeof *key->interned);
    }
    struct remembered_dict *known = remembered(key->interned, dict->id);
    if (known->id != dict->id) {
        const struct sx_string *strings = dict->values.values;
        for (int64_t i = 0; i < n; i++) {
            SX_TRY(intern(worker, key, &strings[i], stream, &known->ids[i]));
            if (!known->ids[i])
                return SX_OK;
        }
        known->id = dict->id;
    }
    *out_ids = known->ids;
    return SX_OK;
}

static void add_string_codes(const struct sx_tensor *column, int64_t first, int32_t n, const uint16_t *ids,
                             int shift, uint16_t *codes) {
    const int32_t *entries = (const int32_t *)column->values + first;
    if (column->valid) {
        const uint8_t *valid = column->valid + first;
        for (int32_t i = 0; i < n; i++)
            codes[i] = (uint16_t)(codes[i] + (valid[i] ? ids[entries[i]] << shift : 0));
    } else {
        for (int32_t i = 0; i < n; i++)
            codes[i] = (uint16_t)(codes[i] + (ids[entries[i]] << shift));
    }
}

/* ---- codes ---- */

/* Makes the domains hold the block's keys. Sets direct->off when a domain is too large; *out_fits is false
 * when this block's layouts don't allow codes. */
static enum sx_status cover_block(struct sx_group_worker *worker, const struct sx_tensor *keys, int64_t first,
                                  int32_t n, struct sx_stream *stream, bool *out_fits) {
    struct sx_group_direct *direct = worker->direct;
    *out_fits = true;
    for (int k = 0; k < direct->n_keys; k++) {
        const bool is_string = direct->keys[k].phys == SX_PHYS_STRING;
        const bool has_codes = keys[k].layout == SX_DICT && keys[k].dict->values.length > 0;
        if (is_string != has_codes) {
            *out_fits = false;
            return SX_OK;
        }
    }
    for (int k = 0; k < direct->n_keys && !direct->off; k++) {
        struct direct_key *key = &direct->keys[k];
        if (key->phys == SX_PHYS_STRING) {
            const uint16_t *ids;
            SX_TRY(string_ids(worker, key, &keys[k], stream, &ids));
            direct->off |= !ids;
        } else {
            direct->off |= !cover_integers(direct, key, &keys[k], first, n);
        }
    }
    if (!direct->off)
        assign_bits(direct);
    *out_fits = !direct->off;
    return SX_OK;
}

static void add_codes(struct direct_key *key, const struct sx_tensor *column, int64_t first, int32_t n,
                      uint16_t *codes) {
    if (key->phys == SX_PHYS_STRING) {
        const struct remembered_dict *dict = remembered(key->interned, column->dict->id);
        add_string_codes(column, first, n, dict->ids, key->shift, codes);
    } else if (column->layout == SX_CONSTANT) {
        uint16_t code = 0;
        integers[key->phys].add_codes(column->values, column->valid, 1, key->base, key->shift, &code);
        for (int32_t i = 0; i < n; i++)
            codes[i] = (uint16_t)(codes[i] + code);
    } else {
        const char *values = (const char *)column->values + (size_t)first * sx_type_bytes(column->type);
        const uint8_t *valid = column->valid ? column->valid + first : NULL;
        integers[key->phys].add_codes(values, valid, n, key->base, key->shift, codes);
    }
}

enum sx_status sx_group_direct_codes(struct sx_group_worker *worker, const struct sx_tensor *keys,
                                     int64_t first, int32_t n, struct sx_stream *stream, bool *out_used,
                                     bool *out_complete) {
    struct sx_group_direct *direct = worker->direct;
    *out_used = *out_complete = false;
    if (!direct || direct->off)
        return SX_OK;
    SX_TRY(cover_block(worker, keys, first, n, stream, out_used));
    if (!*out_used)
        return SX_OK;
    memset(direct->block_codes, 0, (size_t)n * sizeof(uint16_t));
    for (int k = 0; k < direct->n_keys; k++)
        add_codes(&direct->keys[k], &keys[k], first, n, direct->block_codes);
    bool complete = true;
    for (int32_t i = 0; i < n; i++) {
        const uint16_t group = direct->groups[direct->block_codes[i]];
        complete &= group != 0;
        worker->codes[i] = (uint16_t)(group - 1);
    }
    *out_complete = complete;
    return SX_OK;
}

void sx_group_direct_learn(struct sx_group_worker *worker, int32_t n) {
    struct sx_group_direct *direct = worker->direct;
    for (int32_t i = 0; i < n; i++) {
        uint16_t *group = &direct->groups[direct->block_codes[i]];
        if (!*group) {
            direct->rows[direct->n_groups] = worker->rows[i];
            *group = (uint16_t)++direct->n_groups;
        }
        worker->codes[i] = (uint16_t)(*group - 1);
    }
}

int32_t sx_group_direct_groups(const struct sx_group_worker *worker, char *const **out_rows) {
    *out_rows = worker->direct->rows;
    return worker->direct->n_groups;
}

void sx_group_direct_disable(struct sx_group_worker *worker) {
    if (worker->direct)
        worker->direct->off = true;
}
