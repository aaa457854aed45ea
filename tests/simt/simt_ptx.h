// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulator's twins of kernels/ptx.cuh: the same functions, with the instructions' rules of
 * visibility. C++.
 *
 * ptx_ldmatrix, ptx_ldmatrix_trans, ptx_mma
 *     collectives of all 32 lanes; rows are aligned and in shared memory. mma adds the float32 sum
 *     of 16 products, in ascending order of k, to c; hardware rounds in another way.
 * ptx_lane, ptx_thread, ptx_blocks
 *     each thread's own.
 * ptx_load_shared, ptx_opaque, ptx_anew, ptx_ask
 *     each thread's own; aligned and in shared memory.
 * ptx_exp2, ptx_pack_bf16
 *     each thread's own; NaNs are those that hardware makes.
 * ptx_mbarrier_init, _arrive, _expect, _test, _wait
 *     phases complete as on hardware. Reports: no object, an object overwritten, initialised twice,
 *     arrivals beyond the count, and waits that nothing can end.
 * ptx_bulk_load, ptx_fence_async
 *     the target is NaN until the barrier's phase completes; the seed draws when a copy lands.
 *     Reports: alignment, ranges, overlaps, stores to the target or the source under way, a copy
 *     that outlives the block, a barrier that no fence has shown to copies.
 * ptx_named_barrier, ptx_named_barrier_or
 *     whole warps; reports different counts under one number, and threads that never come.
 * ptx_more_registers, ptx_fewer_registers
 *     a collective of all 32 lanes; that groups of four warps agree is not checked.
 * ptx_keep_order
 *     nothing: the compiler's order is not looked at.
 * ptx_launch_dependents, ptx_grid_wait
 *     nothing: kernels run one after another.
 *
 * Not seen: a generic store to shared memory that no ptx_fence_async separates from a later copy
 * to the same place; a read of memory that ptx_grid_wait should have come before.
 */
#ifndef SIMT_SIMT_PTX_H
#define SIMT_SIMT_PTX_H

#include <math.h>

#include "simt.h"
#include "simt_async.h"

/** Asks. @return number of this lane */
static inline int32_t ptx_lane() {
    return (int32_t)simt_self->lane;
}

/** @return number of this thread of the block */
static inline int32_t ptx_thread() {
    return (int32_t)threadIdx.x;
}

/** @return blocks of the grid */
static inline int32_t ptx_blocks() {
    return (int32_t)gridDim.x;
}

/**
 * What both forms of ldmatrix have in common.
 * @param op   which
 * @param r    [4] output
 * @param row  of this lane
 * @param file of the call
 * @param line of the call
 */
static inline void simt_ldmatrix(const struct simt_warp_op *op, uint32_t r[4], const void *row,
                                 const char *file, int line) {
    struct simt_thread *self = simt_self;
    uint32_t(*operand)[SIMT_LANES] = self->warp->operand;
    uint32_t lane = self->lane;
    uint32_t word[4];
    simt_check_shared(op->name, row, sizeof(word), sizeof(word), file, line);
    memcpy(word, row, sizeof(word)); // here and not in the runtime: sanitizers see it
    for (int i = 0; i < 4; i++) {
        operand[i][lane] = word[i];
    }
    simt_meet(op, 0xffffffffU, file, line);
    for (int i = 0; i < 4; i++) {
        r[i] = operand[i][lane];
    }
}

/** Loads four matrices. @param r [4] output @param row of this lane */
static inline void ptx_ldmatrix(uint32_t r[4], const void *row, SIMT_SITE) {
    simt_ldmatrix(&simt_op_ldmatrix, r, row, file, line);
}

/** Loads four matrices, each transposed. @param r [4] output @param row of this lane */
static inline void ptx_ldmatrix_trans(uint32_t r[4], const void *row, SIMT_SITE) {
    simt_ldmatrix(&simt_op_ldmatrix_trans, r, row, file, line);
}

/** Loads 16 bytes. @param r [4] output @param pointer aligned, in shared memory */
static inline void ptx_load_shared(uint32_t r[4], const void *pointer, SIMT_SITE) {
    simt_check_shared("ld.shared", pointer, 16, 16, file, line);
    memcpy(r, pointer, 16);
}

/** Hides. @param pointer to 16 bytes @return a multiple of 16 */
static inline uint32_t ptx_opaque(const void *pointer, SIMT_SITE) {
    simt_check_shared("cvta", pointer, 16, 16, file, line);
    return (uint32_t)(uintptr_t)pointer;
}

/** The same. @param value a number @return it */
static inline uint32_t ptx_anew(uint32_t value) {
    return value;
}

/** Checks the addresses; nobody reads what would be copied. @param unread 4 bytes of shared memory
 * @param pointer to 4 bytes of global memory */
static inline void ptx_ask(const uint32_t *unread, const void *pointer, SIMT_SITE) {
    simt_check_shared("cp.async", unread, 4, 4, file, line);
    (void)*(const volatile uint32_t *)pointer;
}

/** c += a b. @param c [4] fragment @param a [4] fragment @param b0 low rows @param b1 high rows */
static inline void ptx_mma(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1, SIMT_SITE) {
    struct simt_thread *self = simt_self;
    uint32_t(*operand)[SIMT_LANES] = self->warp->operand;
    uint32_t lane = self->lane;
    for (int i = 0; i < 4; i++) {
        operand[i][lane] = __float_as_uint(c[i]);
        operand[4 + i][lane] = a[i];
    }
    operand[8][lane] = b0;
    operand[9][lane] = b1;
    simt_meet(&simt_op_mma, 0xffffffffU, file, line);
    for (int i = 0; i < 4; i++) {
        c[i] = __uint_as_float(operand[i][lane]);
    }
}

/** 2^x, denormals flushed. @param x exponent @return within 2 ulp; exact at 0 and infinities */
static inline float ptx_exp2(float x) {
    if (x != x) {
        return __uint_as_float(0x7fffffffU);
    }
    if (x < -126.0F) {
        return 0.0F;
    }
    return exp2f(x); // 1 for a denormal x
}

/** To bf16. @param x value @return nearest bf16, ties to even; 0x7fff for NaN */
static inline uint32_t simt_bf16(float x) {
    uint32_t bits = __float_as_uint(x);
    return x != x ? 0x7fffU : (bits + 0x7fffU + (bits >> 16 & 1)) >> 16;
}

/** Two bf16. @param low bits 0 to 15 @param high bits 16 to 31 @return packed */
static inline uint32_t ptx_pack_bf16(float low, float high) {
    return simt_bf16(low) | simt_bf16(high) << 16;
}

/** Makes a barrier. @param barrier in shared memory @param arrivals of a phase */
static inline void ptx_mbarrier_init(uint64_t *barrier, uint32_t arrivals, SIMT_SITE) {
    simt_mbarrier_init(barrier, arrivals, file, line);
}

/** Shows this thread's barriers to copies. */
static inline void ptx_fence_async() {
    simt_fence_async();
}

/** Arrives. @param barrier object */
static inline void ptx_mbarrier_arrive(uint64_t *barrier, SIMT_SITE) {
    simt_mbarrier_arrive(barrier, 0, file, line);
}

/** Expects bytes and arrives. @param barrier object @param bytes of copies */
static inline void ptx_mbarrier_expect(uint64_t *barrier, uint32_t bytes, SIMT_SITE) {
    simt_mbarrier_arrive(barrier, bytes, file, line);
}

/** Asks. @param barrier object @param parity of a phase @return whether it is complete */
static inline bool ptx_mbarrier_test(uint64_t *barrier, uint32_t parity, SIMT_SITE) {
    return simt_mbarrier_test(barrier, parity, file, line);
}

/** Waits. @param barrier object @param parity of the phase */
static inline void ptx_mbarrier_wait(uint64_t *barrier, uint32_t parity, SIMT_SITE) {
    simt_mbarrier_wait(barrier, parity, file, line);
}

/** Starts a copy. @param target shared @param source global @param bytes length
 * @param barrier object that they count into */
static inline void ptx_bulk_load(void *target, const void *source, uint32_t bytes,
                                 uint64_t *barrier, SIMT_SITE) {
    simt_bulk_load(target, source, bytes, barrier, file, line);
}

/** Waits for some warps. @param number 1 to 15 @param threads of these warps */
static inline void ptx_named_barrier(uint32_t number, uint32_t threads, SIMT_SITE) {
    simt_named_barrier(number, threads, false, file, line);
}

/** Waits for some warps. @param number 1 to 15 @param threads of these warps
 * @param predicate of this thread @return whether one of them holds */
static inline bool ptx_named_barrier_or(uint32_t number, uint32_t threads, bool predicate,
                                        SIMT_SITE) {
    return simt_named_barrier(number, threads, predicate, file, line);
}

/** A collective of the warp and nothing else: a thread here has what it needs.
 * @tparam registers of a thread, a multiple of 8 from 24 to 256 */
template <int registers> static inline void ptx_more_registers(SIMT_SITE) {
    static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256, "as setmaxnreg");
    simt_meet(&simt_op_registers, 0xffffffffU, file, line);
}

/** As ptx_more_registers. @tparam registers of a thread */
template <int registers> static inline void ptx_fewer_registers(SIMT_SITE) {
    ptx_more_registers<registers>(file, line);
}

/** Nothing: it orders instructions. @param never false */
static inline void ptx_keep_order(bool never) {
    (void)never;
}

/** Nothing. */
static inline void ptx_launch_dependents() {}

/** Nothing: the kernel before has ended. */
static inline void ptx_grid_wait() {}

#endif
