#include "storage/stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/bounds.h"
#include "storage/scan_state.h"
#include "storage/thrift_write.h"

/* Each holds a file descriptor. */
enum { MOST_STAND_INS = 128, PATH_BYTES = 32 };

/* ---- the file's bytes ---- */

/* Column chunks of all row groups as one. */
struct whole_chunk {
    struct sx_bounds bounds;
    bool is_exact; /* both bounds */
};

/* The same column in another file, if it is surely the same and stored in the same way there. */
static const struct sx_file_column *same_column(const struct sx_footer *footer,
                                                const struct sx_file_column *column) {
    const int at = footer->has_twins ? -1 : sx_footer_find(footer, column->name);
    const struct sx_file_column *found = at < 0 ? NULL : &footer->columns[at];
    return found && !found->unreadable && sx_column_stored_alike(found, column) ? found : NULL;
}

static void join_chunk(struct whole_chunk *whole, bool is_first, const struct sx_file_column *column,
                       const struct sx_chunk_meta *chunk) {
    const struct sx_bounds bounds = sx_chunk_bounds(column, chunk);
    const bool is_exact = chunk->statistics.min_is_exact && chunk->statistics.max_is_exact;
    if (is_first) {
        *whole = (struct whole_chunk){bounds, is_exact};
        return;
    }
    sx_bounds_join(column, &whole->bounds, &bounds);
    whole->is_exact &= is_exact;
}

/* False: its statistics are not known. */
static bool join_column(struct sx_footer *const *footers, int n_footers, const struct sx_file_column *column,
                        struct whole_chunk *out_whole) {
    bool is_first = true;
    for (int f = 0; f < n_footers; f++) {
        const struct sx_file_column *own = f == 0 ? column : same_column(footers[f], column);
        if (!own)
            return false;
        for (int g = 0; g < footers[f]->n_groups; g++, is_first = false)
            join_chunk(out_whole, is_first, own, &footers[f]->groups[g].chunks[own->leaf]);
    }
    return !is_first;
}

static void put_statistics(struct sx_thrift_out *out, const struct whole_chunk *whole) {
    const struct sx_bounds *bounds = &whole->bounds;
    if (bounds->n_nulls < 0 && !bounds->min.bytes && !bounds->max.bytes)
        return;
    sx_thrift_begin(out, 12);
    if (bounds->n_nulls >= 0)
        sx_thrift_put_i64(out, 3, bounds->n_nulls);
    if (bounds->max.bytes)
        sx_thrift_put_binary(out, 5, bounds->max.bytes, bounds->max.length_bytes);
    if (bounds->min.bytes)
        sx_thrift_put_binary(out, 6, bounds->min.bytes, bounds->min.length_bytes);
    if (whole->is_exact && bounds->min.bytes && bounds->max.bytes) {
        sx_thrift_put_bool(out, 7, true);
        sx_thrift_put_bool(out, 8, true);
    }
    sx_thrift_end(out);
}

/* `column`: NULL for a leaf of which nothing is told. */
static void put_chunk(struct sx_thrift_out *out, struct sx_footer *const *footers, int n_footers,
                      const struct sx_file_column *column, int64_t n_rows,
                      const struct sx_schema_element *leaf) {
    struct whole_chunk whole = {0};
    const bool is_known = column && join_column(footers, n_footers, column, &whole);
    sx_thrift_begin(out, 0);
    sx_thrift_put_i64(out, 2, 0);
    sx_thrift_begin(out, 3);
    sx_thrift_put_i32(out, 1, leaf->physical);
    sx_thrift_put_list(out, 2, SX_THRIFT_I32, 0);
    sx_thrift_put_list(out, 3, SX_THRIFT_BINARY, 1);
    sx_thrift_add_binary(out, leaf->name, strlen(leaf->name));
    sx_thrift_put_i32(out, 4, 0);
    sx_thrift_put_i64(out, 5, is_known ? whole.bounds.n_rows : n_rows);
    sx_thrift_put_i64(out, 6, 0);
    sx_thrift_put_i64(out, 7, 0);
    sx_thrift_put_i64(out, 9, 4);
    if (is_known)
        put_statistics(out, &whole);
    sx_thrift_end(out);
    sx_thrift_end(out);
}

/* Leaves come in the schema's order, as columns do. */
static void put_group(struct sx_thrift_out *out, struct sx_footer *const *footers, int n_footers,
                      int64_t n_rows) {
    const struct sx_footer *first = footers[0];
    sx_thrift_put_list(out, 4, SX_THRIFT_STRUCT, 1);
    sx_thrift_begin(out, 0);
    sx_thrift_put_list(out, 1, SX_THRIFT_STRUCT, (size_t)first->n_leaves);
    for (int e = 1, leaf = 0, c = 0; e < first->n_elements; e++) {
        if (first->elements[e].n_children > 0)
            continue;
        while (c < first->n_columns && first->columns[c].leaf < leaf)
            c++;
        const bool is_column = c < first->n_columns && first->columns[c].leaf == leaf;
        const struct sx_file_column *column =
            is_column && !first->columns[c].unreadable ? &first->columns[c] : NULL;
        put_chunk(out, footers, n_footers, column, n_rows, &first->elements[e]);
        leaf++;
    }
    sx_thrift_put_i64(out, 2, 0);
    sx_thrift_put_i64(out, 3, n_rows);
    sx_thrift_end(out);
}

/* The first file's footer with other row groups. */
static bool put_footer(struct sx_thrift_out *out, struct sx_footer *const *footers, int n_footers,
                       int64_t n_rows) {
    struct sx_thrift in = sx_thrift_from(footers[0]->bytes, footers[0]->length_bytes);
    struct sx_thrift_field field = {0};
    while (sx_thrift_next(&in, &field)) {
        const uint8_t *value = in.at;
        sx_thrift_skip(&in, &field);
        if (field.id > 7) /* encryption; or unknown */
            return false;
        if (field.id == 3)
            sx_thrift_put_i64(out, 3, n_rows);
        else if (field.id == 4)
            put_group(out, footers, n_footers, n_rows);
        else
            sx_thrift_put_encoded(out, &field, value, (size_t)(in.at - value));
    }
    sx_thrift_end(out);
    return !in.wrong;
}

static bool is_usual(const struct sx_footer *footer) {
    for (int g = 0; g < footer->n_groups; g++)
        for (int leaf = 0; leaf < footer->n_leaves; leaf++) {
            const struct sx_chunk_meta *chunk = &footer->groups[g].chunks[leaf];
            if (!chunk->is_present || chunk->is_encrypted || chunk->is_elsewhere)
                return false;
        }
    return true;
}

bool sx_stand_in_write(struct sx_footer *const *footers, int n_footers, struct sx_bytes *out) {
    int64_t n_rows = 0;
    for (int f = 0; f < n_footers; f++)
        if (!is_usual(footers[f]) || __builtin_add_overflow(n_rows, footers[f]->n_rows, &n_rows))
            return false;
    sx_bytes_append(out, "PAR1", 4);
    const size_t begin = out->size;
    struct sx_thrift_out thrift = sx_thrift_to(out);
    if (n_rows == 0 || !put_footer(&thrift, footers, n_footers, n_rows))
        return false;
    sx_bytes_append_u32(out, (uint32_t)(out->size - begin));
    sx_bytes_append(out, "PAR1", 4);
    return !out->failed;
}

/* ---- in memory, with a name ---- */

struct stand_in {
    struct stand_in *next;
    char **files;
    struct sx_file_stamp *stamps;
    int n_files;
    int fd; /* -1: there can be none, as long as the files are the same */
    int version;
    char path[PATH_BYTES];
};

struct sx_stand_ins {
    struct stand_in *first;
    int n;
    int n_made;
};

static void release(struct stand_in *stand_in) {
    sx_file_close(stand_in->fd);
    for (int f = 0; stand_in->files && f < stand_in->n_files; f++)
        free(stand_in->files[f]);
    free(stand_in->files);
    free(stand_in->stamps);
    free(stand_in);
}

void sx_stand_ins_destroy(struct sx_stand_ins *stand_ins) {
    while (stand_ins && stand_ins->first) {
        struct stand_in *first = stand_ins->first;
        stand_ins->first = first->next;
        release(first);
    }
    free(stand_ins);
}

static struct stand_in *find(struct sx_stand_ins *stand_ins, const char *const *files, int n_files) {
    for (struct stand_in *at = stand_ins->first; at; at = at->next) {
        int f = at->n_files == n_files ? 0 : -1;
        while (f >= 0 && f < n_files)
            f = strcmp(at->files[f], files[f]) == 0 ? f + 1 : -1;
        if (f == n_files)
            return at;
    }
    return NULL;
}

static struct stand_in *add(struct sx_stand_ins *stand_ins, const char *const *files, int n_files) {
    struct stand_in *added = stand_ins->n < MOST_STAND_INS ? calloc(1, sizeof *added) : NULL;
    if (!added)
        return NULL;
    added->fd = -1;
    added->files = calloc((size_t)n_files, sizeof *added->files);
    added->stamps = calloc((size_t)n_files, sizeof *added->stamps);
    bool complete = added->files && added->stamps;
    for (; complete && added->n_files < n_files; added->n_files++)
        complete = (added->files[added->n_files] = strdup(files[added->n_files])) != NULL;
    if (!complete) {
        release(added);
        return NULL;
    }
    added->next = stand_ins->first;
    stand_ins->first = added;
    stand_ins->n++;
    return added;
}

/* Notes what the files are now; true: as they were. */
static bool is_current(struct stand_in *stand_in) {
    bool current = true;
    for (int f = 0; f < stand_in->n_files; f++) {
        struct stat found;
        struct sx_file_stamp stamp = {0};
        if (stat(stand_in->files[f], &found) == 0)
            sx_file_stamp_set(&found, &stamp);
        current &= sx_file_stamp_equal(&stamp, &stand_in->stamps[f]);
        stand_in->stamps[f] = stamp;
    }
    return current;
}

/* DuckDB keeps what it has read of a file by the file's name and time, of which each one has another. */
static int make_file(const struct sx_bytes *bytes, int number) {
    const struct timespec times[2] = {{.tv_sec = number}, {.tv_sec = number}};
    int fd = memfd_create("stachio-stand-in", MFD_CLOEXEC);
    if (fd >= 0 &&
        (write(fd, bytes->data, bytes->size) != (ssize_t)bytes->size || futimens(fd, times) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void make(struct sx_storage *storage, struct stand_in *stand_in) {
    struct sx_footer **footers = calloc((size_t)stand_in->n_files, sizeof(struct sx_footer *));
    struct sx_bytes bytes = sx_bytes_in(storage->budget, NULL);
    const int previous = stand_in->fd;
    bool complete = footers != NULL;
    int n = 0;
    for (; complete && n < stand_in->n_files; n++) {
        struct sx_file_stamp stamp;
        complete =
            sx_footer_cache_get(storage->footers, stand_in->files[n], &footers[n], &stamp, NULL) == SX_OK &&
            sx_file_stamp_equal(&stamp, &stand_in->stamps[n]);
    }
    stand_in->version = ++storage->stand_ins->n_made;
    stand_in->fd =
        complete && sx_stand_in_write(footers, n, &bytes) ? make_file(&bytes, stand_in->version) : -1;
    snprintf(stand_in->path, sizeof stand_in->path, "/proc/self/fd/%d", stand_in->fd);
    sx_file_close(previous); /* only now, so that the path is another one */
    for (int f = 0; f < n; f++)
        sx_footer_release(footers[f]);
    free(footers);
    sx_bytes_release(&bytes);
}

const char *sx_storage_stand_in(struct sx_storage *storage, const char *const *files, int n_files,
                                int *out_version) {
    if (!storage->stand_ins)
        storage->stand_ins = calloc(1, sizeof *storage->stand_ins);
    if (!storage->stand_ins || n_files < 1)
        return NULL;
    struct stand_in *stand_in = find(storage->stand_ins, files, n_files);
    if (!stand_in)
        stand_in = add(storage->stand_ins, files, n_files);
    if (!stand_in)
        return NULL;
    if (!is_current(stand_in))
        make(storage, stand_in);
    *out_version = stand_in->version;
    return stand_in->fd < 0 ? NULL : stand_in->path;
}
