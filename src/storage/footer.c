#include "storage/footer.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"

struct parser {
    struct sx_footer *footer;
    struct sx_thrift in;
    bool no_memory;
    bool is_encrypted;
    uint32_t n_orders;
    uint8_t *orders; /* union member of each leaf's column order */
};

static void *take(struct parser *parser, size_t count, size_t element_bytes) {
    void *memory = sx_arena_array(&parser->footer->arena, count, element_bytes);
    if (!memory) {
        parser->no_memory = true;
        sx_thrift_fail(&parser->in, "no memory");
    }
    return memory;
}

/* ---- schema ---- */

static enum sx_time_unit read_unit(struct sx_thrift *in) {
    enum sx_time_unit unit = SX_UNIT_NONE;
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id >= SX_UNIT_MILLIS && field.id <= SX_UNIT_NANOS)
            unit = (enum sx_time_unit)field.id;
        sx_thrift_skip(in, &field);
    }
    return unit;
}

static void read_time(struct sx_thrift *in, struct sx_schema_element *element) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id == 1)
            element->is_utc = sx_thrift_bool(in, &field);
        else if (field.id == 2 && sx_thrift_struct(in, &field))
            element->unit = read_unit(in);
        else
            sx_thrift_skip(in, &field);
    }
}

static void read_integer(struct sx_thrift *in, struct sx_schema_element *element) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id == 1)
            element->bit_width = sx_thrift_i32(in, &field);
        else if (field.id == 2)
            element->is_signed = sx_thrift_bool(in, &field);
        else
            sx_thrift_skip(in, &field);
    }
}

static void read_decimal(struct sx_thrift *in, struct sx_schema_element *element) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id == 1)
            element->scale = sx_thrift_i32(in, &field);
        else if (field.id == 2)
            element->precision = sx_thrift_i32(in, &field);
        else
            sx_thrift_skip(in, &field);
    }
}

static void read_logical(struct sx_thrift *in, struct sx_schema_element *element) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        element->logical = field.id;
        bool is_time = field.id == SX_LOGICAL_TIMESTAMP || field.id == SX_LOGICAL_TIME;
        bool has_fields = is_time || field.id == SX_LOGICAL_INTEGER || field.id == SX_LOGICAL_DECIMAL;
        if (!has_fields)
            sx_thrift_skip(in, &field);
        else if (!sx_thrift_struct(in, &field))
            return;
        else if (is_time)
            read_time(in, element);
        else if (field.id == SX_LOGICAL_INTEGER)
            read_integer(in, element);
        else
            read_decimal(in, element);
    }
}

static const char *read_name(struct parser *parser, const struct sx_thrift_field *field) {
    struct sx_slice name = sx_thrift_binary(&parser->in, field);
    if (name.bytes && memchr(name.bytes, 0, name.length_bytes))
        sx_thrift_fail(&parser->in, "a column's name has a zero byte");
    if (parser->in.wrong)
        return "";
    char *copy = sx_arena_copy_text(&parser->footer->arena, (const char *)name.bytes,
                                    name.bytes ? name.length_bytes : 0);
    parser->no_memory |= !copy;
    return copy ? copy : "";
}

static void read_element(struct parser *parser, struct sx_schema_element *element) {
    struct sx_thrift *in = &parser->in;
    *element = (struct sx_schema_element){.name = "", .physical = -1, .converted = -1};
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: element->physical = sx_thrift_i32(in, &field); break;
        case 2: element->type_length = sx_thrift_i32(in, &field); break;
        case 3: element->repetition = sx_thrift_i32(in, &field); break;
        case 4: element->name = read_name(parser, &field); break;
        case 5: element->n_children = sx_thrift_i32(in, &field); break;
        case 6: element->converted = sx_thrift_i32(in, &field); break;
        case 7: element->scale = sx_thrift_i32(in, &field); break;
        case 8: element->precision = sx_thrift_i32(in, &field); break;
        case 10:
            if (sx_thrift_struct(in, &field))
                read_logical(in, element);
            break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_schema(struct parser *parser, const struct sx_thrift_field *field) {
    struct sx_footer *footer = parser->footer;
    uint32_t count = sx_thrift_list(&parser->in, field, SX_THRIFT_STRUCT);
    if (footer->elements || count == 0 || count > INT32_MAX / 2) {
        sx_thrift_fail(&parser->in, "there is no schema, or there are two");
        return;
    }
    footer->elements = take(parser, count, sizeof *footer->elements);
    for (uint32_t i = 0; i < count && !parser->in.wrong; i++) {
        read_element(parser, &footer->elements[i]);
        footer->n_elements++;
        footer->n_leaves += i > 0 && footer->elements[i].n_children == 0;
    }
}

/* ---- row groups ---- */

static void read_statistics(struct sx_thrift *in, struct sx_statistics *statistics) {
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: statistics->old_max = sx_thrift_binary(in, &field); break;
        case 2: statistics->old_min = sx_thrift_binary(in, &field); break;
        case 3: statistics->n_nulls = sx_thrift_i64(in, &field); break;
        case 5: statistics->max = sx_thrift_binary(in, &field); break;
        case 6: statistics->min = sx_thrift_binary(in, &field); break;
        case 7: statistics->max_is_exact = sx_thrift_bool(in, &field); break;
        case 8: statistics->min_is_exact = sx_thrift_bool(in, &field); break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_chunk_meta(struct sx_thrift *in, struct sx_chunk_meta *chunk) {
    chunk->is_present = true;
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: chunk->physical = sx_thrift_i32(in, &field); break;
        case 4: chunk->codec = sx_thrift_i32(in, &field); break;
        case 5: chunk->n_values = sx_thrift_i64(in, &field); break;
        case 6: chunk->plain_bytes = sx_thrift_i64(in, &field); break;
        case 7: chunk->stored_bytes = sx_thrift_i64(in, &field); break;
        case 9: chunk->data_offset = sx_thrift_i64(in, &field); break;
        case 11: chunk->dictionary_offset = sx_thrift_i64(in, &field); break;
        case 12:
            if (sx_thrift_struct(in, &field))
                read_statistics(in, &chunk->statistics);
            break;
        case 14: chunk->bloom_offset = sx_thrift_i64(in, &field); break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_chunk(struct sx_thrift *in, struct sx_chunk_meta *chunk) {
    chunk->statistics.n_nulls = -1;
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 1: chunk->is_elsewhere = sx_thrift_binary(in, &field).length_bytes > 0; break;
        case 3:
            if (sx_thrift_struct(in, &field))
                read_chunk_meta(in, chunk);
            break;
        case 4: chunk->offset_index_offset = sx_thrift_i64(in, &field); break;
        case 5: chunk->offset_index_bytes = sx_thrift_i32(in, &field); break;
        case 6: chunk->column_index_offset = sx_thrift_i64(in, &field); break;
        case 7: chunk->column_index_bytes = sx_thrift_i32(in, &field); break;
        case 8:
            chunk->is_encrypted = true;
            sx_thrift_skip(in, &field);
            break;
        default: sx_thrift_skip(in, &field);
        }
    }
}

static void read_chunks(struct parser *parser, const struct sx_thrift_field *field,
                        struct sx_group_meta *group) {
    struct sx_thrift *in = &parser->in;
    uint32_t count = sx_thrift_list(in, field, SX_THRIFT_STRUCT);
    if (in->wrong)
        return;
    if (group->chunks || count != (uint32_t)parser->footer->n_leaves) {
        sx_thrift_fail(in, "a row group does not have the schema's number of column chunks");
        return;
    }
    group->chunks = take(parser, count, sizeof *group->chunks);
    for (uint32_t i = 0; i < count && !in->wrong; i++)
        read_chunk(in, &group->chunks[i]);
}

static void read_group(struct parser *parser, struct sx_group_meta *group) {
    struct sx_thrift *in = &parser->in;
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        if (field.id == 1)
            read_chunks(parser, &field, group);
        else if (field.id == 3)
            group->n_rows = sx_thrift_i64(in, &field);
        else
            sx_thrift_skip(in, &field);
    }
    if (!group->chunks)
        sx_thrift_fail(in, "a row group has no column chunks");
    if (group->n_rows < 0)
        sx_thrift_fail(in, "a row group has a negative number of rows");
}

static void read_groups(struct parser *parser, const struct sx_thrift_field *field) {
    struct sx_footer *footer = parser->footer;
    uint32_t count = sx_thrift_list(&parser->in, field, SX_THRIFT_STRUCT);
    if (footer->groups || !footer->elements || count > INT32_MAX / 2) {
        sx_thrift_fail(&parser->in, "the row groups come twice, or before the schema");
        return;
    }
    footer->groups = take(parser, count, sizeof *footer->groups);
    for (uint32_t i = 0; i < count && !parser->in.wrong; i++) {
        read_group(parser, &footer->groups[i]);
        if (__builtin_add_overflow(footer->n_rows, footer->groups[i].n_rows, &footer->n_rows))
            sx_thrift_fail(&parser->in, "the row groups have more than 2^63 rows");
        footer->n_groups++;
    }
}

static void read_orders(struct parser *parser, const struct sx_thrift_field *field) {
    struct sx_thrift *in = &parser->in;
    uint32_t count = sx_thrift_list(in, field, SX_THRIFT_STRUCT);
    uint8_t *orders = take(parser, count, 1);
    for (uint32_t i = 0; i < count && !in->wrong; i++) {
        struct sx_thrift_field member = {0};
        while (sx_thrift_next(in, &member)) {
            orders[i] = (uint8_t)member.id;
            sx_thrift_skip(in, &member);
        }
    }
    parser->orders = orders;
    parser->n_orders = count;
}

static void read_file(struct parser *parser) {
    struct sx_thrift *in = &parser->in;
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(in, &field)) {
        switch (field.id) {
        case 2: read_schema(parser, &field); break;
        case 4: read_groups(parser, &field); break;
        case 7: read_orders(parser, &field); break;
        case 8:
            parser->is_encrypted = true;
            sx_thrift_skip(in, &field);
            break;
        default: sx_thrift_skip(in, &field);
        }
    }
    if (!parser->footer->elements || !parser->footer->groups)
        sx_thrift_fail(in, "it has no schema or no list of row groups");
}

/* ---- the footer ---- */

/* Member 1 is the type's own order. Files without the list have it too, or bounds of the old kind. */
static void set_orders(struct parser *parser) {
    struct sx_footer *footer = parser->footer;
    for (int c = 0; c < footer->n_columns; c++) {
        uint32_t leaf = (uint32_t)footer->columns[c].leaf;
        footer->columns[c].has_order =
            !parser->orders || (leaf < parser->n_orders && parser->orders[leaf] == 1);
    }
}

static enum sx_status parse(struct parser *parser, struct sx_error *error) {
    read_file(parser);
    if (parser->no_memory)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the footer");
    if (parser->in.wrong)
        return sx_error_set(error, SX_FILE, "the footer is corrupt: %s", parser->in.wrong);
    SX_TRY(sx_schema_derive(parser->footer, error));
    set_orders(parser);
    return SX_OK;
}

static uint64_t hash_bytes(const uint8_t *bytes, size_t length_bytes) {
    uint64_t hash = length_bytes;
    for (size_t at = 0; at < length_bytes; at += sizeof hash) {
        const size_t left = length_bytes - at;
        uint64_t word = 0;
        memcpy(&word, bytes + at, left < sizeof word ? left : sizeof word);
        hash = sx_hash_mix(hash, word);
    }
    return hash;
}

enum sx_status sx_footer_parse(uint8_t *bytes, uint32_t length_bytes, int64_t file_bytes,
                               struct sx_footer **out_footer, struct sx_error *error) {
    struct sx_footer *footer = calloc(1, sizeof *footer);
    if (!footer) {
        free(bytes);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for the footer");
    }
    atomic_init(&footer->references, 1);
    footer->bytes = bytes;
    footer->length_bytes = length_bytes;
    footer->hash = hash_bytes(bytes, length_bytes);
    footer->file_bytes = file_bytes;
    struct parser parser = {.footer = footer, .in = sx_thrift_from(bytes, length_bytes)};
    enum sx_status status = parse(&parser, error);
    if (status != SX_OK) {
        sx_footer_release(footer);
        return status;
    }
    *out_footer = footer;
    return SX_OK;
}

struct sx_footer *sx_footer_retain(struct sx_footer *footer) {
    atomic_fetch_add_explicit(&footer->references, 1, memory_order_relaxed);
    return footer;
}

void sx_footer_release(struct sx_footer *footer) {
    if (!footer || atomic_fetch_sub_explicit(&footer->references, 1, memory_order_acq_rel) != 1)
        return;
    sx_arena_release(&footer->arena);
    free(footer->bytes);
    free(footer);
}
