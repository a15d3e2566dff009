/* Looking for something before sleeping for it: a thread that sleeps takes tens of microseconds to wake, and
 * more in a virtual machine. But a thread that is woken may find itself on the processor of one that looks,
 * and then waits until that has done, however often it yields (Linux 6.18: up to 5 ms). So only some of a
 * process's threads look at a time, and all look for a shorter time as long as threads that are woken come
 * late. */
#ifndef SX_BASE_LOOK_H
#define SX_BASE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

/* No more of the process's threads than that are in sx_look at a time; the others sleep at once. The last
 * call counts. */
void sx_look_set_most(int threads);

/* Until has_come(what), for for_ns at most. False: it has not come, and is to be slept for. */
bool sx_look(int64_t for_ns, bool (*has_come)(const void *what), const void *what);

/* Who has slept and was woken says so, and when that was (sx_clock_ns). */
void sx_look_woken(int64_t woken_ns);

/* for_ns, or as long as threads look now, if that is shorter. */
int64_t sx_look_ns(int64_t for_ns);

#endif
