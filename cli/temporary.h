/* Files and directories under a temporary name beside the one that they get once they are complete. */
#ifndef CLI_TEMPORARY_H
#define CLI_TEMPORARY_H

#include <stachio.h>
#include <stdbool.h>
#include <sys/types.h>

/* "PATH.XXXXXX", to be filled in; NULL: no memory. */
char *temporary_name(const char *path);
/* What `path` leads to by links, or itself where nothing is there; NULL: errno. */
char *temporary_final(const char *path);
/* The permissions of what is at `path`, or of a new file or directory. */
mode_t temporary_mode(const char *path, bool is_folder);
/* Makes an empty file or directory beside `path`, with these permissions, and its owner's to write it. */
enum stachio_status temporary_make(const char *path, bool is_folder, char **out_name,
                                   struct stachio_error *error);
/* What is in a directory, and the directory. */
void temporary_remove_tree(const char *path);

#endif
