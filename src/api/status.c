#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/db.h"

/* The public list has the inner list's names in its order. */
#define CHECK_STATUS(name, exit_status, phrase) \
    _Static_assert((int)SX_##name == (int)STACHIO_##name, "status " #name);
SX_STATUS_LIST(CHECK_STATUS)
#undef CHECK_STATUS
_Static_assert(sizeof(((struct stachio_error *)0)->text) == sizeof(((struct sx_error *)0)->text),
               "error texts");

struct phrase {
    int exit_status;
    const char *text;
};

static const struct phrase phrases[] = {
#define STATUS_PHRASE(name, value, exit_status, phrase) [value] = {exit_status, phrase},
    STACHIO_STATUS_LIST(STATUS_PHRASE)
#undef STATUS_PHRASE
};

static const struct phrase *find_phrase(enum stachio_status status) {
    size_t at = (size_t)status;
    return &phrases[at < sizeof phrases / sizeof *phrases ? at : STACHIO_INTERNAL];
}

int stachio_status_exit(enum stachio_status status) {
    return find_phrase(status)->exit_status;
}

const char *stachio_status_phrase(enum stachio_status status) {
    return find_phrase(status)->text;
}

const char *stachio_version(void) {
    return STACHIO_VERSION;
}

enum stachio_status sx_api_status(enum sx_status status) {
    return (enum stachio_status)(int)status;
}

enum stachio_status sx_api_fail(const struct sx_error *error, struct stachio_error *out_error) {
    enum stachio_status status = sx_api_status(error->status);
    if (out_error) {
        out_error->status = status;
        memcpy(out_error->text, error->text, sizeof out_error->text);
        if (!out_error->text[0])
            snprintf(out_error->text, sizeof out_error->text, "%s", stachio_status_phrase(status));
    }
    return status;
}

enum stachio_status sx_api_error(struct stachio_error *out_error, enum stachio_status status,
                                 const char *format, ...) {
    if (!out_error)
        return status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out_error->text, sizeof out_error->text, format, arguments);
    va_end(arguments);
    out_error->status = status;
    return status;
}
