/* Lists of processors, what mpirun has bound without being asked, and NUMA nodes of made-up files. */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/processors.h"
#include "unit/machine_files.h"

static void check_list(const char *list, const char *wanted, int count) {
    const struct sx_processors set = sx_processors_of(list);
    char text[64];
    sx_processors_text(&set, text, sizeof text);
    assert(strcmp(text, wanted) == 0 && sx_processors_count(&set) == count);
}

static void test_lists(void) {
    check_list("", "", 0);
    check_list("0", "0", 1);
    check_list("0-3,8\n", "0-3,8", 5);
    check_list("5,4,6,63-64", "4-6,63-64", 5);
    check_list("8191", "8191", 1);
    check_list("1,8192", "1", 1);
    check_list("1,-2", "1", 1);
    check_list("1,2x,3", "1-2", 2);
    check_list("7-", "", 0);
    check_list("3-1,2", "2", 1);
    const struct sx_processors set = sx_processors_of("0,2,4,6,8");
    char text[6];
    sx_processors_text(&set, text, sizeof text);
    assert(strcmp(text, "0,2,4") == 0);
}

static void test_parts(void) {
    assert(sx_processors_part(64, 1, UINT64_MAX, 1) == 64 && sx_processors_part(64, 4, UINT64_MAX, 4) == 16);
    assert(sx_processors_part(3, 2, UINT64_MAX, 2) == 2 && sx_processors_part(1, 8, UINT64_MAX, 8) == 1);
    assert(sx_processors_part(64, 1, 4, 1) == 4 && sx_processors_part(64, 4, 6, 4) == 2);
    assert(sx_processors_part(16, 1, 16, 4) == 4); /* a NUMA node each, and one quota */
    assert(sx_processors_part(64, 4, 40, 4) == 10 && sx_processors_part(64, 4, 80, 4) == 16);
    assert(sx_processors_part(64, 4, 1, 4) == 1);
}

/* ---- binding: each in a process of its own ---- */

static int first_of(const struct sx_processors *set) {
    char text[512];
    sx_processors_text(set, text, sizeof text);
    return atoi(text);
}

/* Node 0 has the first of our processors, node 2 the others; node 1 has none. */
static void make_nodes(void) {
    struct sx_processors own = sx_processors_own();
    char first[16], others[512];
    const int processor = first_of(&own);
    snprintf(first, sizeof first, "%d", processor);
    own.words[processor / 64] &= ~(UINT64_C(1) << processor % 64);
    sx_processors_text(&own, others, sizeof others);
    write_line("/sys/devices/system/node/online", "0-2");
    write_line("/sys/devices/system/node/node0/cpulist", first);
    write_line("/sys/devices/system/node/node1/cpulist", "");
    write_line("/sys/devices/system/node/node2/cpulist", others);
    write_line("/sys/bus/pci/devices/0000:a0:00.0/numa_node", "2");
    write_line("/sys/bus/pci/devices/0000:a1:00.0/numa_node", "-1");
    setenv("HWLOC_FSROOT", root, 1);
}

/* Where it is left after `bus` and `turn`: the number of processors, and whether the first is among them. */
struct place {
    int count, has_first;
};

static struct place settled(const char *variable, const char *value, const char *bus, int turn) {
    const struct sx_processors before = sx_processors_own();
    const int all_first = first_of(&before);
    int pipes[2];
    struct place place;
    assert(pipe(pipes) == 0);
    const pid_t child = fork();
    if (child == 0) {
        setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
        if (variable)
            setenv(variable, value, 1);
        sx_processors_settle(bus, turn);
        const struct sx_processors own = sx_processors_own();
        place = (struct place){sx_processors_count(&own), first_of(&own) == all_first};
        _exit(write(pipes[1], &place, sizeof place) != sizeof place);
    }
    int status;
    assert(child > 0 && read(pipes[0], &place, sizeof place) == sizeof place);
    assert(waitpid(child, &status, 0) == child && status == 0);
    close(pipes[0]);
    close(pipes[1]);
    return place;
}

static void check_place(struct place place, int count, int has_first) {
    assert(place.count == count && place.has_first == has_first);
}

static void test_nodes(int all) {
    make_nodes();
    check_place(settled(NULL, NULL, "", 0), 1, 1);
    check_place(settled(NULL, NULL, "", 1), all - 1, 0);
    check_place(settled(NULL, NULL, "", 2), 1, 1);
    check_place(settled(NULL, NULL, "0000:a0:00.0", 0), all - 1, 0);
    check_place(settled(NULL, NULL, "0000:a1:00.0", 0), all, 1); /* nobody knows where it is */
    check_place(settled(NULL, NULL, "0000:ff:00.0", 0), all, 1);
    check_place(settled("OMPI_MCA_hwloc_base_binding_policy", "core", "", 1), all,
                1); /* somebody has said so */
    check_place(settled("OMPI_MCA_rmaps_base_mapping_policy", "socket:pe=2", "", 1), all, 1);
    check_place(settled("OMPI_MCA_rmaps_base_mapping_policy", "ppr:2:node", "", 1), all - 1, 0);
    check_place(settled("OMPI_MCA_orte_rankfile", "file", "", 1), all, 1);
    check_place(settled("SLURM_CPU_BIND_TYPE", "none", "", 1), all - 1, 0); /* that is of mpirun's daemon */
    unsetenv("HWLOC_FSROOT");
}

static void take_one(void) {
    const struct sx_processors own = sx_processors_own();
    struct sx_processors one = {0};
    const int first = first_of(&own);
    one.words[first / 64] = UINT64_C(1) << first % 64;
    assert(sched_setaffinity(0, sizeof one, (const cpu_set_t *)(const void *)&one) == 0);
}

/* A child that runs on one processor only, as mpirun would have it. */
static int unbound(const char *bound, const char *said) {
    const pid_t child = fork();
    if (child == 0) {
        take_one();
        if (bound)
            setenv("OMPI_MCA_orte_bound_at_launch", bound, 1);
        if (said)
            setenv(said, "core", 1);
        sx_processors_unbind();
        const struct sx_processors left = sx_processors_own();
        const int count = sx_processors_count(&left);
        _exit(count < 200 ? count : 200);
    }
    int status;
    assert(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_unbind(int all) {
    const int most = all < 200 ? all : 200;
    assert(unbound("1", NULL) == most);
    assert(unbound(NULL, NULL) == 1);
    assert(unbound("0", NULL) == 1);
    assert(unbound("1", "OMPI_MCA_hwloc_base_binding_policy") == 1);
    assert(unbound("1", "OMPI_MCA_hwloc_base_cpu_set") == 1);
    assert(unbound("1", "OMPI_MCA_hwloc_base_cpu_list") == 1);
    assert(unbound("1", "SLURM_CPU_BIND_TYPE") == 1);
}

int main(void) {
    static const char *const variables[] = {"OMPI_MCA_hwloc_base_binding_policy",
                                            "OMPI_MCA_hwloc_base_cpu_set",
                                            "OMPI_MCA_rmaps_base_mapping_policy",
                                            "OMPI_MCA_rmaps_base_cpus_per_rank",
                                            "OMPI_MCA_orte_rankfile",
                                            "SLURM_CPU_BIND_TYPE",
                                            "OMPI_MCA_orte_bound_at_launch",
                                            "OMPI_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    test_lists();
    test_parts();
    const struct sx_processors own = sx_processors_own();
    const int all = sx_processors_count(&own);
    if (all < 2) {
        puts("ok, but with one processor nothing could be bound");
        return 0;
    }
    make_machine();
    test_nodes(all);
    test_unbind(all);
    remove_machine();
    puts("ok");
    return 0;
}
