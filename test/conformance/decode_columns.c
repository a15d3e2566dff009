/* Several columns at once, whose rows come from several column chunks each; and columns that are read again.
 */
#include "decode_chunk.h"

enum { MAX_COLUMNS = 4, MAX_GROUPS = 3, MAX_PARTS = 2 * MAX_GROUPS, READERS = 4 };

/* Row groups with the same columns, and what is read of them. */
struct table {
    bool is_reread; /* by READERS readers, each chunk as one span */
    int n_columns, n_groups, n_parts;
    struct chunk chunks[MAX_COLUMNS][MAX_GROUPS];
    struct sx_decoder *decoders[MAX_COLUMNS][MAX_GROUPS];
    int group_of[MAX_PARTS];
    int64_t first[MAX_PARTS], rows[MAX_PARTS];
    int64_t n_rows;
};

static enum sx_parquet_encoding some_encoding(struct conformance *c, const struct column_case *kind) {
    for (;;) {
        const uint64_t encoding = below(c, 10);
        if (kind->encodings >> encoding & 1)
            return (enum sx_parquet_encoding)encoding;
    }
}

/* The encodings of one column's chunks differ, but for one column in two of those that are read again. */
static enum sx_status make_column(struct conformance *c, int64_t most_rows, int column, struct table *table) {
    const double null_shares[] = {0, 0, 0.3, 1};
    const struct column_case *kind = &decode_cases[below(c, (uint64_t)decode_n_cases)];
    const enum sx_parquet_encoding encoding = some_encoding(c, kind);
    const bool is_alike = table->is_reread && below(c, 2), is_required = table->is_reread && below(c, 4);
    for (int g = 0; g < table->n_groups; g++) {
        struct chunk *chunk = &table->chunks[column][g];
        const int64_t rows =
            column > 0 ? table->chunks[0][g].host.length : (int64_t)below(c, (uint64_t)most_rows + 1);
        chunk->is_required = is_required;
        SX_TRY(chunk_make(c, kind, is_alike ? encoding : some_encoding(c, kind), rows,
                          is_required ? 0 : null_shares[below(c, 4)], chunk));
        chunk->spans[0].n_readers = table->is_reread ? READERS : 0;
    }
    return SX_OK;
}

static enum sx_status make_table(struct conformance *c, int64_t most_rows, struct table *table) {
    table->is_reread = below(c, 2);
    table->n_columns = 1 + (int)below(c, MAX_COLUMNS);
    table->n_groups = 1 + (int)below(c, MAX_GROUPS);
    for (int i = 0; i < table->n_columns; i++)
        SX_TRY(make_column(c, most_rows, i, table));
    return SX_OK;
}

static enum sx_status open_table(struct conformance *c, struct table *table) {
    for (int i = 0; i < table->n_columns; i++)
        for (int g = 0; g < table->n_groups; g++) {
            struct sx_stored_chunk stored = chunk_stored(c, &table->chunks[i][g]);
            if (table->is_reread) {
                stored.spans = &table->chunks[i][g].spans[0];
                stored.n_spans = 1;
            }
            enum sx_status status = chunk_open(c, &stored, &table->decoders[i][g]);
            if (status != SX_OK)
                return sx_error_set(&c->error, status, "%s", c->stream->error.text);
        }
    return SX_OK;
}

static void close_table(struct conformance *c, struct table *table) {
    for (int i = 0; i < table->n_columns; i++)
        for (int g = 0; g < table->n_groups; g++) {
            c->backend->ops.decoder_destroy(c->stream, table->decoders[i][g]);
            table->decoders[i][g] = NULL;
        }
}

static void add_part(struct table *table, int group, int64_t first, int64_t rows) {
    if (rows == 0)
        return;
    table->group_of[table->n_parts] = group;
    table->first[table->n_parts] = first;
    table->rows[table->n_parts++] = rows;
    table->n_rows += rows;
}

/* Each row group whole, or one range of it, or two; or its first rows. */
static void choose_parts(struct conformance *c, bool is_whole, struct table *table) {
    const bool is_first = !is_whole && below(c, 3) == 0;
    table->n_parts = 0;
    table->n_rows = 0;
    for (int g = 0; g < table->n_groups; g++) {
        const uint64_t rows = (uint64_t)table->chunks[0][g].host.length;
        int64_t bounds[4];
        if (is_whole || is_first) {
            add_part(table, g, 0, (int64_t)(is_whole ? rows : below(c, rows + 1)));
            continue;
        }
        for (int b = 0; b < 4; b++)
            bounds[b] = below(c, 3) ? (int64_t)below(c, rows + 1) : (int64_t)(b % 2 ? rows : 0);
        for (int b = 1; b < 4; b++)
            for (int k = b; k > 0 && bounds[k] < bounds[k - 1]; k--) {
                const int64_t other = bounds[k];
                bounds[k] = bounds[k - 1];
                bounds[k - 1] = other;
            }
        add_part(table, g, bounds[0], bounds[1] - bounds[0]);
        add_part(table, g, bounds[2], bounds[3] - bounds[2]);
    }
}

/* Value of row `row` of what is read, in a column. */
static void value_at(const struct table *table, int column, int64_t row, struct sx_scalar *out) {
    int part = 0;
    for (; row >= table->rows[part]; part++)
        row -= table->rows[part];
    sx_tensor_scalar(&table->chunks[column][table->group_of[part]].host, table->first[part] + row, out);
}

static void compare(struct conformance *c, const struct table *table, int column,
                    const struct sx_tensor *selection, const struct sx_tensor *got) {
    char name[SX_TYPE_NAME_BYTES];
    const int64_t wanted_rows = selection ? selection->length : table->n_rows;
    int64_t bad = got->length == wanted_rows ? -1 : got->length;
    for (int64_t i = 0; bad < 0 && i < wanted_rows; i++) {
        struct sx_scalar wanted, have;
        value_at(table, column, selection ? ((const int32_t *)selection->values)[i] : i, &wanted);
        sx_tensor_scalar(got, i, &have);
        if (!conformance_scalar_equal(&wanted, &have))
            bad = i;
    }
    CONFORM(c, bad < 0, "decode of %d columns, %d parts%s: %s from physical type %d, row %lld",
            table->n_columns, table->n_parts, selection ? ", selected" : "",
            sx_type_name(table->chunks[column][0].spec.type, name),
            (int)table->chunks[column][0].spec.physical, (long long)bad);
}

static enum sx_status read_table(struct conformance *c, const struct table *table,
                                 const struct sx_tensor *selection, struct sx_tensor *columns) {
    struct sx_decode_part parts[MAX_COLUMNS][MAX_PARTS];
    struct sx_column_read reads[MAX_COLUMNS];
    struct sx_decode_place place;
    for (int i = 0; i < table->n_columns; i++) {
        for (int p = 0; p < table->n_parts; p++)
            parts[i][p] = (struct sx_decode_part){table->decoders[i][table->group_of[p]], table->first[p],
                                                  table->rows[p]};
        reads[i] = (struct sx_column_read){parts[i], table->n_parts, &columns[i]};
    }
    enum sx_status status = c->backend->ops.decode(c->stream, reads, table->n_columns, selection, &place);
    return status == SX_OK ? SX_OK : sx_error_set(&c->error, status, "%s", c->stream->error.text);
}

static enum sx_status check_table(struct conformance *c, const struct table *table) {
    struct sx_tensor host_selection = {0}, selection = {0}, columns[MAX_COLUMNS] = {0};
    enum sx_status status = SX_OK;
    const bool selects = below(c, 2);
    if (selects) {
        SX_GO(chunk_select(c, table->n_rows, &host_selection));
        SX_GO(conformance_send(c, &host_selection, &selection));
    }
    SX_GO(read_table(c, table, selects ? &selection : NULL, columns));
    for (int i = 0; i < table->n_columns; i++) {
        struct sx_tensor got = {0};
        SX_GO(conformance_receive(c, &columns[i], &got));
        compare(c, table, i, selects ? &host_selection : NULL, &got);
        sx_tensor_release(&got);
    }
out:
    for (int i = 0; i < table->n_columns; i++)
        sx_tensor_release(&columns[i]);
    sx_tensor_release(&host_selection);
    sx_tensor_release(&selection);
    return status;
}

static enum sx_status read_again(struct conformance *c, struct table *table) {
    enum sx_status status = SX_OK;
    for (int i = 0; i < (table->is_reread ? READERS : 1) && status == SX_OK; i++) {
        choose_parts(c, table->is_reread && (i == 0 ? below(c, 3) : below(c, 2)), table);
        status = open_table(c, table);
        if (status == SX_OK && table->n_parts > 0)
            status = check_table(c, table);
        close_table(c, table);
    }
    return status;
}

static enum sx_status try_table(struct conformance *c, int64_t most_rows) {
    struct table table = {0};
    if (!conformance_takes(c))
        return SX_OK;
    enum sx_status status = make_table(c, most_rows, &table);
    if (status == SX_OK)
        status = read_again(c, &table);
    for (int i = 0; i < table.n_columns; i++)
        for (int g = 0; g < table.n_groups; g++)
            chunk_release(&table.chunks[i][g]);
    return status;
}

void conform_decode_columns(struct conformance *c) {
    enum { TABLES = 60, LARGE_BYTES = 64 << 20 };
    if (c->backend->cache_limit)
        c->backend->cache_limit(c->backend, LARGE_BYTES, LARGE_BYTES);
    for (int r = 0; r < conformance_n_rows; r++)
        for (int i = 0; i < TABLES; i++) {
            enum sx_status status = try_table(c, conformance_rows[r]);
            CONFORM(c, status == SX_OK, "decode of several columns: %s", c->error.text);
        }
}
