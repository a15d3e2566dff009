/* Decodes a range of pages into one column: opens and uploads them one after the other, then issues the
 * kernels for all of them at once. */
#include <stdlib.h>

#include "backend/cuda/decode.h"

#if defined(SX_CUDA_EMULATED) && defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { SLAB_BYTES = 4 << 20, ALIGNMENT = 16, GAP_BYTES = 16 };
enum { COUNTER_NULLS = 1, COUNTER_LONG = 2 };

/* Page bytes go into slabs of one size, so that the pool can use them again; in the emulator what is around a
 * page can't be touched. */
struct slab_list {
    struct sx_buffer **all;
    int n;
    size_t used_bytes; /* of the last */
};

/* A device array that lives as long as the decode. */
enum part {
    PART_PAGES,
    PART_TILES,
    PART_MINIBLOCKS,
    PART_STATES,
    PART_RUNS,
    PART_TILE_VALUES,
    PART_IN_TILE,
    PART_STAGED,
    PART_CODES,
    PART_OFFSETS,
    PART_LENGTHS,
    PART_PREFIXES,
    PART_SOURCES,
    PART_REBUILT_PAGES,
    N_PARTS
};

struct range {
    struct cuda_stream *stream;
    struct sx_decoder *decoder;
    int first_page, end_page;
    bool is_dictionary, as_codes;
    struct decode_page *pages;
    struct decode_tile *tiles;
    int32_t n_pages, n_tiles;
    int64_t rows;
    uint32_t sources; /* bit of each decode_source that there is */
    bool has_levels;
    struct decode_miniblocks miniblocks;
    struct slab_list slabs;
    struct sx_buffer *parts[N_PARTS];
    struct sx_buffer *rebuilt;
    struct decode_work work;
    struct sx_tensor column;
};

static bool has_source(const struct range *range, enum decode_source source) {
    return range->sources >> source & 1;
}

static void release_range(struct range *range) {
    for (int i = 0; i < range->slabs.n; i++)
        sx_buffer_release(range->slabs.all[i]);
    for (int i = 0; i < N_PARTS; i++)
        sx_buffer_release(range->parts[i]);
    sx_buffer_release(range->rebuilt);
    sx_tensor_release(&range->column);
    free(range->slabs.all);
    free(range->miniblocks.all);
    free(range->pages);
    free(range->tiles);
}

static bool is_in_range(const struct range *range, int index) {
    return range->is_dictionary || decode_has_rows(&range->decoder->pages[index]);
}

/* ---- uploading ---- */

/* Bytes that the pages from `index` on will take, as their headers tell. */
static size_t expected_bytes(const struct range *range, int index) {
    size_t bytes = 0;
    for (int i = index; i < range->end_page && bytes < SLAB_BYTES; i++) {
        const struct sx_page *page = &range->decoder->pages[i];
        if (is_in_range(range, i) && page->bytes)
            bytes += (page->is_compressed ? page->plain_bytes : page->stored_bytes) + ALIGNMENT + GAP_BYTES;
    }
    return bytes;
}

static enum sx_status add_slab(struct range *range, size_t bytes) {
    enum { STEP_BYTES = 4096 };
    struct slab_list *slabs = &range->slabs;
    struct sx_error *error = &range->stream->base.error;
    struct sx_buffer **grown = realloc(slabs->all, ((size_t)slabs->n + 1) * sizeof(struct sx_buffer *));
    if (!grown)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a list of buffers");
    slabs->all = grown;
    bytes = (bytes + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    SX_TRY(sx_buffer_create(range->stream->base.pool, bytes, &grown[slabs->n], error));
    ASAN_POISON_MEMORY_REGION(grown[slabs->n]->data, bytes);
    slabs->n++;
    slabs->used_bytes = 0;
    return SX_OK;
}

/* Room for the image such that its body is aligned. */
static enum sx_status place(struct range *range, const struct decode_opened *opened, uint8_t **out_image) {
    struct slab_list *slabs = &range->slabs;
    const size_t lead = (ALIGNMENT - opened->body_at % ALIGNMENT) % ALIGNMENT;
    const size_t need = lead + opened->image_bytes + GAP_BYTES;
    if (slabs->n == 0 || slabs->all[slabs->n - 1]->size_bytes - slabs->used_bytes < need) {
        size_t bytes = expected_bytes(range, opened->page.index);
        bytes = bytes < SLAB_BYTES ? bytes : SLAB_BYTES;
        SX_TRY(add_slab(range, bytes > need ? bytes : need));
    }
    *out_image = (uint8_t *)slabs->all[slabs->n - 1]->data + slabs->used_bytes + lead;
    slabs->used_bytes += (need + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (slabs->used_bytes > slabs->all[slabs->n - 1]->size_bytes)
        slabs->used_bytes = slabs->all[slabs->n - 1]->size_bytes;
    ASAN_UNPOISON_MEMORY_REGION(*out_image, opened->image_bytes);
    return SX_OK;
}

static void add_tiles(struct range *range, struct decode_page *page) {
    page->first_tile = range->n_tiles;
    for (int64_t row = 0; row < page->n_rows; row += DECODE_TILE)
        range->tiles[range->n_tiles++] = (struct decode_tile){range->n_pages, (int32_t)row};
}

/* A page that is not there has no tiles: nobody writes to its rows. */
static enum sx_status add_page(struct range *range, int index) {
    const struct sx_page *stored = &range->decoder->pages[index];
    struct decode_opened opened = {.page = {.source = DECODE_PRUNED, .index = index}};
    if (stored->bytes || range->is_dictionary) {
        uint8_t *image;
        SX_TRY(decode_open(range->stream, range->decoder, index, &range->miniblocks, &opened));
        SX_TRY(place(range, &opened, &image));
        SX_TRY(cuda_upload(range->stream, image, opened.image, opened.image_bytes));
        opened.page.levels = image + opened.levels_at;
        opened.page.body = image + opened.body_at;
        opened.page.stored = opened.page.body;
        if (opened.page.source == DECODE_LENGTHS)
            opened.page.stored += opened.page.text_at;
    }
    opened.page.first_row = range->rows;
    opened.page.n_rows = (int32_t)stored->n_values;
    if (opened.page.source != DECODE_PRUNED)
        add_tiles(range, &opened.page);
    range->sources |= 1u << opened.page.source;
    range->has_levels |= opened.page.level_kind != DECODE_NO_LEVELS;
    range->pages[range->n_pages++] = opened.page;
    range->rows += stored->n_values;
    return SX_OK;
}

static enum sx_status add_pages(struct range *range, int *out_bad_page) {
    int64_t n_pages = 0, n_tiles = 0;
    for (int i = range->first_page; i < range->end_page; i++) {
        if (!is_in_range(range, i))
            continue;
        n_pages++;
        n_tiles += (range->decoder->pages[i].n_values + DECODE_TILE - 1) / DECODE_TILE;
    }
    range->pages = calloc((size_t)n_pages + 1, sizeof *range->pages);
    range->tiles = calloc((size_t)n_tiles + 1, sizeof *range->tiles);
    if (!range->pages || !range->tiles || n_tiles > INT32_MAX)
        return sx_error_set(&range->stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of pages");
    for (int i = range->first_page; i < range->end_page; i++) {
        if (!is_in_range(range, i))
            continue;
        const enum sx_status status = add_page(range, i);
        if (status == SX_FILE)
            *out_bad_page = i;
        SX_TRY(status);
    }
    return SX_OK;
}

/* ---- memory of the decode ---- */

static enum sx_status make_part(struct range *range, enum part part, int64_t n, size_t bytes,
                                void *out_pointer) {
    struct sx_buffer **buffer = &range->parts[part];
    SX_TRY(sx_buffer_create(range->stream->base.pool, (size_t)n * bytes, buffer, &range->stream->base.error));
    *(void **)out_pointer = (*buffer)->data;
    return SX_OK;
}

static enum sx_status upload_part(struct range *range, enum part part, const void *from, int64_t n,
                                  size_t bytes, void *out_pointer) {
    SX_TRY(make_part(range, part, n, bytes, out_pointer));
    return cuda_upload(range->stream, range->parts[part]->data, from, (size_t)n * bytes);
}

static bool is_staged(enum decode_source source) {
    return source == DECODE_BITS || source == DECODE_RLE_BITS || source == DECODE_SPLIT ||
           source == DECODE_DELTA;
}

/* What each encoding needs one of for each value. */
static enum sx_status make_value_parts(struct range *range) {
    struct decode_work *work = &range->work;
    const bool has_front = has_source(range, DECODE_FRONT_CODED);
    const bool has_bytes =
        has_front || has_source(range, DECODE_PLAIN_BYTES) || has_source(range, DECODE_LENGTHS);
    bool has_staged = false;
    for (int i = 0; i < DECODE_N_SOURCES; i++)
        has_staged |= has_source(range, (enum decode_source)i) && is_staged((enum decode_source)i);
    const int64_t n = range->rows;
    if (has_staged)
        SX_TRY(make_part(range, PART_STAGED, n, range->decoder->stored_bytes, &work->staged));
    if (has_source(range, DECODE_CODES))
        SX_TRY(make_part(range, PART_CODES, n, sizeof *work->codes, &work->codes));
    if (has_bytes) {
        SX_TRY(make_part(range, PART_OFFSETS, n, sizeof *work->offsets, &work->offsets));
        SX_TRY(make_part(range, PART_LENGTHS, n, sizeof *work->lengths, &work->lengths));
    }
    if (has_front) {
        SX_TRY(make_part(range, PART_PREFIXES, n, sizeof *work->prefixes, &work->prefixes));
        SX_TRY(make_part(range, PART_SOURCES, n, sizeof *work->sources, &work->sources));
    }
    for (int32_t i = 0; i < range->n_pages; i++)
        if (is_staged(range->pages[i].source))
            range->pages[i].stored =
                work->staged + (size_t)range->pages[i].first_row * range->decoder->stored_bytes;
    return SX_OK;
}

static enum sx_status make_parts(struct range *range) {
    struct decode_work *work = &range->work;
    SX_TRY(make_value_parts(range));
    SX_TRY(upload_part(range, PART_PAGES, range->pages, range->n_pages, sizeof *range->pages, &work->pages));
    SX_TRY(upload_part(range, PART_TILES, range->tiles, range->n_tiles, sizeof *range->tiles, &work->tiles));
    SX_TRY(upload_part(range, PART_MINIBLOCKS, range->miniblocks.all, range->miniblocks.n,
                       sizeof *range->miniblocks.all, &work->miniblocks));
    SX_TRY(make_part(range, PART_STATES, range->n_pages, sizeof *work->states, &work->states));
    SX_TRY(make_part(range, PART_RUNS, range->n_tiles, sizeof *work->runs, &work->runs));
    SX_TRY(make_part(range, PART_TILE_VALUES, range->n_tiles, sizeof *work->tile_values, &work->tile_values));
    if (range->has_levels)
        SX_TRY(make_part(range, PART_IN_TILE, range->rows, sizeof *work->in_tile, &work->in_tile));
    return cuda_check(range->stream,
                      cudaMemsetAsync(work->states, 0, (size_t)range->n_pages * sizeof *work->states,
                                      range->stream->handle),
                      "states of pages");
}

/* Rows of pages that are not there are null, or zero. */
static enum sx_status clear_pruned(struct range *range) {
    const size_t value_bytes = range->as_codes ? sizeof(int32_t) : range->decoder->value_bytes;
    cudaStream_t handle = range->stream->handle;
    for (int32_t i = 0; i < range->n_pages; i++) {
        const struct decode_page *page = &range->pages[i];
        const size_t first = (size_t)page->first_row, n = (size_t)page->n_rows;
        if (page->source != DECODE_PRUNED)
            continue;
        SX_TRY(cuda_check(
            range->stream,
            cudaMemsetAsync((char *)range->column.values + first * value_bytes, 0, n * value_bytes, handle),
            "rows of pages that are not there"));
        if (range->column.valid)
            SX_TRY(cuda_check(range->stream, cudaMemsetAsync(range->column.valid + first, 0, n, handle),
                              "rows of pages that are not there"));
    }
    return SX_OK;
}

static enum sx_status make_column(struct range *range) {
    struct sx_decoder *decoder = range->decoder;
    struct cuda_stream *stream = range->stream;
    struct decode_work *work = &range->work;
    if (range->as_codes)
        SX_TRY(sx_tensor_create_codes(stream->base.pool, decoder->dict, range->rows, range->has_levels,
                                      &range->column, &stream->base.error));
    else
        SX_TRY(sx_tensor_create(stream->base.pool, decoder->spec.type, range->rows, range->has_levels,
                                &range->column, &stream->base.error));
    work->out = range->column.values;
    work->valid = range->column.valid;
    return clear_pruned(range);
}

static enum sx_status prepare(struct range *range) {
    struct sx_decoder *decoder = range->decoder;
    struct decode_work *work = &range->work;
    const struct sx_dict *dict = decoder->dict;
    SX_TRY(make_column(range));
    SX_TRY(make_parts(range));
    work->n_pages = range->n_pages;
    work->n_tiles = range->n_tiles;
    work->rows = range->rows;
    work->stored_bytes = (uint32_t)decoder->stored_bytes;
    work->value_bytes = (uint32_t)decoder->value_bytes;
    work->entries = dict ? dict->values.values : NULL;
    work->n_entries = dict ? dict->values.length : -1;
    work->is_text = decoder->spec.type.id == SX_TYPE_VARCHAR;
    work->control = range->stream->control;
    SX_TRY(cuda_counter_reset(range->stream, COUNTER_NULLS, &work->n_null));
    return cuda_counter_reset(range->stream, COUNTER_LONG, &work->n_long);
}

/* ---- the kernels ---- */

/* Memory for the values of front-coded pages, whose size only their lengths tell; one more synchronisation.
 */
static enum sx_status make_rebuilt(struct range *range) {
    struct cuda_stream *stream = range->stream;
    struct decode_work *work = &range->work;
    struct decode_state *states = calloc((size_t)range->n_pages, sizeof *states);
    size_t bytes = 0;
    enum sx_status status;
    if (!states)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of pages");
    SX_GO(cuda_download(stream, states, work->states, (size_t)range->n_pages * sizeof *states,
                        "strings of pages"));
    for (int32_t i = 0; i < range->n_pages; i++)
        bytes += (size_t)states[i].text_bytes;
    SX_GO(sx_buffer_create(stream->base.pool, bytes, &range->rebuilt, &stream->base.error));
    bytes = 0;
    for (int32_t i = 0; i < range->n_pages; i++)
        if (range->pages[i].source == DECODE_FRONT_CODED) {
            range->pages[i].stored = (const uint8_t *)range->rebuilt->data + bytes;
            bytes += (size_t)states[i].text_bytes;
        }
    SX_GO(upload_part(range, PART_REBUILT_PAGES, range->pages, range->n_pages, sizeof *range->pages,
                      &work->pages));
out:
    free(states);
    return status;
}

static enum sx_status decode_front_coded(struct range *range) {
    cudaStream_t handle = range->stream->handle;
    const bool is_fixed = range->decoder->spec.physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
    cuda_decode_front_coded(handle, &range->work, is_fixed ? (uint32_t)range->decoder->stored_bytes : 0);
    SX_TRY(cuda_launched(range->stream, "front-coded lengths"));
    SX_TRY(make_rebuilt(range));
    cuda_decode_rebuild(handle, &range->work);
    return SX_OK;
}

/* Stored values, codes, or where strings are. */
static enum sx_status decode_stored(struct range *range) {
    cudaStream_t handle = range->stream->handle;
    const struct decode_work *work = &range->work;
    cuda_decode_levels(handle, work);
    if (has_source(range, DECODE_BITS))
        cuda_decode_bits(handle, work);
    if (has_source(range, DECODE_RLE_BITS))
        cuda_decode_rle_bits(handle, work);
    if (has_source(range, DECODE_SPLIT))
        cuda_decode_split(handle, work);
    if (has_source(range, DECODE_CODES))
        cuda_decode_codes(handle, work);
    if (has_source(range, DECODE_PLAIN_BYTES))
        cuda_decode_plain_bytes(handle, work);
    if (has_source(range, DECODE_DELTA) || has_source(range, DECODE_LENGTHS) ||
        has_source(range, DECODE_FRONT_CODED))
        cuda_decode_deltas(handle, work);
    if (has_source(range, DECODE_LENGTHS))
        cuda_decode_lengths(handle, work);
    return has_source(range, DECODE_FRONT_CODED) ? decode_front_coded(range) : SX_OK;
}

static void decode_rows(struct range *range) {
    const struct sx_decoder *decoder = range->decoder;
    cudaStream_t handle = range->stream->handle;
    const struct decode_work *work = &range->work;
    const uint32_t others = 1u << DECODE_CODES | 1u << DECODE_PRUNED;
    if (has_source(range, DECODE_CODES))
        cuda_decode_take_codes(handle, work, range->as_codes);
    if (!(range->sources & ~others))
        return;
    if (decoder->conversion != DECODE_NO_CONVERSION)
        cuda_decode_convert(handle, work, decoder->conversion);
    else if (decoder->spec.physical != SX_PARQUET_BYTE_ARRAY)
        cuda_decode_fixed_views(handle, work);
    else if (decoder->spec.type.id == SX_TYPE_VARCHAR)
        cuda_decode_views(handle, work);
    else
        cuda_decode_byte_decimals(handle, work);
}

/* ---- the column ---- */

/* What keeps the bytes behind views alive. Stored values of fixed length that are put together by a kernel
 * are no page's. */
static enum sx_status make_heap(struct range *range) {
    struct cuda_stream *stream = range->stream;
    const int n = range->slabs.n;
    struct sx_buffer **buffers = calloc((size_t)n + 3, sizeof *buffers);
    if (!buffers)
        return sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of buffers");
    if (cuda_counter(stream, COUNTER_LONG)) {
        for (int i = 0; i < n; i++)
            buffers[i] = range->slabs.all[i];
        buffers[n] = range->rebuilt;
        buffers[n + 1] = range->parts[PART_STAGED];
    }
    if (has_source(range, DECODE_CODES) && range->decoder->dict)
        buffers[n + 2] = range->decoder->dict->values.heap;
    enum sx_status status =
        sx_buffer_join(stream->base.pool, buffers, n + 3, &range->column.heap, &stream->base.error);
    free(buffers);
    return status;
}

static enum sx_status finish(struct range *range) {
    bool has_nulls = cuda_counter(range->stream, COUNTER_NULLS) > 0 || has_source(range, DECODE_PRUNED);
    if (!has_nulls && range->column.valid) {
        sx_buffer_release(range->column.valid_buffer);
        range->column.valid_buffer = NULL;
        range->column.valid = NULL;
    }
    if (range->decoder->spec.type.id == SX_TYPE_VARCHAR && !range->as_codes)
        return make_heap(range);
    return SX_OK;
}

/* Faults that are not of pages are others'. */
static enum sx_status describe(struct cuda_stream *stream, const struct cuda_fault *fault,
                               const void *context) {
    struct sx_decoder *decoder = (struct sx_decoder *)(uintptr_t)context;
    if (fault->kind != CUDA_FAULT_PAGE) {
        if (decoder->outer_describe)
            return decoder->outer_describe(stream, fault, decoder->outer_context);
        return sx_error_set(&stream->base.error, SX_QUERY, "Out of Range Error: a value is out of range");
    }
    decoder->fault_page = (int)fault->what;
    return decode_fail(stream, decoder, (int)fault->what, (enum decode_problem)(fault->detail[0] & 0xff),
                       fault->detail[0] >> 8, (uint64_t)fault->row);
}

static enum sx_status run(struct range *range, int *out_bad_page) {
    SX_TRY(add_pages(range, out_bad_page));
    SX_TRY(prepare(range));
    if (range->n_tiles > 0) {
        SX_TRY(decode_stored(range));
        decode_rows(range);
    }
    SX_TRY(cuda_launched(range->stream, "decoding pages"));
    SX_TRY(cuda_sync(range->stream, "pages decoded"));
    return finish(range);
}

enum sx_status decode_range(struct cuda_stream *stream, struct sx_decoder *decoder, int first_page,
                            int end_page, bool is_dictionary, bool as_codes, struct sx_tensor *out_column,
                            int *out_bad_page) {
    struct range range = {.stream = stream,
                          .decoder = decoder,
                          .first_page = first_page,
                          .end_page = end_page,
                          .is_dictionary = is_dictionary,
                          .as_codes = as_codes};
    *out_bad_page = decoder->fault_page = -1;
    decoder->outer_describe = stream->describe_fault;
    decoder->outer_context = stream->fault_context;
    stream->describe_fault = describe;
    stream->fault_context = decoder;
    const enum sx_status status = run(&range, out_bad_page);
    stream->describe_fault = decoder->outer_describe;
    stream->fault_context = decoder->outer_context;
    if (decoder->fault_page >= 0)
        *out_bad_page = decoder->fault_page;
    if (status == SX_OK) {
        *out_column = range.column;
        range.column = (struct sx_tensor){0};
    }
    release_range(&range);
    return status;
}
