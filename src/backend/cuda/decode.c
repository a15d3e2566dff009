/* Column chunks on the device: the primitives. A decode of all its columns is issued in one go and waited for
 * once. */
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cache.h"
#include "backend/cuda/decode.h"

/* ---- decoders ---- */

static void list_first_rows(struct sx_decoder *decoder) {
    const struct sx_stored_chunk *chunk = &decoder->chunk;
    int64_t row = 0;
    for (int i = 0; i < chunk->n_pages; i++) {
        decoder->first_rows[i] = row;
        row += decode_has_rows(&chunk->pages[i]) ? chunk->pages[i].n_values : 0;
    }
    decoder->first_rows[chunk->n_pages] = row;
}

static enum sx_status init(struct cuda_stream *stream, struct sx_decoder *decoder) {
    const struct sx_stored_chunk *chunk = &decoder->chunk;
    const struct sx_chunk_spec *spec = &chunk->spec;
    struct sx_error *error = &stream->base.error;
    if (spec->physical == SX_PARQUET_FIXED_LEN_BYTE_ARRAY && spec->type_length <= 0)
        return sx_error_set(error, SX_FILE, "values of fixed length %d", (int)spec->type_length);
    SX_TRY(decode_conversion_find(stream, decoder));
    decoder->stored_bytes = sx_stored_bytes(spec);
    decoder->value_bytes = sx_type_bytes(spec->type);
    SX_TRY(sx_pages_check(spec, chunk->pages, chunk->n_pages, &decoder->dictionary_page, &decoder->page_rows,
                          error));
    decoder->n_copies = chunk->n_spans ? chunk->n_spans : chunk->n_pages;
    decoder->first_rows = calloc((size_t)chunk->n_pages + 1, sizeof *decoder->first_rows);
    decoder->copies = calloc((size_t)decoder->n_copies + 1, sizeof *decoder->copies);
    if (!decoder->first_rows || !decoder->copies)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for a decoder");
    list_first_rows(decoder);
    return SX_OK;
}

static void release_copies(struct sx_decoder *decoder) {
    for (int i = 0; decoder->copies && i < decoder->n_copies; i++) {
        sx_buffer_release(decoder->copies[i].stored);
        cuda_image_release(decoder->copies[i].image);
        decoder->copies[i] = (struct decode_copy){0};
    }
}

void sx_cuda_decoder_destroy(struct sx_stream *base, struct sx_decoder *decoder) {
    struct cuda_stream *stream = cuda_stream_of(base);
    if (!decoder)
        return;
    if (decoder->ahead_bytes > 0) /* copies may still read what the owner frees */
        decode_ahead_join(stream, decoder);
    decode_ahead_end(stream, decoder);
    release_copies(decoder);
    sx_buffer_release(decoder->chunk.owner);
    free(decoder->copies);
    free(decoder->first_rows);
    free(decoder);
}

enum sx_status sx_cuda_decoder_create(struct sx_stream *base, const struct sx_stored_chunk *chunk,
                                      struct sx_decoder **out_decoder) {
    struct cuda_stream *stream;
    SX_TRY(cuda_enter(base, &stream));
    struct sx_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return sx_error_set(&base->error, SX_OUT_OF_MEMORY, "no memory for a decoder");
    decoder->chunk = *chunk;
    decoder->chunk.owner = sx_buffer_retain(chunk->owner);
    enum sx_status status = init(stream, decoder);
    if (status != SX_OK) {
        sx_cuda_decoder_destroy(base, decoder);
        return status;
    }
    *out_decoder = decoder;
    return SX_OK;
}

/* ---- faults ---- */

static enum sx_status fail(struct decode_call *call, const struct decode_listed *listed,
                           const struct cuda_fault *fault) {
    static const char *const texts[] = {
#define DECODE_PROBLEM_TEXT(name, text) [DECODE_##name] = text,
        DECODE_PROBLEM_LIST(DECODE_PROBLEM_TEXT)
#undef DECODE_PROBLEM_TEXT
    };
    const struct sx_page *page = &listed->decoder->chunk.pages[listed->index];
    const enum decode_problem problem = (enum decode_problem)(fault->detail[0] & 0xff);
    struct sx_error *error = &call->stream->base.error;
    const unsigned long long a = fault->detail[0] >> 8, b = (unsigned long long)fault->row;
    const char *encoding =
        sx_page_encoding_name(page->kind == SX_PAGE_DICTIONARY ? SX_ENCODING_PLAIN : page->encoding);
    switch (problem) {
    case DECODE_TOO_FEW:
        return sx_error_set(error, SX_FILE, "page %d: %llu values (%s) where %llu are needed", listed->index,
                            a, encoding, b);
    case DECODE_CODE:
        return sx_error_set(error, SX_FILE, "page %d: dictionary code %llu of %llu entries", listed->index, a,
                            b);
    case DECODE_PREFIX:
        return sx_error_set(error, SX_FILE, "page %d: a prefix of %llu bytes of a string of %llu",
                            listed->index, a, b);
    case DECODE_LENGTH:
        return sx_error_set(error, SX_FILE, "page %d: a value of %llu bytes where all have %llu",
                            listed->index, a, b);
    default: return sx_error_set(error, SX_FILE, "page %d: %s", listed->index, texts[problem]);
    }
}

/* Faults that are not of pages are others'. */
static enum sx_status describe(struct cuda_stream *stream, const struct cuda_fault *fault,
                               const void *context) {
    struct decode_call *call = (struct decode_call *)(uintptr_t)context;
    if (fault->kind == CUDA_FAULT_PAGE && fault->what == DECODE_NO_NUMBER) {
        call->way->was_inflating = true;
        return sx_error_set(&stream->base.error, SX_FILE, "the compressed data of a page is damaged");
    }
    if (fault->kind != CUDA_FAULT_PAGE || fault->what >= call->n_numbers) {
        if (call->outer_describe)
            return call->outer_describe(stream, fault, call->outer_context);
        return sx_error_set(&stream->base.error, SX_QUERY, "Out of Range Error: a value is out of range");
    }
    const struct decode_column *column = call->numbers[fault->what];
    const struct decode_listed *listed = &column->listed[call->numbered[fault->what]];
    call->place = (struct sx_decode_place){column->read, listed->part};
    call->way->was_inflating |= (fault->detail[0] & 0xff) == DECODE_INFLATE;
    return fail(call, listed, fault);
}

static void number_column(struct decode_call *call, struct decode_column *column) {
    for (int32_t i = 0; i < column->n_pages; i++) {
        column->pages[i].number = call->n_numbers;
        call->numbers[call->n_numbers] = column;
        call->numbered[call->n_numbers++] = i;
    }
}

static enum sx_status number_pages(struct decode_call *call) {
    size_t n = 1;
    for (int r = 0; r < call->n_reads; r++)
        n += (size_t)call->columns[r].n_pages + (size_t)call->dictionaries[r].n_pages;
    call->numbers = calloc(n, sizeof(struct decode_column *));
    call->numbered = calloc(n, sizeof *call->numbered);
    if (!call->numbers || !call->numbered)
        return sx_error_set(&call->stream->base.error, SX_OUT_OF_MEMORY, "no memory for a list of pages");
    for (int r = 0; r < call->n_reads; r++) {
        number_column(call, &call->dictionaries[r]);
        number_column(call, &call->columns[r]);
    }
    return SX_OK;
}

/* ---- a call ---- */

/* Counters of the control block: two for each column; the first few are others'. */
enum { FIRST_COUNTER = 8, MOST_READS = (CUDA_COUNTERS - FIRST_COUNTER) / 4 };

static struct decode_column *entries_of(struct decode_call *call, int r) {
    return call->dictionaries[r].n_pages > 0 ? &call->dictionaries[r] : NULL;
}

static int64_t last_ticket(const struct decode_call *call) {
    int64_t last = 0;
    for (int r = 0; r < call->n_reads; r++)
        for (int p = 0; p < call->reads[r].n_parts; p++) {
            const int64_t ticket = call->reads[r].parts[p].decoder->ahead_ticket;
            last = ticket > last ? ticket : last;
        }
    return last;
}

/* Copies brought ahead are waited for first: a synchronisation after a failure covers them, too. */
static enum sx_status issue(struct decode_call *call) {
    SX_TRY(cuda_bring_wait(call->stream, last_ticket(call)));
    for (int r = 0; r < call->n_reads; r++)
        SX_TRY(decode_list(call, r));
    call->place = (struct sx_decode_place){-1, -1};
    SX_TRY(number_pages(call));
    SX_TRY(decode_bring(call));
    call->place = (struct sx_decode_place){-1, -1};
    SX_TRY(cuda_counters_reset(call->stream, FIRST_COUNTER, 4 * call->n_reads));
    for (int r = 0; r < call->n_reads; r++) {
        call->dictionaries[r].counter = FIRST_COUNTER + 4 * r;
        call->columns[r].counter = FIRST_COUNTER + 4 * r + 2;
        if (entries_of(call, r))
            SX_TRY(decode_column_prepare(call, &call->dictionaries[r], NULL));
        if (call->columns[r].pieces.n == 0)
            SX_TRY(decode_column_prepare(call, &call->columns[r], entries_of(call, r)));
    }
    SX_TRY(decode_columns_issue(call));
    return decode_kept_issue(call);
}

static enum sx_status finish(struct decode_call *call) {
    int r = 0;
    enum sx_status status = SX_OK;
    for (; r < call->n_reads && status == SX_OK; r++)
        status =
            decode_column_finish(call, &call->columns[r], entries_of(call, r), call->reads[r].out_column);
    for (int done = 0; status != SX_OK && done < r - 1; done++)
        sx_tensor_release(call->reads[done].out_column);
    return status;
}

/* A decoder that is through needs its copies no more. */
static void advance(struct decode_call *call) {
    for (int r = 0; r < call->n_reads; r++)
        for (int p = 0; p < call->reads[r].n_parts; p++) {
            const struct sx_decode_part *part = &call->reads[r].parts[p];
            part->decoder->row = part->first + part->rows;
            if (part->decoder->row == part->decoder->page_rows)
                release_copies(part->decoder);
        }
}

/* Copies may still read what the caller frees. What else the wait tells, which was issued before, comes
 * first: a decode may be tried again. */
static enum sx_status wait_after(struct cuda_stream *stream, enum sx_status failed) {
    const struct sx_error error = stream->base.error;
    const enum sx_status status = cuda_sync(stream, "a decode that failed");
    if (status != SX_OK && status != SX_FILE)
        return status;
    stream->base.error = error;
    return failed;
}

/* The stream has waited for it, and the caller for the stream. */
static void end_ahead(const struct decode_call *call) {
    for (int r = 0; r < call->n_reads; r++)
        for (int p = 0; p < call->reads[r].n_parts; p++)
            decode_ahead_end(call->stream, call->reads[r].parts[p].decoder);
}

static enum sx_status run(struct decode_call *call) {
    struct cuda_stream *stream = call->stream;
    call->outer_describe = stream->describe_fault;
    call->outer_context = stream->fault_context;
    stream->describe_fault = describe;
    stream->fault_context = call;
    enum sx_status status = issue(call);
    status = status == SX_OK ? cuda_sync_counters(stream, "pages decoded") : wait_after(stream, status);
    end_ahead(call);
    decode_images_end(call, status == SX_OK);
    if (status == SX_OK)
        status = finish(call);
    stream->describe_fault = call->outer_describe;
    stream->fault_context = call->outer_context;
    return status;
}

static enum sx_status try_decode(struct cuda_stream *stream, const struct sx_column_read *reads, int n_reads,
                                 const struct sx_tensor *selection, struct sx_decode_place *out_place,
                                 struct decode_way *way) {
    struct decode_call call = {.stream = stream,
                               .reads = reads,
                               .n_reads = n_reads,
                               .selection = selection,
                               .place = {-1, -1},
                               .way = way};
    enum sx_status status;
    call.dictionaries = calloc((size_t)n_reads + 1, sizeof *call.dictionaries);
    call.columns = calloc((size_t)n_reads + 1, sizeof *call.columns);
    if (call.dictionaries && call.columns)
        status = run(&call);
    else
        status = sx_error_set(&stream->base.error, SX_OUT_OF_MEMORY, "no memory for a decode");
    if (status == SX_OK)
        advance(&call);
    *out_place = call.place;
    for (int r = 0; call.dictionaries && call.columns && r < n_reads; r++) {
        decode_column_release(&call.dictionaries[r]);
        decode_column_release(&call.columns[r]);
    }
    free(call.dictionaries);
    free(call.columns);
    free(call.numbers);
    free(call.numbered);
    free(call.copies);
    return status;
}

/* Without images where there is no memory for them, or rows that are decoded for others have a fault. What
 * the device can't decompress the host may, or it has the right words for what is wrong. */
static enum sx_status decode_some(struct cuda_stream *stream, const struct sx_column_read *reads, int n_reads,
                                  const struct sx_tensor *selection, struct sx_decode_place *out_place) {
    struct decode_way way = {.makes_images = true};
    enum sx_status status = try_decode(stream, reads, n_reads, selection, out_place, &way);
    if ((status == SX_OUT_OF_MEMORY && way.has_begun) || (status == SX_FILE && way.is_whole)) {
        way = (struct decode_way){0};
        status = try_decode(stream, reads, n_reads, selection, out_place, &way);
    }
    if (status == SX_FILE && way.was_inflating) {
        way = (struct decode_way){.inflates_here = true};
        status = try_decode(stream, reads, n_reads, selection, out_place, &way);
    }
    return status;
}

enum sx_status sx_cuda_decode(struct sx_stream *base, const struct sx_column_read *reads, int n_reads,
                              const struct sx_tensor *selection, struct sx_decode_place *out_place) {
    struct cuda_stream *stream;
    *out_place = (struct sx_decode_place){-1, -1};
    SX_TRY(cuda_enter(base, &stream));
    for (int done = 0; done < n_reads; done += MOST_READS) {
        const int n = n_reads - done < MOST_READS ? n_reads - done : MOST_READS;
        enum sx_status status = decode_some(stream, reads + done, n, selection, out_place);
        if (status == SX_OK)
            continue;
        if (out_place->read >= 0)
            out_place->read += done;
        for (int r = 0; r < done; r++)
            sx_tensor_release(reads[r].out_column);
        return status;
    }
    return SX_OK;
}
