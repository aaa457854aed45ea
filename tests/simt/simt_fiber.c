// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Fibres: context switch, pooled stacks with guard pages, AddressSanitizer's annotations.
 */
#define _GNU_SOURCE // MAP_ANONYMOUS, sigaltstack
#include "simt_fiber.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !SIMT_UCONTEXT
/**
 * Saves the callee-saved registers on the running stack, stores its pointer, and restores the
 * other stack's. It ends in an ordinary return: all fibres were left at the same call, so the
 * processor's return predictor is right.
 * @param save where the stack pointer of the running fibre is stored
 * @param load stack pointer of the fibre to continue
 */
void simt_switch_stack(void **save, void *load);
#endif

#if !SIMT_UCONTEXT && defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl simt_switch_stack\n"
        ".hidden simt_switch_stack\n"
        ".type simt_switch_stack, @function\n"
        "simt_switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size simt_switch_stack, . - simt_switch_stack\n");

/** Words that simt_switch_stack() pops (the last is the address it returns to), and one more:
 * the zero return address of the entry function, where stack walks end. */
enum { FRAME_WORDS = 8, FRAME_ENTRY = 6 };
#endif

#if !SIMT_UCONTEXT && defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl simt_switch_stack\n"
        ".hidden simt_switch_stack\n"
        ".type simt_switch_stack, %function\n"
        "simt_switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size simt_switch_stack, . - simt_switch_stack\n");

/** Words that simt_switch_stack() loads, and the place of x30, the address it returns to. */
enum { FRAME_WORDS = 20, FRAME_ENTRY = 11 };
#endif

/** Maps one stack above its guard. @param fiber gets low and size @return false if out of memory */
static bool map_stack(struct simt_fiber *fiber) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *base = (char *)mmap(NULL, SIMT_GUARD_BYTES + SIMT_STACK_BYTES, PROT_NONE, flags, -1, 0);
    if (base == MAP_FAILED) {
        return false;
    }
    if (mprotect(base + SIMT_GUARD_BYTES, SIMT_STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
        munmap(base, SIMT_GUARD_BYTES + SIMT_STACK_BYTES);
        return false;
    }
    fiber->low = base + SIMT_GUARD_BYTES;
    fiber->size = SIMT_STACK_BYTES;
    return true;
}

bool simt_fiber_prepare(struct simt_fiber *fiber, unsigned index, void (*entry)(void)) {
    if (fiber->size == 0 && !map_stack(fiber)) {
        return false;
    }
    fiber->fake_stack = NULL;
    // All stacks are page-aligned: without an offset their hot ends would share few cache sets.
    // 448 is an odd number of 64-byte lines, so that the offsets visit every line of a page.
    size_t usable = fiber->size - (index * 448U) % 4096U;
#if SIMT_UCONTEXT
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->low;
    fiber->context.uc_stack.ss_size = usable;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, entry, 0);
#else
    uintptr_t *frame = (uintptr_t *)(void *)(fiber->low + usable) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof(*frame));
    frame[FRAME_ENTRY] = (uintptr_t)entry;
    fiber->stack_pointer = frame;
#endif
    return true;
}

/** The switch alone. @param from running fibre @param to fibre to continue */
static inline void switch_context(struct simt_fiber *from, struct simt_fiber *to) {
#if SIMT_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    simt_switch_stack(&from->stack_pointer, to->stack_pointer);
#endif
}

void simt_fiber_arrive(struct simt_fiber *main_fiber) {
#if SIMT_ASAN
    // The first fibre of a launch comes from the main stack, so the old bounds are main's.
    const void *low = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(NULL, &low, &size);
    if (main_fiber->size == 0) {
        main_fiber->low = (char *)(uintptr_t)low;
        main_fiber->size = size;
    }
#else
    (void)main_fiber;
#endif
}

void simt_fiber_switch(struct simt_fiber *from, struct simt_fiber *to) {
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->low, to->size);
    switch_context(from, to);
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
    from->fake_stack = NULL;
#else
    switch_context(from, to);
#endif
}

void simt_fiber_exit(struct simt_fiber *from, struct simt_fiber *to) {
#if SIMT_ASAN
    __sanitizer_start_switch_fiber(NULL, to->low, to->size);
#endif
    switch_context(from, to);
}

void simt_fiber_discard(struct simt_fiber *fiber, struct simt_fiber *main_fiber) {
#if SIMT_ASAN
    if (fiber->fake_stack != NULL) {
        // ASan frees a fake stack only when its fibre leaves for good. Tell it so, without going
        // there: into the fibre, out of it for the last time, back here.
        __sanitizer_start_switch_fiber(&main_fiber->fake_stack, fiber->low, fiber->size);
        __sanitizer_finish_switch_fiber(fiber->fake_stack, NULL, NULL);
        __sanitizer_start_switch_fiber(NULL, main_fiber->low, main_fiber->size);
        __sanitizer_finish_switch_fiber(main_fiber->fake_stack, NULL, NULL);
        fiber->fake_stack = NULL;
    }
#else
    (void)main_fiber;
#endif
    simt_unpoison(fiber->low, fiber->size);
}

/** Who is told of faults. */
static void (*guard_hook)(const void *address);
/** What to put back. */
static struct sigaction former_action;
static stack_t former_stack; /**< what to put back */
/** Stack of the fault handler: the fibre has none left. */
static char signal_stack[64 << 10];

/** Receives access faults. @param number signal @param info its address @param context unused */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    guard_hook(info->si_addr);
    // Not an overflow: the instruction faults again, under the handler that was there before.
    sigaction(number, &former_action, NULL);
}

void simt_guard_begin(void (*hook)(const void *address)) {
    guard_hook = hook;
    stack_t stack;
    memset(&stack, 0, sizeof(stack));
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof(signal_stack);
    sigaltstack(&stack, &former_stack);
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_fault;
    // NODEFER: the hook leaves by a context switch, which would leave the signal blocked.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &former_action);
}

void simt_guard_end(void) {
    sigaction(SIGSEGV, &former_action, NULL);
    sigaltstack(&former_stack, NULL);
}

void simt_poison(const void *memory, size_t bytes) {
#if SIMT_ASAN
    __asan_poison_memory_region(memory, bytes);
#else
    (void)memory;
    (void)bytes;
#endif
}

void simt_unpoison(const void *memory, size_t bytes) {
#if SIMT_ASAN
    __asan_unpoison_memory_region(memory, bytes);
#else
    (void)memory;
    (void)bytes;
#endif
}
