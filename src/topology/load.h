/* What libstachio_topology.so exports: what hwloc tells of this machine. It is a library of its own, loaded
 * only when it is asked for, so that the program starts on machines without hwloc. */
#ifndef SX_TOPOLOGY_LOAD_H
#define SX_TOPOLOGY_LOAD_H

#include <stachio.h>

#include "base/arena.h"
#include "base/status.h"

/* Fills in all but the ranks; texts and arrays are in `arena`. The machine is the one that the environment's
 * HWLOC_XMLFILE describes (SX_FILE where it does not), else this one. */
typedef enum sx_status (*sx_topology_discover_function)(struct sx_arena *arena,
                                                        struct stachio_topology *out_topology,
                                                        struct sx_error *error);

#endif
