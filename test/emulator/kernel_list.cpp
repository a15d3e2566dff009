/* Which kernels were launched, and which never: CUDA_EMULATOR_KERNELS=FILE appends a line for each launch in
 * the code. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernel_emulator.h"

namespace {
emulator::launch_site *first; /* zero before any constructor runs */

/* The function that launches: "sum<int>" of "… Body = sum<int>(…)::<lambda()>]". */
std::string launcher(const std::string &within) {
    const size_t body = within.find("Body = ");
    return body == std::string::npos ? within : within.substr(body + 7, within.find('(', body) - body - 7);
}

__attribute__((destructor)) void list_kernels() {
    const char *path = getenv("CUDA_EMULATOR_KERNELS");
    FILE *file = path && *path ? fopen(path, "a") : nullptr;
    if (!file)
        return;
    for (const emulator::launch_site *site = first; site; site = site->next)
        fprintf(file, "%ld\t%ld\t%ld\t%s in %s\n", site->launches.load(), site->of_several_blocks.load(),
                site->threads.load(), site->kernel, launcher(site->within).c_str());
    fclose(file);
}
} // namespace

emulator::launch_site::launch_site(const char *kernel_, const char *within_)
    : kernel(kernel_), within(within_), next(first) {
    first = this;
}

void emulator::launch_site::note(dim3 grid, dim3 block) {
    launches++;
    of_several_blocks += grid.x * grid.y * grid.z > 1;
    threads += (long)grid.x * grid.y * grid.z * block.x * block.y * block.z;
}
