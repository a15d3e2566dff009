/* How Parquet files are laid out, for people. */
#include <string.h>

#include "api/db.h"
#include "api/files.h"
#include "storage/inspect.h"

/* "PLAIN", without the number behind it. */
static const char *bare_name(struct sx_arena *arena, const char *name) {
    return sx_arena_copy_text(arena, name, strcspn(name, " "));
}

/* Adds what another file has of the column of that name. */
static void add_column(struct sx_inspect_column *columns, int n, const struct sx_inspect_column *more) {
    int c = 0;
    while (c < n && strcmp(columns[c].name, more->name) != 0)
        c++;
    if (c == n)
        return;
    columns[c].stored_bytes += more->stored_bytes;
    columns[c].plain_bytes += more->plain_bytes;
    columns[c].codecs |= more->codecs;
    columns[c].is_optional |= more->is_optional;
    for (int e = 0; e < SX_INSPECT_ENCODINGS; e++)
        columns[c].pages[e] += more->pages[e];
}

/* By the number of pages; with shares where there are several. */
static const char *encodings_text(struct sx_arena *arena, const struct sx_inspect_column *column) {
    int64_t left[SX_INSPECT_ENCODINGS], all = 0;
    const char *text = "";
    memcpy(left, column->pages, sizeof left);
    for (int e = 0; e < SX_INSPECT_ENCODINGS; e++)
        all += left[e];
    for (int64_t told = 0; text && told < all;) {
        int most = 0;
        for (int e = 1; e < SX_INSPECT_ENCODINGS; e++)
            most = left[e] > left[most] ? e : most;
        char buffer[SX_FORMAT_NAME_BYTES];
        const char *name = bare_name(arena, sx_encoding_name(most, buffer));
        const double share = 100 * (double)left[most] / (double)all;
        if (name && left[most] == all)
            text = name;
        else
            text = name ? sx_arena_format(arena, "%s%s%s %.*f %%", text, told ? ", " : "", name, share < 1,
                                          share)
                        : NULL;
        told += left[most];
        left[most] = 0;
    }
    return text;
}

static const char *codecs_text(struct sx_arena *arena, uint32_t codecs) {
    const char *text = "";
    for (int32_t codec = 1; text && codec < 32; codec++) {
        char buffer[SX_FORMAT_NAME_BYTES];
        if (!(codecs >> codec & 1))
            continue;
        const char *name = bare_name(arena, sx_codec_name(codec, buffer));
        text = name ? sx_arena_format(arena, "%s%s%s", text, *text ? ", " : "", name) : NULL;
    }
    return text;
}

static bool describe_column(struct sx_arena *arena, const struct sx_inspect_column *from,
                            struct stachio_parquet_column *to) {
    char name[SX_TYPE_NAME_BYTES];
    const char *type = from->unreadable ? from->unreadable : sx_type_name(from->type, name);
    *to = (struct stachio_parquet_column){
        .name = from->name,
        .type = sx_arena_copy_text(arena, type, strlen(type)),
        .encodings = encodings_text(arena, from),
        .codecs = codecs_text(arena, from->codecs),
        .is_optional = from->is_optional,
        .stored_bytes = from->stored_bytes,
        .plain_bytes = from->plain_bytes,
    };
    return to->type && to->encodings && to->codecs;
}

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a file's description");
}

static enum sx_status describe(struct sx_arena *arena, const struct sx_inspect *all,
                               struct stachio_parquet *parquet, struct sx_error *error) {
    struct stachio_parquet_column *columns =
        SX_ARENA_ARRAY(arena, all->n_columns, struct stachio_parquet_column);
    for (int c = 0; columns && c < all->n_columns; c++)
        if (!describe_column(arena, &all->columns[c], &columns[c]))
            columns = NULL;
    parquet->columns = columns;
    parquet->n_columns = all->n_columns;
    parquet->rows = all->rows;
    parquet->bytes = all->bytes;
    parquet->row_groups = all->row_groups;
    parquet->pages = all->pages;
    return columns ? SX_OK : no_memory(error);
}

static enum sx_status inspect_files(struct sx_arena *arena, const struct sx_file_list *list,
                                    struct stachio_parquet *parquet, struct sx_error *error) {
    struct stachio_parquet_file *files = SX_ARENA_ARRAY(arena, list->n_paths, struct stachio_parquet_file);
    struct sx_inspect all = {0};
    if (!files)
        return no_memory(error);
    for (int f = 0; f < list->n_paths; f++) {
        struct sx_inspect one;
        SX_TRY(sx_inspect_file(arena, list->paths[f], &one, error));
        files[f] = (struct stachio_parquet_file){list->paths[f], one.rows, one.bytes};
        all.rows += one.rows;
        all.bytes += one.bytes;
        all.row_groups += one.row_groups;
        all.pages += one.pages;
        for (int c = 0; f > 0 && c < one.n_columns; c++)
            add_column(all.columns, all.n_columns, &one.columns[c]);
        if (f == 0) {
            all.columns = one.columns;
            all.n_columns = one.n_columns;
        }
    }
    parquet->files = files;
    parquet->n_files = list->n_paths;
    return describe(arena, &all, parquet, error);
}

enum stachio_status stachio_inspect(struct stachio_db *db, const char *const *patterns, int n_patterns,
                                    const struct stachio_parquet **out_parquet, struct stachio_error *error) {
    struct sx_error inner = {0};
    struct sx_file_list list;
    pthread_mutex_lock(&db->lock);
    struct sx_arena *arena = &db->inspect_arena;
    sx_arena_release(arena);
    struct stachio_parquet *parquet = SX_ARENA_NEW(arena, struct stachio_parquet);
    enum sx_status status =
        parquet ? sx_files_match_all(arena, patterns, n_patterns, &list, &inner) : no_memory(&inner);
    if (status == SX_OK)
        status = inspect_files(arena, &list, parquet, &inner);
    pthread_mutex_unlock(&db->lock);
    if (status != SX_OK)
        return sx_api_fail(&inner, error);
    *out_parquet = parquet;
    return STACHIO_OK;
}
