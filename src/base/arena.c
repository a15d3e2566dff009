#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sx_arena_block {
    struct sx_arena_block *next;
    size_t capacity_bytes;
    size_t used_bytes;
    size_t padding;
};

/* Blocks double, so that an arena for little costs little: of large scans each row group has its own. */
enum { FIRST_BYTES = 1024 - sizeof(struct sx_arena_block), MOST_BYTES = 64 * 1024, ALIGNMENT = 16 };

static struct sx_arena_block *add_block(struct sx_arena *arena, size_t size_bytes) {
    size_t capacity = arena->total_bytes > FIRST_BYTES ? arena->total_bytes : FIRST_BYTES;
    if (capacity > MOST_BYTES)
        capacity = MOST_BYTES;
    if (capacity < size_bytes)
        capacity = size_bytes;
    struct sx_arena_block *block = calloc(1, sizeof *block + capacity);
    if (!block)
        return NULL;
    block->capacity_bytes = capacity;
    block->next = arena->head;
    arena->head = block;
    arena->total_bytes += capacity;
    return block;
}

void *sx_arena_alloc(struct sx_arena *arena, size_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2)
        return NULL;
    size_t rounded = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct sx_arena_block *block = arena->head;
    if (!block || block->capacity_bytes - block->used_bytes < rounded)
        block = add_block(arena, rounded);
    if (!block)
        return NULL;
    void *memory = (char *)(block + 1) + block->used_bytes;
    block->used_bytes += rounded;
    return memory;
}

void *sx_arena_array(struct sx_arena *arena, size_t count, size_t element_bytes) {
    size_t size_bytes;
    if (__builtin_mul_overflow(count, element_bytes, &size_bytes))
        return NULL;
    return sx_arena_alloc(arena, size_bytes);
}

char *sx_arena_copy_text(struct sx_arena *arena, const char *text, size_t length) {
    char *copy = sx_arena_alloc(arena, length + 1);
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *sx_arena_format(struct sx_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        return NULL;
    char *text = sx_arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void sx_arena_release(struct sx_arena *arena) {
    for (struct sx_arena_block *block = arena->head; block;) {
        struct sx_arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (struct sx_arena){0};
}
