/* Integers in few bits, for what travels between ranks: frames of reference, deltas, runs, and bit-packing
 * below them all.
 *
 * A packed vector is a header, then what its scheme asks for; all parts begin at multiples of 16 bytes.
 * PLAIN: the integers. FRAME and DELTA: a sx_pack_block for each 1,024 integers, then their words. A block's
 * integers, less its base, take `bits` bits each in 16 lanes of 64-bit words: integer i is at bits
 * [i / 16 × bits, …) of lane i % 16, and word w of lane l is word 16 w + l. So lanes are independent (vector
 * instructions; a warp reads whole lines), and each block can be read on its own. In a DELTA block they are
 * the differences to the integer before (the first one's is 0). RUNS and RUN_DELTAS: the runs' integers as a
 * FRAME or DELTA vector of n_runs, then their lengths as a FRAME vector. */
#ifndef SX_TENSOR_PACK_H
#define SX_TENSOR_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sx_pack_scheme {
    SX_PACK_PLAIN,
    SX_PACK_FRAME,
    SX_PACK_DELTA,
    SX_PACK_RUNS,
    SX_PACK_RUN_DELTAS,
    SX_PACK_SCHEMES
};

enum {
    SX_PACK_ALIGNMENT = 16,
    SX_PACK_BLOCK = 1024, /* integers */
    SX_PACK_LANES = 16,
    SX_PACK_MOST = 1 << 20 /* integers of a vector */
};

struct sx_pack_header {
    uint64_t bytes; /* with this */
    uint32_t scheme;
    uint32_t n_runs;
};

struct sx_pack_block {
    uint64_t first;  /* DELTA: the first integer */
    uint64_t base;   /* FRAME: added to each; DELTA: to each difference */
    uint32_t offset; /* of its words behind the vector's last block, bytes */
    uint8_t bits;    /* 0 … 64 */
    uint8_t unused[3];
};

/* Integers of 1, 2, 4 or 8 bytes in host memory, `stride_bytes` from each other. Number i is at place
 * rows[i] (i without rows), or at codes[rows[i]]. */
struct sx_pack_input {
    const char *values;
    uint32_t width_bytes, stride_bytes;
    const int32_t *rows;
    const int32_t *codes;
    const uint8_t *valid; /* by row; not valid: never read, and the integer before it is taken, or 0 */
    bool nulls_are_zero;
    int64_t n;
};

/* The integers [first, first + n), sign-extended; `last`: the one before them, for nulls. */
void sx_pack_load(const struct sx_pack_input *input, int64_t first, int n, int64_t last, int64_t *out);

/* Writes the vector. Returns its bytes, a multiple of 16; 0: it does not fit into `capacity`, or the scheme
 * does not suit (more runs than half of the integers; more than SX_PACK_MOST). `scratch`: of
 * sx_pack_scratch_bytes(n), for runs. */
size_t sx_pack(const struct sx_pack_input *input, enum sx_pack_scheme scheme, void *scratch, char *out,
               size_t capacity);
size_t sx_pack_scratch_bytes(int64_t n);

/* The vector of `n` integers at `packed`, of which `available` bytes can be read: they come to `out`,
 * `stride_bytes` from each other. Returns the vector's bytes; 0: this is no such vector. */
size_t sx_unpack(const char *packed, size_t available, int64_t n, uint32_t width_bytes, uint32_t stride_bytes,
                 char *out);
/* Its bytes without unpacking; *out_plain: where its integers stand if it is PLAIN, else NULL. 0: as above.
 * Whoever sets memory aside for sx_unpack asks this first: a vector that is cut off can't claim to be long.
 */
size_t sx_unpack_bytes(const char *packed, size_t available, int64_t n, uint32_t width_bytes,
                       const char **out_plain);

#endif
