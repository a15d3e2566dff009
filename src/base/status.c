#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const int exit_statuses[] = {
#define SX_STATUS_EXIT(name, exit_status, phrase) exit_status,
    SX_STATUS_LIST(SX_STATUS_EXIT)
#undef SX_STATUS_EXIT
};

static const char *const phrases[] = {
#define SX_STATUS_PHRASE(name, exit_status, phrase) phrase,
    SX_STATUS_LIST(SX_STATUS_PHRASE)
#undef SX_STATUS_PHRASE
};

enum sx_status(sx_error_set)(struct sx_error *error, enum sx_status status, const char *format, ...) {
    if (!error)
        return status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->status = status;
    return status;
}

enum sx_status sx_error_prefix(struct sx_error *error, const char *format, ...) {
    if (!error)
        return SX_INTERNAL;
    char tail[SX_ERROR_TEXT_BYTES];
    memcpy(tail, error->text, sizeof tail);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text - 2, format, arguments);
    va_end(arguments);
    size_t used = strnlen(error->text, sizeof error->text - 3);
    if (length < 0)
        used = 0;
    memcpy(error->text + used, ": ", 2);
    used += 2;
    memcpy(error->text + used, tail, sizeof tail - used);
    error->text[sizeof error->text - 1] = 0;
    return error->status;
}

int sx_status_exit(enum sx_status status) {
    return exit_statuses[status];
}

const char *sx_status_phrase(enum sx_status status) {
    return phrases[status];
}
