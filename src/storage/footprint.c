#include "storage/footprint.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Bytes [begin, end) of a file. */
struct piece {
    uint64_t device, inode;
    int64_t begin, end;
    bool is_cold;
};

struct sx_footprint {
    pthread_mutex_t lock;
    struct piece *pieces;
    size_t n_pieces, room;
    char *cold_path;
    int64_t cold_file_bytes; /* of that file */
};

static enum sx_status no_memory(struct sx_error *error) {
    return sx_error_set(error, SX_OUT_OF_MEMORY, "out of memory: no memory for counting what is read");
}

enum sx_status sx_footprint_create(struct sx_footprint **out_footprint, struct sx_error *error) {
    struct sx_footprint *footprint = calloc(1, sizeof *footprint);
    if (!footprint)
        return no_memory(error);
    pthread_mutex_init(&footprint->lock, NULL);
    *out_footprint = footprint;
    return SX_OK;
}

void sx_footprint_destroy(struct sx_footprint *footprint) {
    if (!footprint)
        return;
    pthread_mutex_destroy(&footprint->lock);
    free(footprint->pieces);
    free(footprint->cold_path);
    free(footprint);
}

/* ---- adding ---- */

static bool make_room(struct sx_footprint *footprint, int n_parts) {
    enum { FIRST_ROOM = 256 };
    const size_t wanted = footprint->n_pieces + (size_t)n_parts;
    if (wanted <= footprint->room)
        return true;
    const size_t doubled = footprint->room ? 2 * footprint->room : FIRST_ROOM;
    const size_t room = wanted > doubled ? wanted : doubled;
    struct piece *grown = realloc(footprint->pieces, room * sizeof *grown);
    if (!grown)
        return false;
    footprint->pieces = grown;
    footprint->room = room;
    return true;
}

static bool note_cold_path(struct sx_footprint *footprint, const char *path,
                           const struct sx_file_stamp *file) {
    if (footprint->cold_path && file->size_bytes <= footprint->cold_file_bytes)
        return true;
    char *copy = strdup(path);
    if (!copy)
        return false;
    free(footprint->cold_path);
    footprint->cold_path = copy;
    footprint->cold_file_bytes = file->size_bytes;
    return true;
}

/* Parts that follow each other, as pages do, become one piece. */
static void add_part(struct sx_footprint *footprint, const struct sx_file_stamp *file,
                     const struct sx_footprint_part *part, size_t first) {
    struct piece *last = footprint->n_pieces > first ? &footprint->pieces[footprint->n_pieces - 1] : NULL;
    const int64_t end = part->offset + part->length_bytes;
    if (last && last->end == part->offset && last->is_cold == part->is_cold)
        last->end = end;
    else
        footprint->pieces[footprint->n_pieces++] =
            (struct piece){file->device, file->inode, part->offset, end, part->is_cold};
}

enum sx_status sx_footprint_add(struct sx_footprint *footprint, const char *path,
                                const struct sx_file_stamp *file, const struct sx_footprint_part *parts,
                                int n_parts, struct sx_error *error) {
    bool is_cold = false;
    for (int i = 0; i < n_parts; i++)
        is_cold |= parts[i].is_cold;
    pthread_mutex_lock(&footprint->lock);
    const size_t first = footprint->n_pieces;
    const bool has_room =
        make_room(footprint, n_parts) && (!is_cold || note_cold_path(footprint, path, file));
    for (int i = 0; has_room && i < n_parts; i++)
        add_part(footprint, file, &parts[i], first);
    pthread_mutex_unlock(&footprint->lock);
    return has_room ? SX_OK : no_memory(error);
}

/* ---- the total ---- */

static int compare_pieces(const void *a, const void *b) {
    const struct piece *first = a, *second = b;
    if (first->device != second->device)
        return first->device > second->device ? 1 : -1;
    if (first->inode != second->inode)
        return first->inode > second->inode ? 1 : -1;
    return (first->begin > second->begin) - (first->begin < second->begin);
}

/* Bytes of the sorted pieces (those that are cold, or all), what overlaps once. */
static int64_t cover(const struct piece *pieces, size_t n, bool only_cold) {
    const struct piece *before = NULL;
    int64_t bytes = 0, end = 0; /* of what is counted of this file */
    for (const struct piece *piece = pieces; piece < pieces + n; piece++) {
        if (only_cold && !piece->is_cold)
            continue;
        if (!before || piece->device != before->device || piece->inode != before->inode)
            end = 0;
        if (piece->end > end) {
            bytes += piece->end - (piece->begin > end ? piece->begin : end);
            end = piece->end;
        }
        before = piece;
    }
    return bytes;
}

void sx_footprint_total(struct sx_footprint *footprint, struct sx_footprint_total *out_total) {
    if (footprint->n_pieces > 0)
        qsort(footprint->pieces, footprint->n_pieces, sizeof *footprint->pieces, compare_pieces);
    *out_total = (struct sx_footprint_total){
        .bytes = cover(footprint->pieces, footprint->n_pieces, false),
        .cold_bytes = cover(footprint->pieces, footprint->n_pieces, true),
        .cold_path = footprint->cold_path,
    };
}
