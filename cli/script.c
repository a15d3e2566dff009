#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"

enum { READ_BYTES = 1 << 16 };

/* What follows a zero byte would be lost. */
static enum stachio_status check_text(const char *name, const struct text *text,
                                      struct stachio_error *error) {
    const char *zero = text->used_bytes ? memchr(text->bytes, 0, text->used_bytes) : NULL;
    int line = 1, column = 1;
    if (!zero)
        return STACHIO_OK;
    for (const char *at = text->bytes; at < zero; at++) {
        column = *at == '\n' ? 1 : column + 1;
        line += *at == '\n';
    }
    return set_error(error, STACHIO_QUERY, "%s: a zero byte at line %d, column %d: this is not SQL", name,
                     line, column);
}

static enum stachio_status read_all(int fd, const char *name, struct text *out, struct stachio_error *error) {
    for (;;) {
        if (!text_reserve(out, READ_BYTES))
            return set_error(error, STACHIO_OUT_OF_MEMORY, "%s: no memory for its text", name);
        if (!interrupt_wait(fd, POLLIN))
            return set_error(error, STACHIO_CANCELLED, "cancelled");
        ssize_t n = read(fd, out->bytes + out->used_bytes, READ_BYTES);
        if (n == 0)
            return check_text(name, out, error);
        if (n < 0 && interrupt_seen())
            return set_error(error, STACHIO_CANCELLED, "cancelled");
        if (n < 0 && errno != EINTR)
            return set_error(error, STACHIO_FILE, "%s: %s", name, strerror(errno));
        out->used_bytes += n > 0 ? (size_t)n : 0;
    }
}

enum stachio_status script_read(const char *path, struct text *out, struct stachio_error *error) {
    if (!strcmp(path, "-"))
        return read_all(STDIN_FILENO, "standard input", out, error);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == EINTR && interrupt_seen())
        return set_error(error, STACHIO_CANCELLED, "cancelled");
    if (fd < 0)
        return set_error(error, STACHIO_FILE, "%s: %s", path, strerror(errno));
    enum stachio_status status = read_all(fd, path, out, error);
    close(fd);
    return status;
}
