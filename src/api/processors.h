/* Inside of src/api: the processors that a thread, and those that it creates, may run on. */
#ifndef SX_API_PROCESSORS_H
#define SX_API_PROCESSORS_H

#include <stddef.h>
#include <stdint.h>

enum { SX_MOST_PROCESSORS = 8192 };

struct sx_processors {
    uint64_t words[SX_MOST_PROCESSORS / 64];
};

/* The calling thread's; at least one. */
struct sx_processors sx_processors_own(void);
int sx_processors_count(const struct sx_processors *set);
/* What a process has of `count` that n_sharing of them may run on, where `quota` (UINT64_MAX: none) is for
 * all n_host of a host together; at least one. */
int sx_processors_part(int count, int n_sharing, uint64_t quota, int n_host);
/* As Linux lists them ("0-15,32"), as far as there is room. */
void sx_processors_text(const struct sx_processors *set, char *out_text, size_t bytes);
/* What such a list says; the rest of it is left out from the first thing that is none. */
struct sx_processors sx_processors_of(const char *list);

/* Open MPI binds ranks where nobody has asked for it: two to one core each, in which a rank would be alone
 * with its threads. Then the calling thread gets what mpirun itself may run on. */
void sx_processors_unbind(void);

/* Of a launched rank that may run on several NUMA nodes, and of which nobody has said where: the calling
 * thread gets the node of the PCI device `bus`, or with "" the `turn`-th one, counted round. (HWLOC_FSROOT:
 * the system's files are below that, as for hwloc.) */
void sx_processors_settle(const char *bus, int turn);

#endif
