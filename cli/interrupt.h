/* Control-C and requests to end: they cancel the query in work, and are remembered. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <signal.h>
#include <stachio.h>
#include <stdbool.h>

/* From the main thread. */
void interrupt_install(void);
/* Threads that are created until `out_previous` is restored hear of none of them. */
void interrupt_block(sigset_t *out_previous);
/* The query that Control-C cancels from now on; NULL: none. From the main thread. */
void interrupt_set_query(struct stachio_query *query);
bool interrupt_seen(void);
/* Forgets Control-C, so that the shell goes on. */
void interrupt_forget(void);
/* Something else than Control-C: the program has to end. */
bool interrupt_is_final(void);

#endif
