/* Opening DuckDB, and the tables that it knows. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/duckdb_handle.h"
#include "plan/text.h"

#ifndef STACHIO_DUCKDB_VERSION
#define STACHIO_DUCKDB_VERSION "v1.5.6"
#endif

enum sx_status sx_duckdb_execute(duckdb_connection connection, const char *sql, struct sx_error *error) {
    duckdb_result result;
    enum sx_status status = SX_OK;
    if (duckdb_query(connection, sql, &result) != DuckDBSuccess)
        status = sx_duckdb_error(error, duckdb_result_error(&result));
    duckdb_destroy_result(&result);
    return status;
}

enum sx_status sx_duckdb_set_optimizers(struct sx_frontend *frontend, const char *optimizers,
                                        struct sx_error *error) {
    char sql[512];
    if (frontend->optimizers == optimizers)
        return SX_OK;
    snprintf(sql, sizeof sql, "SET disabled_optimizers='%s'", optimizers);
    SX_TRY(sx_duckdb_execute(frontend->planner, sql, error));
    frontend->optimizers = optimizers;
    return SX_OK;
}

/* ---- opening ---- */

static enum sx_status make_config(int threads, size_t memory_limit_bytes, duckdb_config *out_config,
                                  struct sx_error *error) {
    char threads_text[16], memory_text[32];
    snprintf(threads_text, sizeof threads_text, "%d", threads > 0 ? threads : 1);
    snprintf(memory_text, sizeof memory_text, "%zuB", memory_limit_bytes);
    const struct {
        const char *name;
        const char *value;
    } options[] = {
        {"threads", threads_text},
        {"autoinstall_known_extensions", "false"},
        {"autoload_known_extensions", "false"},
        {"errors_as_json", "true"},
        {"memory_limit", memory_text},
    };
    const size_t n = sizeof options / sizeof *options - (memory_limit_bytes == 0);
    if (duckdb_create_config(out_config) != DuckDBSuccess)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for DuckDB's configuration");
    for (size_t i = 0; i < n; i++)
        if (duckdb_set_config(*out_config, options[i].name, options[i].value) != DuckDBSuccess)
            return sx_error_set(error, SX_INTERNAL, "DuckDB does not know the setting %s = %s",
                                options[i].name, options[i].value);
    return SX_OK;
}

static enum sx_status open_database(struct sx_frontend *frontend, duckdb_config config,
                                    struct sx_error *error) {
    char *message = NULL;
    if (duckdb_open_ext(NULL, &frontend->database, config, &message) != DuckDBSuccess) {
        (void)sx_error_set(error, SX_INTERNAL, "DuckDB can't be opened: %s", message ? message : "");
        duckdb_free(message);
        return SX_INTERNAL;
    }
    if (duckdb_connect(frontend->database, &frontend->binder) != DuckDBSuccess ||
        duckdb_connect(frontend->database, &frontend->planner) != DuckDBSuccess ||
        duckdb_connect(frontend->database, &frontend->runner) != DuckDBSuccess)
        return sx_error_set(error, SX_INTERNAL, "no connection to DuckDB");
    const duckdb_connection all[] = {frontend->binder, frontend->planner, frontend->runner};
    for (int i = 0; i < 3; i++) /* of each connection, though the cache is shared */
        SX_TRY(sx_duckdb_execute(all[i], "SET parquet_metadata_cache = true", error));
    return sx_duckdb_execute(frontend->binder, "PRAGMA disable_optimizer", error);
}

enum sx_status sx_frontend_open(int threads, size_t memory_limit_bytes, struct sx_frontend **out_frontend,
                                struct sx_error *error) {
    duckdb_config config = NULL;
    enum sx_status status = SX_OK;
    if (strcmp(duckdb_library_version(), STACHIO_DUCKDB_VERSION) != 0)
        return sx_error_set(error, SX_INTERNAL, "libduckdb is %s, but this program is made for %s",
                            duckdb_library_version(), STACHIO_DUCKDB_VERSION);
    struct sx_frontend *frontend = calloc(1, sizeof *frontend);
    if (!frontend)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for the front end");
    frontend->broken_table = -1;
    sx_frontend_set_origin(frontend, 1, 1);
    SX_GO(make_config(threads, memory_limit_bytes, &config, error));
    SX_GO(open_database(frontend, config, error));
    *out_frontend = frontend;
    frontend = NULL;
out:
    duckdb_destroy_config(&config);
    sx_frontend_close(frontend);
    return status;
}

static void release_table(struct sx_frontend_table *table) {
    for (int i = 0; i < table->n_files; i++)
        free(table->files[i]);
    free(table->files);
    free(table->parts);
    free(table->name);
    free(table->stand_in);
    *table = (struct sx_frontend_table){0};
}

void sx_frontend_close(struct sx_frontend *frontend) {
    if (!frontend)
        return;
    duckdb_destroy_prepare(&frontend->serialize);
    duckdb_disconnect(&frontend->runner);
    duckdb_disconnect(&frontend->planner);
    duckdb_disconnect(&frontend->binder);
    duckdb_close(&frontend->database);
    sx_plan_memo_clear(&frontend->memo);
    for (int i = 0; i < frontend->n_tables; i++)
        release_table(&frontend->tables[i]);
    free(frontend->tables);
    free(frontend->names);
    free(frontend);
}

void sx_frontend_set_origin(struct sx_frontend *frontend, int line, int column) {
    frontend->first_line = line > 0 ? line : 1;
    frontend->first_column = column > 0 ? column : 1;
}

void sx_frontend_interrupt(struct sx_frontend *frontend) {
    duckdb_interrupt(frontend->binder);
    duckdb_interrupt(frontend->planner);
    duckdb_interrupt(frontend->runner);
}

/* ---- tables ---- */

/* Opening a pipe for reading waits for who writes, for ever. A file that is not there is for others to
 * report. */
static enum sx_status check_regular(const char *path, struct sx_error *error) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return sx_error_set(error, SX_FILE, "%s: is not a regular file", path);
    return SX_OK;
}

static enum sx_status check_file(const char *path, struct sx_error *error) {
    struct stat status;
    if (stat(path, &status) != 0 || access(path, R_OK) != 0)
        return sx_error_set(error, SX_FILE, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return sx_error_set(error, SX_FILE, "%s: is not a regular file", path);
    if (status.st_size == 0)
        return sx_error_set(error, SX_FILE, "%s: the file is empty", path);
    return SX_OK;
}

/* In one piece of memory. */
static struct sx_table_parts *copy_parts(const struct sx_table_parts *parts, int n_files) {
    struct sx_table_parts *copy = malloc(sizeof *copy + (size_t)n_files * sizeof *parts->is_local);
    if (!copy)
        return NULL;
    bool *is_local = (bool *)(copy + 1);
    memcpy(is_local, parts->is_local, (size_t)n_files * sizeof *is_local);
    *copy = (struct sx_table_parts){is_local, parts->share, parts->n_shares};
    return copy;
}

static enum sx_status make_table(const char *name, const char *const *files, int n_files,
                                 const struct sx_table_parts *parts, struct sx_frontend_table *out_table,
                                 struct sx_error *error) {
    struct sx_frontend_table table = {.name = strdup(name),
                                      .files = calloc((size_t)n_files, sizeof(char *)),
                                      .parts = parts ? copy_parts(parts, n_files) : NULL};
    bool complete = table.name && table.files && (table.parts || !parts);
    for (int i = 0; complete && i < n_files; i++) {
        table.files[i] = strdup(files[i]);
        complete = table.files[i] != NULL;
        table.n_files = i + 1;
    }
    if (!complete) {
        release_table(&table);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for table %s", name);
    }
    *out_table = table;
    return SX_OK;
}

static bool reserve_table(struct sx_frontend *frontend) {
    if (frontend->n_tables < frontend->table_capacity)
        return true;
    const int capacity = frontend->table_capacity ? frontend->table_capacity * 2 : 8;
    struct sx_frontend_table *tables = realloc(frontend->tables, (size_t)capacity * sizeof *frontend->tables);
    if (!tables)
        return false;
    frontend->tables = tables;
    const char **names = realloc(frontend->names, (size_t)capacity * sizeof *names);
    if (!names)
        return false;
    frontend->names = names;
    frontend->table_capacity = capacity;
    return true;
}

static struct sx_frontend_table *find_table(struct sx_frontend *frontend, const char *name) {
    for (int i = 0; i < frontend->n_tables; i++)
        if (strcasecmp(frontend->tables[i].name, name) == 0)
            return &frontend->tables[i];
    return NULL;
}

enum sx_status sx_frontend_add_table(struct sx_frontend *frontend, const char *name, const char *const *files,
                                     int n_files, const struct sx_table_parts *parts,
                                     struct sx_error *error) {
    struct sx_frontend_table table;
    if (n_files < 1)
        return sx_error_set(error, SX_FILE, "table %s has no files", name);
    for (int i = 0; i < n_files; i++)
        SX_TRY(check_file(files[i], error));
    SX_TRY(make_table(name, files, n_files, parts, &table, error));
    sx_plan_memo_clear(&frontend->memo);
    struct sx_frontend_table *place = find_table(frontend, name);
    if (place) {
        release_table(place);
    } else {
        if (!reserve_table(frontend)) {
            release_table(&table);
            return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for table %s", name);
        }
        place = &frontend->tables[frontend->n_tables++];
    }
    *place = table;
    return SX_OK;
}

int sx_frontend_tables(struct sx_frontend *frontend, const char *const **out_names) {
    for (int i = 0; i < frontend->n_tables; i++)
        frontend->names[i] = frontend->tables[i].name;
    *out_names = frontend->names;
    return frontend->n_tables;
}

/* ---- views ---- */

/* read_parquet takes patterns; a file's name stands for itself. */
static void add_path(struct sx_text *text, const char *path) {
    struct sx_text plain = {.arena = text->arena};
    for (const char *at = path; *at; at++) {
        if (strchr("*?[", *at))
            sx_text_add(&plain, "[%c]", *at);
        else
            sx_text_add_bytes(&plain, at, 1);
    }
    text->failed = text->failed || plain.failed;
    if (!text->failed)
        sx_text_add_quoted(text, plain.length ? plain.bytes : "", '\'');
}

static void add_view(struct sx_text *sql, const struct sx_frontend_table *table, const char *const *files,
                     int n_files) {
    sx_text_add(sql, "CREATE OR REPLACE VIEW memory.main."); /* whatever USE says */
    sx_text_add_quoted(sql, table->name, '"');
    sx_text_add(sql, " AS SELECT * FROM read_parquet([");
    for (int i = 0; i < n_files; i++) {
        sx_text_add(sql, "%s", i ? ", " : "");
        add_path(sql, files[i]);
    }
    sx_text_add(sql, "], hive_partitioning = false)");
}

/* Over the files, or over a stand-in. */
static enum sx_status make_view(struct sx_frontend *frontend, struct sx_frontend_table *table,
                                const char *stand_in, struct sx_error *error) {
    struct sx_arena arena = {0};
    struct sx_text sql = {.arena = &arena};
    struct sx_error cause = {0};
    enum sx_status status = SX_OK;
    char *path = stand_in ? strdup(stand_in) : NULL;
    sx_plan_memo_clear(&frontend->memo);
    free(table->stand_in);
    table->stand_in = NULL;
    table->view = SX_VIEW_NONE;
    add_view(&sql, table, stand_in ? &stand_in : (const char *const *)table->files,
             stand_in ? 1 : table->n_files);
    if (sql.failed || (stand_in && !path))
        SX_GO(sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for table %s", table->name));
    status = sx_duckdb_execute(frontend->planner, sql.bytes, &cause);
    if (status == SX_OK) {
        table->view = stand_in ? SX_VIEW_STAND_IN : SX_VIEW_FILES;
        table->stand_in = path;
        path = NULL;
    } else if (status == SX_OUT_OF_MEMORY || status == SX_CANCELLED) {
        status = sx_error_set(error, status, "%s", cause.text);
    } else {
        status = sx_error_set(error, SX_FILE, "table %s, %s%s: %s", table->name, table->files[0],
                              table->n_files > 1 ? " and others" : "", cause.text);
    }
out:
    free(path);
    sx_arena_release(&arena);
    return status;
}

static bool is_name_byte(char byte) {
    return isalnum((unsigned char)byte) || byte == '_' || (unsigned char)byte >= 0x80;
}

bool sx_frontend_mentions(const char *sql, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (name[i] == '"' || (unsigned char)name[i] >= 0x80)
            return true;
    for (const char *at = length ? strcasestr(sql, name) : NULL; at; at = strcasestr(at + 1, name)) {
        const bool starts = at == sql || !is_name_byte(at[-1]) || !is_name_byte(name[0]);
        const bool ends = !is_name_byte(at[length]) || !is_name_byte(name[length - 1]);
        if (starts && ends)
            return true;
    }
    return false;
}

/* Of the table's files as they are now. */
static const char *find_stand_in(struct sx_frontend *frontend, const struct sx_frontend_table *table,
                                 int *out_version) {
    const struct sx_stand_in_source *source = &frontend->stand_ins;
    return source->find
               ? source->find(source->context, (const char *const *)table->files, table->n_files, out_version)
               : NULL;
}

enum sx_status sx_duckdb_refuse_parts(const struct sx_frontend *frontend, const char *sql,
                                      struct sx_error *error) {
    for (int i = 0; i < frontend->n_tables && !sx_statement_only_tells(sql); i++)
        if (frontend->tables[i].parts && sx_frontend_mentions(sql, frontend->tables[i].name))
            return sx_error_set(error, SX_UNSUPPORTED,
                                "each rank has files of its own of table %s, and DuckDB runs on rank 0 alone",
                                frontend->tables[i].name);
    return SX_OK;
}

/* What DuckDB opens by its name, whether the view is made now or was there. */
static enum sx_status make_file_view(struct sx_frontend *frontend, struct sx_frontend_table *table,
                                     struct sx_error *error) {
    for (int i = 0; i < table->n_files; i++)
        SX_TRY(check_regular(table->files[i], error));
    return table->view == SX_VIEW_FILES ? SX_OK : make_view(frontend, table, NULL, error);
}

static enum sx_status make_planning_view(struct sx_frontend *frontend, struct sx_frontend_table *table,
                                         struct sx_error *error) {
    int version = 0;
    const char *stand_in = find_stand_in(frontend, table, &version);
    if (stand_in && table->view == SX_VIEW_STAND_IN && version == table->stand_in_version)
        return SX_OK;
    if (stand_in && make_view(frontend, table, stand_in, NULL) == SX_OK) {
        table->stand_in_version = version;
        return SX_OK;
    }
    return make_file_view(frontend, table, error);
}

bool sx_duckdb_has_stand_ins(struct sx_frontend *frontend, const char *sql) {
    for (int i = 0; i < frontend->n_tables; i++) {
        const struct sx_frontend_table *table = &frontend->tables[i];
        int version = 0;
        if (sx_frontend_mentions(sql, table->name) &&
            (table->view != SX_VIEW_STAND_IN || !find_stand_in(frontend, table, &version) ||
             version != table->stand_in_version))
            return false;
    }
    return !frontend->has_objects;
}

/* Nothing that a statement reaches by other ways than its text, as by query_table, may be a stand-in. */
static enum sx_status undo_stand_in(struct sx_frontend *frontend, struct sx_frontend_table *table,
                                    struct sx_error *error) {
    struct sx_arena arena = {0};
    struct sx_text sql = {.arena = &arena};
    enum sx_status status = make_file_view(frontend, table, NULL);
    if (status == SX_OK)
        return SX_OK;
    sx_text_add(&sql, "DROP VIEW IF EXISTS memory.main.");
    sx_text_add_quoted(&sql, table->name, '"');
    status = sql.failed ? sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for table %s", table->name)
                        : sx_duckdb_execute(frontend->planner, sql.bytes, error);
    sx_arena_release(&arena);
    return status;
}

enum sx_status sx_duckdb_make_views(struct sx_frontend *frontend, const char *sql, enum sx_views_for purpose,
                                    struct sx_error *error) {
    /* what is made after it has begun, a transaction does not see */
    const bool begins = purpose == SX_VIEWS_FOR_RUNNING && sx_statement_begins_transaction(sql);
    const bool all = begins || sx_statement_reads_catalog(sql);
    const bool stand_in = purpose == SX_VIEWS_FOR_PLANNING && !frontend->has_objects && !all;
    frontend->broken_table = -1;
    for (int i = 0; i < frontend->n_tables; i++) {
        struct sx_frontend_table *table = &frontend->tables[i];
        enum sx_status status = SX_OK;
        if (!all && !sx_frontend_mentions(sql, table->name)) {
            if (table->view == SX_VIEW_STAND_IN && purpose == SX_VIEWS_FOR_RUNNING)
                status = undo_stand_in(frontend, table, error);
        } else if (stand_in) {
            status = make_planning_view(frontend, table, error);
        } else {
            status = make_file_view(frontend, table, error);
        }
        if (status == SX_FILE && begins)
            continue;
        if (status == SX_FILE)
            frontend->broken_table = i;
        SX_TRY(status);
    }
    return SX_OK;
}

void sx_frontend_set_stand_ins(struct sx_frontend *frontend, struct sx_stand_in_source source) {
    sx_plan_memo_clear(&frontend->memo);
    frontend->stand_ins = source;
}

int sx_frontend_broken_files(const struct sx_frontend *frontend, const char *const **out_files) {
    if (frontend->broken_table < 0)
        return 0;
    const struct sx_frontend_table *table = &frontend->tables[frontend->broken_table];
    *out_files = (const char *const *)table->files;
    return table->n_files;
}
