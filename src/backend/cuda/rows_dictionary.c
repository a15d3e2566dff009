#include "backend/cuda/rows_dictionary.h"

#include "backend/cuda/launch.h"
#include "backend/cuda/launch_rows.h"

/* All entries are one part. */
static struct cuda_rows_parts parts_of(const struct cuda_rows_dictionary *dictionary) {
    return (struct cuda_rows_parts){
        .offsets = dictionary->offsets->data, .n = dictionary->entries->length, .n_parts = 1, .skip = -1};
}

enum sx_status cuda_rows_measure_dictionary(struct cuda_stream *stream,
                                            struct cuda_rows_dictionary *dictionary,
                                            const struct sx_buffer *scratch, int64_t *out_ends) {
    const int64_t n = dictionary->entries->length, offsets[] = {0, n};
    SX_TRY(cuda_upload_buffer(stream, offsets, sizeof offsets, &dictionary->offsets));
    SX_TRY(sx_buffer_create(stream->base.pool, ((size_t)n + 1) * sizeof(int64_t), &dictionary->sums,
                            &stream->base.error));
    const struct cuda_rows_parts parts = parts_of(dictionary);
    int64_t *sums = dictionary->sums->data;
    cuda_rows_long_bytes(stream->handle, cuda_column_of(dictionary->entries), &parts, sums);
    cuda_exclusive_sum(stream->handle, sums, n, sums, scratch->data);
    cuda_rows_part_sums(stream->handle, sums, parts.offsets, 1, 1, out_ends);
    return SX_OK;
}

enum sx_status cuda_rows_make_dictionary(struct cuda_stream *stream, struct cuda_rows_dictionary *dictionary,
                                         uint64_t strings_bytes) {
    const uint64_t entries_bytes = sx_rows_entries_bytes((uint64_t)dictionary->entries->length);
    struct sx_buffer *device_place = NULL;
    SX_TRY(sx_buffer_create(stream->base.pool, entries_bytes + strings_bytes, &dictionary->block,
                            &stream->base.error));
    const struct cuda_rows_place place = {.values = dictionary->block->data,
                                          .heap = (char *)dictionary->block->data + entries_bytes};
    SX_TRY(cuda_upload_buffer(stream, &place, sizeof place, &device_place));
    const struct cuda_rows_parts parts = parts_of(dictionary);
    cuda_rows_pack(stream->handle, cuda_column_of(dictionary->entries), sizeof(struct sx_string), &parts,
                   device_place->data, dictionary->sums->data);
    sx_buffer_release(device_place);
    return cuda_launched(stream, "a dictionary for other ranks");
}

void cuda_rows_release_dictionary(struct cuda_rows_dictionary *dictionary) {
    sx_buffer_release(dictionary->offsets);
    sx_buffer_release(dictionary->sums);
    sx_buffer_release(dictionary->block);
}

enum sx_status cuda_rows_place_dictionary(struct cuda_stream *stream, const struct sx_rows_column *place,
                                          const char *frame, int number, struct sx_tensor *column) {
    const uint64_t entries_bytes = sx_rows_entries_bytes(place->n_entries);
    const int64_t n_entries = (int64_t)place->n_entries;
    struct sx_buffer *block;
    SX_TRY(sx_buffer_create(stream->base.pool, place->heap_bytes, &block, &stream->base.error));
    enum sx_status status = cuda_check(stream,
                                       cudaMemcpyAsync(block->data, frame + place->heap, place->heap_bytes,
                                                       cudaMemcpyDeviceToDevice, stream->handle),
                                       "a dictionary of another rank");
    if (status == SX_OK)
        status = sx_rows_add_dictionary(place, block, column, &stream->base.error);
    if (status == SX_OK) {
        if (column->length > 0)
            cuda_rows_check_codes(stream->handle, column->values, column->length, n_entries, number,
                                  stream->control);
        cuda_rows_place_strings(stream->handle, block->data, n_entries, (char *)block->data + entries_bytes,
                                place->heap_bytes - entries_bytes, number, stream->control);
    }
    sx_buffer_release(block);
    return status;
}
