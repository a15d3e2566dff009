/* Arbitrary pages under an arbitrary description of their column: decoding ends, stays within its memory and
 * gives all of it back. Layout of an input: struct head, then for each page struct page_head and its bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"

enum { MAX_PAGES = 8, POOL_BYTES = 64 << 20, MAX_OPERATIONS = 64 };

struct head {
    uint8_t physical, codec, type, conversion;
    uint8_t precision, scale, flags, type_length;
    uint32_t n_rows;
    uint32_t seed; /* of the reads and skips */
};
enum { FLAG_OPTIONAL = 1, FLAG_KEEP_DICTIONARY = 2, FLAG_DICTIONARY_FIRST = 4 };

struct page_head {
    uint8_t kind, encoding, definition_encoding, is_compressed;
    uint32_t n_values;
    uint32_t plain_bytes;
    uint16_t stored_bytes; /* cut to what the input has left */
    uint16_t definition_bytes;
};

struct input {
    struct sx_chunk_spec spec;
    struct sx_page pages[MAX_PAGES];
    int n_pages;
    uint64_t random;
};

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static bool take(const uint8_t **data, size_t *size, void *out, size_t wanted) {
    if (*size < wanted)
        return false;
    memcpy(out, *data, wanted);
    *data += wanted, *size -= wanted;
    return true;
}

static struct sx_chunk_spec spec_of(const struct head *head) {
    static const enum sx_parquet_codec codecs[] = {SX_CODEC_UNCOMPRESSED, SX_CODEC_SNAPPY, SX_CODEC_GZIP,
                                                   SX_CODEC_BROTLI,       SX_CODEC_LZ4,    SX_CODEC_ZSTD,
                                                   SX_CODEC_LZ4_RAW};
    int precision = 1 + head->precision % SX_DECIMAL_MAX_DIGITS;
    struct sx_type type = sx_type_of((enum sx_type_id)(head->type % SX_TYPE_COUNT));
    if (type.id == SX_TYPE_DECIMAL)
        type = sx_type_decimal(precision, head->scale % (precision + 1));
    return (struct sx_chunk_spec){
        .physical = (enum sx_parquet_physical)(head->physical % 8),
        .codec = codecs[head->codec % (sizeof codecs / sizeof codecs[0])],
        .type_length = head->type_length,
        .type = type,
        .conversion = (enum sx_conversion)(head->conversion % (SX_CONVERT_F16 + 1)),
        .optional = head->flags & FLAG_OPTIONAL,
        .keep_dictionary = head->flags & FLAG_KEEP_DICTIONARY,
        .n_rows = head->n_rows,
    };
}

/* Each page's bytes are a block of their own, so that an overread is seen. */
static bool take_page(const uint8_t **data, size_t *size, struct input *input) {
    struct page_head head;
    if (!take(data, size, &head, sizeof head))
        return false;
    size_t stored = head.stored_bytes < *size ? head.stored_bytes : *size;
    uint8_t *bytes = malloc(stored ? stored : 1);
    if (!bytes)
        return false;
    memcpy(bytes, *data, stored);
    *data += stored, *size -= stored;
    input->pages[input->n_pages++] = (struct sx_page){
        .kind = (enum sx_page_kind)(head.kind % 3),
        .encoding = (enum sx_parquet_encoding)(head.encoding % 12),
        .definition_encoding = (enum sx_parquet_encoding)(head.definition_encoding % 5),
        .bytes = bytes,
        .stored_bytes = (uint32_t)stored,
        .plain_bytes = head.plain_bytes,
        .n_values = head.n_values,
        .definition_bytes = head.definition_bytes,
        .is_compressed = head.is_compressed & 1,
    };
    return true;
}

/* Reads or skips; false at the first error. */
static bool step(struct sx_stream *stream, struct sx_decoder *decoder, int64_t *row, uint64_t *random) {
    int64_t rows = (int64_t)(next_random(random) % (next_random(random) % 4 ? 100 : 20000));
    uint64_t kind = next_random(random) % 4;
    const int64_t first = *row;
    *row += rows;
    if (kind == 0)
        return true;
    struct sx_tensor selection = {0}, out = {0};
    if (kind == 1) {
        if (sx_tensor_create_index(stream->pool, SX_TYPE_I32, rows, &selection, &stream->error) != SX_OK)
            return false;
        int32_t *positions = selection.values;
        selection.length = 0;
        for (int32_t i = 0; i < rows; i += 1 + (int32_t)(next_random(random) % 8))
            positions[selection.length++] = i;
    }
    const struct sx_decode_part part = {decoder, first, rows};
    const struct sx_column_read read = {&part, 1, &out};
    struct sx_decode_place place;
    enum sx_status status = sx_cpu_decode(stream, &read, 1, kind == 1 ? &selection : NULL, &place);
    volatile uint64_t sum = 0; /* every value is safe to read */
    for (int64_t i = 0; status == SX_OK && i < out.length; i++) {
        struct sx_scalar value;
        sx_tensor_scalar(&out, i, &value);
        if (out.type.id == SX_TYPE_VARCHAR && !value.is_null && value.v.text.length_bytes)
            sum += (uint8_t)value.v.text.bytes[value.v.text.length_bytes - 1];
        else
            sum += value.v.u64;
    }
    sx_tensor_release(&selection);
    sx_tensor_release(&out);
    return status == SX_OK;
}

static void decode(struct sx_stream *stream, struct input *input) {
    struct sx_decoder *decoder = NULL;
    const struct sx_stored_chunk chunk = {
        .spec = input->spec, .pages = input->pages, .n_pages = input->n_pages};
    int64_t row = 0;
    if (sx_cpu_decoder_create(stream, &chunk, &decoder) != SX_OK)
        return;
    for (int i = 0; i < MAX_OPERATIONS && step(stream, decoder, &row, &input->random); i++)
        continue;
    sx_cpu_decoder_destroy(stream, decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct head head;
    struct input input = {0};
    struct sx_stream stream = {0};
    if (!take(&data, &size, &head, sizeof head) ||
        sx_pool_create(POOL_BYTES, &stream.pool, &stream.error) != SX_OK)
        return 0;
    input.spec = spec_of(&head);
    input.random = head.seed;
    while (input.n_pages < MAX_PAGES && take_page(&data, &size, &input))
        continue;
    if (head.flags & FLAG_DICTIONARY_FIRST && input.n_pages > 0)
        input.pages[0].kind = SX_PAGE_DICTIONARY;
    decode(&stream, &input);
    if (sx_pool_usage(stream.pool).used_bytes != 0)
        abort();
    for (int i = 0; i < input.n_pages; i++)
        free((void *)(uintptr_t)input.pages[i].bytes);
    sx_pool_destroy(stream.pool);
    return 0;
}
