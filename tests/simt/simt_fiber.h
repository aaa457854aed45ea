// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Fibres: one suspended call stack for each CUDA thread of the block that runs.
 *
 * The switch is hand-written for x86-64 and aarch64 and falls back to ucontext elsewhere (or with
 * -DSIMT_UCONTEXT=1). With SIMT_ASAN (set by itself when AddressSanitizer compiles this file, by
 * hand when only the rest of the program is instrumented) every switch is announced to ASan.
 */
#ifndef SIMT_FIBER_H
#define SIMT_FIBER_H

#include <stdbool.h>
#include <stddef.h>

/* 1: switch by ucontext. */
#ifndef SIMT_UCONTEXT
#if defined(__x86_64__) || defined(__aarch64__)
#define SIMT_UCONTEXT 0
#else
#define SIMT_UCONTEXT 1
#endif
#endif

/* 1: announce switches to AddressSanitizer. */
#if !defined(SIMT_ASAN) && defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#endif
#if !defined(SIMT_ASAN) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#endif
#ifndef SIMT_ASAN
#define SIMT_ASAN 0
#endif

#if SIMT_UCONTEXT
#include <ucontext.h>
#endif

/** Usable bytes of a fibre's stack: room for instrumented, unoptimised kernels. */
#define SIMT_STACK_BYTES ((size_t)128 << 10)

/** Inaccessible bytes below a stack: larger than any frame a kernel should have. */
#define SIMT_GUARD_BYTES ((size_t)64 << 10)

/** A call stack that can be left and entered again. The main context has one without a mapping. */
struct simt_fiber {
    void *stack_pointer; /**< saved while suspended */
    char *low;           /**< lowest usable byte of the stack */
    size_t size;         /**< usable bytes; 0 = not known yet (main) or not mapped yet */
    void *fake_stack;    /**< AddressSanitizer's own frames of this fibre, or NULL */
#if SIMT_UCONTEXT
    ucontext_t context; /**< saved while suspended */
#endif
};

/**
 * Gives a fibre a fresh first frame; maps its stack the first time and keeps it for later blocks.
 * @param fiber zero-initialised or prepared before
 * @param index number of the fibre; spreads the stack tops over the cache sets
 * @param entry called on the new stack when it is first switched to; must never return
 * @return false if no stack could be mapped
 */
bool simt_fiber_prepare(struct simt_fiber *fiber, unsigned index, void (*entry)(void));

/**
 * Must be the first call of an entry function.
 * @param main_fiber context of the launch; its stack bounds are learnt here if still unknown
 */
void simt_fiber_arrive(struct simt_fiber *main_fiber);

/**
 * Suspends the running fibre and continues another; returns when something switches back.
 * @param from the running fibre
 * @param to   the fibre to continue
 */
void simt_fiber_switch(struct simt_fiber *from, struct simt_fiber *to);

/**
 * Leaves the running fibre for good. Does not return.
 * @param from the running fibre, whose entry function has finished
 * @param to   the fibre to continue
 */
void simt_fiber_exit(struct simt_fiber *from, struct simt_fiber *to);

/**
 * Forgets a fibre that was suspended in the middle of a kernel: frees ASan's frames of it and
 * unpoisons its stack. Called on the main stack.
 * @param fiber      the abandoned fibre
 * @param main_fiber the context that calls
 */
void simt_fiber_discard(struct simt_fiber *fiber, struct simt_fiber *main_fiber);

/**
 * Starts to watch for stack overflow: access faults go to `hook` on a stack of their own.
 * @param hook told the address of a fault; does not return if the fault was an overflow that it
 *             reports; returns if the fault is none of its business, which then takes its old
 * course
 */
void simt_guard_begin(void (*hook)(const void *address));

/** Ends what simt_guard_begin() started and puts the former signal handling back. */
void simt_guard_end(void);

/**
 * Makes memory inaccessible to instrumented code; nothing without SIMT_ASAN.
 * @param memory first byte
 * @param bytes  length; the region should end on a multiple of 8
 */
void simt_poison(const void *memory, size_t bytes);

/**
 * Makes memory accessible again; nothing without SIMT_ASAN.
 * @param memory first byte
 * @param bytes  length
 */
void simt_unpoison(const void *memory, size_t bytes);

#endif
