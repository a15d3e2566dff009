#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "temporary.h"

enum { WRITE_BYTES = 1 << 17 };

enum stachio_status output_failed(const char *path, struct stachio_error *error) {
    const int failure = errno;
    if (failure == EINTR && interrupt_seen())
        return set_error(error, STACHIO_CANCELLED, "cancelled");
    char *folder = failure == ENOENT ? strdup(path) : NULL; /* dirname writes into it */
    const char *missing = folder ? dirname(folder) : NULL;
    enum stachio_status status =
        missing && access(missing, F_OK) != 0
            ? set_error(error, STACHIO_OUTPUT, "%s: there is no folder %s", path, missing)
            : set_error(error, STACHIO_OUTPUT, "%s: %s", path, strerror(failure));
    free(folder);
    return status;
}

static enum stachio_status failed(const struct output *output, struct stachio_error *error) {
    if (errno == EBADF && output->fd == STDOUT_FILENO)
        return set_error(error, STACHIO_OUTPUT, "can't write the answer: standard output is closed");
    return output_failed(output->name, error);
}

/* A file beside the final one, which takes that one's permissions when there is one. */
static enum stachio_status open_temporary(struct output *output, const char *path,
                                          struct stachio_error *error) {
    output->final = temporary_final(path);
    if (!output->final)
        return failed(output, error);
    output->temporary = temporary_name(output->final);
    if (!output->temporary)
        return failed(output, error);
    output->fd = mkostemp(output->temporary, O_CLOEXEC);
    if (output->fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return failed(output, error);
    }
    output->owns_fd = true;
    if (fchmod(output->fd, temporary_mode(output->final, false)))
        return failed(output, error);
    return STACHIO_OK;
}

enum stachio_status output_open(struct output *output, const char *path, struct stachio_error *error) {
    *output = (struct output){.fd = STDOUT_FILENO, .name = path ? path : "standard output"};
    if (!path || !strcmp(path, "/dev/stdout"))
        return STACHIO_OK;
    struct stat existing;
    bool exists = stat(path, &existing) == 0;
    if (!exists && errno != ENOENT)
        return failed(output, error);
    bool is_device = !strncmp(path, "/dev/", 5); /* /dev/fd/3 may lead to a file */
    if (!is_device && (!exists || S_ISREG(existing.st_mode)))
        return open_temporary(output, path, error);
    output->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (output->fd < 0)
        return failed(output, error);
    output->owns_fd = true;
    return STACHIO_OK;
}

/* What write can wait for: a pipe's reader, a terminal. */
static bool may_wait(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
}

enum stachio_status output_flush(struct output *output, struct stachio_error *error) {
    struct text *text = &output->text;
    const bool waits = may_wait(output->fd);
    if (text->failed)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the answer's text");
    for (size_t done = 0; done < text->used_bytes && !output->is_closed;) {
        size_t n = text->used_bytes - done;
        if (waits && !interrupt_wait(output->fd, POLLOUT))
            return set_error(error, STACHIO_CANCELLED, "cancelled");
        if (waits && n > PIPE_BUF) /* a pipe that can be written has room for as much */
            n = PIPE_BUF;
        ssize_t written = write(output->fd, text->bytes + done, n);
        if (written >= 0)
            done += (size_t)written;
        else if (errno == EPIPE)
            output->is_closed = true;
        else if (errno != EINTR)
            return failed(output, error);
    }
    text_clear(text);
    return output->is_closed ? set_error(error, STACHIO_OUTPUT, "%s", "") : STACHIO_OK;
}

int64_t output_mark(const struct output *output) {
    return output->temporary ? lseek(output->fd, 0, SEEK_CUR) : -1;
}

void output_take_back(struct output *output, int64_t mark) {
    text_clear(&output->text);
    if (mark >= 0 && ftruncate(output->fd, mark) == 0)
        lseek(output->fd, mark, SEEK_SET);
}

enum stachio_status output_write(struct output *output, struct stachio_error *error) {
    if (output->text.used_bytes < WRITE_BYTES && !output->text.failed)
        return STACHIO_OK;
    return output_flush(output, error);
}

enum stachio_status output_commit(struct output *output, struct stachio_error *error) {
    enum stachio_status status = output_flush(output, error);
    if (status || !output->owns_fd)
        return status;
    output->owns_fd = false;
    if (close(output->fd))
        return failed(output, error);
    if (output->temporary && rename(output->temporary, output->final))
        return failed(output, error);
    free(output->temporary);
    output->temporary = NULL;
    return STACHIO_OK;
}

void output_close(struct output *output) {
    if (output->owns_fd)
        close(output->fd);
    if (output->temporary)
        unlink(output->temporary);
    free(output->temporary);
    free(output->final);
    text_release(&output->text);
    *output = (struct output){0};
}
