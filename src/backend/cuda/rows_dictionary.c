#include "backend/cuda/rows_dictionary.h"

#include "backend/cuda/launch.h"
#include "backend/cuda/launch_rows.h"
#include "tensor/pack_words.h"

/* All entries are one part. */
static struct cuda_rows_parts parts_of(const struct cuda_rows_dictionary *dictionary) {
    return (struct cuda_rows_parts){
        .offsets = dictionary->begins->data, .n = dictionary->entries->length, .n_parts = 1};
}

static struct cuda_rows_blocks blocks_of(const struct cuda_rows_dictionary *dictionary) {
    return (struct cuda_rows_blocks){.firsts = (const int64_t *)dictionary->begins->data + 2,
                                     .n = pack_blocks_of(dictionary->entries->length)};
}

enum sx_status cuda_rows_measure_dictionary(struct cuda_stream *stream,
                                            struct cuda_rows_dictionary *dictionary, int64_t *out_ends) {
    const int64_t n = dictionary->entries->length, begins[] = {0, n, 0, pack_blocks_of(n)};
    SX_TRY(cuda_upload_buffer(stream, begins, sizeof begins, &dictionary->begins));
    const struct cuda_rows_parts parts = parts_of(dictionary);
    const struct cuda_rows_blocks blocks = blocks_of(dictionary);
    return cuda_rows_measure_column(stream, dictionary->entries, false, &parts, &blocks, &dictionary->measure,
                                    out_ends);
}

enum sx_status cuda_rows_make_dictionary(struct cuda_stream *stream, struct cuda_rows_dictionary *dictionary,
                                         const int64_t *ends) {
    const int64_t *long_ends = ends + 2 * CUDA_ROWS_LONG;
    const uint64_t entries_bytes = sx_rows_entries_bytes((uint64_t)dictionary->entries->length),
                   long_bytes = (uint64_t)(long_ends[1] - long_ends[0]);
    struct sx_buffer *device_place = NULL;
    SX_TRY(sx_buffer_create(stream->base.pool, entries_bytes + long_bytes, &dictionary->block,
                            &stream->base.error));
    const struct cuda_rows_place place = {.values = dictionary->block->data,
                                          .heap = (char *)dictionary->block->data + entries_bytes,
                                          .heap_first = long_ends[0]};
    SX_TRY(cuda_upload_buffer(stream, &place, sizeof place, &device_place));
    const struct cuda_rows_parts parts = parts_of(dictionary);
    const struct cuda_rows_blocks blocks = blocks_of(dictionary);
    cuda_rows_pack_strings(stream->handle, cuda_column_of(dictionary->entries), &parts, &blocks,
                           &dictionary->measure.measured, false, device_place->data);
    sx_buffer_release(device_place);
    return cuda_launched(stream, "a dictionary for other ranks");
}

void cuda_rows_release_dictionary(struct cuda_rows_dictionary *dictionary) {
    sx_buffer_release(dictionary->begins);
    cuda_rows_measure_release(&dictionary->measure);
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
