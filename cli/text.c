#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_reserve(struct text *text, size_t n) {
    if (text->failed)
        return false;
    if (n <= text->capacity_bytes - text->used_bytes)
        return true;
    size_t capacity = text->capacity_bytes ? text->capacity_bytes : 256;
    while (capacity - text->used_bytes < n)
        capacity *= 2;
    char *bytes = realloc(text->bytes, capacity);
    if (!bytes) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity_bytes = capacity;
    return true;
}

void text_append(struct text *text, const char *bytes, size_t n) {
    if (!n || !text_reserve(text, n))
        return;
    memcpy(text->bytes + text->used_bytes, bytes, n);
    text->used_bytes += n;
}

void text_add(struct text *text, const char *string) {
    text_append(text, string, strlen(string));
}

void text_add_char(struct text *text, char c) {
    text_append(text, &c, 1);
}

void text_format(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !text_reserve(text, (size_t)length + 1))
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->used_bytes, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->used_bytes += (size_t)length;
}

void text_repeat(struct text *text, const char *string, int64_t times) {
    for (int64_t i = 0; i < times; i++)
        text_add(text, string);
}

const char *text_string(struct text *text) {
    if (!text_reserve(text, 1))
        return "";
    text->bytes[text->used_bytes] = 0;
    return text->bytes;
}

void text_release(struct text *text) {
    free(text->bytes);
    *text = (struct text){0};
}

int64_t text_width(const char *bytes, size_t n) {
    int64_t width = 0;
    for (size_t i = 0; i < n; i++)
        width += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return width;
}
