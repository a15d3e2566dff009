#include "api/launch.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/library.h"
#include "net/ucx/load.h"

static int number_of(const char *variable) {
    const char *text = sx_environment(variable);
    char *end;
    const long value = text ? strtol(text, &end, 10) : 0;
    return text && !*end && value > 0 && value < 1 << 20 ? (int)value : 0;
}

/* Variables that only launched processes have: Slurm's own size of the allocation (SLURM_NTASKS) also stands
 * in shells of it, where a plain run is to stay one. */
int sx_launch_ranks(void) {
    int ranks = number_of("OMPI_COMM_WORLD_SIZE");
    if (!ranks)
        ranks = number_of("PMI_SIZE");
    if (!ranks && sx_environment("PMIX_RANK") && sx_environment("SLURM_PROCID"))
        ranks = number_of("SLURM_STEP_NUM_TASKS");
    return ranks ? ranks : 1;
}

/* UCX reads these when it is loaded. It is to leave signals alone, and errors are told by us. */
static void quieten_ucx(void) {
    setenv("UCX_ERROR_SIGNALS", "", 0);
    setenv("UCX_LOG_LEVEL", "fatal", 0);
}

/* Nothing listens on another address than the network's own; whoever has set it knows better. */
void sx_launch_prepare_nccl(bool is_one_host, const char *interface) {
    char exactly[64];
    snprintf(exactly, sizeof exactly, "=%s", interface ? interface : "lo");
    if (interface || is_one_host)
        setenv("NCCL_SOCKET_IFNAME", exactly, 0);
    setenv("NCCL_NVLS_ENABLE", "0", 1); /* no multicast: it is left alone */
}

static bool is_one_host(const struct sx_transport *transport) {
    for (int r = 1; transport->hosts && r < transport->size; r++)
        if (transport->hosts[r] != transport->hosts[0])
            return false;
    return true;
}

enum sx_status sx_launch_open(const char *interface, struct sx_net **out_net, struct sx_error *error) {
    const struct sx_ucx_options options = {
        .version = STACHIO_VERSION, .interface = interface, .launched_ranks = sx_launch_ranks()};
    struct sx_transport *transport;
    char problem[512];
    if (options.launched_ranks == 1)
        return sx_net_self_create(out_net, error);
    quieten_ucx();
    /* Open MPI's own plug-ins look for its names; and UCX can't be unloaded. */
    void *library = sx_library_load("libstachio_net.so", "STACHIO_NET_LIBRARY",
                                    RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE, problem, sizeof problem);
    if (!library)
        return sx_error_set(error, SX_USAGE, "%d ranks were launched, but there is no network: %s",
                            options.launched_ranks, problem);
    sx_ucx_open_function open = (sx_ucx_open_function)(uintptr_t)dlsym(library, "sx_ucx_open");
    if (!open)
        return sx_error_set(error, SX_USAGE, "ranks: the network library lacks sx_ucx_open");
    SX_TRY(open(&options, &transport, error));
    sx_launch_prepare_nccl(is_one_host(transport), interface);
    return sx_net_create(transport, out_net, error);
}
