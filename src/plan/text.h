/* Text that grows in an arena. Private to src/plan. */
#ifndef SX_PLAN_TEXT_H
#define SX_PLAN_TEXT_H

#include <stdbool.h>

#include "plan/expression.h"

struct sx_text {
    struct sx_arena *arena;
    char *bytes; /* zero-terminated once something was added */
    size_t length;
    size_t capacity;
    bool failed; /* no memory */
};

void sx_text_add(struct sx_text *text, const char *format, ...) SX_PRINTF(2, 3);
void sx_text_add_bytes(struct sx_text *text, const char *bytes, size_t length);
/* SQL's way: the quote doubled inside. */
void sx_text_add_quoted(struct sx_text *text, const char *bytes, char quote);
void sx_text_add_scalar(struct sx_text *text, const struct sx_scalar *scalar);
void sx_text_add_expression(struct sx_text *text, const struct sx_expression *expression,
                            const char *const *names);

#endif
