/* Parquet files for the storage tests: a scratch folder, files written by DuckDB or pyarrow, damaged copies.
 */
#ifndef SX_TEST_UNIT_STORAGE_FILES_H
#define SX_TEST_UNIT_STORAGE_FILES_H

#include <assert.h>
#include <duckdb.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"
#include "storage/file.h"
#include "storage/footer.h"

static inline void run_sql(duckdb_result *result, const char *sql) {
    static duckdb_database database;
    static duckdb_connection connection;
    if (!sql) {
        duckdb_disconnect(&connection);
        duckdb_close(&database);
        return;
    }
    if (!connection) {
        assert(duckdb_open(NULL, &database) == DuckDBSuccess);
        assert(duckdb_connect(database, &connection) == DuckDBSuccess);
        assert(duckdb_query(connection, "SET threads = 1", NULL) == DuckDBSuccess);
    }
    duckdb_result own = {0};
    if (duckdb_query(connection, sql, &own) != DuckDBSuccess) {
        fprintf(stderr, "%s\n%s\n", sql, duckdb_result_error(&own));
        abort();
    }
    if (result)
        *result = own;
    else
        duckdb_destroy_result(&own);
}

/* COPY (query) TO the file in the scratch folder. */
static inline const char *write_by_duckdb(const char *name, const char *query, const char *options) {
    char sql[4096];
    const char *path = in_scratch(name);
    snprintf(sql, sizeof sql, "COPY (%s) TO '%s' (FORMAT parquet%s)", query, path, options);
    run_sql(NULL, sql);
    return path;
}

/* Runs a Python program with the path as its argument; NULL where Python with pyarrow is not at hand. */
static inline const char *write_by_python(const char *name, const char *program) {
    const char *python = getenv("PYTHON"), *path = in_scratch(name), *script = in_scratch("write.py");
    if (!python)
        return NULL;
    FILE *file = fopen(script, "w");
    assert(file && fputs(program, file) >= 0 && fclose(file) == 0);
    char command[1024];
    snprintf(command, sizeof command, "'%s' '%s' '%s'", python, script, path);
    return system(command) == 0 ? path : NULL;
}

static inline uint8_t *read_whole(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    assert(file && fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + 1);
    assert(bytes && fread(bytes, 1, *size, file) == *size);
    fclose(file);
    return bytes;
}

static inline const char *write_whole(const char *name, const void *bytes, size_t size) {
    const char *path = in_scratch(name);
    FILE *file = fopen(path, "wb");
    assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    return path;
}

/* NULL: the file is refused. */
static inline struct sx_footer *load_footer(const char *path) {
    struct sx_error error = {0};
    struct sx_file_stamp stamp;
    struct sx_footer *footer;
    int fd;
    assert(sx_file_open(path, &fd, &stamp, &error) == SX_OK);
    enum sx_status status = sx_footer_read(path, fd, stamp.size_bytes, &footer, &error);
    sx_file_close(fd);
    return status == SX_OK ? footer : NULL;
}

#endif
