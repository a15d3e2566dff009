/* Bump allocation for plans and names: everything is freed at once, with the arena. Not thread-safe. */
#ifndef SX_BASE_ARENA_H
#define SX_BASE_ARENA_H

#include <stddef.h>

struct sx_arena_block;

/* Starts zeroed; a zeroed arena may be released. */
struct sx_arena {
    struct sx_arena_block *head;
    size_t total_bytes;
};

/* Zeroed memory aligned to 16 bytes, or NULL when the system has none. `size_bytes` 0 gives a valid pointer.
 */
void *sx_arena_alloc(struct sx_arena *arena, size_t size_bytes);

/* Array of `count` elements; NULL also when the product overflows. */
void *sx_arena_array(struct sx_arena *arena, size_t count, size_t element_bytes);

/* Copies, zero-terminated. */
char *sx_arena_copy_text(struct sx_arena *arena, const char *text, size_t length);
char *sx_arena_format(struct sx_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

void sx_arena_release(struct sx_arena *arena);

#define SX_ARENA_NEW(arena, type)          ((type *)sx_arena_alloc((arena), sizeof(type)))
#define SX_ARENA_ARRAY(arena, count, type) ((type *)sx_arena_array((arena), (size_t)(count), sizeof(type)))

#endif
