/* Files and directories under a temporary name beside the one that they get once they are complete. */
#ifndef CLI_TEMPORARY_H
#define CLI_TEMPORARY_H

#include <stachio.h>
#include <stdbool.h>

/* "PATH.XXXXXX", to be filled in; NULL: no memory. */
char *temporary_name(const char *path);
/* Makes an empty file or directory beside `path`, with the permissions that a new one has. */
enum stachio_status temporary_make(const char *path, bool is_folder, char **out_name,
                                   struct stachio_error *error);
/* What is in a directory, and the directory. */
void temporary_remove_tree(const char *path);

#endif
