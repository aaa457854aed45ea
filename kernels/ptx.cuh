// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * All inline PTX of the project. Every function has a twin in tests/simt/simt_ptx.h, which keeps
 * the instruction's rules of visibility, with two exceptions: that a fence must separate generic
 * stores of data from a later bulk copy to their place, and what griddepcontrol lets overlap. What
 * an instruction does is the PTX ISA's text, what is said here is what the kernels rely on.
 *
 * Shared-memory pointers are ordinary pointers; they are turned into shared addresses here.
 */
#ifndef KERNELS_PTX_CUH
#define KERNELS_PTX_CUH

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__

/** Number of this lane, read anew at each call: for places where a register kept would be one too
 * many. */
static __device__ __forceinline__ int32_t ptx_lane() {
    uint32_t lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return (int32_t)lane;
}

/** Number of this thread of the block, read anew likewise. */
static __device__ __forceinline__ int32_t ptx_thread() {
    uint32_t thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return (int32_t)thread;
}

/** Blocks of the grid, read anew likewise. */
static __device__ __forceinline__ int32_t ptx_blocks() {
    uint32_t blocks;
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
    return (int32_t)blocks;
}

/** Address of a pointer to shared memory within its window. */
static __device__ __forceinline__ uint32_t ptx_shared(const void *pointer) {
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/**
 * Four 8 x 8 matrices of 16-bit elements from shared memory (ldmatrix): lane l gives the address
 * of row l % 8 of matrix l / 8, 16-byte aligned, and gets in r[i] elements 2 (l % 4) and
 * 2 (l % 4) + 1 of row l / 4 of matrix i.
 */
static __device__ __forceinline__ void ptx_ldmatrix(uint32_t r[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(ptx_shared(row)));
}

/** As ptx_ldmatrix, each matrix transposed. */
static __device__ __forceinline__ void ptx_ldmatrix_trans(uint32_t r[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(ptx_shared(row)));
}

/** 16 bytes of shared memory, loaded anew at each call. */
static __device__ __forceinline__ void ptx_load_shared(uint32_t r[4], const void *pointer) {
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(ptx_shared(pointer)));
}

/** Shared address of 16 bytes: a multiple of 16, in a way that the compiler does not know. */
static __device__ __forceinline__ uint32_t ptx_opaque(const void *pointer) {
    uint32_t address = ptx_shared(pointer);
    asm volatile("" : "+r"(address));
    return address;
}

/** The same number, in a way that the compiler does not know: what follows from it is worked out
 * where it is used, and takes no register before. */
static __device__ __forceinline__ uint32_t ptx_anew(uint32_t value) {
    asm volatile("" : "+r"(value));
    return value;
}

/**
 * c += a b for a [16,16], b [16,8] of bf16 and c [16,8] of f32 (mma m16n8k16, fragments as the
 * PTX ISA lays them out).
 */
static __device__ __forceinline__ void ptx_mma(float c[4], const uint32_t a[4], uint32_t b0,
                                               uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/** 2^x within 2 ulp (ex2.approx, denormals flushed): exact for 0 and -inf. */
static __device__ __forceinline__ float ptx_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/** Two floats rounded to nearest bf16: low in bits 0 to 15, high above. */
static __device__ __forceinline__ uint32_t ptx_pack_bf16(float low, float high) {
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

/** Initialises a barrier object in shared memory for a number of arrivals a phase. */
static __device__ __forceinline__ void ptx_mbarrier_init(uint64_t *barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(ptx_shared(barrier)), "r"(arrivals)
                 : "memory");
}

/** Makes mbarrier_init and earlier generic stores to shared memory visible to bulk copies. */
static __device__ __forceinline__ void ptx_fence_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/** Arrives; releases this thread's earlier accesses. */
static __device__ __forceinline__ void ptx_mbarrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(ptx_shared(barrier)) : "memory");
}

/** Arrives, and makes the phase wait for so many bytes of bulk copies as well. */
static __device__ __forceinline__ void ptx_mbarrier_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(ptx_shared(barrier)),
                 "r"(bytes)
                 : "memory");
}

/** Whether the phase of this parity is complete; acquires if it is. */
static __device__ __forceinline__ bool ptx_mbarrier_test(uint64_t *barrier, uint32_t parity) {
    uint32_t done;
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done)
                 : "r"(ptx_shared(barrier)), "r"(parity)
                 : "memory");
    return done != 0;
}

/** Waits until the phase of this parity is complete; acquires. */
static __device__ __forceinline__ void ptx_mbarrier_wait(uint64_t *barrier, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(ptx_shared(barrier)), "r"(parity)
                     : "memory");
    } while (done == 0);
}

/**
 * Copies global to shared memory in the background (cp.async.bulk): 16-byte aligned both, bytes a
 * multiple of 16. The data is there once the phase of the barrier that it counts into is complete.
 */
static __device__ __forceinline__ void ptx_bulk_load(void *target, const void *source,
                                                     uint32_t bytes, uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(ptx_shared(target)),
                 "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(ptx_shared(barrier))
                 : "memory");
}

/**
 * Asks for a word of global memory, so that it is in the L1 cache when it is loaded: a copy to a
 * word of shared memory (cp.async) that nobody reads, which holds neither the warp nor a register.
 */
static __device__ __forceinline__ void ptx_ask(uint32_t *unread, const void *pointer) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(ptx_shared(unread)),
                 "l"(__cvta_generic_to_global(pointer))
                 : "memory");
}

/** Barrier of some warps of the block (bar.sync): number 1 to 15, how many threads take part. */
static __device__ __forceinline__ void ptx_named_barrier(uint32_t number, uint32_t threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/** As ptx_named_barrier; whether any thread's predicate holds (barrier.red.or). */
static __device__ __forceinline__ bool ptx_named_barrier_or(uint32_t number, uint32_t threads,
                                                            bool predicate) {
    uint32_t any;
    asm volatile("{\n\t.reg .pred p, q;\n\t"
                 "setp.ne.u32 p, %3, 0;\n\t"
                 "barrier.cta.red.or.pred q, %1, %2, p;\n\t"
                 "selp.u32 %0, 1, 0, q;\n\t}"
                 : "=r"(any)
                 : "r"(number), "r"(threads), "r"((uint32_t)predicate)
                 : "memory");
    return any != 0;
}

/**
 * Gives this warp more, or fewer, registers a thread (setmaxnreg): by all warps of a group of four,
 * a multiple of 8. Without it a kernel's threads all have the same number.
 */
template <int registers> static __device__ __forceinline__ void ptx_more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/** See ptx_more_registers. */
template <int registers> static __device__ __forceinline__ void ptx_fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

/**
 * Ends a basic block: a branch to the end of the thread that is never taken. The compiler moves no
 * instruction across it, where it would sink loads to their uses otherwise.
 *
 * @param never false, in a way that the compiler does not know, and not from an earlier call
 */
static __device__ __forceinline__ void ptx_keep_order(bool never) {
    if (never) {
        asm volatile("exit;");
    }
}

/** Lets the next kernel of the stream start (griddepcontrol), if it was launched to do so. */
static __device__ __forceinline__ void ptx_launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/** Waits until the kernel before has ended and its stores are visible. */
static __device__ __forceinline__ void ptx_grid_wait() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

#else
#include "simt_ptx.h"
#endif

#endif
