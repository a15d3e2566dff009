/* Where answers go: standard output, or a file that appears only when it is complete. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stachio.h>

#include "text.h"

struct output {
    int fd;
    const char *name; /* for messages */
    char *final;      /* where the temporary file goes; NULL: written directly */
    char *temporary;  /* NULL: none */
    struct text text; /* not written yet */
    bool is_closed;   /* the reader has gone: nothing more is written */
    bool owns_fd;
};

/* `path` NULL: standard output. A path that is there and no regular file (a device, a pipe) is written
 * directly. */
enum stachio_status output_open(struct output *output, const char *path, struct stachio_error *error);
/* Writes what `text` holds, when that is enough for one write. */
enum stachio_status output_write(struct output *output, struct stachio_error *error);
/* Writes all of it. When the reader has gone: STACHIO_OUTPUT with an empty text. STACHIO_CANCELLED when
 * interrupted while it waits for the reader. */
enum stachio_status output_flush(struct output *output, struct stachio_error *error);
/* Where the file ends so far, with nothing left to be written; -1: not known, for what is written directly.
 */
int64_t output_mark(const struct output *output);
/* Drops what came after the mark. */
void output_take_back(struct output *output, int64_t mark);
/* Puts the file into its place. */
enum stachio_status output_commit(struct output *output, struct stachio_error *error);
/* Why `path` can't be written, by errno: STACHIO_OUTPUT, or STACHIO_CANCELLED. */
enum stachio_status output_failed(const char *path, struct stachio_error *error);
/* Releases everything; a file that was not committed is gone. */
void output_close(struct output *output);

#endif
