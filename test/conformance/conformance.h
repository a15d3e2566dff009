/* Every primitive on every backend, against a plain reference in the test. Families register in main.c.
 * Inputs are made in host memory, sent by batch_from_host and read back by batch_to_host, so that a device
 * backend runs the same tests. */
#ifndef TEST_CONFORMANCE_H
#define TEST_CONFORMANCE_H

#include <stdio.h>

#include "tensor/backend.h"

struct conformance {
    const struct sx_backend *backend;
    void *library; /* dlopen's, of the backend; NULL: it is linked with the tests */
    struct sx_pool *pool;
    struct sx_pool *io_pool;  /* of the backend, for what files are read into; NULL: `pool` will do */
    struct sx_stream *stream; /* of `backend` */
    struct sx_error error;
    uint64_t random_state;
    uint64_t n_cases; /* so far, the ones left out too */
    int checks;
    int failures;
};

/* Counts a check; prints file, line and text when it fails (the first 20 of a family). Returns the condition.
 */
#define CONFORM(c, condition, ...) conformance_check((c), (condition), __FILE__, __LINE__, __VA_ARGS__)
bool conformance_check(struct conformance *c, bool condition, const char *file, int line, const char *format,
                       ...) SX_PRINTF(5, 6);

uint64_t conformance_random(struct conformance *c); /* uniform 64 bits */

/* Shapes every family tries: 0, 1, 2, 7, 64, 1000, 8191, 8192, 20011 rows; fewer under the thread sanitizer.
 */
extern const int64_t conformance_rows[];
extern int conformance_n_rows;
/* Drops the shapes with more rows: for slow checkers. CONFORMANCE_MAX_ROWS in the environment does it. */
void conformance_limit_rows(int64_t most);
bool conformance_may_have(int64_t rows);

/* Leaves out all cases (but for some short ones) that are not in the i-th of n parts of them, dealt out at
 * random but always alike: "i/n" from "0/n" on, what CONFORMANCE_PART says in the environment. False: it is
 * no such text. */
bool conformance_choose_part(const char *text);
/* Counts a case; whether it belongs to the chosen part. */
bool conformance_takes(struct conformance *c);

enum conformance_fill { FILL_RANDOM, FILL_FEW_VALUES, FILL_EXTREMES, FILL_SORTED };

/* Random FLAT column in host memory; null_share 0..1 (0: no validity array). Strings of 0 to 40 bytes. */
SX_MUST_CHECK enum sx_status conformance_column(struct conformance *c, struct sx_type type, int64_t rows,
                                                enum conformance_fill fill, double null_share,
                                                struct sx_tensor *out_column);
/* The same values as SX_DICT (VARCHAR only). */
SX_MUST_CHECK enum sx_status conformance_dictionary(struct conformance *c, const struct sx_tensor *flat,
                                                    struct sx_tensor *out_column);
/* FLAT to DICT: row by row one of the column's values, at random. */
SX_MUST_CHECK enum sx_status conformance_code_values(struct conformance *c, struct sx_tensor *column);
/* Makes a DICT column in the backend's memory SELECTED, where it can be. */
void conformance_select(const struct conformance *c, struct sx_tensor *column);
/* Moves one column to the backend's memory, and back as FLAT. */
SX_MUST_CHECK enum sx_status conformance_send(struct conformance *c, const struct sx_tensor *host,
                                              struct sx_tensor *out_column);
SX_MUST_CHECK enum sx_status conformance_receive(struct conformance *c, const struct sx_tensor *column,
                                                 struct sx_tensor *out_host);
/* Equal by value, through all layouts; NULL equals NULL, NaN equals NaN. */
bool conformance_scalar_equal(const struct sx_scalar *a, const struct sx_scalar *b);

void conform_eval(struct conformance *c);
void conform_hash(struct conformance *c);
void conform_bloom(struct conformance *c);
void conform_group(struct conformance *c);
void conform_join(struct conformance *c);
void conform_move(struct conformance *c);
void conform_rows(struct conformance *c);
void conform_sort(struct conformance *c);
void conform_decode(struct conformance *c);
void conform_io(struct conformance *c);
void conform_inflate(struct conformance *c);

#endif
