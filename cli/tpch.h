/* stachio tpch generate | run. */
#ifndef CLI_TPCH_H
#define CLI_TPCH_H

#include "options.h"

/* The texts of queries 1 to 22. */
extern const char *const stachio_tpch_query[22];

/* argv[0] is "tpch". Returns the exit status. */
int tpch_main(int argc, char **argv, const char *help);
int tpch_generate(const struct options *options);
int tpch_run(const struct options *options);

/* An answer as text, to compare by value. */
struct tpch_answer {
    int n_columns;
    int64_t rows;
    char **cells; /* row by row; NULL: a null */
    bool *is_float;
};

enum stachio_status tpch_answer_read(struct tpch_answer *out_answer, struct answer *answer,
                                     const struct ArrowArray *arrays, int64_t n_arrays,
                                     struct stachio_error *error);
void tpch_answer_release(struct tpch_answer *answer);
/* Whether the answers of query `number` have equal rows, in an order that its ORDER BY allows; FLOAT and
 * DOUBLE to 1e-9 of the value, all others exactly. Sorts both. */
bool tpch_answers_equal(int number, struct tpch_answer *a, struct tpch_answer *b);

#endif
