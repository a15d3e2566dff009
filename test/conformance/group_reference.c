#include "group_reference.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/semantics.h"

enum { MAX_KEY_BYTES = 1024 };

__extension__ typedef __float128 wide_float;

struct state {
    int64_t count;
    sx_i128 integer_sum;
    wide_float sum;
    wide_float magnitude; /* of all addends: the measure of the allowed error */
    bool any;
    struct sx_scalar value; /* MIN, MAX, FIRST, ANY_VALUE */
};

struct reference_group {
    char *key;
    uint32_t key_bytes;
    int64_t times_seen;
    struct state *states;
};

struct group_reference {
    const struct group_input *input;
    struct reference_group *groups;
    int64_t n_groups;
    int64_t *slots; /* 1 + group, 0: empty */
    uint64_t mask;
};

/* ---- keys as bytes ---- */

static uint32_t append(char *to, uint32_t at, const void *from, size_t bytes) {
    if (bytes)
        memcpy(to + at, from, bytes);
    return at + (uint32_t)bytes;
}

static uint32_t append_scalar(const struct sx_scalar *value, char *to, uint32_t at) {
    to[at++] = value->is_null;
    if (value->is_null)
        return at;
    switch (sx_type_phys(value->type)) {
    case SX_PHYS_STRING:
        at = append(to, at, &value->v.text.length_bytes, sizeof value->v.text.length_bytes);
        return append(to, at, value->v.text.bytes, value->v.text.length_bytes);
    case SX_PHYS_F32: {
        const uint64_t bits = sx_f64_bits((double)value->v.f32);
        return append(to, at, &bits, sizeof bits);
    }
    case SX_PHYS_F64: {
        const uint64_t bits = sx_f64_bits(value->v.f64);
        return append(to, at, &bits, sizeof bits);
    }
    case SX_PHYS_I128:
    case SX_PHYS_U128: return append(to, at, &value->v.i128, sizeof value->v.i128);
    default: return append(to, at, &value->v.u64, sizeof value->v.u64);
    }
}

static uint32_t key_of(const struct sx_tensor *keys, int n_keys, int64_t row, char *to) {
    uint32_t at = 0;
    for (int k = 0; k < n_keys; k++) {
        struct sx_scalar value;
        sx_tensor_scalar(&keys[k], row, &value);
        if (keys[k].type.id == SX_TYPE_NULLTYPE)
            value.is_null = true;
        at = append_scalar(&value, to, at);
    }
    return at;
}

static uint64_t slot_of(const struct group_reference *reference, const char *key, uint32_t bytes) {
    uint64_t at = sx_hash_bytes(key, bytes) & reference->mask;
    for (; reference->slots[at]; at = (at + 1) & reference->mask) {
        const struct reference_group *group = &reference->groups[reference->slots[at] - 1];
        if (group->key_bytes == bytes && memcmp(group->key, key, bytes) == 0)
            break;
    }
    return at;
}

static struct reference_group *add_group(struct group_reference *reference, const char *key, uint32_t bytes,
                                         uint64_t slot) {
    struct reference_group *group = &reference->groups[reference->n_groups++];
    group->key = malloc((size_t)bytes + 1);
    group->key_bytes = bytes;
    append(group->key, 0, key, bytes);
    group->states = calloc((size_t)reference->input->spec->n_aggregates + 1, sizeof *group->states);
    reference->slots[slot] = reference->n_groups;
    return group;
}

/* ---- states ---- */

static bool passes(const struct sx_tensor *filters, int a, int64_t row) {
    if (!filters || filters[a].length < 0)
        return true;
    struct sx_scalar value;
    sx_tensor_scalar(&filters[a], row, &value);
    return !value.is_null && value.v.u64 != 0;
}

static wide_float float_of(const struct sx_scalar *value) {
    switch (sx_type_phys(value->type)) {
    case SX_PHYS_F32: return (wide_float)value->v.f32;
    case SX_PHYS_F64: return (wide_float)value->v.f64;
    default: return 0;
    }
}

static sx_i128 integer_of(const struct sx_scalar *value) {
    switch (sx_type_phys(value->type)) {
    case SX_PHYS_I128:
    case SX_PHYS_U128: return value->v.i128;
    case SX_PHYS_U8:
    case SX_PHYS_U16:
    case SX_PHYS_U32:
    case SX_PHYS_U64: return (sx_i128)value->v.u64;
    default: return value->v.i64;
    }
}

static bool is_less(const struct sx_scalar *a, const struct sx_scalar *b) {
    switch (sx_type_phys(a->type)) {
    case SX_PHYS_F32: return sx_f64_less((double)a->v.f32, (double)b->v.f32);
    case SX_PHYS_F64: return sx_f64_less(a->v.f64, b->v.f64);
    case SX_PHYS_U128: return a->v.u128 < b->v.u128;
    case SX_PHYS_STRING: {
        const struct sx_string x = sx_string_make(a->v.text.bytes, a->v.text.length_bytes);
        const struct sx_string y = sx_string_make(b->v.text.bytes, b->v.text.length_bytes);
        return sx_string_compare(&x, &y) < 0;
    }
    default: return integer_of(a) < integer_of(b);
    }
}

static void feed(struct state *state, enum sx_aggregate function, const struct sx_scalar *value) {
    if (function != SX_AGG_COUNT_STAR && function != SX_AGG_FIRST && value->is_null)
        return;
    state->count++;
    switch (function) {
    case SX_AGG_SUM:
    case SX_AGG_AVG:
        state->integer_sum += integer_of(value);
        state->sum += float_of(value);
        state->magnitude += float_of(value) < 0 ? -float_of(value) : float_of(value);
        break;
    case SX_AGG_MIN:
        if (!state->any || is_less(value, &state->value))
            state->value = *value;
        break;
    case SX_AGG_MAX:
        if (!state->any || is_less(&state->value, value))
            state->value = *value;
        break;
    case SX_AGG_FIRST:
    case SX_AGG_ANY_VALUE:
        if (!state->any)
            state->value = *value;
        break;
    default: break;
    }
    state->any = true;
}

static void feed_row(const struct group_input *input, struct reference_group *group, int64_t row) {
    for (int a = 0; a < input->spec->n_aggregates; a++) {
        const enum sx_aggregate function = input->spec->aggregates[a].function;
        if (input->inputs[a].length < 0 || !passes(input->filters, a, row))
            continue;
        struct sx_scalar value = {0};
        if (function != SX_AGG_COUNT_STAR)
            sx_tensor_scalar(&input->inputs[a], row, &value);
        if (value.type.id == SX_TYPE_NULLTYPE)
            value.is_null = true;
        feed(&group->states[a], function, &value);
    }
}

struct group_reference *group_reference_create(const struct group_input *input) {
    struct group_reference *reference = calloc(1, sizeof *reference);
    reference->input = input;
    reference->mask = 15;
    while (reference->mask < 4 * (uint64_t)input->rows)
        reference->mask = 2 * reference->mask + 1;
    reference->slots = calloc(reference->mask + 1, sizeof *reference->slots);
    reference->groups = calloc((size_t)input->rows + 1, sizeof *reference->groups);
    if (input->spec->n_keys == 0)
        add_group(reference, "", 0, slot_of(reference, "", 0));
    for (int64_t i = 0; i < input->rows; i++) {
        char key[MAX_KEY_BYTES];
        const uint32_t bytes = key_of(input->keys, input->spec->n_keys, i, key);
        const uint64_t slot = slot_of(reference, key, bytes);
        struct reference_group *group = reference->slots[slot]
                                            ? &reference->groups[reference->slots[slot] - 1]
                                            : add_group(reference, key, bytes, slot);
        feed_row(input, group, i);
    }
    return reference;
}

void group_reference_destroy(struct group_reference *reference) {
    for (int64_t g = 0; g < reference->n_groups; g++) {
        free(reference->groups[g].key);
        free(reference->groups[g].states);
    }
    free(reference->groups);
    free(reference->slots);
    free(reference);
}

int64_t group_reference_groups(const struct group_reference *reference) {
    return reference->n_groups;
}

/* ---- comparison ---- */

static bool is_float(struct sx_type type) {
    return type.id == SX_TYPE_F32 || type.id == SX_TYPE_F64;
}

static bool close_to(double got, wide_float expected, wide_float scale) {
    const wide_float difference = got > expected ? got - expected : expected - got;
    return difference <= scale * 0x1p-52;
}

static bool sum_matches(const struct state *state, struct sx_type input, const struct sx_scalar *got) {
    if (is_float(input))
        return close_to(got->v.f64, state->sum, state->magnitude);
    return got->v.i128 == state->integer_sum;
}

static bool average_matches(const struct state *state, struct sx_type input, const struct sx_scalar *got) {
    if (is_float(input))
        return close_to(got->v.f64, state->sum / state->count, state->magnitude / state->count);
    wide_float expected = (wide_float)state->integer_sum / state->count;
    for (int i = 0; input.id == SX_TYPE_DECIMAL && i < input.scale; i++)
        expected /= 10;
    return close_to(got->v.f64, expected, expected < 0 ? -expected : expected);
}

/* With several workers the first row of a group is anyone's. */
static bool is_any_order(const struct sx_group_spec *spec, enum sx_aggregate function) {
    return spec->n_workers > 1 && (function == SX_AGG_FIRST || function == SX_AGG_ANY_VALUE);
}

static bool state_matches(const struct group_input *input, int a, const struct state *state,
                          const struct sx_scalar *got) {
    const struct sx_aggregate_spec *spec = &input->spec->aggregates[a];
    if (spec->function == SX_AGG_COUNT || spec->function == SX_AGG_COUNT_STAR)
        return !got->is_null && got->v.i64 == state->count;
    if (is_any_order(input->spec, spec->function))
        return spec->function == SX_AGG_FIRST || got->is_null == !state->any;
    if (!state->any || got->is_null)
        return got->is_null == (!state->any || state->value.is_null);
    if (spec->function == SX_AGG_SUM)
        return sum_matches(state, spec->input, got);
    if (spec->function == SX_AGG_AVG)
        return average_matches(state, spec->input, got);
    return conformance_scalar_equal(&state->value, got);
}

void group_reference_check(struct conformance *c, struct group_reference *reference,
                           const struct sx_batch *result, int64_t row, const char *title) {
    const struct group_input *input = reference->input;
    const int n_keys = input->spec->n_keys;
    char key[MAX_KEY_BYTES];
    const uint32_t bytes = key_of(result->columns, n_keys, row, key);
    const uint64_t slot = slot_of(reference, key, bytes);
    if (!CONFORM(c, reference->slots[slot] != 0, "%s: a group that is not in the input", title))
        return;
    struct reference_group *group = &reference->groups[reference->slots[slot] - 1];
    CONFORM(c, group->times_seen++ == 0, "%s: a group came twice", title);
    for (int a = 0; a < input->spec->n_aggregates; a++) {
        struct sx_scalar got;
        sx_tensor_scalar(&result->columns[n_keys + a], row, &got);
        CONFORM(c, state_matches(input, a, &group->states[a], &got), "%s: aggregate %d, function %d", title,
                a, (int)input->spec->aggregates[a].function);
    }
}

void group_reference_check_all(struct conformance *c, const struct group_reference *reference,
                               const char *title) {
    int64_t seen = 0;
    for (int64_t g = 0; g < reference->n_groups; g++)
        seen += reference->groups[g].times_seen > 0;
    CONFORM(c, seen == reference->n_groups, "%s: %lld of %lld groups", title, (long long)seen,
            (long long)reference->n_groups);
}
