/* Decompression on the device (backend/cuda/inflate.h) against the codecs' libraries on the host: many pieces
 * at once, at any address, damaged ones among them. Nothing may be written outside of a piece. */
#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/inflate.h"
#include "inflate_streams.h"
#include "tensor/codec.h"

enum { GUARD = 0x5a, MAX_GAP = 40 };

static const enum sx_parquet_codec covered[] = {SX_CODEC_SNAPPY, SX_CODEC_GZIP, SX_CODEC_LZ4_RAW,
                                                SX_CODEC_ZSTD};
enum { N_COVERED = sizeof covered / sizeof covered[0] };

/* The backend's functions, which its library exports. */
struct functions {
    __typeof__(&cuda_inflate_takes) takes;
    __typeof__(&cuda_inflate) inflate;
    bool is_emulated;
};

struct pieces {
    enum sx_parquet_codec codec;
    struct piece *all;
    int n, room;
};

/* ---- pieces ---- */

static struct piece *add_piece(struct pieces *pieces) {
    if (pieces->n == pieces->room) {
        pieces->room = pieces->room ? 2 * pieces->room : 16;
        struct piece *grown = realloc(pieces->all, (size_t)pieces->room * sizeof *grown);
        assert(grown);
        pieces->all = grown;
    }
    struct piece *piece = &pieces->all[pieces->n++];
    *piece = (struct piece){0};
    return piece;
}

static void pieces_release(struct pieces *pieces) {
    for (int i = 0; i < pieces->n; i++) {
        bytes_release(&pieces->all[i].stored);
        bytes_release(&pieces->all[i].plain);
    }
    free(pieces->all);
    *pieces = (struct pieces){.codec = pieces->codec};
}

static struct piece *add_random(struct conformance *c, struct pieces *pieces, size_t length) {
    struct piece *piece = add_piece(pieces);
    if (pieces->codec == SX_CODEC_SNAPPY && length > 0 && conformance_random(c) % 2) {
        inflate_snappy_stream(c, length, piece);
        return piece;
    }
    inflate_make_plain(c, (enum inflate_content)(conformance_random(c) % N_CONTENTS), length, &piece->plain);
    const bool is_other = length > 0 && conformance_random(c) % 2;
    if (is_other && pieces->codec == SX_CODEC_ZSTD)
        inflate_zstd_stream(c, piece);
    else if (is_other && pieces->codec == SX_CODEC_GZIP)
        inflate_gzip_stream(c, piece);
    else
        encode_compress(pieces->codec, piece->plain.data, length, &piece->stored);
    return piece;
}

/* ---- a batch ---- */

static size_t gap(struct conformance *c) {
    return conformance_random(c) % MAX_GAP;
}

/* A column's worth of bytes; the backend's tests have no other way into its memory. */
static struct sx_tensor bytes_column(struct conformance *c, size_t length) {
    struct sx_tensor column = {0};
    const int64_t words = (int64_t)(length / 8 + 1);
    enum sx_status status =
        sx_tensor_create(c->pool, sx_type_of(SX_TYPE_U64), words, false, &column, &c->error);
    assert(status == SX_OK);
    memset(column.values, GUARD, (size_t)words * 8);
    return column;
}

/* Everything between the pieces is as it was, and the right ones are right. */
static void check_plain(struct conformance *c, const struct pieces *pieces, const uint8_t *got,
                        size_t length) {
    size_t at = 0;
    for (int i = 0; i <= pieces->n; i++) {
        const struct piece *piece = &pieces->all[i];
        const size_t end = i < pieces->n ? piece->plain_at : length;
        bool intact = true;
        for (; at < end; at++)
            intact &= got[at] == GUARD;
        CONFORM(c, intact, "codec %d: bytes in front of piece %d of %d are overwritten", (int)pieces->codec,
                i, pieces->n);
        if (i == pieces->n)
            return;
        if (!piece->is_wrong && !piece->may_be_refused && piece->plain.length > 0)
            CONFORM(c, memcmp(got + at, piece->plain.data, piece->plain.length) == 0,
                    "codec %d: piece %d of %d, %zu bytes from %zu", (int)pieces->codec, i, pieces->n,
                    piece->plain.length, piece->stored.length);
        at += piece->plain.length;
    }
}

/* The fault, if there is one, must be about a wrong piece; if there is none, no piece may be wrong. */
static void check_status(struct conformance *c, const struct pieces *pieces, enum sx_status status,
                         const uint8_t *got) {
    bool any_wrong = false, named_wrong = false;
    for (int i = 0; i < pieces->n; i++) {
        char text[64];
        const struct piece *piece = &pieces->all[i];
        any_wrong |= piece->is_wrong;
        snprintf(text, sizeof text, "page %d is damaged", i);
        named_wrong |= (piece->is_wrong || piece->may_be_refused) && strcmp(text, c->stream->error.text) == 0;
        if (status == SX_OK && piece->may_be_refused)
            CONFORM(c, memcmp(got + piece->plain_at, piece->plain.data, piece->plain.length) == 0,
                    "codec %d: piece %d was taken, and gave other bytes", (int)pieces->codec, i);
    }
    if (status == SX_OK)
        CONFORM(c, !any_wrong, "codec %d: damage was not seen", (int)pieces->codec);
    else
        CONFORM(c, status == SX_FILE && named_wrong, "codec %d: status %d: %s", (int)pieces->codec,
                (int)status, c->stream->error.text);
}

static void run_pieces(struct conformance *c, const struct functions *f, struct pieces *pieces) {
    size_t stored_length = 0, plain_length = 0;
    if (!conformance_takes(c)) {
        pieces_release(pieces);
        return;
    }
    for (int i = 0; i < pieces->n; i++) {
        struct piece *piece = &pieces->all[i];
        piece->stored_at = stored_length + gap(c);
        piece->plain_at = plain_length + gap(c);
        stored_length = piece->stored_at + piece->stored.length;
        plain_length = piece->plain_at + piece->plain.length;
    }
    struct sx_tensor stored = bytes_column(c, stored_length), plain = bytes_column(c, plain_length);
    struct sx_tensor device_stored = {0}, device_plain = {0}, got = {0};
    for (int i = 0; i < pieces->n; i++)
        if (pieces->all[i].stored.length)
            memcpy((char *)stored.values + pieces->all[i].stored_at, pieces->all[i].stored.data,
                   pieces->all[i].stored.length);
    struct cuda_inflate_item *items = calloc((size_t)pieces->n + 1, sizeof *items);
    assert(items);
    enum sx_status status;
    SX_GO(conformance_send(c, &stored, &device_stored));
    SX_GO(conformance_send(c, &plain, &device_plain));
    for (int i = 0; i < pieces->n; i++) {
        const struct piece *piece = &pieces->all[i];
        items[i] = (struct cuda_inflate_item){
            (char *)device_stored.values + piece->stored_at, piece->stored.length,
            (char *)device_plain.values + piece->plain_at, piece->plain.length, (uint32_t)i};
    }
    SX_GO(f->inflate((struct cuda_stream *)c->stream, pieces->codec, items, pieces->n));
    const enum sx_status found = c->backend->ops.synchronise(c->stream, "the pieces are checked");
    SX_GO(conformance_receive(c, &device_plain, &got));
    check_plain(c, pieces, got.values, plain_length);
    check_status(c, pieces, found, got.values);
out:
    CONFORM(c, status == SX_OK, "codec %d: %s", (int)pieces->codec, c->stream->error.text);
    free(items);
    sx_tensor_release(&stored);
    sx_tensor_release(&plain);
    sx_tensor_release(&device_stored);
    sx_tensor_release(&device_plain);
    sx_tensor_release(&got);
    pieces_release(pieces);
}

/* ---- cases ---- */

static void try_sizes(struct conformance *c, const struct functions *f, enum sx_parquet_codec codec) {
    static const size_t lengths[] = {0,   1,    2,     15,    59,     60,     61,      64,      255,
                                     256, 1000, 65535, 65536, 131072, 131073, 1 << 20, 3000001, 5 << 20};
    struct pieces pieces = {.codec = codec};
    /* the emulator takes long for what a warp does step by step */
    const size_t most = f->is_emulated ? 1 << 18 : 5 << 20;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && lengths[i] <= most; i++)
        for (int k = 0; k < (lengths[i] > 1 << 18 ? 1 : 2 * N_CONTENTS); k++)
            add_random(c, &pieces, lengths[i]);
    run_pieces(c, f, &pieces);
}

static void try_many(struct conformance *c, const struct functions *f, enum sx_parquet_codec codec, int n,
                     size_t most) {
    struct pieces pieces = {.codec = codec};
    for (int i = 0; i < n; i++)
        add_random(c, &pieces, conformance_random(c) % most);
    run_pieces(c, f, &pieces);
}

/* ---- damage ---- */

enum damage { CUT, LONGER, SHORTER_PLAIN, LONGER_PLAIN, FLIP, OVERWRITE, EMPTY, N_DAMAGES };

static void damage_piece(struct conformance *c, enum damage damage, struct piece *piece) {
    static const uint8_t more[8] = {1, 2, 3};
    struct bytes *stored = &piece->stored;
    const uint64_t random = conformance_random(c);
    /* the front tells more than what follows */
    const size_t at = random % (random >> 32 & 1 || stored->length < 16 ? stored->length : 16);
    switch (damage) {
    case CUT: stored->length = at; break;
    case LONGER: bytes_put(stored, more, 1 + random % sizeof more); break;
    case SHORTER_PLAIN: piece->plain.length -= 1 + random % piece->plain.length; break;
    case LONGER_PLAIN: bytes_put(&piece->plain, more, 1 + random % sizeof more); break;
    case FLIP: stored->data[at] ^= (uint8_t)(1 << (random >> 40) % 8); break;
    case OVERWRITE: stored->data[at] = (uint8_t)(random >> 40); break;
    default: stored->length = 0;
    }
}

/* What the host makes of it: where that can't, nor may the device; where it can, the device may refuse. */
static void judge_piece(struct sx_codecs **codecs, enum sx_parquet_codec codec, struct piece *piece) {
    struct sx_error error = {0};
    if (piece->plain.length == 0)
        return; /* not looked at */
    piece->is_wrong = sx_codec_decompress(codecs, codec, piece->stored.data, piece->stored.length,
                                          piece->plain.data, piece->plain.length, &error) != SX_OK;
    piece->may_be_refused = !piece->is_wrong;
}

static void try_damage(struct conformance *c, const struct functions *f, enum sx_parquet_codec codec) {
    struct sx_codecs *codecs = NULL;
    for (int round = 0; round < 400; round++) {
        struct pieces pieces = {.codec = codec};
        const enum damage damage = (enum damage)(round % N_DAMAGES);
        const int n = 1 + (int)(conformance_random(c) % 4),
                  damaged = (int)(conformance_random(c) % (uint64_t)n);
        for (int i = 0; i < n; i++)
            add_random(c, &pieces, 1 + conformance_random(c) % (round % 50 == 0 ? 300000 : 400));
        damage_piece(c, damage, &pieces.all[damaged]);
        judge_piece(&codecs, codec, &pieces.all[damaged]);
        run_pieces(c, f, &pieces);
    }
    sx_codecs_destroy(codecs);
}

/* Two frames in a row. */
static void try_frames(struct conformance *c, const struct functions *f) {
    struct pieces pieces = {.codec = SX_CODEC_ZSTD};
    struct sx_codecs *codecs = NULL;
    struct piece *piece = add_piece(&pieces);
    for (int i = 0; i < 2; i++) {
        struct bytes plain = {0};
        inflate_make_plain(c, WORDS, 1000, &plain);
        encode_compress(SX_CODEC_ZSTD, plain.data, plain.length, &piece->stored);
        bytes_put(&piece->plain, plain.data, plain.length);
        bytes_release(&plain);
    }
    judge_piece(&codecs, SX_CODEC_ZSTD, piece);
    CONFORM(c, !piece->is_wrong, "the host does not take two frames");
    piece->may_be_refused = false;
    run_pieces(c, f, &pieces);
    sx_codecs_destroy(codecs);
}

/* Frames of small blocks. */
static void try_small_blocks(struct conformance *c, const struct functions *f) {
    for (int window_log = 10; window_log < 15; window_log++) {
        struct pieces pieces = {.codec = SX_CODEC_ZSTD};
        struct piece *piece = add_piece(&pieces);
        inflate_make_plain(c, NUMBERS, 150000, &piece->plain);
        encode_zstd(&piece->plain, &(struct zstd_frame){.window_log = window_log}, &piece->stored);
        run_pieces(c, f, &pieces);
    }
}

/* Frames that do not tell their size, and whether there is as much room as they become. */
static void try_unsized(struct conformance *c, const struct functions *f) {
    for (int round = 0; round < 60; round++) {
        struct pieces pieces = {.codec = SX_CODEC_ZSTD};
        struct piece *piece = add_piece(&pieces);
        inflate_make_plain(c, (enum inflate_content)(round % N_CONTENTS), 1 + conformance_random(c) % 1000,
                           &piece->plain);
        encode_zstd(&piece->plain, &(struct zstd_frame){.is_unsized = true}, &piece->stored);
        piece->is_wrong = round % 2;
        if (round % 2)
            damage_piece(c, round % 4 == 1 ? SHORTER_PLAIN : LONGER_PLAIN, piece);
        if (piece->plain.length > 0)
            run_pieces(c, f, &pieces);
        else
            pieces_release(&pieces);
    }
}

/* LZ4's rules for the end of a block: a literal, a copy of four, and more and more literals. */
static void try_last_copy(struct conformance *c, const struct functions *f) {
    static const uint8_t tail[16] = "abcdefghijklmno";
    struct sx_codecs *codecs = NULL;
    bool was_right = false, was_wrong = false;
    for (size_t n = 1; n < sizeof tail - 1; n++) {
        const uint8_t sequence[] = {0x10, 'A', 1, 0, (uint8_t)(n << 4)};
        struct pieces pieces = {.codec = SX_CODEC_LZ4_RAW};
        struct piece *piece = add_piece(&pieces);
        bytes_put(&piece->stored, sequence, sizeof sequence);
        bytes_put(&piece->stored, tail, n);
        bytes_put(&piece->plain, "AAAAA", 5);
        bytes_put(&piece->plain, tail, n);
        judge_piece(&codecs, SX_CODEC_LZ4_RAW, piece);
        piece->may_be_refused = false;
        was_right |= !piece->is_wrong;
        was_wrong |= piece->is_wrong;
        run_pieces(c, f, &pieces);
    }
    CONFORM(c, was_right && was_wrong, "the host takes all of them, or none");
    sx_codecs_destroy(codecs);
}

/* Empty blocks in front of one with 100 bytes: a page of many is for the host. */
static void try_scattered(struct conformance *c, const struct functions *f) {
    static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 100}, empty[3] = {0},
                         last[] = {1 | (100 << 3 & 0xff), 100 >> 5, 0};
    for (int n_empty = 50; n_empty <= 200; n_empty += 150) {
        struct pieces pieces = {.codec = SX_CODEC_ZSTD};
        struct piece *piece = add_piece(&pieces);
        inflate_make_plain(c, NOISE, 100, &piece->plain);
        bytes_put(&piece->stored, head, sizeof head);
        for (int i = 0; i < n_empty; i++)
            bytes_put(&piece->stored, empty, sizeof empty);
        bytes_put(&piece->stored, last, sizeof last);
        bytes_put(&piece->stored, piece->plain.data, piece->plain.length);
        piece->is_wrong = n_empty > 100;
        run_pieces(c, f, &pieces);
    }
}

static void try_refusals(struct conformance *c, const struct functions *f) {
    struct cuda_stream *stream = (struct cuda_stream *)c->stream;
    static const enum sx_parquet_codec others[] = {SX_CODEC_UNCOMPRESSED, SX_CODEC_BROTLI, SX_CODEC_LZ4,
                                                   (enum sx_parquet_codec)77};
    const struct cuda_inflate_item large = {NULL, 1, NULL, (size_t)3 << 30, 0}, none = {NULL, 0, NULL, 0, 0};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        CONFORM(c, !f->takes(others[i], 10, 10) && f->inflate(stream, others[i], &none, 1) == SX_INTERNAL,
                "codec %d", (int)others[i]);
    for (int i = 0; i < N_COVERED; i++) {
        CONFORM(c, f->takes(covered[i], 10, 8 << 20), "codec %d: 8 MiB", (int)covered[i]);
        CONFORM(c, !f->takes(covered[i], 10, large.plain_bytes), "codec %d: 3 GiB", (int)covered[i]);
        CONFORM(c, !f->takes(covered[i], large.plain_bytes, 10), "codec %d: 3 GiB", (int)covered[i]);
        CONFORM(c, f->inflate(stream, covered[i], &large, 1) == SX_INTERNAL, "codec %d", (int)covered[i]);
        CONFORM(c, f->inflate(stream, covered[i], &none, 1) == SX_OK, "codec %d: empty", (int)covered[i]);
        CONFORM(c, f->inflate(stream, covered[i], NULL, 0) == SX_OK, "codec %d: none", (int)covered[i]);
    }
}

static bool find_functions(struct conformance *c, struct functions *out) {
    *out = (struct functions){
        (__typeof__(out->takes))(uintptr_t)dlsym(c->library, "cuda_inflate_takes"),
        (__typeof__(out->inflate))(uintptr_t)dlsym(c->library, "cuda_inflate"),
        dlsym(c->library, "emulator_name"),
    };
    return CONFORM(c, out->takes && out->inflate, "the library exports no inflate functions");
}

void conform_inflate(struct conformance *c) {
    struct functions f;
    if (!c->library || !find_functions(c, &f))
        return; /* the CPU backend has nothing of it */
    try_refusals(c, &f);
    for (int i = 0; i < N_COVERED; i++) {
        try_sizes(c, &f, covered[i]);
        try_many(c, &f, covered[i], f.is_emulated ? 1000 : 10000, f.is_emulated ? 300 : 1000);
        if (!f.is_emulated)
            try_many(c, &f, covered[i], 100000, 20);
        try_damage(c, &f, covered[i]);
    }
    try_frames(c, &f);
    try_unsized(c, &f);
    try_small_blocks(c, &f);
    try_scattered(c, &f);
    try_last_copy(c, &f);
}
