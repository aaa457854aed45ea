// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The device side of the emulator: what a kernel can name when a host compiler compiles it. C++17.
 *
 * Included by kernels/device.cuh in place of CUDA's headers. Keywords, built-in variables,
 * barriers, warp collectives, shared memory, aligned access, and the launch. `__shared__` is left
 * undefined on purpose: a variable of each thread would look right; use KDTR_SHARED_ARRAY.
 *
 * Collectives take the caller's file and line as default arguments: the identity of the call, by
 * which the emulator sees threads that meet in different places, and what its reports print.
 */
#ifndef SIMT_SIMT_H
#define SIMT_SIMT_H

#include "cuda_runtime.h"
#include "simt_math.h"
#include "simt_runtime.h"

/** @name Keywords */
/**@{*/
#define __global__                                                    /**< none needed */
#define __device__                                                    /**< none needed */
#define __host__                                                      /**< none needed */
#define __forceinline__ inline __attribute__((always_inline, unused)) /**< as CUDA's */
#define __noinline__                                                  /**< not followed */
#define __launch_bounds__(...)                                        /**< not checked */
#define __align__(bytes) __attribute__((aligned(bytes)))              /**< as CUDA's */
/**@}*/

/** @name Built-in variables */
/**@{*/
#define threadIdx (static_cast<const uint3 &>(simt_self->index))         /**< place in block */
#define blockIdx (static_cast<const uint3 &>(simt_geometry.block_index)) /**< place in grid */
#define blockDim (static_cast<const uint3 &>(simt_geometry.block))       /**< threads */
#define gridDim (static_cast<const uint3 &>(simt_geometry.grid))         /**< blocks */
static constexpr int warpSize = SIMT_LANES;                              /**< 32 */
/**@}*/

/** Declares the two parameters by which a collective knows where it was called. */
#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/** Waits for all threads of the block. */
static inline void __syncthreads(SIMT_SITE) {
    simt_barrier(0, file, line);
}

/**
 * Waits for all threads of the block.
 * @param predicate of this thread
 * @return number of threads whose predicate is nonzero
 */
static inline int __syncthreads_count(int predicate, SIMT_SITE) {
    return (int)simt_barrier(predicate, file, line);
}

/**
 * Waits for all threads of the block.
 * @param predicate of this thread
 * @return nonzero if any predicate is nonzero
 */
static inline int __syncthreads_or(int predicate, SIMT_SITE) {
    return simt_barrier(predicate, file, line) != 0;
}

/**
 * Waits for all threads of the block.
 * @param predicate of this thread
 * @return nonzero if all predicates are nonzero
 */
static inline int __syncthreads_and(int predicate, SIMT_SITE) {
    return simt_barrier(predicate, file, line) == simt_geometry.threads;
}

/** Orders memory accesses: threads never run at the same time, so nothing to do. */
static inline void __threadfence(void) {}

/**
 * Waits for lanes of the warp.
 * @param mask lanes that take part, the caller among them
 */
static inline void __syncwarp(unsigned mask = 0xffffffffU, SIMT_SITE) {
    simt_meet(&simt_op_sync, mask, file, line);
}

/**
 * Votes.
 * @param mask      lanes that take part
 * @param predicate of this lane
 * @return bit of each lane of the mask whose predicate is nonzero
 */
static inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
    struct simt_thread *self = simt_self;
    uint32_t *operand = &self->warp->operand[0][self->lane];
    *operand = predicate != 0;
    simt_meet(&simt_op_ballot, mask, file, line);
    return *operand;
}

/**
 * Votes.
 * @param mask      lanes that take part
 * @param predicate of this lane
 * @return nonzero if any lane's predicate is nonzero
 */
static inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
    return __ballot_sync(mask, predicate, file, line) != 0;
}

/**
 * Votes.
 * @param mask      lanes that take part
 * @param predicate of this lane
 * @return nonzero if every lane's predicate is nonzero
 */
static inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
    return __ballot_sync(mask, predicate, file, line) == mask;
}

/**
 * What all shuffles have in common.
 * @param mask   lanes that take part
 * @param value  of this lane, 32 or 64 bits
 * @param source lane to read
 * @param file   of the call
 * @param line   of the call
 * @return the value of the source lane
 */
template <class T>
static inline T simt_shuffle(unsigned mask, T value, unsigned source, const char *file, int line) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 32 or 64 bits");
    constexpr int words = sizeof(T) / 4;
    struct simt_thread *self = simt_self;
    uint32_t(*operand)[SIMT_LANES] = self->warp->operand;
    uint32_t lane = self->lane;
    uint32_t word[words];
    memcpy(word, &value, sizeof(value));
    for (int i = 0; i < words; i++) {
        operand[i][lane] = word[i];
    }
    operand[2][lane] = source;
    simt_meet(words == 1 ? &simt_op_shuffle32 : &simt_op_shuffle64, mask, file, line);
    for (int i = 0; i < words; i++) {
        word[i] = operand[i][lane];
    }
    memcpy(&value, word, sizeof(value));
    return value;
}

/**
 * Checks the width of a shuffle's segments.
 * @param width lanes
 * @param file  of the call
 * @param line  of the call
 */
static inline void simt_check_width(int width, const char *file, int line) {
    if (width <= 0 || width > SIMT_LANES || (width & (width - 1)) != 0) {
        simt_fail(SIMT_BAD_ARGUMENT, "shuffle of width %d at %s:%d", width, file, line);
    }
}

/**
 * Reads another lane's value.
 * @param mask   lanes that take part
 * @param value  of this lane
 * @param source lane within the segment, modulo width
 * @param width  lanes of a segment, a power of two
 * @return the value of the source lane
 */
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_SITE) {
    simt_check_width(width, file, line);
    unsigned low = (unsigned)width - 1;
    unsigned lane = (simt_self->lane & ~low) | ((unsigned)source & low);
    return simt_shuffle(mask, value, lane, file, line);
}

/**
 * Reads a lower lane's value.
 * @param mask  lanes that take part
 * @param value of this lane
 * @param delta distance
 * @param width lanes of a segment, a power of two
 * @return the value of the lane delta below, or the own one where that leaves the segment
 */
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_SITE) {
    simt_check_width(width, file, line);
    unsigned lane = simt_self->lane;
    bool inside = (lane & ((unsigned)width - 1)) >= delta;
    return simt_shuffle(mask, value, inside ? lane - delta : lane, file, line);
}

/**
 * Reads a higher lane's value.
 * @param mask  lanes that take part
 * @param value of this lane
 * @param delta distance
 * @param width lanes of a segment, a power of two
 * @return the value of the lane delta above, or the own one where that leaves the segment
 */
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                                 SIMT_SITE) {
    simt_check_width(width, file, line);
    unsigned lane = simt_self->lane;
    unsigned above = (unsigned)width - 1 - (lane & ((unsigned)width - 1));
    return simt_shuffle(mask, value, delta <= above ? lane + delta : lane, file, line);
}

/**
 * Reads the value of the lane whose number differs in some bits.
 * @param mask      lanes that take part
 * @param value     of this lane
 * @param lane_mask the bits that differ
 * @param width     lanes of a segment, a power of two
 * @return the other lane's value, or the own one where that lies in a later segment
 */
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_SITE) {
    simt_check_width(width, file, line);
    unsigned lane = simt_self->lane;
    unsigned source = lane ^ (unsigned)lane_mask;
    unsigned last = lane | ((unsigned)width - 1);
    return simt_shuffle(mask, value, source <= last ? source : lane, file, line);
}

/**
 * Declares a static shared array in a kernel. Bounds are the type's, so that UBSan sees them.
 * Holds NaN bytes at the start of each block.
 */
#define KDTR_SHARED_ARRAY(type, name, count)           \
    static const char simt_key_##name = 0;             \
    type(&name)[count] = *static_cast<type(*)[count]>( \
        simt_shared_static(&simt_key_##name, #name, sizeof(type) * (count), alignof(type)))

/** Declares a pointer to the dynamic shared memory in a kernel, 128-byte aligned. NaN bytes at
 * first. */
#define KDTR_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(simt_shared_dynamic())

/**
 * Reports a misaligned access; usable in kernels and on the host.
 * @param pointer address
 * @param bytes   size, a power of two
 */
static inline void simt_check_aligned(const void *pointer, size_t bytes, SIMT_SITE) {
    simt_check_access(pointer, bytes, file, line);
}

/**
 * Vector load that must be aligned to its size.
 * @param pointer device or shared memory
 * @return the value there
 */
template <class T> static inline T simt_load_aligned(const void *pointer, SIMT_SITE) {
    simt_check_access(pointer, sizeof(T), file, line);
    T value;
    memcpy(&value, pointer, sizeof(T));
    return value;
}

/**
 * Vector store that must be aligned to its size.
 * @param pointer device or shared memory
 * @param value   stored there
 */
template <class T> static inline void simt_store_aligned(void *pointer, T value, SIMT_SITE) {
    simt_check_access(pointer, sizeof(T), file, line);
    memcpy(pointer, &value, sizeof(T));
}

/** Loads 16 aligned bytes as a uint4. */
#define KDTR_LOAD16(pointer) simt_load_aligned<uint4>(pointer)

/** Stores a uint4 to 16 aligned bytes. */
#define KDTR_STORE16(pointer, value) simt_store_aligned<uint4>(pointer, value)

/**
 * Runs a callable object.
 * @param body the object
 */
template <class F> static inline void simt_call(void *body) {
    (*static_cast<F *>(body))();
}

/**
 * Launches a kernel; see KDTR_LAUNCH.
 * @param name   for reports
 * @param kernel the kernel
 * @param grid   blocks
 * @param block  threads
 * @param bytes  dynamic shared memory
 * @param stream checked only
 * @param values arguments; each thread gets its own copies
 * @return cudaSuccess, cudaErrorLaunchFailure (see simt_last_report()), or why nothing ran
 */
template <class... P, class... A>
static inline cudaError_t simt_launch_kernel(const char *name, void (*kernel)(P...), dim3 grid,
                                             dim3 block, size_t bytes, cudaStream_t stream,
                                             A... values) {
    auto body = [&]() { kernel(values...); };
    const struct simt_launch launch = {name,   (const void *)kernel,       grid, block, bytes,
                                       stream, &simt_call<decltype(body)>, &body};
    return simt_run_grid(&launch);
}

/** KDTR_LAUNCH(kernel, grid, block, dynamic_shared_bytes, stream, arguments...): a cudaError_t. */
#define KDTR_LAUNCH(kernel, ...) simt_launch_kernel(#kernel, kernel, __VA_ARGS__)

/** The same: a kernel starts when the one before it has ended. */
#define KDTR_LAUNCH_DEPENDENT(kernel, ...) simt_launch_kernel(#kernel, kernel, __VA_ARGS__)

#endif
