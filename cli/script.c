#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"

enum { READ_BYTES = 1 << 16 };

static enum stachio_status read_all(int fd, const char *name, struct text *out, struct stachio_error *error) {
    for (;;) {
        if (!text_reserve(out, READ_BYTES))
            return set_error(error, STACHIO_OUT_OF_MEMORY, "%s: no memory for its text", name);
        ssize_t n = read(fd, out->bytes + out->used_bytes, READ_BYTES);
        if (n == 0)
            return STACHIO_OK;
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
    if (fd < 0)
        return set_error(error, STACHIO_FILE, "%s: %s", path, strerror(errno));
    enum stachio_status status = read_all(fd, path, out, error);
    close(fd);
    return status;
}
