/* Which encoding makes a column chunk smallest. Candidates without a dictionary are tried on some of the
 * pages, compressed if pages are to be; the dictionary is made from all values, unless a sample of them says
 * that it can't win, or given up once it can't. */
#include <math.h>

#include "storage/write_values.h"
#include "tensor/semantics.h"

enum {
    TRIED_PAGES = 6,
    SAMPLE_VALUES = 1 << 14,
    SAMPLE_SLOTS = 1 << 16,
    ADDED_VALUES = 1 << 16 /* to a dictionary, between two looks */
};
/* A dictionary page has to be decoded as a whole. */
static const int64_t most_dictionary_bytes = (int64_t)64 << 20;

enum sx_status sx_write_pack(struct sx_write_packer *packer, const uint8_t *bytes, size_t length_bytes,
                             bool *out_smaller, struct sx_error *error) {
    size_t room = sx_codec_bound(packer->codec, length_bytes);
    *out_smaller = false;
    if (!room || !length_bytes)
        return SX_OK;
    packer->packed.size = 0;
    uint8_t *to = sx_bytes_take(&packer->packed, room);
    if (!to)
        return SX_OUT_OF_MEMORY;
    SX_TRY(sx_codec_compress(&packer->compressor, packer->codec, packer->level, bytes, length_bytes, to,
                             &room, error));
    packer->packed.size = room;
    *out_smaller = room < length_bytes;
    return SX_OK;
}

struct choice {
    struct sx_write_values *values;
    const struct sx_write_span *spans;
    int n_spans;
    struct sx_write_packer *packer;
    struct sx_bytes page; /* scratch */
    struct sx_error *error;
};

/* Bytes in all that the pages tried stand for. */
static double scale(const struct choice *choice, double bytes, int64_t values) {
    return values ? bytes * (double)choice->values->count / (double)values : bytes;
}

/* Bytes of what is in the scratch page, as it would be stored. */
static enum sx_status measure_page(struct choice *choice, double *bytes) {
    bool smaller;
    SX_TRY(sx_bytes_status(&choice->page));
    SX_TRY(sx_write_pack(choice->packer, choice->page.data, choice->page.size, &smaller, choice->error));
    *bytes += (double)(smaller ? choice->packer->packed.size : choice->page.size);
    return SX_OK;
}

/* Number `i` of the pages that are tried. */
static const struct sx_write_span *tried_span(const struct choice *choice, int i, int n) {
    return &choice->spans[(int64_t)i * choice->n_spans / n];
}

static int n_tried(const struct choice *choice) {
    return choice->n_spans < TRIED_PAGES ? choice->n_spans : TRIED_PAGES;
}

static enum sx_status try_encoding(struct choice *choice, enum sx_parquet_encoding encoding,
                                   double *out_bytes) {
    double bytes = 0;
    int64_t values = 0;
    for (int i = 0, n = n_tried(choice); i < n; i++) {
        const struct sx_write_span *span = tried_span(choice, i, n);
        choice->page.size = 0;
        sx_encode_values(&choice->values->stored, encoding, span->value, span->values, &choice->page);
        SX_TRY(measure_page(choice, &bytes));
        values += span->values;
    }
    *out_bytes = scale(choice, bytes, values);
    return SX_OK;
}

/* The smallest of the encodings that the type has, the simplest one of those that are equal. */
static enum sx_status try_encodings(struct choice *choice, enum sx_parquet_encoding *out_encoding,
                                    double *out_bytes) {
    static const enum sx_parquet_encoding encodings[] = {
        SX_ENCODING_PLAIN, SX_ENCODING_RLE, SX_ENCODING_DELTA_BINARY_PACKED,
        SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY, SX_ENCODING_BYTE_STREAM_SPLIT};
    *out_bytes = INFINITY;
    for (size_t e = 0; e < sizeof encodings / sizeof *encodings; e++) {
        const bool is_split = encodings[e] == SX_ENCODING_BYTE_STREAM_SPLIT;
        double bytes;
        if (!sx_encode_can(choice->values->stored.physical, encodings[e]) ||
            (is_split && choice->packer->codec == SX_CODEC_UNCOMPRESSED))
            continue;
        SX_TRY(try_encoding(choice, encodings[e], &bytes));
        if (bytes < *out_bytes) {
            *out_bytes = bytes;
            *out_encoding = encodings[e];
        }
    }
    return SX_OK;
}

/* ---- the dictionary ---- */

static uint64_t hash_at(const struct sx_stored *stored, int64_t at) {
    const uint8_t *value = (const uint8_t *)stored->values + (size_t)at * stored->width;
    if (stored->physical == SX_PARQUET_BYTE_ARRAY)
        return sx_hash_string((const struct sx_string *)(const void *)value);
    return sx_hash_bytes((const char *)value, (uint32_t)stored->width);
}

/* How often a value equals the one in front of it, in a run of a sixteenth of the sample from each of 16
 * places. */
static double repeats(const struct sx_stored *stored, int64_t count) {
    const int64_t places = 16, length = SAMPLE_VALUES / places;
    int64_t equal = 0, seen = 0;
    for (int64_t p = 0; p < places; p++) {
        int64_t first = count / places * p;
        uint64_t previous = hash_at(stored, first);
        for (int64_t i = first + 1; i < count && i < first + length; i++, seen++) {
            uint64_t hash = hash_at(stored, i);
            equal += hash == previous;
            previous = hash;
        }
    }
    return seen ? (double)equal / (double)seen : 0;
}

/* A slot of the sample's table. */
struct sampled {
    uint64_t hash; /* 0: free */
    int64_t count;
};

/* Pairs of equal values in a sample, by the hashes of every `step`th value. */
static double equal_pairs(const struct sx_stored *stored, int64_t step, struct sampled *slots) {
    double pairs = 0;
    for (int64_t i = 0; i < SAMPLE_VALUES; i++) {
        uint64_t hash = hash_at(stored, i * step) | 1, at = (hash >> 20) % SAMPLE_SLOTS;
        while (slots[at].hash && slots[at].hash != hash)
            at = (at + 1) % SAMPLE_SLOTS;
        slots[at].hash = hash;
        pairs += (double)slots[at].count++;
    }
    return pairs;
}

/* At least so many distinct values, as far as a sample tells: from the number of pairs that are equal in it,
 * as with birthdays, and three standard deviations of that number. */
static enum sx_status distinct_at_least(struct choice *choice, double *out_distinct) {
    const struct sx_stored *stored = &choice->values->stored;
    const int64_t count = choice->values->count, step = count / SAMPLE_VALUES;
    *out_distinct = 0;
    if (step < 2)
        return SX_OK; /* few values: made at once */
    struct sx_bytes table = sx_bytes_in(choice->values->pool, choice->error);
    void *slots = sx_bytes_take(&table, SAMPLE_SLOTS * sizeof(struct sampled));
    if (!slots)
        return SX_OUT_OF_MEMORY;
    memset(slots, 0, SAMPLE_SLOTS * sizeof(struct sampled));
    double pairs = equal_pairs(stored, step, slots);
    sx_bytes_release(&table);
    double by_pairs = (double)SAMPLE_VALUES * SAMPLE_VALUES / 2 / (pairs + 3 * sqrt(pairs) + 3);
    double by_runs = (double)count * (1 - repeats(stored, count)) / 2;
    *out_distinct = by_pairs < by_runs ? by_pairs : by_runs;
    return SX_OK;
}

static double value_bytes(const struct choice *choice) {
    const struct sx_stored *stored = &choice->values->stored;
    if (stored->physical != SX_PARQUET_BYTE_ARRAY)
        return (double)stored->width;
    const struct sx_string *texts = stored->values;
    const int64_t count = choice->values->count, step = count / SAMPLE_VALUES + 1;
    double bytes = 0, seen = 0;
    for (int64_t i = 0; i < count; i += step, seen++)
        bytes += texts[i].length_bytes + sizeof(uint32_t);
    return seen > 0 ? bytes / seen : 0;
}

/* Fills values->codes, or leaves it NULL where dictionary and codes have more than `most_bytes`. */
static enum sx_status make_codes(struct choice *choice, double most_bytes) {
    struct sx_write_values *values = choice->values;
    struct sx_write_dictionary *dictionary = &values->dictionary;
    double distinct = 0;
    SX_TRY(distinct_at_least(choice, &distinct));
    if (distinct * value_bytes(choice) > most_bytes)
        return SX_OK;
    void *codes;
    const size_t codes_bytes = (size_t)values->count * sizeof *values->codes;
    SX_TRY(sx_pool_alloc(values->pool, codes_bytes, &codes, choice->error));
    dictionary->entries = values->stored;
    dictionary->n_codes = values->count;
    dictionary->most_bytes =
        most_bytes < (double)most_dictionary_bytes ? (int64_t)most_bytes : most_dictionary_bytes;
    enum sx_write_coded coded = SX_CODED;
    for (int64_t at = 0; at < values->count && coded == SX_CODED; at += ADDED_VALUES) {
        int64_t left = values->count - at;
        coded = sx_write_dictionary_add(
            dictionary, (const uint8_t *)values->memory + (size_t)at * values->stored.width,
            left < ADDED_VALUES ? left : ADDED_VALUES, (int32_t *)codes + at, choice->error);
    }
    if (coded == SX_CODED) {
        values->codes = codes;
        return SX_OK;
    }
    sx_pool_free(values->pool, codes, codes_bytes);
    sx_write_dictionary_release(dictionary);
    return coded == SX_CODED_NO_MEMORY ? SX_OUT_OF_MEMORY : SX_OK;
}

static enum sx_status measure_codes(struct choice *choice, double *out_bytes) {
    const struct sx_write_dictionary *dictionary = &choice->values->dictionary;
    double bytes = 0, dictionary_bytes = 0;
    int64_t values = 0;
    for (int i = 0, n = n_tried(choice); i < n; i++) {
        const struct sx_write_span *span = tried_span(choice, i, n);
        choice->page.size = 0;
        sx_encode_codes(choice->values->codes + span->value, span->values,
                        sx_write_dictionary_bits(dictionary), &choice->page);
        SX_TRY(measure_page(choice, &bytes));
        values += span->values;
    }
    choice->page.size = 0;
    sx_encode_values(&dictionary->entries, SX_ENCODING_PLAIN, 0, dictionary->n_entries, &choice->page);
    SX_TRY(measure_page(choice, &dictionary_bytes));
    *out_bytes = scale(choice, bytes, values) + dictionary_bytes;
    return SX_OK;
}

static bool can_have_dictionary(const struct sx_write_values *values) {
    return values->count > 0 && values->stored.physical != SX_PARQUET_BOOLEAN &&
           values->stored.physical != SX_PARQUET_FIXED_LEN_BYTE_ARRAY;
}

/* Codes stay if they take fewer bytes than the best of the other encodings. */
static enum sx_status compete(struct choice *choice, bool plain_only,
                              enum sx_parquet_encoding *out_encoding) {
    struct sx_write_values *values = choice->values;
    double best, coded;
    if (plain_only)
        SX_TRY(try_encoding(choice, *out_encoding = SX_ENCODING_PLAIN, &best));
    else
        SX_TRY(try_encodings(choice, out_encoding, &best));
    if (!can_have_dictionary(values))
        return SX_OK;
    /* what the codes compress to is not known yet */
    SX_TRY(make_codes(choice, choice->packer->codec == SX_CODEC_UNCOMPRESSED ? best : 2 * best));
    if (!values->codes)
        return SX_OK;
    SX_TRY(measure_codes(choice, &coded));
    if (coded >= best)
        return sx_write_values_expand(values, choice->error);
    *out_encoding = SX_ENCODING_RLE_DICTIONARY;
    return SX_OK;
}

/* Values that came with a dictionary are compared by the lengths of their texts alone. */
static enum sx_status keep_or_expand(struct choice *choice, enum sx_parquet_encoding *out_encoding) {
    struct sx_write_values *values = choice->values;
    const struct sx_string *entries = values->dictionary.memory;
    double coded, text_bytes = 0;
    SX_TRY(measure_codes(choice, &coded));
    for (int64_t i = 0; i < values->count; i++)
        text_bytes += entries[values->codes[i]].length_bytes;
    *out_encoding = SX_ENCODING_RLE_DICTIONARY;
    return coded < text_bytes ? SX_OK : sx_write_values_expand(values, choice->error);
}

static enum sx_parquet_encoding v2_encoding(enum sx_parquet_physical physical) {
    switch (physical) {
    case SX_PARQUET_BOOLEAN: return SX_ENCODING_RLE;
    case SX_PARQUET_INT32:
    case SX_PARQUET_INT64: return SX_ENCODING_DELTA_BINARY_PACKED;
    case SX_PARQUET_BYTE_ARRAY: return SX_ENCODING_DELTA_LENGTH_BYTE_ARRAY;
    case SX_PARQUET_FLOAT:
    case SX_PARQUET_DOUBLE: return SX_ENCODING_BYTE_STREAM_SPLIT;
    default: return SX_ENCODING_PLAIN;
    }
}

static enum sx_status choose(struct choice *choice, enum sx_write_encoding wanted,
                             enum sx_parquet_encoding *out_encoding) {
    *out_encoding = SX_ENCODING_PLAIN;
    if (choice->values->count == 0 || wanted == SX_WRITE_PLAIN)
        return SX_OK;
    if (wanted == SX_WRITE_V2) {
        *out_encoding = v2_encoding(choice->values->stored.physical);
        return SX_OK;
    }
    if (choice->values->codes) {
        SX_TRY(keep_or_expand(choice, out_encoding));
        if (choice->values->codes)
            return SX_OK;
    }
    return compete(choice, wanted == SX_WRITE_DICTIONARY, out_encoding);
}

enum sx_status sx_write_choose(const struct sx_write_options *options, struct sx_write_values *values,
                               const struct sx_write_span *spans, int n_spans, struct sx_write_packer *packer,
                               enum sx_parquet_encoding *out_encoding, struct sx_error *error) {
    struct choice choice = {values, spans, n_spans, packer, sx_bytes_in(values->pool, error), error};
    enum sx_status status = choose(&choice, options->encoding, out_encoding);
    sx_bytes_release(&choice.page);
    return status;
}
