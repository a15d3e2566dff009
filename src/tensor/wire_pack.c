/* Packed frames: how columns are packed, and what they are packed by. */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tensor/pack.h"
#include "tensor/wire_format.h"

enum {
    LEAST_ROWS = 64,     /* of a frame that is packed */
    SAMPLE_ROWS = 4096,  /* that the schemes are measured with */
    CHOICE_FRAMES = 128, /* for which a choice holds */
    LEAST_GAIN = 10,     /* one such part of the costs less, or the column stays as it is */
    SLACK = 64           /* bytes that short strings may be written past their end */
};

/* A column's vectors: the first and the second 8 bytes of its values (or the strings' lengths), and codes. */
enum slot { SLOT_VALUES, SLOT_HIGH, SLOT_CODES, SLOTS };

struct choice {
    enum sx_pack_scheme schemes[SLOTS];
    bool is_packed, has_lz4;
    int frames_left; /* for which it holds */
};

/* Memory that grows. */
struct room {
    struct sx_buffer *buffer;
};

struct sx_wire_packer {
    struct sx_pool *pool;
    int32_t n_columns;
    double worth;
    struct choice *choices;
    struct room frame, runs, heap, trial;
    int32_t window[SAMPLE_ROWS]; /* the sample's rows where none are given */
};

/* Where a packed column is written. */
struct writer {
    struct sx_wire_packer *packer;
    char *at;
    size_t room;
    bool is_full;
};

enum sx_status sx_wire_packer_create(struct sx_pool *pool, int32_t n_columns,
                                     struct sx_wire_packer **out_packer, struct sx_error *error) {
    struct sx_wire_packer *packer = calloc(1, sizeof *packer);
    struct choice *choices = calloc(n_columns > 0 ? (size_t)n_columns : 1, sizeof *choices);
    if (!packer || !choices) {
        free(packer);
        free(choices);
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for packing columns");
    }
    packer->pool = pool;
    packer->n_columns = n_columns;
    packer->choices = choices;
    *out_packer = packer;
    return SX_OK;
}

void sx_wire_packer_destroy(struct sx_wire_packer *packer) {
    if (!packer)
        return;
    sx_buffer_release(packer->frame.buffer);
    sx_buffer_release(packer->runs.buffer);
    sx_buffer_release(packer->heap.buffer);
    sx_buffer_release(packer->trial.buffer);
    free(packer->choices);
    free(packer);
}

void sx_wire_packer_set_worth(struct sx_wire_packer *packer, double ns_a_byte) {
    if (packer->worth == ns_a_byte)
        return;
    packer->worth = ns_a_byte;
    for (int32_t c = 0; c < packer->n_columns; c++)
        packer->choices[c].frames_left = 0;
}

/* At least so many bytes; what was in them is lost. */
static enum sx_status make_room(struct sx_wire_packer *packer, struct room *room, size_t bytes,
                                struct sx_error *error) {
    if (room->buffer && room->buffer->size_bytes >= bytes)
        return SX_OK;
    sx_buffer_release(room->buffer);
    room->buffer = NULL;
    return sx_buffer_create(packer->pool, bytes, &room->buffer, error);
}

/* ---- parts of a column ---- */

static void add_vector(struct writer *writer, const struct sx_pack_input *input, enum sx_pack_scheme scheme) {
    void *runs = writer->packer->runs.buffer->data;
    size_t bytes = writer->is_full ? 0 : sx_pack(input, scheme, runs, writer->at, writer->room);
    if (!bytes && !writer->is_full && scheme != SX_PACK_PLAIN)
        bytes = sx_pack(input, SX_PACK_PLAIN, runs, writer->at, writer->room);
    writer->is_full = bytes == 0;
    writer->at += bytes;
    writer->room -= bytes;
}

/* Of the values that are sent: those of the rows, or of the dictionary. */
static struct sx_pack_input values_input(const struct wire_picked *picked) {
    const struct sx_tensor *column = picked->column;
    struct sx_pack_input input = {.values = wire_stored_values(picked),
                                  .width_bytes = (uint32_t)picked->width_bytes,
                                  .stride_bytes = (uint32_t)picked->width_bytes,
                                  .n = wire_n_values(picked)};
    if (picked->layout == SX_FLAT) {
        input.rows = picked->rows;
        input.valid = column->valid;
        input.codes = column->layout == SX_DICT ? column->values : NULL;
    }
    if (picked->type.id == SX_TYPE_VARCHAR) {
        input.width_bytes = sizeof(uint32_t); /* the length, which a view begins with */
        input.nulls_are_zero = true;
    } else if (input.width_bytes > sizeof(uint64_t)) {
        input.width_bytes /= 2;
    }
    return input;
}

static struct sx_pack_input codes_input(const struct wire_picked *picked) {
    return (struct sx_pack_input){.values = picked->column->values,
                                  .width_bytes = sizeof(int32_t),
                                  .stride_bytes = sizeof(int32_t),
                                  .rows = picked->rows,
                                  .valid = picked->column->valid,
                                  .n = picked->n_rows};
}

static bool has_halves(const struct wire_picked *picked) {
    return picked->type.id != SX_TYPE_VARCHAR && picked->width_bytes > sizeof(uint64_t);
}

/* The strings' bytes, one string after another; SIZE_MAX: no room. */
static size_t join_strings(const struct wire_picked *picked, char *out, size_t room) {
    size_t used = 0;
    for (int64_t i = 0, n = wire_n_values(picked); i < n; i++) {
        const struct sx_string *string = (const struct sx_string *)wire_value_at(picked, i);
        const uint32_t length = string ? string->length_bytes : 0;
        if (room < SLACK || length > room - SLACK - used)
            return SIZE_MAX;
        if (!string)
            continue;
        if (length <= SX_STRING_INLINE_BYTES)
            memcpy(out + used, string->u.inlined, SX_STRING_INLINE_BYTES);
        else
            memcpy(out + used, string->u.ref.pointer, length);
        used += length;
    }
    return used;
}

/* LZ4 of `bytes` at `out`; 0: it is no fewer. */
static size_t compress(const char *plain, size_t bytes, char *out, size_t room) {
    if (bytes == 0 || bytes > LZ4_MAX_INPUT_SIZE)
        return 0;
    const size_t most = bytes - 1 < room ? bytes - 1 : room;
    return (size_t)LZ4_compress_default(plain, out, (int)bytes, (int)most);
}

static void add_heap(struct writer *writer, const struct wire_picked *picked, bool has_lz4,
                     uint64_t *out_bytes) {
    struct sx_buffer *heap = writer->packer->heap.buffer;
    struct wire_heap header = {0};
    char *out = writer->at + sizeof header;
    writer->is_full = writer->is_full || writer->room < sizeof header;
    if (writer->is_full)
        return;
    const size_t room = writer->room - sizeof header;
    const size_t bytes = join_strings(picked, has_lz4 ? heap->data : out, has_lz4 ? heap->size_bytes : room);
    writer->is_full = bytes == SIZE_MAX;
    if (writer->is_full)
        return;
    *out_bytes = header.stored_bytes = bytes;
    const size_t packed = has_lz4 ? compress(heap->data, bytes, out, room) : 0;
    if (packed) {
        header.stored_bytes = packed;
        header.is_lz4 = 1;
    }
    writer->is_full = wire_aligned(header.stored_bytes) > room;
    if (writer->is_full)
        return;
    if (has_lz4 && !packed)
        memcpy(out, heap->data, bytes);
    memset(out + header.stored_bytes, 0, wire_aligned(header.stored_bytes) - header.stored_bytes);
    memcpy(writer->at, &header, sizeof header);
    writer->at += sizeof header + wire_aligned(header.stored_bytes);
    writer->room -= sizeof header + wire_aligned(header.stored_bytes);
}

static bool has_nulls(const struct wire_picked *picked) {
    const uint8_t *valid = picked->column->valid;
    uint8_t all = 1;
    for (int64_t i = 0; valid && i < picked->n_rows; i++)
        all &= valid[picked->rows ? picked->rows[i] : i];
    return all == 0;
}

/* The column's header and parts; its end. NULL: they take no less than the column as it is. */
static char *pack_column(struct sx_wire_packer *packer, const struct wire_picked *picked,
                         const struct choice *choice, size_t plain_bytes, char *out) {
    struct wire_column header = wire_column_header(picked);
    struct writer writer = {.packer = packer, .at = out + sizeof header, .room = plain_bytes - sizeof header};
    struct sx_pack_input values = values_input(picked);
    const bool is_dict = picked->layout == SX_DICT;
    add_vector(&writer, &values, is_dict ? SX_PACK_FRAME : choice->schemes[SLOT_VALUES]);
    if (has_halves(picked)) {
        values.values += values.width_bytes;
        add_vector(&writer, &values, is_dict ? SX_PACK_FRAME : choice->schemes[SLOT_HIGH]);
    }
    if (picked->type.id == SX_TYPE_VARCHAR)
        add_heap(&writer, picked, choice->has_lz4, &header.heap_bytes);
    if (is_dict) {
        const struct sx_pack_input codes = codes_input(picked);
        add_vector(&writer, &codes, choice->schemes[SLOT_CODES]);
    }
    header.has_valid = has_nulls(picked);
    if (header.has_valid) {
        const struct sx_pack_input valid = {.values = (const char *)picked->column->valid,
                                            .width_bytes = 1,
                                            .stride_bytes = 1,
                                            .rows = picked->rows,
                                            .n = picked->n_rows};
        add_vector(&writer, &valid, SX_PACK_FRAME);
    }
    header.packed_bytes = (uint64_t)(writer.at - out) - sizeof header;
    memcpy(out, &header, sizeof header);
    return writer.is_full ? NULL : writer.at;
}

/* ---- choosing ---- */

/* What bytes and nanoseconds of the sender cost; the receiver takes about as long. */
static double cost(const struct sx_wire_packer *packer, size_t bytes, int64_t ns) {
    return (double)bytes * packer->worth + 2.0 * (double)ns;
}

/* The scheme with the least cost for one vector. */
static enum sx_pack_scheme choose_scheme(struct sx_wire_packer *packer, const struct sx_pack_input *input) {
    enum sx_pack_scheme best = SX_PACK_PLAIN;
    struct sx_buffer *trial = packer->trial.buffer;
    double least = 0;
    for (int s = 0; s < SX_PACK_SCHEMES; s++) {
        int64_t ns = INT64_MAX;
        size_t bytes = 0;
        for (int repeat = 0; repeat < 2; repeat++) {
            const int64_t began_ns = sx_clock_ns();
            bytes = sx_pack(input, (enum sx_pack_scheme)s, packer->runs.buffer->data, trial->data,
                            trial->size_bytes);
            const int64_t took_ns = sx_clock_ns() - began_ns;
            ns = took_ns < ns ? took_ns : ns;
        }
        const double costs = cost(packer, bytes, ns);
        if (s == SX_PACK_PLAIN || (bytes && costs < least)) {
            best = (enum sx_pack_scheme)s;
            least = costs;
        }
    }
    return best;
}

/* Of the whole column: as it is (`choice` is NULL), or packed. Negative: it can't be. */
static double column_cost(struct sx_wire_packer *packer, const struct wire_picked *picked,
                          const struct choice *choice, size_t plain_bytes) {
    char *out = packer->trial.buffer->data;
    double least = -1;
    for (int repeat = 0; repeat < 2; repeat++) {
        const int64_t began_ns = sx_clock_ns();
        const char *end =
            choice ? pack_column(packer, picked, choice, plain_bytes, out) : wire_pack_column(picked, out);
        if (!end)
            return -1;
        const double costs = cost(packer, (size_t)(end - out), sx_clock_ns() - began_ns);
        least = least < 0 || costs < least ? costs : least;
    }
    return least;
}

/* Some rows from the middle. */
static struct wire_picked sample(struct sx_wire_packer *packer, const struct wire_picked *picked) {
    struct wire_picked some = *picked;
    if (picked->n_rows <= SAMPLE_ROWS)
        return some;
    const int64_t first = (picked->n_rows - SAMPLE_ROWS) / 2;
    some.n_rows = SAMPLE_ROWS;
    some.rows = picked->rows ? picked->rows + first : packer->window;
    for (int i = 0; !picked->rows && i < SAMPLE_ROWS; i++)
        packer->window[i] = (int32_t)(first + i);
    return some;
}

static enum sx_status choose(struct sx_wire_packer *packer, const struct wire_picked *picked,
                             struct choice *choice, struct sx_error *error) {
    const struct wire_picked some = sample(packer, picked);
    const size_t plain_bytes = wire_column_bytes(&some);
    SX_TRY(make_room(packer, &packer->trial, plain_bytes + SLACK, error));
    *choice = (struct choice){.frames_left = CHOICE_FRAMES};
    struct sx_pack_input values = values_input(&some);
    if (some.layout == SX_FLAT)
        choice->schemes[SLOT_VALUES] = choose_scheme(packer, &values);
    if (some.layout == SX_FLAT && has_halves(&some)) {
        values.values += values.width_bytes;
        choice->schemes[SLOT_HIGH] = choose_scheme(packer, &values);
    }
    if (some.layout == SX_DICT) {
        const struct sx_pack_input codes = codes_input(&some);
        choice->schemes[SLOT_CODES] = choose_scheme(packer, &codes);
    }
    const double plain = column_cost(packer, &some, NULL, plain_bytes);
    double packed = column_cost(packer, &some, choice, plain_bytes);
    if (some.type.id == SX_TYPE_VARCHAR) {
        choice->has_lz4 = true;
        const double smaller = column_cost(packer, &some, choice, plain_bytes);
        choice->has_lz4 = smaller >= 0 && (packed < 0 || smaller < packed);
        packed = choice->has_lz4 ? smaller : packed;
    }
    choice->is_packed = packed >= 0 && packed < plain - plain / LEAST_GAIN;
    return SX_OK;
}

/* ---- frames ---- */

static enum sx_status add_column(struct sx_wire_packer *packer, const struct sx_tensor *column,
                                 const int32_t *rows, int64_t n_rows, struct choice *choice, char **at,
                                 struct sx_error *error) {
    const struct wire_picked picked = wire_pick(column, rows, n_rows);
    const bool may_be_packed = picked.layout != SX_CONSTANT && n_rows >= LEAST_ROWS && packer->worth > 0;
    char *end = NULL;
    if (may_be_packed) {
        const size_t plain_bytes = wire_column_bytes(&picked);
        if (picked.type.id == SX_TYPE_VARCHAR)
            SX_TRY(make_room(packer, &packer->heap, plain_bytes + SLACK, error));
        if (choice->frames_left == 0)
            SX_TRY(choose(packer, &picked, choice, error));
        choice->frames_left--;
        if (choice->is_packed)
            end = pack_column(packer, &picked, choice, plain_bytes, *at);
    }
    *at = end ? end : wire_pack_column(&picked, *at);
    return SX_OK;
}

enum sx_status sx_wire_packer_pack(struct sx_wire_packer *packer, const struct sx_batch *batch,
                                   const int32_t *rows, int64_t n_rows, int64_t sequence, size_t plain_bytes,
                                   const void **out_frame, size_t *out_bytes, struct sx_error *error) {
    SX_TRY(make_room(packer, &packer->frame, plain_bytes + SLACK, error));
    SX_TRY(make_room(packer, &packer->runs, sx_pack_scratch_bytes(n_rows), error));
    char *const begin = packer->frame.buffer->data;
    char *at = begin + sizeof(struct wire_frame);
    for (int c = 0; c < batch->n_columns; c++)
        SX_TRY(add_column(packer, &batch->columns[c], rows, n_rows, &packer->choices[c], &at, error));
    const struct wire_frame header = {
        .bytes = (uint64_t)(at - begin), .rows = n_rows, .sequence = sequence, .n_columns = batch->n_columns};
    memcpy(begin, &header, sizeof header);
    *out_frame = begin;
    *out_bytes = (size_t)(at - begin);
    return SX_OK;
}
