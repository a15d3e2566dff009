/* Strings of the groups' keys. Their bytes stay where a batch has them while that is little memory, which the
 * group then keeps: mostly dictionaries, whose strings come again and again. Those of other batches are
 * copied. */
#include <stdlib.h>

#include "backend/cuda/group.h"
#include "backend/cuda/launch.h"

/* Of all heaps that a group keeps. */
enum { MOST_KEPT_BYTES = 64 << 20 };

static bool is_copied(const struct sx_group *group, const bool *borrowed, int k) {
    return group->keys[k].type.id == SX_TYPE_VARCHAR && !borrowed[k];
}

bool cuda_group_copies_strings(const struct sx_group *group, const bool *borrowed) {
    for (int k = 0; k < group->n_keys; k++)
        if (is_copied(group, borrowed, k))
            return true;
    return false;
}

/* ---- borrowed ---- */

static size_t heap_bytes(const struct sx_buffer *heap) {
    size_t bytes = heap->size_bytes;
    for (int i = 0; i < heap->n_keeps; i++)
        bytes += heap->keeps[i] ? heap_bytes(heap->keeps[i]) : 0;
    return bytes;
}

static bool is_kept(const struct sx_group *group, const struct sx_buffer *heap) {
    for (int i = 0; i < group->n_kept; i++)
        if (group->kept[i] == heap)
            return true;
    return false;
}

enum sx_status cuda_group_choose_borrowed(struct cuda_stream *stream, const struct sx_group *group,
                                          const struct sx_tensor *keys, bool **out_borrowed) {
    size_t bytes = group->kept_bytes;
    bool *borrowed = *out_borrowed = calloc((size_t)group->n_keys + 1, sizeof *borrowed);
    if (!borrowed)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for keys");
    for (int k = 0; k < group->n_keys; k++) {
        const struct sx_buffer *heap = cuda_heap_of(&keys[k]);
        if (group->keys[k].type.id != SX_TYPE_VARCHAR || !heap)
            continue;
        const size_t more = is_kept(group, heap) ? 0 : heap_bytes(heap);
        borrowed[k] = more <= MOST_KEPT_BYTES - bytes;
        bytes += borrowed[k] ? more : 0;
    }
    return SX_OK;
}

enum sx_status cuda_group_borrow_strings(struct cuda_stream *stream, struct sx_group *group,
                                         const struct sx_tensor *keys, const bool *borrowed) {
    for (int k = 0; k < group->n_keys; k++) {
        struct sx_buffer *heap = cuda_heap_of(&keys[k]);
        if (!borrowed[k] || is_kept(group, heap))
            continue;
        struct sx_buffer **kept =
            realloc(group->kept, ((size_t)group->n_kept + 1) * sizeof(struct sx_buffer *));
        if (!kept)
            return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for the strings of groups");
        group->kept = kept;
        kept[group->n_kept++] = sx_buffer_retain(heap);
        group->kept_bytes += heap_bytes(heap);
    }
    return SX_OK;
}

/* ---- copied ---- */

enum sx_status cuda_group_copy_strings(struct cuda_stream *stream, struct sx_group *group,
                                       const bool *borrowed, int64_t n_new, size_t bytes) {
    struct sx_buffer *lengths = NULL, *scratch = NULL;
    const size_t per_key = (size_t)n_new;
    char *heap;
    size_t n = 0;
    enum sx_status status;
    for (int k = 0; k < group->n_keys; k++)
        n += is_copied(group, borrowed, k) ? per_key : 0;
    SX_GO(cuda_group_heap_alloc(stream, group, bytes, &heap));
    SX_GO(sx_buffer_create(stream->base.pool, (n + 1) * sizeof(int64_t), &lengths, &stream->base.error));
    SX_GO(sx_buffer_create(stream->base.pool, cuda_exclusive_sum_bytes((int64_t)n), &scratch,
                           &stream->base.error));
    int64_t *offsets = lengths->data;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (int k = 0; k < group->n_keys; k++) {
            if (!is_copied(group, borrowed, k))
                continue;
            struct sx_string *views = (struct sx_string *)group->keys[k].values.data + group->n_groups;
            const uint8_t *valid = (uint8_t *)group->keys[k].valid.data + group->n_groups;
            if (pass == 0)
                cuda_string_lengths(stream->handle, views, valid, n_new, offsets + at);
            else
                cuda_string_copy(stream->handle, views, valid, n_new, offsets + at, heap, heap, views);
            at += per_key;
        }
        if (pass == 0)
            cuda_exclusive_sum(stream->handle, offsets, (int64_t)n, offsets, scratch->data);
    }
    SX_GO(cuda_launched(stream, "strings of groups"));
out:
    sx_buffer_release(lengths);
    sx_buffer_release(scratch);
    return status;
}

/* ---- all of them ---- */

enum sx_status cuda_group_join_heaps(struct cuda_stream *stream, struct sx_group *group) {
    const size_t n_blocks = (size_t)group->n_blocks, n_kept = (size_t)group->n_kept;
    struct sx_buffer **heaps = calloc(n_blocks + n_kept + 1, sizeof(struct sx_buffer *));
    if (!heaps)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for the strings of groups");
    for (size_t i = 0; i < n_blocks; i++)
        heaps[i] = group->blocks[i];
    for (size_t i = 0; i < n_kept; i++)
        heaps[n_blocks + i] = group->kept[i];
    enum sx_status status =
        sx_buffer_join(stream->base.pool, heaps, (int)(n_blocks + n_kept), &group->heap, &stream->base.error);
    free(heaps);
    return status;
}
