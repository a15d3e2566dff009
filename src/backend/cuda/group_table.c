/* Group numbers of a batch's rows: looked up in the hash table, which takes in the new ones. */
#include <stdlib.h>

#include "backend/cuda/group.h"
#include "backend/cuda/launch.h"

/* ---- the table ---- */

static struct cuda_group_table table_of(const struct sx_group *group) {
    return (struct cuda_group_table){group->slots->data, (uint64_t)group->n_slots - 1};
}

static int64_t slots_for(int64_t n_slots, int64_t n_groups) {
    enum { LEAST = 1 << 12 };
    n_slots = n_slots ? n_slots : LEAST;
    while (n_slots < 2 * n_groups)
        n_slots *= 2;
    return n_slots;
}

/* A table of `n_slots` in the place of what there is; after an error there is none. */
static enum sx_status make_slots(struct cuda_stream *stream, struct sx_group *group, int64_t n_slots) {
    const size_t bytes = (size_t)n_slots * sizeof(uint64_t);
    struct sx_buffer *slots;
    sx_buffer_release(group->slots);
    group->slots = NULL;
    group->n_slots = 0;
    SX_TRY(cuda_shared_create(stream, bytes, &slots));
    group->slots = slots;
    group->n_slots = n_slots;
    SX_TRY(cuda_check(stream, cudaMemsetAsync(slots->data, 0, bytes, stream->handle), "clearing a table"));
    if (group->n_groups > 0)
        cuda_group_rehash(stream->handle, table_of(group), group->hashes.data, group->n_groups);
    return cuda_launched(stream, "rehash");
}

/* At most half full, even if each of `rows` rows makes a group. */
static enum sx_status ensure_slots(struct cuda_stream *stream, struct sx_group *group, int64_t rows) {
    const int64_t least = slots_for(group->n_slots, group->n_groups + rows);
    if (least == group->n_slots)
        return SX_OK;
    const int64_t more = slots_for(least, cuda_group_expected(group, group->n_groups + rows));
    const enum sx_status status = make_slots(stream, group, more);
    return status == SX_OUT_OF_MEMORY && least < more ? make_slots(stream, group, least) : status;
}

static enum sx_status grow_keys(struct cuda_stream *stream, struct sx_group *group, int64_t capacity,
                                struct cuda_group_growing *growing) {
    const int64_t used = group->n_groups;
    SX_TRY(cuda_group_array_grow(stream, &group->hashes, used, capacity, false, growing));
    for (int k = 0; k < group->n_keys; k++) {
        struct cuda_group_key_store *key = &group->keys[k];
        SX_TRY(cuda_group_array_grow(stream, &key->values, used, capacity, false, growing));
        SX_TRY(cuda_group_array_grow(stream, &key->valid, used, capacity, false, growing));
    }
    SX_TRY(cuda_group_grow_noted(stream, growing));
    group->key_capacity = capacity;
    return SX_OK;
}

/* ---- keys for kernels ---- */

static bool has_no_values(const struct sx_tensor *key) {
    return key->type.id == SX_TYPE_NULLTYPE || (key->layout == SX_DICT && key->dict->values.length == 0);
}

static struct cuda_group_key key_of(const struct cuda_group_key_store *store, const struct sx_tensor *input,
                                    const struct sx_buffer *hashes, bool is_borrowed) {
    return (struct cuda_group_key){
        .input = cuda_column_of(input),
        .stored = {.values = store->values.data,
                   .valid = store->valid.data,
                   .layout = CUDA_FLAT,
                   .phys = (int32_t)sx_type_phys(store->type)},
        .entry_hashes = hashes ? hashes->data : NULL,
        .n_entries = hashes ? (int32_t)input->dict->values.length : 0,
        .all_null = has_no_values(input),
        .is_borrowed = is_borrowed,
    };
}

static enum sx_status upload_keys(struct cuda_stream *stream, const struct sx_group *group,
                                  const struct cuda_group_search *search, struct sx_buffer **out_keys) {
    struct cuda_group_key *keys = calloc((size_t)group->n_keys, sizeof *keys);
    if (!keys)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for keys");
    for (int k = 0; k < group->n_keys; k++)
        keys[k] = key_of(&group->keys[k], &search->keys[k], search->hashes ? search->hashes[k] : NULL,
                         search->borrowed && search->borrowed[k]);
    enum sx_status status = cuda_upload_buffer(stream, keys, (size_t)group->n_keys * sizeof *keys, out_keys);
    free(keys);
    return status;
}

/* Strings of a dictionary are hashed once, unless it has more entries than the batch rows. */
static enum sx_status hash_dictionaries(struct cuda_stream *stream, const struct sx_group *group,
                                        struct cuda_group_search *search) {
    search->hashes = calloc((size_t)group->n_keys + 1, sizeof(struct sx_buffer *));
    if (!search->hashes)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for keys");
    for (int k = 0; k < group->n_keys; k++) {
        const struct sx_tensor *key = &search->keys[k];
        if (key->layout != SX_DICT || key->type.id != SX_TYPE_VARCHAR || has_no_values(key) ||
            key->dict->values.length >= search->rows)
            continue;
        const struct sx_tensor *entries = &key->dict->values;
        SX_TRY(sx_buffer_create(stream->base.pool, (size_t)entries->length * sizeof(uint64_t),
                                &search->hashes[k], &stream->base.error));
        cuda_group_hash_entries(stream->handle, cuda_column_of(entries), entries->length,
                                search->hashes[k]->data);
    }
    return cuda_launched(stream, "hashes of a dictionary");
}

/* ---- search ---- */

/* The rows where groups are new: search->new_rows, and their number in a counter. */
static enum sx_status list_new(struct cuda_stream *stream, const struct sx_group *group,
                               struct cuda_group_search *search) {
    struct sx_pool *pool = stream->base.pool;
    struct sx_buffer *flags = NULL, *made = NULL;
    void *scratch;
    enum sx_status status;
    SX_GO(sx_buffer_create(pool, (size_t)search->rows, &flags, &stream->base.error));
    SX_GO(cuda_select_scratch(stream, search->rows, &made, &scratch));
    SX_GO(sx_buffer_create(pool, (size_t)search->rows * sizeof(int32_t), &search->new_rows,
                           &stream->base.error));
    cuda_group_flag_new(stream->handle, table_of(group), search->numbers, flags->data);
    cuda_select_flags(stream->handle, flags->data, search->rows, search->new_rows->data,
                      cuda_counter_place(stream, CUDA_GROUP_NEW), scratch);
    SX_GO(cuda_launched(stream, "new groups"));
out:
    sx_buffer_release(flags);
    sx_buffer_release(made);
    return status;
}

static bool has_strings(const struct sx_group *group) {
    for (int k = 0; k < group->n_keys; k++)
        if (group->keys[k].type.id == SX_TYPE_VARCHAR)
            return true;
    return false;
}

/* Of the keys' entries, where these have hashes and no key may be NULL; 0: they are too many, or there is
 * nothing to find among them. */
static int32_t combinations_of(const struct sx_group *group, const struct cuda_group_search *search) {
    int64_t n = group->n_groups > 0;
    for (int k = 0; k < group->n_keys && n > 0; k++) {
        const struct sx_tensor *key = &search->keys[k];
        n = search->hashes[k] && !key->valid ? n * key->dict->values.length : 0;
        n = n <= CUDA_GROUP_COMBINATIONS ? n : 0;
    }
    return (int32_t)n;
}

static enum sx_status find_groups(struct cuda_stream *stream, const struct sx_group *group,
                                  struct cuda_group_search *search, const struct sx_buffer *keys) {
    const int32_t combinations = combinations_of(group, search);
    int64_t *count = cuda_counter_place(stream, CUDA_GROUP_NEW), *bytes;
    SX_TRY(cuda_counter_reset(stream, CUDA_GROUP_KEY_BYTES, &bytes));
    if (combinations > 0)
        cuda_group_find_coded(stream->handle, keys->data, group->n_keys, combinations, table_of(group),
                              search->numbers);
    else
        cuda_group_find(stream->handle, keys->data, group->n_keys, !has_strings(group), table_of(group),
                        search->numbers);
    SX_TRY(cuda_launched(stream, "finding groups"));
    SX_TRY(list_new(stream, group, search));
    if (cuda_group_copies_strings(group, search->borrowed))
        cuda_group_new_bytes(stream->handle, keys->data, group->n_keys, search->rows, search->new_rows->data,
                             count, bytes);
    return cuda_launched(stream, "new groups' strings");
}

enum sx_status cuda_group_search_begin(struct cuda_stream *stream, struct sx_group *group,
                                       struct cuda_group_search *search) {
    SX_TRY(ensure_slots(stream, group, search->rows));
    search->numbers.n = search->rows;
    search->numbers.width = group->n_slots <= (int64_t)INT32_MAX + 1 ? 4 : 8;
    SX_TRY(sx_buffer_create(stream->base.pool, (size_t)search->rows * (size_t)search->numbers.width,
                            &search->numbers_buffer, &stream->base.error));
    search->numbers.numbers = search->numbers_buffer->data;
    SX_TRY(hash_dictionaries(stream, group, search));
    SX_TRY(cuda_group_choose_borrowed(stream, group, search->keys, &search->borrowed));
    struct sx_buffer *keys;
    SX_TRY(upload_keys(stream, group, search, &keys));
    enum sx_status status = find_groups(stream, group, search, keys);
    sx_buffer_release(keys);
    return status;
}

/* ---- new groups ---- */

/* Of these rows. */
static enum sx_status publish(struct cuda_stream *stream, struct sx_group *group,
                              const struct cuda_group_search *search, struct cuda_group_table table,
                              const int32_t *new_rows, int64_t n_new) {
    struct sx_buffer *keys;
    group->new_share = (double)n_new / (double)search->rows;
    if (n_new == 0)
        return SX_OK;
    SX_TRY(cuda_group_grow(stream, group, group->key_capacity, group->n_groups + n_new, grow_keys));
    SX_TRY(upload_keys(stream, group, search, &keys));
    cuda_group_publish(stream->handle, keys->data, group->n_keys, table, search->numbers, new_rows, n_new,
                       group->n_groups, group->hashes.data);
    sx_buffer_release(keys);
    return cuda_launched(stream, "new groups");
}

enum sx_status cuda_group_append(struct cuda_stream *stream, struct sx_group *group,
                                 const struct cuda_group_search *search, const int32_t *new_rows,
                                 int64_t n_new) {
    SX_TRY(publish(stream, group, search, (struct cuda_group_table){0}, new_rows, n_new));
    group->n_groups += n_new;
    return SX_OK;
}

enum sx_status cuda_group_search_end(struct cuda_stream *stream, struct sx_group *group,
                                     struct cuda_group_search *search) {
    const int64_t n_new = cuda_counter(stream, CUDA_GROUP_NEW);
    const int64_t bytes = cuda_counter(stream, CUDA_GROUP_KEY_BYTES);
    SX_TRY(publish(stream, group, search, table_of(group), search->new_rows->data, n_new));
    if (n_new == 0)
        return SX_OK;
    if (group->n_aggregates > 0) /* nothing else reads numbers */
        cuda_group_resolve(stream->handle, table_of(group), search->numbers);
    enum sx_status status = cuda_launched(stream, "numbers of new groups");
    if (status == SX_OK && bytes > 0)
        status = cuda_group_copy_strings(stream, group, search->borrowed, n_new, (size_t)bytes);
    if (status == SX_OK)
        status = cuda_group_borrow_strings(stream, group, search->keys, search->borrowed);
    group->n_groups += n_new;
    return status;
}

void cuda_group_search_release(const struct sx_group *group, struct cuda_group_search *search) {
    sx_buffer_release(search->flags);
    sx_buffer_release(search->numbers_buffer);
    sx_buffer_release(search->new_rows);
    for (int k = 0; search->hashes && k < group->n_keys; k++)
        sx_buffer_release(search->hashes[k]);
    free(search->hashes);
    free(search->borrowed);
}
