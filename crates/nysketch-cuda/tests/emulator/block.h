// A block of threads on one processor: each is a fiber that hands over to others where it has to wait.
//
// A warp goes on as long as one of its lanes can, then the next one does. A thread gets a stack of its own only when
// another has to wait, so that kernels without barriers run on one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <string>

#define EMULATED_DRIVER_ITSELF
#include DEVICE_H

typedef unsigned u32;
typedef unsigned long long u64;

static std::string running;  // the kernel

[[noreturn]] static void misuse(const std::string &what) {
    fprintf(stderr, "emulated GPU: kernel `%s`: %s\n", running.c_str(), what.c_str());
    abort();
}

// emulated_swap(&old, new): keeps this fiber's registers on its stack and goes on with another.
extern "C" void emulated_swap(void **old, void *next);
#if defined(__x86_64__)
enum { FRAME = 8, RETURN = 6 };  // words of a kept fiber, and which one is where it goes on
asm(".text\n.globl emulated_swap\n.hidden emulated_swap\n.type emulated_swap,@function\nemulated_swap:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#elif defined(__aarch64__)
enum { FRAME = 20, RETURN = 11 };
asm(".text\n.globl emulated_swap\n.hidden emulated_swap\n.type emulated_swap,%function\nemulated_swap:\n"
    "sub sp,sp,#160\nstp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\n"
    "stp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\nmov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\n"
    "ldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\nadd sp,sp,#160\nret\n");
#else
#error "this processor needs its own emulated_swap"
#endif

typedef void (*Kernel)(const void *);
enum { MOST_THREADS = 1024, STACK = 1 << 16, STAGGER = 576, UNTOUCHABLE = 1 << 14 };

static struct Fibers {
    void *kept[MOST_THREADS];  // where a thread goes on; null before it starts
    void *launcher, *finished;
    Dim3 place[MOST_THREADS];
    u32 ready[32], alive[32], arrived[32];  // bits of the lanes of each warp
    struct { u32 mask, what; u64 value; } slot[MOST_THREADS];  // a lane's part in a warp operation, then its result
    u64 gathered[32][32];
    u32 current, live, at_barrier, warps;
    bool backwards;
    char *stacks;
    Kernel kernel;
    const void *argument;
    Block block;
} on;

static void thread_main();

static void new_stack(u32 thread) {
    // Staggered: stacks a power of two apart would share a few lines of the cache.
    void **frame = (void **)(on.stacks + (u64)(thread + 1) * STACK - thread % 32 * STAGGER) - FRAME;
    frame[RETURN] = (void *)thread_main;
    on.kept[thread] = frame;
}

/// Makes a ready thread the current one, of this warp if it has one.
static void choose() {
    u32 warp = on.current / 32, tried = 0;
    while (on.ready[warp] == 0) {
        if (++tried > on.warps) misuse("threads wait for ever, some at a barrier and some in a warp operation");
        if (on.backwards) warp = (warp ? warp : on.warps) - 1;
        else warp = warp + 1 == on.warps ? 0 : warp + 1;
    }
    u32 lane = on.backwards ? 31 - __builtin_clz(on.ready[warp]) : __builtin_ctz(on.ready[warp]);
    on.ready[warp] &= ~(1u << lane);
    on.current = warp * 32 + lane;
    on.block.thread = on.place[on.current];
}

static void hand_over() {
    u32 me = on.current;
    choose();
    if (!on.kept[on.current]) new_stack(on.current);
    emulated_swap(&on.kept[me], on.kept[on.current]);
}

static void open_barrier() {
    on.at_barrier = 0;
    memcpy(on.ready, on.alive, sizeof(on.ready));
}

/// Threads that have returned count as arrived.
static void barrier() {
    if (++on.at_barrier < on.live) return hand_over();
    open_barrier();
    on.ready[on.current / 32] &= ~(1u << on.current % 32);
}

/// Lets the lanes of `mask` go on, if all that have not returned are here.
static bool meet(u32 warp, u32 mask) {
    u32 group = mask & on.alive[warp];
    if (group & ~on.arrived[warp]) return false;
    auto *slot = on.slot + warp * 32;
    u64 *values = on.gathered[warp];
    for (u32 left = group; left; left &= left - 1) {
        u32 lane = __builtin_ctz(left);
        if (slot[lane].mask != mask) misuse("lanes of a warp name different masks");
        values[lane] = slot[lane].value;
    }
    for (u32 left = group; left; left &= left - 1) {
        auto &mine = slot[__builtin_ctz(left)];
        if (mine.what < 32 && (group >> mine.what & 1)) mine.value = values[mine.what];
        if (mine.what == GATHER) mine.value = (u64)values;
    }
    on.arrived[warp] &= ~group;
    on.ready[warp] |= group;
    return true;
}

static u64 exchange(u32 mask, u64 value, u32 what) {
    u32 me = on.current, bit = 1u << me % 32;
    if (!(mask & bit)) misuse("a lane is not in the mask of its own warp operation");
    on.slot[me] = {mask, what, value};
    on.arrived[me / 32] |= bit;
    if (meet(me / 32, mask)) on.ready[me / 32] &= ~bit;
    else hand_over();
    return on.slot[me].value;
}

/// Those that wait for a thread that returns wait no longer.
static void leave() {
    u32 warp = on.current / 32;
    on.alive[warp] &= ~(1u << on.current % 32);
    if (--on.live && on.at_barrier == on.live) open_barrier();
    for (u32 left = on.arrived[warp]; left; left &= on.arrived[warp] & (left - 1))
        meet(warp, on.slot[warp * 32 + __builtin_ctz(left)].mask);
}

/// One thread after the other, on one stack; until the next one is in the middle of its kernel, on another.
static void thread_main() {
    for (;;) {
        on.kernel(on.argument);
        leave();
        if (!on.live) emulated_swap(&on.finished, on.launcher);
        choose();
        if (on.kept[on.current]) emulated_swap(&on.finished, on.kept[on.current]);
    }
}

/// The blocks that follow have this shape.
static void shape_blocks(Dim3 threads, u32 count) {
    static u32 stacks = 0;
    if (!on.stacks) on.stacks = (char *)mmap(0, (u64)MOST_THREADS * STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (on.stacks == MAP_FAILED) misuse("no memory for stacks");
    for (; stacks < count; stacks++)
        if (mprotect(on.stacks + (u64)stacks * STACK + UNTOUCHABLE, STACK - UNTOUCHABLE, PROT_READ | PROT_WRITE))
            misuse("no memory for stacks");
    for (u32 t = 0; t < count; t++) on.place[t] = {t % threads.x, t / threads.x % threads.y, t / threads.x / threads.y};
    on.block.threads = threads;
    on.warps = (count + 31) / 32;
}

static void run_block(u32 count) {
    memset(on.kept, 0, count * sizeof(void *));
    for (u32 warp = 0; warp < 32; warp++) {
        u32 lanes = warp * 32 >= count ? 0 : count - warp * 32;
        on.ready[warp] = on.alive[warp] = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
        on.arrived[warp] = 0;
    }
    on.live = count;
    on.at_barrier = 0;
    on.current = on.backwards ? count - 1 : 0;
    choose();
    new_stack(on.current);
    emulated_swap(&on.launcher, on.kept[on.current]);
}
