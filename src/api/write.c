/* Answers as Parquet files. */
#include <string.h>
#include <unistd.h>

#include "api/query.h"

enum { DEFAULT_ROW_GROUP_ROWS = 4 << 20, DEFAULT_PAGES = 200, MOST_PAGES = 1 << 20, ZSTD_LEVEL = 1 };
static const int64_t most_row_group_rows = (int64_t)1 << 30; /* numbers of a page header have 32 bits */

void stachio_write_options_init(struct stachio_write_options *options) {
    *options = (struct stachio_write_options){.size_bytes = sizeof *options};
}

static enum stachio_status check_options(const struct stachio_write_options *options,
                                         struct stachio_error *error) {
    if (options->row_group_rows < 0 || options->row_group_rows > most_row_group_rows)
        return sx_api_error(error, STACHIO_USAGE, "row_group_rows: %lld is not within 1 and %lld",
                            (long long)options->row_group_rows, (long long)most_row_group_rows);
    if (options->pages < 0 || options->pages > MOST_PAGES)
        return sx_api_error(error, STACHIO_USAGE, "pages: %d is not within 1 and %d", options->pages,
                            (int)MOST_PAGES);
    if (options->page_version < 0 || options->page_version > 2)
        return sx_api_error(error, STACHIO_USAGE, "page_version: %d is neither 1 nor 2",
                            options->page_version);
    if ((int)options->encoding < 0 || options->encoding > STACHIO_ENCODING_V2)
        return sx_api_error(error, STACHIO_USAGE, "encoding: there is no number %d", (int)options->encoding);
    if ((int)options->compression < 0 || options->compression > STACHIO_COMPRESSION_ZSTD)
        return sx_api_error(error, STACHIO_USAGE, "compression: there is no number %d",
                            (int)options->compression);
    if (options->file_rows < 0 || options->file_bytes < 0 || options->n_partition < 0)
        return sx_api_error(error, STACHIO_USAGE, "file_rows, file_bytes or n_partition is negative");
    if (options->n_orders < 0 || (options->n_orders && !options->orders))
        return sx_api_error(error, STACHIO_USAGE, "orders: n_orders is %d%s", options->n_orders,
                            options->orders ? "" : " of none");
    return STACHIO_OK;
}

static enum stachio_status read_options(const struct stachio_write_options *given,
                                        struct stachio_write_options *out, struct stachio_error *error) {
    stachio_write_options_init(out);
    if (given) {
        if (given->size_bytes < sizeof given->size_bytes || given->size_bytes > 4096)
            return sx_api_error(error, STACHIO_USAGE,
                                "options: size_bytes is %zu; call stachio_write_options_init first",
                                given->size_bytes);
        memcpy(out, given, given->size_bytes < sizeof *out ? given->size_bytes : sizeof *out);
    }
    enum stachio_status status = check_options(out, error);
    if (!out->row_group_rows)
        out->row_group_rows = DEFAULT_ROW_GROUP_ROWS;
    if (!out->pages)
        out->pages = DEFAULT_PAGES;
    return status;
}

static struct sx_write_options inner_options(const struct stachio_write_options *options,
                                             const struct sx_write_order *orders) {
    static const enum sx_parquet_codec codecs[] = {
        [STACHIO_COMPRESSION_NONE] = SX_CODEC_UNCOMPRESSED,
        [STACHIO_COMPRESSION_SNAPPY] = SX_CODEC_SNAPPY,
        [STACHIO_COMPRESSION_LZ4] = SX_CODEC_LZ4_RAW,
        [STACHIO_COMPRESSION_ZSTD] = SX_CODEC_ZSTD,
    };
    static const enum sx_write_encoding encodings[] = {
        [STACHIO_ENCODING_AUTO] = SX_WRITE_AUTO,
        [STACHIO_ENCODING_PLAIN] = SX_WRITE_PLAIN,
        [STACHIO_ENCODING_DICTIONARY] = SX_WRITE_DICTIONARY,
        [STACHIO_ENCODING_V2] = SX_WRITE_V2,
    };
    return (struct sx_write_options){
        .row_group_rows = options->row_group_rows,
        .pages = options->pages,
        .data_page_v1 = options->page_version == 1,
        .checksums = options->checksums != 0,
        .encoding = encodings[options->encoding],
        .codec = codecs[options->compression],
        .codec_level = ZSTD_LEVEL,
        .file_rows = options->file_rows,
        .file_bytes = options->file_bytes,
        .n_partition = options->n_partition,
        .orders = orders,
        .n_orders = options->n_orders,
    };
}

enum stachio_status stachio_query_write(struct stachio_query *query, const char *path,
                                        const struct stachio_write_options *options,
                                        struct stachio_error *error) {
    struct stachio_write_options known;
    struct sx_arena arena = {0};
    enum stachio_status status = read_options(options, &known, error);
    if (status)
        return status;
    if (query->planned || query->executed)
        return sx_api_error(error, STACHIO_USAGE, "the query has been explained or executed already");
    struct sx_write_order *orders = SX_ARENA_ARRAY(&arena, known.n_orders, struct sx_write_order);
    if (!orders)
        return sx_api_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a query");
    for (int i = 0; i < known.n_orders; i++)
        orders[i] = (struct sx_write_order){known.orders[i].column, known.orders[i].descending != 0,
                                            known.orders[i].nulls_first != 0};
    const struct sx_exec_write write = {path, inner_options(&known, orders)};
    query->write = &write;
    status = sx_query_run(query, error);
    query->write = NULL;
    query->streamed = true; /* there is no answer to be taken */
    sx_arena_release(&arena);
    return status;
}

int64_t stachio_query_written_rows(struct stachio_query *query) {
    struct sx_exec_progress progress = {0};
    pthread_mutex_lock(&query->progress_lock);
    if (query->run)
        sx_run_progress(query->run, &progress);
    pthread_mutex_unlock(&query->progress_lock);
    return progress.written_rows;
}

/* ---- DuckDB ---- */

/* DuckDB would write them as something else. */
static bool is_lossy(const char *type, int length) {
    static const char *const types[] = {"HUGEINT", "UHUGEINT", "INTERVAL"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if ((int)strlen(types[i]) == length && memcmp(types[i], type, (size_t)length) == 0)
            return true;
    return false;
}

/* Value `row` of an Arrow column of texts. */
static const char *text_at(const struct ArrowArray *column, int64_t row, int *out_length) {
    const int32_t *offsets = (const int32_t *)column->buffers[1] + column->offset;
    *out_length = offsets[row + 1] - offsets[row];
    return (const char *)column->buffers[2] + offsets[row];
}

static enum sx_status check_types(struct stachio_query *query, struct sx_error *error) {
    struct sx_duckdb_answer answer = {0};
    const char *sql = sx_arena_format(&query->arena, "DESCRIBE %s", query->sql);
    enum sx_status status = SX_OK;
    if (!sql)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a query");
    SX_TRY(sx_duckdb_fetch(query, sql, &answer, error));
    for (int64_t a = 0; status == SX_OK && a < answer.n_arrays; a++) {
        const struct ArrowArray *names = answer.arrays[a].children[0], *types = answer.arrays[a].children[1];
        for (int64_t row = 0; status == SX_OK && row < types->length; row++) {
            int name_length, type_length;
            const char *name = text_at(names, row, &name_length), *type = text_at(types, row, &type_length);
            if (is_lossy(type, type_length))
                status = sx_error_set(error, SX_QUERY,
                                      "column %.*s: %.*s can't be written as Parquet by DuckDB; cast it",
                                      name_length, name, type_length, type);
        }
    }
    sx_duckdb_answer_release(&answer);
    return status;
}

/* In single quotes, as SQL has it. */
static const char *quoted(struct sx_arena *arena, const char *text) {
    char *out = sx_arena_alloc(arena, 2 * strlen(text) + 3), *at = out;
    if (!out)
        return NULL;
    *at++ = '\'';
    for (; *text; text++) {
        if (*text == '\'')
            *at++ = '\'';
        *at++ = *text;
    }
    *at = '\'';
    return out;
}

static const char *copy_sql(struct stachio_query *query) {
    const struct sx_write_options *options = &query->write->options;
    const char *codec = options->codec == SX_CODEC_SNAPPY    ? "snappy"
                        : options->codec == SX_CODEC_LZ4_RAW ? "lz4_raw"
                        : options->codec == SX_CODEC_ZSTD    ? "zstd"
                                                             : "uncompressed";
    const bool is_v2 = options->encoding == SX_WRITE_AUTO || options->encoding == SX_WRITE_V2;
    const char *path = quoted(&query->arena, query->write->path);
    size_t length = strlen(query->sql);
    while (length > 0 && strchr("; \t\r\n", query->sql[length - 1]))
        length--;
    return path ? sx_arena_format(&query->arena,
                                  "COPY (%.*s\n) TO %s (FORMAT parquet, ROW_GROUP_SIZE %lld, COMPRESSION %s, "
                                  "PARQUET_VERSION %s, USE_TMP_FILE false)",
                                  (int)length, query->sql, path, (long long)options->row_group_rows, codec,
                                  is_v2 ? "V2" : "V1")
                : NULL;
}

enum sx_status sx_duckdb_write(struct stachio_query *query, struct sx_error *error) {
    const struct sx_write_options *options = &query->write->options;
    if (options->file_rows || options->file_bytes || options->n_partition)
        return sx_error_set(error, SX_UNSUPPORTED,
                            "DuckDB would have to answer (%s); it writes one file only",
                            query->reason ? query->reason : "as asked for");
    SX_TRY(check_types(query, error));
    const char *sql = copy_sql(query);
    if (!sql)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a query");
    enum sx_status status = sx_duckdb_fetch(query, sql, &query->duckdb, error);
    if (status != SX_OK)
        unlink(query->write->path);
    return status;
}
