/* A backend that hands every call on to another one and records it. */
#ifndef SX_OBSERVE_TRACED_H
#define SX_OBSERVE_TRACED_H

#include "observe/trace.h"
#include "tensor/backend.h"

/* Streams that *out_backend makes record into the lanes "worker" 0, 1, …. `trace` and `inner` outlive it. */
SX_MUST_CHECK enum sx_status sx_traced_create(struct sx_trace *trace, const struct sx_backend *inner,
                                              const struct sx_backend **out_backend, struct sx_error *error);
/* Its streams have been destroyed. NULL allowed. */
void sx_traced_destroy(const struct sx_backend *backend);

#endif
