/* Kernels on the host: fibers for threads. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sys/mman.h>

#include "kernel_emulator.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define FIBER_ASAN 1
#endif

namespace emulator {

constinit thread_local place here;

namespace {

/* The deepest stack seen is 12 KB, with the address sanitizer. */
enum { STACK_BYTES = 128 << 10, GUARD_BYTES = 4096, MAX_THREADS = 1024, WARP = 32 };

/* Saves the callee-saved registers and the stack pointer, and goes on with another stack. */
extern "C" void emulator_switch(void **save, void *load);
#if defined(__x86_64__)
asm(".text\n.globl emulator_switch\n.hidden emulator_switch\n.type "
    "emulator_switch,@function\nemulator_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
    ".size emulator_switch,.-emulator_switch\n");
#else
#error "the emulator's fibers are written for x86-64"
#endif

struct fiber {
    void *stack_pointer;
    char *stack; /* above GUARD_BYTES that can't be touched: outgrowing it is a fault */
    void *fake_stack;
};

struct warp {
    uint64_t slots[WARP];
    unsigned arrived[WARP]; /* the mask that a waiting lane gave, or 0 */
    unsigned generation[WARP];
    unsigned ended; /* lanes */
};

/* One for each OS thread that launches. A fiber runs one thread after the other; a thread that has to wait
 * keeps its fiber, and the next threads begin on another. So kernels without barriers never switch. */
struct scheduler {
    std::vector<fiber> fibers;
    std::vector<int> running; /* fiber of each waiting thread, or -1 */
    std::vector<char> is_at_barrier;
    std::vector<warp> warps;
    std::vector<unsigned char> shared;
    void *main_stack_pointer = nullptr, *main_fake_stack = nullptr;
    const void *main_stack_bottom = nullptr;
    size_t main_stack_bytes = 0;
    const std::function<void()> *body = nullptr;
    unsigned n_threads = 0, next = 0, current = 0, n_left = 0, at_barrier = 0, barrier_generation = 0;
    int fiber_in_use = 0;
    bool ends = false;

    ~scheduler();
};

thread_local scheduler machine;

void to_main(fiber &me, bool ends) {
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(ends ? nullptr : &me.fake_stack, machine.main_stack_bottom,
                                   machine.main_stack_bytes);
#endif
    (void)ends;
    emulator_switch(&me.stack_pointer, machine.main_stack_pointer);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(me.fake_stack, &machine.main_stack_bottom, &machine.main_stack_bytes);
#endif
}

void to_fiber(int index) {
    machine.fiber_in_use = index;
    fiber &f = machine.fibers[(size_t)index];
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&machine.main_fake_stack, f.stack, STACK_BYTES);
#endif
    emulator_switch(&machine.main_stack_pointer, f.stack_pointer);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(machine.main_fake_stack, nullptr, nullptr);
#endif
}

scheduler::~scheduler() {
    ends = true;
    for (size_t i = 0; i < fibers.size(); i++) {
        to_fiber((int)i); /* its fake stack goes */
        fiber &f = fibers[i];
#ifdef FIBER_ASAN
        /* the frames that a fiber has ended in are still marked; others get the addresses */
        __asan_unpoison_memory_region(f.stack, STACK_BYTES);
#endif
        munmap(f.stack - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
    }
}

void set_thread(unsigned t) {
    machine.current = t;
    here.thread = t < here.block_size.x
                      ? dim3(t, 0, 0) /* divisions take longer than many a thread */
                      : dim3(t % here.block_size.x, t / here.block_size.x % here.block_size.y,
                             t / here.block_size.x / here.block_size.y);
}

/* A fiber's code: threads that have not begun, until there are none; then those of the next block. */
void enter() {
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &machine.main_stack_bottom, &machine.main_stack_bytes);
#endif
    for (const int me = machine.fiber_in_use;;) {
        while (!machine.ends && machine.next < machine.n_threads) {
            set_thread(machine.next++);
            (*machine.body)();
            machine.warps[machine.current / WARP].ended |= 1u << machine.current % WARP;
            machine.n_left--;
        }
        to_main(machine.fibers[(size_t)me], machine.ends);
    }
}

void yield() {
    const unsigned me = machine.current;
    const int fiber_of_me = machine.fiber_in_use;
    machine.running[me] = fiber_of_me;
    to_main(machine.fibers[(size_t)fiber_of_me], false);
    machine.running[me] = -1;
    set_thread(me);
}

void make_fiber() {
    fiber f = {};
    char *memory = (char *)mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0)
        abort();
    f.stack = memory + GUARD_BYTES;
    void **top = (void **)(f.stack + STACK_BYTES);
    *--top = nullptr; /* `enter` never returns; its stack is aligned as after a call */
    *--top = (void *)enter;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f.stack_pointer = top;
    machine.fibers.push_back(f);
}

void run_block(unsigned n_threads) {
    machine.n_threads = machine.n_left = n_threads;
    machine.next = machine.at_barrier = 0;
    machine.running.assign(n_threads, -1);
    machine.is_at_barrier.assign(n_threads, 0);
    machine.warps.assign((n_threads + WARP - 1) / WARP, warp{});
    machine.fibers.reserve(MAX_THREADS + 1);
    /* each fiber that is begun here ends up waiting with one of the block's threads, or done with the last */
    for (int i = 0; machine.next < machine.n_threads; i++) {
        if ((size_t)i == machine.fibers.size())
            make_fiber();
        to_fiber(i);
    }
    while (machine.n_left > 0)
        for (unsigned t = 0; t < n_threads; t++)
            if (machine.running[t] >= 0 &&
                (!machine.is_at_barrier[t] || machine.at_barrier >= machine.n_left))
                to_fiber(machine.running[t]);
}

} // namespace

unsigned lane() {
    return machine.current % WARP;
}

unsigned char *shared_memory() {
    return machine.shared.data();
}

/* Threads that have ended do not take part, as on the device. */
void block_barrier() {
    const unsigned generation = machine.barrier_generation;
    machine.at_barrier++;
    while (generation == machine.barrier_generation) {
        if (machine.at_barrier >= machine.n_left) {
            machine.at_barrier = 0;
            machine.barrier_generation++;
            std::fill(machine.is_at_barrier.begin(), machine.is_at_barrier.end(), 0);
            return;
        }
        machine.is_at_barrier[machine.current] = 1;
        yield();
    }
}

void warp_barrier(unsigned mask) {
    const unsigned thread = machine.current, me = thread % WARP;
    if (!(mask >> me & 1)) {
        fprintf(stderr, "emulator: lane %u is not in its own mask %08x\n", me, mask);
        abort();
    }
    const unsigned generation = machine.warps[thread / WARP].generation[me];
    machine.warps[thread / WARP].arrived[me] = mask;
    for (;;) {
        warp &w = machine.warps[thread / WARP];
        if (generation != w.generation[me])
            return;
        bool all = true;
        for (unsigned i = 0; i < WARP && all; i++)
            if (mask >> i & 1 && thread / WARP * WARP + i < machine.n_threads && !(w.ended >> i & 1))
                all = w.arrived[i] == mask;
        if (all) {
            for (unsigned i = 0; i < WARP; i++)
                if (mask >> i & 1)
                    w.arrived[i] = 0, w.generation[i]++;
            return;
        }
        yield();
    }
}

const uint64_t *warp_exchange(unsigned mask, uint64_t word) {
    machine.warps[machine.current / WARP].slots[lane()] = word;
    warp_barrier(mask);
    return machine.warps[machine.current / WARP].slots;
}

} // namespace emulator

void emulator::launch(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body) {
    const unsigned n_threads = block.x * block.y * block.z;
    if (n_threads == 0 || n_threads > MAX_THREADS || grid.x == 0 || shared_bytes > (size_t)227 << 10) {
        fprintf(stderr, "emulator: a launch of %u blocks of %u threads with %zu shared bytes\n", grid.x,
                n_threads, shared_bytes);
        abort();
    }
    guard_open open;
    machine.shared.assign(shared_bytes + 16, 0xa5);
    machine.body = &body;
    here.block_size = block;
    here.grid_size = grid;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                here.block = dim3(x, y, z);
                run_block(n_threads);
            }
}
