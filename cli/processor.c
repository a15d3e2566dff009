#include "processor.h"

#include <string.h>
#include <unistd.h>

#if defined __x86_64__ && defined __GNUC__

/* Compiled for the oldest processor, since it runs on one that lacks what the rest was compiled for. */
__attribute__((target("arch=x86-64"), noinline)) bool processor_is_too_old(void) {
    bool known = true;
    __builtin_cpu_init();
    if (!strncmp(STACHIO_MARCH, "x86-64-v", 8))
        known &= __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    if (!strcmp(STACHIO_MARCH, "x86-64-v3") || !strcmp(STACHIO_MARCH, "x86-64-v4"))
        known &=
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
    if (!strcmp(STACHIO_MARCH, "x86-64-v4"))
        known &= __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl");
    if (known)
        return false;
    static const char message[] = "stachio: this program was built for processors of level " STACHIO_MARCH
                                  ", and this one is older; build it with cmake -DSTACHIO_MARCH=x86-64\n";
    return write(STDERR_FILENO, message, sizeof message - 1) != 0;
}

#else

bool processor_is_too_old(void) {
    return false;
}

#endif
