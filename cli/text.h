/* Text that grows. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts zeroed. After a failed allocation `failed` stays set and appending does nothing. */
struct text {
    char *bytes; /* not zero-terminated; text_string is */
    size_t used_bytes;
    size_t capacity_bytes;
    bool failed;
};

/* Makes room for `n` bytes more; false: no memory. */
bool text_reserve(struct text *text, size_t n);
void text_append(struct text *text, const char *bytes, size_t n);
void text_add(struct text *text, const char *string);
void text_add_char(struct text *text, char c);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_repeat(struct text *text, const char *string, int64_t times);
/* Zero-terminated; "" when there is no memory. */
const char *text_string(struct text *text);
static inline void text_clear(struct text *text) {
    text->used_bytes = 0;
}
void text_release(struct text *text);

/* Code points of UTF-8. */
int64_t text_width(const char *bytes, size_t n);

#endif
