/* What the variables of mpirun and srun say, and those that NCCL is given. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/launch.h"
#include "api/system.h"

static void forget(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_NTASKS",
                                        "SLURM_NODEID",
                                        "SLURM_STEP_TASKS_PER_NODE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

/* Ranks on this host; 1 where the process is bound. */
static int shared(int ranks) {
    return sx_system_processors() >= sysconf(_SC_NPROCESSORS_ONLN) ? ranks : 1;
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

static void check_tasks(const char *tasks, const char *node, int ranks) {
    setenv("SLURM_STEP_TASKS_PER_NODE", tasks, 1);
    setenv("SLURM_NODEID", node, 1);
    assert(sx_launch_local_ranks() == shared(ranks));
}

int main(void) {
    forget();
    assert(sx_launch_ranks() == 1 && sx_launch_local_ranks() == 1);
    setenv("SLURM_NTASKS", "8", 1); /* a shell of salloc's */
    setenv("SLURM_PROCID", "0", 1);
    check_tasks("8", "0", 1);
    assert(sx_launch_ranks() == 1);
    setenv("SLURM_STEP_NUM_TASKS", "8", 1); /* srun --mpi=none */
    assert(sx_launch_ranks() == 1);
    setenv("PMIX_RANK", "0", 1); /* srun --mpi=pmix; the rank is 0, which is a number, too */
    assert(sx_launch_ranks() == 8);
    check_tasks("8", "0", 8);
    check_tasks("3(x2),2", "0", 3);
    check_tasks("3(x2),2", "1", 3);
    check_tasks("3(x2),2", "2", 2);
    check_tasks("3(x2),2", "3", 1);
    check_tasks("x", "0", 1);
    forget();
    setenv("PMI_SIZE", "4", 1); /* srun --mpi=pmi2 */
    assert(sx_launch_ranks() == 4);
    check_tasks("2(x2)", "1", 2);
    forget();
    setenv("OMPI_COMM_WORLD_SIZE", "6", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    assert(sx_launch_ranks() == 6 && sx_launch_local_ranks() == shared(2));
    check_nccl(true, NULL, "=lo");
    check_nccl(true, "eth1", "=eth1");
    check_nccl(false, "eth1", "=eth1");
    check_nccl(false, NULL, NULL);
    return 0;
}
