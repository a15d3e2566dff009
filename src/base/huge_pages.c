#include "base/huge_pages.h"

#include <stdint.h>
#include <sys/mman.h>

void *sx_huge_pages_map(size_t size_bytes) {
    const size_t more = size_bytes + SX_SLAB_ALIGNMENT;
    char *mapped = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    const size_t head = (SX_SLAB_ALIGNMENT - (uintptr_t)mapped % SX_SLAB_ALIGNMENT) % SX_SLAB_ALIGNMENT;
    if (head)
        munmap(mapped, head);
    munmap(mapped + head + size_bytes, more - head - size_bytes);
#ifdef MADV_HUGEPAGE
    (void)madvise(mapped + head, size_bytes, MADV_HUGEPAGE);
#endif
    return mapped + head;
}

void sx_huge_pages_unmap(void *memory, size_t size_bytes) {
    munmap(memory, size_bytes);
}

static void *map(void *context, size_t size_bytes) {
    (void)context;
    return sx_huge_pages_map(size_bytes);
}

static void unmap(void *context, void *memory, size_t size_bytes) {
    (void)context;
    sx_huge_pages_unmap(memory, size_bytes);
}

struct sx_slab_source sx_huge_pages_source(void) {
    return (struct sx_slab_source){.map = map, .unmap = unmap};
}
