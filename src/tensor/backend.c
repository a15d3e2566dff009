#include "tensor/backend.h"

enum sx_status sx_backend_check(const struct sx_backend *backend, struct sx_error *error) {
    /* The table holds function pointers only, so it can be walked as an array of them. */
    typedef void (*slot)(void);
    const slot *slots = (const slot *)&backend->ops;
    for (size_t i = 0; i < sizeof backend->ops / sizeof(slot); i++)
        if (!slots[i])
            return sx_error_set(error, SX_INTERNAL, "backend %s: slot %zu of its operations is empty",
                                backend->name, i);
    return SX_OK;
}
