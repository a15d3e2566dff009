/* Files that lie: whatever happens, it is an answer or a clear error. */
#include "unit/storage_taken.h"

static const struct sx_type big = {SX_TYPE_I64, 0, 0}, text = {SX_TYPE_VARCHAR, 0, 0};

static void read_damaged(struct fixture *fixture, const char *path) {
    struct table table = {.names = {"a", "b"}, .types = {big, text}, .n_files = 1, .n_columns = 2};
    table.files[0] = path;
    struct sx_scalar value = {.type = big, .v.i64 = 3};
    struct sx_prune prune = {0, SX_PRUNE_EQ, &value, 1};
    struct sx_scan_request request = {
        .files = table.files,
        .n_files = 1,
        .column_names = table.names,
        .column_types = table.types,
        .n_columns = 2,
        .prunes = &prune,
        .n_prunes = 1,
    };
    struct sx_error error = {0};
    struct sx_scan *scan = NULL;
    struct sx_row_group *group = NULL;
    enum sx_status status = sx_scan_open(fixture->storage, &request, NULL, &scan, &error);
    for (bool more = status == SX_OK; more; sx_row_group_release(group)) {
        status = sx_scan_next(scan, &group, &error);
        more = group != NULL;
        for (int c = 0; group && c < group->n_columns; c++)
            for (int p = 0; p < group->columns[c].n_pages; p++) {
                const struct sx_page *page = &group->columns[c].pages[p];
                if (page->bytes && page->stored_bytes)
                    assert(page->bytes[0] + page->bytes[page->stored_bytes - 1] >= 0);
            }
    }
    assert(status == SX_OK || status == SX_FILE || status == SX_UNSUPPORTED || status == SX_OUT_OF_MEMORY);
    assert(status != SX_FILE || strstr(error.text, path));
    sx_scan_close(scan);
}

static void test_damaged(const char *name, const char *path) {
    struct fixture fixture = fixture_create((size_t)64 << 20, 0);
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    char copy[64];
    snprintf(copy, sizeof copy, "%s-damaged", name);
    for (size_t at = 0; at < size; at++) {
        uint8_t sound = bytes[at];
        const uint8_t changes[] = {(uint8_t)(sound ^ 0x01), (uint8_t)(sound ^ 0x80), 0xff, 0};
        bytes[at] = changes[at % 4];
        read_damaged(&fixture, write_whole(copy, bytes, size));
        bytes[at] = sound;
    }
    for (size_t cut = 0; cut < size; cut += 7)
        read_damaged(&fixture, write_whole(copy, bytes, cut));
    free(bytes);
    fixture_destroy(&fixture);
}

static const char small_indexed_program[] =
    "import sys, pyarrow as pa, pyarrow.parquet as pq\n"
    "t = pa.table({'a': pa.array(range(300), pa.int64()), 'b': [str(x % 7) for x in range(300)]})\n"
    "pq.write_table(t, sys.argv[1], write_page_index=True, data_page_size=64, write_batch_size=32,\n"
    "  use_dictionary=['b'], write_page_checksum=True, data_page_version='2.0', store_schema=False)\n";

/* The chunk of the only row group's first column. */
static struct sx_chunk_meta first_chunk(const uint8_t *bytes, size_t size) {
    uint32_t footer_bytes;
    struct sx_footer *footer;
    struct sx_error error = {0};
    memcpy(&footer_bytes, bytes + size - 8, sizeof footer_bytes);
    uint8_t *copy = malloc(footer_bytes);
    assert(copy);
    memcpy(copy, bytes + size - 8 - footer_bytes, footer_bytes);
    assert(sx_footer_parse(copy, footer_bytes, (int64_t)size, &footer, &error) == SX_OK);
    const struct sx_chunk_meta chunk = footer->groups[0].chunks[0];
    sx_footer_release(footer);
    return chunk;
}

/* Rows of a from 40 on: one page of ten is left out. */
static enum sx_status take_from_40(struct fixture *fixture, const struct table *table,
                                   struct sx_error *error) {
    struct sx_scalar value = {.type = big, .v.i64 = 40};
    const struct sx_prune prune = {0, SX_PRUNE_GE, &value, 1};
    struct taken taken = taken_create();
    struct sx_scan *scan = open_table(fixture, table, &prune, 1, NULL);
    take_by(scan, 1, &taken);
    for (int64_t row = 40; row < 300; row++)
        assert(taken.error.status != SX_OK || taken.rows[row] == 1);
    sx_scan_close(scan);
    *error = taken.error;
    free(taken.rows);
    return error->status;
}

/* An offset index that tells of other rows than the pages have is an error, also in chunks read whole. */
static void test_shifted(const char *path) {
    struct fixture fixture = fixture_create(0, 0);
    struct table table = {.names = {"a", "b"}, .types = {big, text}, .n_files = 1, .n_columns = 2};
    struct sx_error error;
    size_t size;
    int n_told = 0;
    uint8_t *bytes = read_whole(path, &size);
    const struct sx_chunk_meta chunk = first_chunk(bytes, size);
    table.files[0] = path;
    assert(take_from_40(&fixture, &table, &error) == SX_OK);
    for (int64_t at = 0; at < chunk.offset_index_bytes; at++) {
        uint8_t *byte = bytes + chunk.offset_index_offset + at;
        *byte = (uint8_t)(*byte + 2); /* the next number, of most */
        table.files[0] = write_whole("shifted", bytes, size);
        if (take_from_40(&fixture, &table, &error) == SX_FILE)
            n_told += strstr(error.text, "by the offset index") != NULL;
        *byte = (uint8_t)(*byte - 2);
    }
    assert(n_told >= 9); /* first rows of pages */
    free(bytes);
    fixture_destroy(&fixture);
}

int main(void) {
    make_scratch();
    bool has_python = false;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (!use_variant(i))
            continue;
        test_damaged("small",
                     write_by_duckdb("small.parquet",
                                     "SELECT range % 10 AS a, 'x' || range % 5 AS b FROM range(40)", ""));
        const char *indexed = write_by_python("small-indexed", small_indexed_program);
        has_python = indexed != NULL;
        if (!indexed)
            continue;
        test_shifted(indexed);
        test_damaged("indexed", in_scratch("small-indexed"));
    }
    run_sql(NULL, NULL);
    remove_scratch();
    puts(has_python ? "ok" : "ok, but without pyarrow (PYTHON) the page index was not tried");
    return 0;
}
