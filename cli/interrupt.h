/* Control-C and requests to end: they cancel the query in work, and are remembered. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stachio.h>
#include <stdbool.h>

/* From the main thread, which other threads pass them on to. Signals that are ignored stay so (nohup). */
void interrupt_install(void);
/* The query that Control-C cancels from now on; NULL: none. From the main thread. */
void interrupt_set_query(struct stachio_query *query);
bool interrupt_seen(void);
/* Waits until `fd` can be read (POLLIN) or written (POLLOUT). False: interrupted, and it can't be yet. */
bool interrupt_wait(int fd, short events);
/* Forgets Control-C, so that the shell goes on. */
void interrupt_forget(void);
/* Something else than Control-C: the program has to end. */
bool interrupt_is_final(void);

#endif
