#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"

enum { READ_BYTES = 1 << 16 };

/* Bytes of the character that begins at `at`, of at most `n`; 0: it is none of UTF-8, or a zero byte. */
static size_t character_bytes(const char *at, size_t n) {
    static const uint32_t least[] = {0, 1, 0x80, 0x800, 0x10000};
    const unsigned char first = (unsigned char)*at;
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc0) || first > 0xf4 || bytes > n)
        return 0;
    uint32_t code = bytes == 1 ? first : first & (0x7fU >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    const bool is_surrogate = code >> 11 == 0xd800 >> 11;
    return code < least[bytes] || code > 0x10ffff || is_surrogate ? 0 : bytes;
}

enum stachio_status script_check(const char *name, const char *text, size_t n, struct stachio_error *error) {
    int line = 1, column = 1;
    size_t bytes;
    for (size_t at = 0; at < n; at += bytes) {
        bytes = character_bytes(text + at, n - at);
        if (!bytes)
            return set_error(error, STACHIO_QUERY, "%s: %s at line %d, column %d: this is not SQL", name,
                             text[at] ? "invalid UTF-8" : "a zero byte", line, column);
        column = text[at] == '\n' ? 1 : column + 1;
        line += text[at] == '\n';
    }
    return STACHIO_OK;
}

static enum stachio_status read_all(int fd, const char *name, struct text *out, struct stachio_error *error) {
    for (;;) {
        if (!text_reserve(out, READ_BYTES))
            return set_error(error, STACHIO_OUT_OF_MEMORY, "%s: no memory for its text", name);
        if (!interrupt_wait(fd, POLLIN))
            return set_error(error, STACHIO_CANCELLED, "cancelled");
        ssize_t n = read(fd, out->bytes + out->used_bytes, READ_BYTES);
        if (n == 0)
            return script_check(name, out->bytes, out->used_bytes, error);
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
