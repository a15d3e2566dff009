/* Inside of src/api: tables of which each rank, or each host, has files of its own. {rank}, {node} and {gpu}
 * stand in their paths for the rank's number, the number of its host (in the order of their first ranks), and
 * its number among the ranks of its host.
 *
 * All ranks plan with the footers of all files, as if there were one table in one place: those of other
 * ranks' files are copied into files in memory, which have nothing else. A rank reads its own files; ranks of
 * one host share those of {node}. */
#ifndef SX_API_PARTS_H
#define SX_API_PARTS_H

#include "api/db.h"

struct sx_parts;

bool sx_parts_are_in(const char *pattern);

/* The pattern of the only rank there is; in the arena. */
SX_MUST_CHECK enum sx_status sx_parts_pattern(struct sx_arena *arena, const char *pattern,
                                              const char **out_pattern, struct sx_error *error);

/* Collective, with the same arguments on all ranks; sx_net_barrier has to follow. Adds table `name` to the
 * rank's front end, or (NULL) those of the directories. A rank may have no files of a table, as long as the
 * file, the directory or the one in front of a glob is there. SX_FILE: it is not; no rank has any; a file is
 * unreadable, or has other columns than the table's first one. SX_USAGE: patterns of one table that differ in
 * whose they are. After an error the table is what it was before on this rank.
 */
SX_MUST_CHECK enum sx_status sx_parts_add(struct stachio_db *db, const char *name,
                                          const char *const *patterns, int n_patterns,
                                          struct sx_error *error);

/* SX_FILE if one of this rank's files of tables that the SQL mentions is not what it was when it was added:
 * the others planned with that. `parts`, here and below: NULL allowed. */
SX_MUST_CHECK enum sx_status sx_parts_check(const struct sx_parts *parts, const char *sql,
                                            struct sx_error *error);
/* The table of that name has become another one. */
void sx_parts_drop(struct sx_parts *parts, const char *name);
/* Where `status` is a failure its text gets the names of other ranks' files, in place of those in memory.
 * Returns the status. */
enum sx_status sx_parts_explain(const struct sx_parts *parts, enum sx_status status, struct sx_error *error);
void sx_parts_destroy(struct sx_parts *parts); /* NULL allowed */

#endif
