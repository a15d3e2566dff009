/* Work of other libraries that goes on while a stream of the emulator is at it: what the stream's begin
 * tells. */
#ifndef EMULATOR_ASYNC_H
#define EMULATOR_ASYNC_H

#include <stdint.h>

/* The beginning of a stream. Without a context nothing goes on. */
struct emulated_async {
    void (*settle)(struct emulated_async *async); /* the stream's own: does what it has put off */
    void *context;
    uint64_t (*mark)(const struct emulated_async *async);              /* all that was begun so far */
    int (*is_done)(const struct emulated_async *async, uint64_t mark); /* whether it is through */
};

#endif
