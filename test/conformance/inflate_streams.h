/* Pieces for the tests of decompression on the device, as compressors and no compressor make them. */
#ifndef SX_CONFORMANCE_INFLATE_STREAMS_H
#define SX_CONFORMANCE_INFLATE_STREAMS_H

#include "conformance.h"
#include "decode_encode.h"

/* A piece, in host memory: what is stored, and what has to come out. */
struct piece {
    struct bytes stored, plain;
    bool is_wrong;       /* it has to become a fault */
    bool may_be_refused; /* or `plain` comes out */
    size_t stored_at, plain_at;
};

enum inflate_content { ZEROS, WORDS, NUMBERS, NOISE, N_CONTENTS };

/* Adds bytes to `out` until there are `length`. */
void inflate_make_plain(struct conformance *c, enum inflate_content content, size_t length,
                        struct bytes *out);

/* Adds `length` plain bytes, and elements as no compressor chooses them. */
void inflate_snappy_stream(struct conformance *c, size_t length, struct piece *piece);
/* Of the piece's plain bytes: as other writers make it. */
void inflate_zstd_stream(struct conformance *c, struct piece *piece);
void inflate_gzip_stream(struct conformance *c, struct piece *piece);

#endif
