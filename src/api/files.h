/* Which files a table is made of. */
#ifndef SX_API_FILES_H
#define SX_API_FILES_H

#include "base/arena.h"
#include "base/status.h"

struct sx_file_list {
    const char **paths; /* in the arena, in the order of their names (bytes) */
    int n_paths;
};

/* Files that `pattern` means: a file, all *.parquet of a directory, or a glob. SX_FILE when there is none. */
SX_MUST_CHECK enum sx_status sx_files_match(struct sx_arena *arena, const char *pattern,
                                            struct sx_file_list *out_files, struct sx_error *error);

/* The same where there may be none, as long as what is named is there: the file, the directory, or the one in
 * front of a glob's first special character. */
SX_MUST_CHECK enum sx_status sx_files_find(struct sx_arena *arena, const char *pattern,
                                           struct sx_file_list *out_files, struct sx_error *error);

/* Of several patterns, one behind the other. */
SX_MUST_CHECK enum sx_status sx_files_match_all(struct sx_arena *arena, const char *const *patterns,
                                                int n_patterns, struct sx_file_list *out_files,
                                                struct sx_error *error);

struct sx_table_files {
    const char *name;
    struct sx_file_list files;
};

/* Tables of a directory in the order of their names: NAME.parquet, and all .parquet files of NAME together,
 * which win where both are there. SX_FILE when it can't be read or holds none. */
SX_MUST_CHECK enum sx_status sx_files_tables(struct sx_arena *arena, const char *directory,
                                             struct sx_table_files **out_tables, int *out_n_tables,
                                             struct sx_error *error);
/* The same where there may be none, as long as the directory can be read. */
SX_MUST_CHECK enum sx_status sx_files_find_tables(struct sx_arena *arena, const char *directory,
                                                  struct sx_table_files **out_tables, int *out_n_tables,
                                                  struct sx_error *error);

#endif
