// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulator's runtime: control and reports for tests, services for simt.h, and the seams
 * between its own files. C and C++.
 *
 * One block runs at a time, one fibre a thread. A fibre runs until it has to wait (barrier, warp
 * collective, mbarrier) or ends; then the next ready one continues. When none is ready, a bulk copy
 * lands, or threads that were told that a phase is not complete go on (simt_idle.c). If that is no
 * help and some still wait, what they wait for can never come: the launch ends with a report. A
 * kernel that spins on memory until another thread writes it hangs.
 */
#ifndef SIMT_RUNTIME_H
#define SIMT_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime.h"
#include "simt_fiber.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @name Control and reports, for tests */
/**@{*/

/** What a detector found. */
enum simt_code {
    SIMT_OK = 0,             /**< nothing */
    SIMT_BAD_LAUNCH,         /**< impossible grid, block, shared size or stream; nothing ran */
    SIMT_BARRIER_DIVERGENCE, /**< a block barrier that not every thread reaches */
    SIMT_WARP_DIVERGENCE,    /**< a warp collective that not every lane of its mask reaches */
    SIMT_BAD_ARGUMENT,       /**< mask without the caller, absent lane, or bad shuffle width */
    SIMT_INACTIVE_LANE,      /**< shuffle from a lane outside the mask */
    SIMT_SHARED_OVERRUN,     /**< bytes around a shared array were overwritten */
    SIMT_SHARED_LIMIT,       /**< static and dynamic shared memory together are too large */
    SIMT_MISALIGNED,         /**< vector access at an address that is no multiple of its size */
    SIMT_NOT_SHARED,         /**< operand that must lie in one shared array and does not */
    SIMT_BAD_BARRIER,        /**< mbarrier not initialised, twice, overwritten, or overrun */
    SIMT_BAD_COPY,           /**< bulk copy that meets another, a store, or the end of the block */
    SIMT_ENDLESS_WAIT,       /**< wait at an mbarrier or named barrier that nothing can end */
    SIMT_STACK_OVERFLOW,     /**< a thread used more than SIMT_STACK_BYTES */
    SIMT_OUT_OF_MEMORY       /**< the host has no memory for stacks or shared memory */
};

/** The first error of a launch. */
struct simt_report {
    enum simt_code code; /**< SIMT_OK if the launch was right */
    uint3 block;         /**< blockIdx of the thread that saw it */
    uint3 thread;        /**< threadIdx of that thread */
    char kernel[96];     /**< the kernel as written in KDTR_LAUNCH */
    char text[256];      /**< a sentence with file and line where they are known */
};

/**
 * Report of the latest launch in this process.
 * @return valid and unchanged until the next launch
 */
const struct simt_report *simt_last_report(void);

/**
 * Chooses the order in which blocks and threads run. Same seed, same order.
 * @param seed 0 (the start value) is the natural order; any other value shuffles
 */
void simt_set_seed(uint64_t seed);

/**
 * Number of devices.
 * @param count 1 is the start value, or 0 if SIMT_NO_DEVICE is in the environment; 0 emulates a
 *              machine without a GPU
 */
void simt_set_device_count(int count);

/**
 * Number of SMs that the device reports.
 * @param count at least 1; 188 is the start value
 */
void simt_set_sm_count(int count);

/**
 * Lets the next kernels that cudaFuncGetAttributes() is asked about be unknown to the device, as if
 * there were no machine code for it.
 * @param count how many; 0 is the start value
 * @param error what it then returns
 */
void simt_fail_functions(int count, cudaError_t error);

/**
 * Lets a row of an mma depend on its neighbour: the sums of a row whose neighbour has a NaN are off
 * in the last bit.
 * @param leak whether it does; the start value is whether SIMT_LEAK_ROWS is in the environment
 */
void simt_leak_rows(bool leak);

/** Faults of an mma, each of which exact mode must find: some sums are off in the last bit. */
enum simt_mma_fault {
    SIMT_MMA_RIGHT,         /**< None. */
    SIMT_MMA_ZERO_ROWS,     /**< Of a row of zeros, in a column with a large number. */
    SIMT_MMA_ZERO_ELEMENTS, /**< Of a row that is 0 somewhere, where the column has one, not all. */
    SIMT_MMA_COLUMNS,       /**< Of a column whose neighbour has a NaN. */
    SIMT_MMA_PLACES         /**< Of the fifth row, whatever it holds. */
};

/** Lets an mma have a fault from now on. @param fault which */
void simt_set_mma_fault(enum simt_mma_fault fault);

/**
 * Injects allocation failures.
 * @param count this many more cudaMalloc calls may succeed, then all fail; negative: no failures
 */
void simt_fail_malloc_after(int count);

/**
 * Device memory in use.
 * @return bytes allocated and not freed
 */
size_t simt_live_bytes(void);
/**@}*/

/** @name Services for simt.h */
/**@{*/

/** Most threads of a block, lanes of a warp, and warps of a block. */
enum { SIMT_MAX_THREADS = 1024, SIMT_LANES = 32, SIMT_MAX_WARPS = 32 };

/** 32-bit operand registers a lane can carry into a warp collective: mma.m16n8k16 needs 14. */
enum { SIMT_OPERANDS = 16 };

struct simt_warp;

/** A warp collective: what happens to the operands once all lanes are there. */
struct simt_warp_op {
    const char *name; /**< for messages */

    /** Runs once, for all lanes of the mask: reads and replaces warp->operand. */
    void (*combine)(struct simt_warp *warp, uint32_t mask);
};

/** One warp collective that some lanes have reached. Lanes meet by mask. */
struct simt_meeting {
    uint32_t mask;                 /**< the lanes that must come */
    uint32_t arrived;              /**< the lanes that have come */
    const struct simt_warp_op *op; /**< operation of the first to come */
    const char *file;              /**< where the first to come is */
    int line;                      /**< where the first to come is */
};

/** A warp: registers on their way between lanes, and meetings under way. */
struct simt_warp {
    uint32_t operand[SIMT_OPERANDS][SIMT_LANES]; /**< a lane writes and reads its own column */
    uint32_t number;                             /**< warp in block */
    uint32_t meetings;                           /**< meetings in use; at most one a lane */
    struct simt_meeting meeting[SIMT_LANES];     /**< under way */
};

/** What a thread is doing. */
enum simt_state {
    SIMT_RUNNING,       /**< runs or is ready */
    SIMT_AT_BARRIER,    /**< __syncthreads() */
    SIMT_AT_COLLECTIVE, /**< waits for lanes */
    SIMT_AT_NAMED,      /**< named barrier */
    SIMT_AT_MBARRIER,   /**< phase of an mbarrier */
    SIMT_POLLING,       /**< was told that a phase is not complete, and lets others run */
    SIMT_EXITED         /**< has returned from the kernel */
};

/** A CUDA thread. What a switch touches is in its first cache line. */
struct __attribute__((aligned(64))) simt_thread {
    uint3 index;             /**< threadIdx */
    uint32_t number;         /**< linear index in the block */
    uint32_t lane;           /**< number % 32 */
    enum simt_state state;   /**< what it is doing; ready threads count as running */
    uint32_t mask;           /**< lanes, parity or number that it waits for */
    int line;                /**< where it waits */
    const char *file;        /**< where it waits */
    struct simt_warp *warp;  /**< its warp */
    struct simt_fiber fiber; /**< its call stack */
    const void *object;      /**< named barrier or mbarrier that it waits for */
};

/** Geometry of the launch that runs, for blockIdx and its like. */
struct simt_geometry {
    uint3 block_index; /**< blockIdx */
    uint3 block;       /**< blockDim */
    uint3 grid;        /**< gridDim */
    uint32_t threads;  /**< threads of a block */
};

extern struct simt_thread *simt_self;      /**< the running thread, NULL on the host */
extern struct simt_geometry simt_geometry; /**< of the launch that runs */

/** What KDTR_LAUNCH passes. */
struct simt_launch {
    const char *name;     /**< for reports */
    const void *function; /**< the kernel's address, for its attributes */
    dim3 grid;            /**< blocks */
    dim3 block;           /**< threads */
    size_t dynamic_bytes; /**< dynamic shared memory */
    cudaStream_t stream;  /**< checked only */
    void (*body)(void *); /**< runs one thread of the kernel */
    void *argument;       /**< of body */
};

/**
 * Runs a grid to its end.
 * @param launch the kernel and its geometry
 * @return cudaSuccess; cudaErrorLaunchFailure if a detector fired; another error if nothing ran
 */
cudaError_t simt_run_grid(const struct simt_launch *launch);

/**
 * __syncthreads() and its like: waits for all threads of the block.
 * @param predicate nonzero counts
 * @param file      of the call
 * @param line      of the call
 * @return number of threads whose predicate was nonzero
 */
uint32_t simt_barrier(int predicate, const char *file, int line);

/**
 * Waits for the lanes of a mask and combines their operands, which the caller has put into its
 * column of warp->operand and finds replaced.
 * @param op   the operation
 * @param mask lanes that take part; the caller is one of them
 * @param file of the call
 * @param line of the call
 */
void simt_meet(const struct simt_warp_op *op, uint32_t mask, const char *file, int line);

extern const struct simt_warp_op simt_op_sync;      /**< no operands */
extern const struct simt_warp_op simt_op_shuffle32; /**< operand 0: value; 2: source lane */
extern const struct simt_warp_op simt_op_shuffle64; /**< operands 0, 1: value; 2: source lane */
extern const struct simt_warp_op simt_op_ballot;    /**< operand 0: predicate in, ballot out */

/**
 * The block's static shared array of one declaration.
 * @param key   address that is unique to the declaration
 * @param name  for reports
 * @param bytes size
 * @param align alignment, at most 128
 * @return the same memory for all threads of the block
 */
void *simt_shared_static(const void *key, const char *name, size_t bytes, size_t align);

/**
 * The block's dynamic shared memory.
 * @return 128-byte aligned; has the size that the launch asked for
 */
void *simt_shared_dynamic(void);

/**
 * The shared array that holds some bytes.
 * @param pointer first byte
 * @param bytes   length
 * @param offset  gets the place in the array
 * @return name of the array; NULL if no array holds all of them
 */
const char *simt_shared_name(const void *pointer, size_t bytes, size_t *offset);

/**
 * Reports an access whose address is no multiple of its size; returns if it is one.
 * @param pointer address
 * @param bytes   size of the access, a power of two
 * @param file    of the access
 * @param line    of the access
 */
void simt_check_access(const void *pointer, size_t bytes, const char *file, int line);

/**
 * Records an error. In a kernel it abandons the launch and does not return; on the host it returns.
 * (Not declared noreturn: that would make ASan unpoison the whole stack at every call.)
 * @param code   what was found
 * @param format of the text, as for printf
 */
void simt_fail(enum simt_code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/**@}*/

/** @name Between the runtime's own files */
/**@{*/

/**
 * Clears the report.
 * @param kernel name for the report
 */
void simt_report_begin(const char *kernel);

/**
 * Draws the order of threads of the launch to come.
 * @param seed    as for simt_set_seed()
 * @param threads threads of a block
 */
void simt_schedule_begin(uint64_t seed, uint32_t threads);

/**
 * A number of the sequence that the seed started.
 * @return uniform 64 bits
 */
uint64_t simt_random(void);

/**
 * Suspends the running thread until simt_wake().
 * @param state  why
 * @param object what it waits for
 * @param detail parity or number, for reports
 * @param file   of the call
 * @param line   of the call
 */
void simt_wait(enum simt_state state, const void *object, uint32_t detail, const char *file,
               int line);

/**
 * Makes threads ready.
 * @param state  in which they are
 * @param object that they wait for; NULL for any
 * @return how many there were
 */
uint32_t simt_wake(enum simt_state state, const void *object);

/**
 * A thread of the block.
 * @param number linear index, below SIMT_MAX_THREADS
 * @return the thread
 */
struct simt_thread *simt_thread_at(uint32_t number);

/**
 * Names the thread of a report to come from the host.
 * @param thread which
 */
void simt_blame(const struct simt_thread *thread);

/**
 * No thread is ready: lets copies land and polling threads go on.
 * @return false if there is nothing to hope for
 */
bool simt_idle(void);

/** All threads that live wait in vain: reports the most telling wait. */
void simt_report_deadlock(void);

/**
 * Fault handler for simt_guard_begin(): reports the running thread's stack overflow.
 * @param address that could not be accessed; returns if it is not in the thread's guard
 */
void simt_report_overflow(const void *address);

/**
 * Runs one block; the geometry has been set, faults are watched.
 * @param launch body and argument
 * @return false if a detector fired; the report is written
 */
bool simt_run_block(const struct simt_launch *launch);

/** Memory of the device: plausible, and never all used. */
#define SIMT_TOTAL_BYTES ((size_t)96 << 30)

/**
 * Whether a stream can be used.
 * @param stream any value that was a stream once, or NULL
 * @return true for NULL and live streams
 */
bool simt_stream_valid(cudaStream_t stream);

/**
 * cudaErrorNoDevice or cudaSuccess.
 * @return whether there is a device
 */
cudaError_t simt_device_error(void);

/**
 * The checks that every call has in common.
 * @param valid whether the arguments are right
 * @param error for wrong arguments
 * @return cudaSuccess, cudaErrorNoDevice or error; remembered
 */
cudaError_t simt_check(bool valid, cudaError_t error);

/**
 * Remembers an error for cudaGetLastError().
 * @param error any value
 * @return the same
 */
cudaError_t simt_remember(cudaError_t error);
/**@}*/

#ifdef __cplusplus
} // extern "C"
#endif

#endif
