#include <stdlib.h>

#include "backend/cpu/group_state.h"

static const char *const function_names[] = {
#define NAME(name) [SX_AGG_##name] = #name,
    SX_AGGREGATE_LIST(NAME)
#undef NAME
};

static uint32_t align_up(uint32_t bytes, uint32_t align) {
    return (bytes + align - 1) / align * align;
}

static enum sx_status set_key(struct sx_group_key *key, struct sx_type type, struct sx_error *error) {
    *key = (struct sx_group_key){.type = type, .phys = sx_type_phys(type)};
    if (key->phys == SX_PHYS_INTERVAL)
        return sx_error_set(error, SX_UNSUPPORTED, "GROUP BY of type INTERVAL");
    return SX_OK;
}

/* Widest first, so that each value is aligned; then a bit per key. Returns the bytes used. */
static uint32_t place_keys(struct sx_group_layout *layout) {
    uint32_t at = 0;
    for (size_t width = 16; width > 0; width /= 2)
        for (int k = 0; k < layout->n_keys; k++) {
            if (sx_phys_bytes(layout->keys[k].phys) != width)
                continue;
            layout->keys[k].offset = at;
            at += (uint32_t)width;
        }
    for (int k = 0; k < layout->n_keys; k++) {
        layout->keys[k].null_byte = at + (uint32_t)k / 8;
        layout->keys[k].null_bit = (uint8_t)(1 << (k % 8));
    }
    at += ((uint32_t)layout->n_keys + 7) / 8;
    layout->n_words = align_up(at, 8) / 8;
    layout->last_mask = at % 8 ? (UINT64_C(1) << (8 * (at % 8))) - 1 : ~UINT64_C(0);
    return at;
}

static uint32_t place_flags(struct sx_group_layout *layout, uint32_t at) {
    for (int a = 0; a < layout->n_aggregates; a++)
        layout->aggregates[a].flag = at++;
    return at;
}

static uint32_t place_pointers(struct sx_group_layout *layout, uint32_t at) {
    at = align_up(at, 8);
    for (int k = 0; k < layout->n_keys; k++) {
        if (layout->keys[k].phys != SX_PHYS_STRING)
            continue;
        layout->strings[layout->n_strings++] = (uint32_t)k;
        layout->keys[k].pointer = at;
        at += 8;
    }
    return at;
}

static uint32_t place_states(struct sx_group_layout *layout, uint32_t at) {
    for (uint32_t align = 8; align > 0; align /= 2)
        for (int a = 0; a < layout->n_aggregates; a++) {
            struct sx_group_aggregate *aggregate = &layout->aggregates[a];
            if (aggregate->ops->state_align != align)
                continue;
            at = align_up(at, align);
            aggregate->offset = at;
            at += aggregate->ops->state_bytes;
        }
    return align_up(at, 8);
}

static bool output_fits(const struct sx_aggregate_spec *spec) {
    switch (spec->function) {
    case SX_AGG_COUNT_STAR:
    case SX_AGG_COUNT: return sx_type_phys(spec->output) == SX_PHYS_I64;
    case SX_AGG_AVG: return spec->output.id == SX_TYPE_F64;
    case SX_AGG_SUM:
        if (spec->input.id == SX_TYPE_F32 || spec->input.id == SX_TYPE_F64)
            return spec->output.id == SX_TYPE_F64;
        return sx_type_phys(spec->output) == SX_PHYS_I128;
    default: return sx_type_phys(spec->output) == sx_type_phys(spec->input);
    }
}

/* SUM and AVG are of numbers alone, though dates look the same. */
static bool input_fits(const struct sx_aggregate_spec *spec) {
    if (spec->function != SX_AGG_SUM && spec->function != SX_AGG_AVG)
        return true;
    enum sx_type_id id = spec->input.id;
    return id != SX_TYPE_DATE && id != SX_TYPE_TIMESTAMP && id != SX_TYPE_NULLTYPE;
}

static enum sx_status set_aggregate(struct sx_group_aggregate *aggregate,
                                    const struct sx_aggregate_spec *spec, struct sx_error *error) {
    *aggregate = (struct sx_group_aggregate){.spec = *spec};
    if (spec->function == SX_AGG_COUNT_STAR)
        aggregate->spec.input = sx_type_of(SX_TYPE_I64);
    aggregate->phys = sx_type_phys(aggregate->spec.input);
    aggregate->ops = sx_group_ops_number(spec->function, aggregate->phys);
    if (!aggregate->ops)
        aggregate->ops = sx_group_ops_value(spec->function, aggregate->phys);
    if (aggregate->ops && input_fits(&aggregate->spec) && output_fits(&aggregate->spec))
        return SX_OK;
    char input[SX_TYPE_NAME_BYTES], output[SX_TYPE_NAME_BYTES];
    return sx_error_set(error, SX_UNSUPPORTED, "aggregate %s of %s to %s", function_names[spec->function],
                        sx_type_name(spec->input, input), sx_type_name(spec->output, output));
}

static enum sx_status make_init(struct sx_group_layout *layout, struct sx_error *error) {
    layout->init = calloc(1, (size_t)layout->row_bytes + 1);
    if (!layout->init)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a group's layout");
    for (int a = 0; a < layout->n_aggregates; a++)
        if (layout->aggregates[a].ops->init)
            layout->aggregates[a].ops->init(layout->init + layout->aggregates[a].offset);
    return SX_OK;
}

enum sx_status sx_group_layout_create(const struct sx_group_spec *spec, struct sx_group_layout *out_layout,
                                      struct sx_error *error) {
    struct sx_group_layout layout = {.n_keys = spec->n_keys, .n_aggregates = spec->n_aggregates};
    enum sx_status status = SX_OK;
    layout.keys = calloc((size_t)spec->n_keys + 1, sizeof *layout.keys);
    layout.strings = calloc((size_t)spec->n_keys + 1, sizeof *layout.strings);
    layout.aggregates = calloc((size_t)spec->n_aggregates + 1, sizeof *layout.aggregates);
    if (!layout.keys || !layout.strings || !layout.aggregates)
        SX_GO(sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a group's layout"));
    for (int k = 0; k < spec->n_keys; k++)
        SX_GO(set_key(&layout.keys[k], spec->key_types[k], error));
    for (int a = 0; a < spec->n_aggregates; a++)
        SX_GO(set_aggregate(&layout.aggregates[a], &spec->aggregates[a], error));
    layout.head_bytes = place_pointers(&layout, place_flags(&layout, place_keys(&layout)));
    layout.row_bytes = place_states(&layout, layout.head_bytes);
    if (layout.row_bytes == 0)
        layout.row_bytes = 8;
    SX_GO(make_init(&layout, error));
    *out_layout = layout;
    return SX_OK;
out:
    sx_group_layout_release(&layout);
    return status;
}

void sx_group_layout_release(struct sx_group_layout *layout) {
    free(layout->keys);
    free(layout->strings);
    free(layout->aggregates);
    free(layout->init);
    *layout = (struct sx_group_layout){0};
}
