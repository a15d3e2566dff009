/* An answer, array by array, and the forms it can be printed in. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <stachio.h>

#include "column.h"
#include "output.h"

struct answer {
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct column *columns;
    int n_columns;
    struct ArrowArray first; /* fetched ahead by answer_is_empty */
    bool has_first;
};

/* Takes the answer of an executed query. */
enum stachio_status answer_open(struct answer *answer, struct stachio_query *query,
                                struct stachio_error *error);
/* The next rows, which the caller releases; out_array->release is NULL at the end. STACHIO_CANCELLED after
 * Control-C. */
enum stachio_status answer_next(struct answer *answer, struct ArrowArray *out_array,
                                struct stachio_error *error);
/* Whether it has no rows. */
enum stachio_status answer_is_empty(struct answer *answer, bool *out_empty, struct stachio_error *error);
void answer_close(struct answer *answer);

enum format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_PARQUET };

enum stachio_status print_csv(struct answer *answer, struct output *output, struct stachio_error *error);
enum stachio_status print_json(struct answer *answer, struct output *output, struct stachio_error *error);
/* `max_rows`: prints the first and the last rows of a larger answer; 0: all rows. */
enum stachio_status print_table(struct answer *answer, struct output *output, int64_t max_rows,
                                struct stachio_error *error);

#endif
