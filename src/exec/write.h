/* Inside of writing the answer: rows in order become row groups, whose columns are encoded by whoever is
 * free. */
#ifndef SX_EXEC_WRITE_H
#define SX_EXEC_WRITE_H

#include "exec/operators.h"

/* A row group on its way. Starts zeroed, may be released zeroed. */
struct sx_write_group {
    struct sx_write_group *next;
    int n_columns; /* those of the partition included */
    int n_partition;
    struct sx_batch *batches; /* while it is assembled */
    int64_t n_batches, capacity;
    struct sx_tensor **pieces; /* by column, once sealed: n_batches each */
    int64_t rows;
    size_t bytes; /* about so many in memory */
    char **partition;
    bool is_last; /* of its file */
    struct sx_write_chunk *chunks;
    int n_taken;   /* columns that somebody encodes or has encoded */
    int n_encoded; /* columns */
};

/* Takes rows in order and cuts them into row groups. */
struct sx_write_cutter {
    const struct sx_write_options *options;
    int n_columns;
    size_t most_bytes;             /* of a row group in memory: it is cut short there */
    struct sx_write_group *group;  /* being assembled; NULL: none */
    int64_t file_rows;             /* in the file that the group goes to, in front of the group */
    struct sx_write_group *sealed; /* in order */
    struct sx_write_group **sealed_end;
};

/* Takes the batch, which is left zeroed. */
SX_MUST_CHECK enum sx_status sx_write_cut(struct sx_write_cutter *cutter, struct sx_batch *batch,
                                          struct sx_error *error);
/* The rows assembled are the last. */
SX_MUST_CHECK enum sx_status sx_write_cut_end(struct sx_write_cutter *cutter, struct sx_error *error);
void sx_write_group_destroy(struct sx_pool *pool, struct sx_write_group *group);

#endif
