/* What the variables of mpirun and srun say, and those that NCCL is given. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/launch.h"

static void forget(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",    "PMIX_RANK", "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static void check_nccl(bool is_one_host, const char *interface, const char *expected) {
    unsetenv("NCCL_SOCKET_IFNAME");
    setenv("NCCL_NVLS_ENABLE", "1", 1);
    sx_launch_prepare_nccl(is_one_host, interface);
    const char *chosen = getenv("NCCL_SOCKET_IFNAME");
    assert(expected ? chosen && !strcmp(chosen, expected) : !chosen);
    const char *multicast = getenv("NCCL_NVLS_ENABLE");
    assert(multicast && !strcmp(multicast, "0"));
}

int main(void) {
    forget();
    assert(sx_launch_ranks() == 1);
    setenv("SLURM_NTASKS", "8", 1); /* a shell of salloc's */
    setenv("SLURM_PROCID", "0", 1);
    assert(sx_launch_ranks() == 1);
    setenv("SLURM_STEP_NUM_TASKS", "8", 1); /* srun --mpi=none */
    assert(sx_launch_ranks() == 1);
    setenv("PMIX_RANK", "0", 1); /* srun --mpi=pmix; the rank is 0, which is a number, too */
    assert(sx_launch_ranks() == 8);
    forget();
    setenv("PMI_SIZE", "4", 1); /* srun --mpi=pmi2 */
    assert(sx_launch_ranks() == 4);
    forget();
    setenv("OMPI_COMM_WORLD_SIZE", "6", 1);
    assert(sx_launch_ranks() == 6);
    check_nccl(true, NULL, "=lo");
    check_nccl(true, "eth1", "=eth1");
    check_nccl(false, "eth1", "=eth1");
    check_nccl(false, NULL, NULL);
    return 0;
}
