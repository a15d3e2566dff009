/* Limits of control groups, of both versions, told by made-up files. */
#include "api/control_group.h"
#include "api/system.h"
#include "unit/machine_files.h"

#define MOUNTS(root, version)                                           \
    "21 1 0:20 / / rw,relatime - overlay overlay rw,lowerdir=/memory\n" \
    "31 21 0:28 " root " /groups rw,relatime shared:9 - " version "\n"  \
    "32 21 0:29 / /cpu rw - cgroup cgroup rw,cpu,cpuacct"

static void tell(const char *mounts, const char *groups) {
    write_line("/proc/self/mountinfo", mounts);
    write_line("/proc/self/cgroup", groups);
}

static void check(const char *mounts, const char *groups, uint64_t limit) {
    tell(mounts, groups);
    assert(sx_group_memory(root) == limit);
}

static void test_version_1(void) {
    const char *const mounts = MOUNTS("/", "cgroup cgroup rw,memory");
    assert(sx_group_memory(root) == UINT64_MAX);
    write_line("/groups/memory.limit_in_bytes", "9223372036854771712");
    write_line("/groups/a/memory.limit_in_bytes", "3000");
    write_line("/groups/a/b/memory.limit_in_bytes", "2000");
    write_line("/groups/a/b/c/memory.limit_in_bytes", "9223372036854771712");
    write_line("/groups/d/memory.limit_in_bytes", "1000");
    check(mounts, "5:devices:/d\n4:memory:/a/b/c\n1:cpu,cpuacct:/d\n0::/d", 2000);
    check(mounts, "4:hugetlb,memory:/a", 3000);
    check(mounts, "4:memory:/", 9223372036854771712U);
    check(mounts, "4:hugetlb:/d", UINT64_MAX);
    check(mounts, "4:memory:/gone/too", 9223372036854771712U);
}

/* A container that sees its own group at the mount point, and has the path from outside. */
static void test_container(void) {
    const char *const mounts = MOUNTS("/box/1", "cgroup cgroup rw,memory");
    check(mounts, "4:memory:/box/1/d", 1000);
    check(mounts, "4:memory:/box/1", 9223372036854771712U);
    check(mounts, "4:memory:/box/11/d", 9223372036854771712U);
    check(MOUNTS("/", "cgroup cgroup rw,memory"), "4:memory:/../d", 9223372036854771712U);
}

static void test_usual_places(void) {
    write_line("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "700");
    write_line("/sys/fs/cgroup/job/memory.max", "600");
    write_line("/proc/self/mountinfo", "21 1 0:20 / / rw - overlay overlay rw");
    check("", "4:memory:/job", 700);
    check("", "0::/job", 600);
    check("", "4:memory:/job\n0::/job", 600);
}

static void test_version_2(void) {
    const char *const mounts = MOUNTS("/", "cgroup2 cgroup2 rw,nsdelegate");
    write_line("/groups/a/memory.max", "5000");
    write_line("/groups/a/b/memory.max", "max");
    check(mounts, "0::/a/b", 5000);
    check(mounts, "0::/", UINT64_MAX);
}

static void check_processors(const char *mounts, const char *groups, uint64_t limit) {
    tell(mounts, groups);
    assert(sx_group_processors(root) == limit);
}

static void test_processors(void) {
    const char *const second = MOUNTS("/", "cgroup2 cgroup2 rw,nsdelegate");
    const char *const first = MOUNTS("/", "cgroup cgroup rw,memory");
    write_line("/groups/cpu.max", "max 100000");
    write_line("/groups/p/cpu.max", "400000 100000");
    write_line("/groups/p/q/cpu.max", "max 100000");
    write_line("/groups/p/r/cpu.max", "150000 100000");
    write_line("/groups/p/s/cpu.max", "1 100000");
    write_line("/groups/p/t/cpu.max", "100000");
    check_processors(second, "0::/", UINT64_MAX);
    check_processors(second, "0::/p", 4);
    check_processors(second, "0::/p/q", 4);
    check_processors(second, "0::/p/r", 2);
    check_processors(second, "0::/p/s", 1);
    check_processors(second, "0::/p/t", 4); /* without a period it says nothing */
    write_line("/cpu/cpu.cfs_quota_us", "-1");
    write_line("/cpu/cpu.cfs_period_us", "100000");
    write_line("/cpu/u/cpu.cfs_quota_us", "250000");
    write_line("/cpu/u/cpu.cfs_period_us", "100000");
    write_line("/cpu/v/cpu.cfs_quota_us", "250000");
    write_line("/cpu/v/cpu.cfs_period_us", "0");
    check_processors(first, "1:cpu,cpuacct:/", UINT64_MAX);
    check_processors(first, "1:cpu,cpuacct:/u", 3);
    check_processors(first, "1:cpu,cpuacct:/v", UINT64_MAX);
    check_processors(first, "1:cpuacct:/u", UINT64_MAX);
}

int main(void) {
    make_machine();
    test_version_1();
    test_container();
    test_usual_places();
    test_version_2();
    test_processors();
    remove_machine();
    assert(sx_system_memory() > 0);
    puts("ok");
    return 0;
}
