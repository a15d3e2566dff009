/* Batches as Arrow arrays. */
#ifndef SX_API_EXPORT_H
#define SX_API_EXPORT_H

#include "api/db.h"

/* A struct of the columns; the caller releases it. */
SX_MUST_CHECK enum sx_status sx_export_schema(const struct sx_column_info *columns, int n_columns,
                                              struct ArrowSchema *out_schema, struct sx_error *error);

/* Rows from `first` on that one array can hold: 32-bit offsets reach over 2 GiB of a column's text. */
SX_MUST_CHECK enum sx_status sx_export_rows(const struct sx_batch *batch, int64_t first, int64_t *out_rows,
                                            struct sx_error *error);

/* Rows [first, first + rows) of a batch with FLAT columns as a struct array. Numbers are shared with the
 * batch (the array keeps them and the database's pool); the rest is copied to memory of the array's own. */
SX_MUST_CHECK enum sx_status sx_export_batch(struct stachio_db *db, const struct sx_batch *batch,
                                             int64_t first, int64_t rows, struct ArrowArray *out_array,
                                             struct sx_error *error);

#endif
