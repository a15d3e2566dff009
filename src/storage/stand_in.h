/* One small Parquet file in a table's place, for planning: the schema of its files, the number of their rows,
 * and their statistics merged into those of a single row group. It has no pages. What a planner asks of it
 * takes no more time with thousands of row groups than with one. */
#ifndef SX_STORAGE_STAND_IN_H
#define SX_STORAGE_STAND_IN_H

#include "storage/bytes.h"
#include "storage/footer.h"

struct sx_storage;

/* The bytes of the file for the tables' files, of which the first one gives the schema; appended to `out`.
 * What it tells of a column is true of all rows of all files, or left out. False: there can be none, as of
 * encrypted files. */
bool sx_stand_in_write(struct sx_footer *const *footers, int n_footers, struct sx_bytes *out);

/* Stand-ins made so far, each kept until one of its files changes. */
struct sx_stand_ins;
void sx_stand_ins_destroy(struct sx_stand_ins *stand_ins); /* NULL allowed */

/* Path of the file, in memory; valid until the storage ends or one of the files has changed, after which the
 * next call gives another path and version. A path may come again, a version of this storage's does not.
 * NULL: there is none, and the files themselves will tell what is wrong with them. Not thread-safe. */
const char *sx_storage_stand_in(struct sx_storage *storage, const char *const *files, int n_files,
                                int *out_version);

#endif
