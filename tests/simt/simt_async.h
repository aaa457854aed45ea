// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the emulator keeps of asynchronous work in a block: mbarrier objects, bulk copies in
 * flight, named barriers. Services for simt_ptx.h, and the seams between the files that do it.
 * C and C++.
 *
 * A bulk copy lands at a moment that the seed chooses; with seed 0, when no thread can run on.
 * Landing counts its bytes; the data appears when the phase that they count into completes, until
 * then its target reads as NaN.
 */
#ifndef SIMT_ASYNC_H
#define SIMT_ASYNC_H

#include "simt_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @name Services for simt_ptx.h: each is told the file and line of the call */
/**@{*/

/**
 * mbarrier.init.
 * @param barrier  object in shared memory, none before
 * @param arrivals of a phase
 * @param file     of the call
 * @param line     of the call
 */
void simt_mbarrier_init(uint64_t *barrier, uint32_t arrivals, const char *file, int line);

/**
 * mbarrier.arrive, with expect_tx before it.
 * @param barrier object
 * @param bytes   that the phase waits for as well, or 0
 * @param file    of the call
 * @param line    of the call
 */
void simt_mbarrier_arrive(uint64_t *barrier, uint32_t bytes, const char *file, int line);

/**
 * mbarrier.test_wait.parity. If the answer is no, the other threads run first.
 * @param barrier object
 * @param parity  of the phase
 * @param file    of the call
 * @param line    of the call
 * @return whether the phase is complete
 */
bool simt_mbarrier_test(uint64_t *barrier, uint32_t parity, const char *file, int line);

/**
 * Waits until mbarrier.test_wait.parity would say yes.
 * @param barrier object
 * @param parity  of the phase
 * @param file    of the call
 * @param line    of the call
 */
void simt_mbarrier_wait(uint64_t *barrier, uint32_t parity, const char *file, int line);

/** fence.proxy.async: bulk copies see the barriers that this thread has initialised. */
void simt_fence_async(void);

/**
 * cp.async.bulk from global to shared memory.
 * @param target  in shared memory
 * @param source  in global memory
 * @param bytes   a multiple of 16
 * @param barrier object that the bytes count into
 * @param file    of the call
 * @param line    of the call
 */
void simt_bulk_load(void *target, const void *source, uint32_t bytes, uint64_t *barrier,
                    const char *file, int line);

/**
 * bar.sync, or barrier.red.or, with a number and a count of threads.
 * @param number    1 to 15
 * @param threads   a multiple of 32
 * @param predicate of this thread
 * @param file      of the call
 * @param line      of the call
 * @return whether a thread's predicate holds
 */
bool simt_named_barrier(uint32_t number, uint32_t threads, bool predicate, const char *file,
                        int line);

/**
 * Reports an operand that is not inside one shared array, or misaligned; returns if it is right.
 * @param what    operand, for the report
 * @param pointer address
 * @param bytes   length
 * @param align   alignment, a power of two
 * @param file    of the call
 * @param line    of the call
 */
void simt_check_shared(const char *what, const void *pointer, size_t bytes, size_t align,
                       const char *file, int line);

extern const struct simt_warp_op simt_op_ldmatrix;       /**< operands 0 to 3: row in, r out */
extern const struct simt_warp_op simt_op_ldmatrix_trans; /**< as simt_op_ldmatrix */
extern const struct simt_warp_op simt_op_mma;       /**< operands 0 to 3: c; 4 to 7: a; 8, 9: b */
extern const struct simt_warp_op simt_op_registers; /**< no operands */
/**@}*/

/** @name Between the runtime's own files */
/**@{*/

/** An mbarrier object. */
struct simt_mbarrier {
    uint64_t *word;     /**< where it is */
    uint64_t token;     /**< what the word must hold: any store over it shows */
    uint32_t count;     /**< arrivals of a phase */
    uint32_t pending;   /**< arrivals that the running phase still waits for */
    int64_t bytes;      /**< expected minus landed in the running phase */
    uint32_t phase;     /**< number of the running phase, from 0 */
    uint32_t owner;     /**< thread that initialised it */
    bool fenced;        /**< that thread has then executed simt_fence_async() */
    const char *file;   /**< of the initialisation */
    int line;           /**< of the initialisation */
    uint32_t in_flight; /**< copies that count into it and are not visible yet */
    bool unseen;        /**< data has appeared, and no thread has waited for it */
};

/** Forgets the objects of the block before. */
void simt_mbarrier_begin(void);

/** Ends a block that has not failed: reports copies that no thread has waited for. */
void simt_mbarrier_end(void);

/**
 * The object at an address; reports it if there is none or it was overwritten.
 * @param barrier address
 * @param what    instruction, for the report
 * @param file    of the call
 * @param line    of the call
 * @return never NULL
 */
struct simt_mbarrier *simt_mbarrier_find(uint64_t *barrier, const char *what, const char *file,
                                         int line);

/**
 * An object that overlaps some bytes.
 * @param memory first byte
 * @param bytes  length
 * @return the object, or NULL
 */
const struct simt_mbarrier *simt_mbarrier_within(const void *memory, size_t bytes);

/**
 * complete_tx: bytes have landed.
 * @param barrier object
 * @param bytes   how many
 */
void simt_mbarrier_landed(struct simt_mbarrier *barrier, uint32_t bytes);

/**
 * What a barrier waits for, for a report.
 * @param barrier object
 * @param text    [size] output
 * @param size    bytes of text
 * @return text
 */
const char *simt_mbarrier_describe(const struct simt_mbarrier *barrier, char *text, size_t size);

/**
 * Starts a block without copies. @param shuffled whether landing moments are drawn by the seed
 */
void simt_copy_begin(bool shuffled);

/** Ends a block; reports copies in flight, unless the block has failed already.
 * @param failed whether it has */
void simt_copy_end(bool failed);

/** Time passes: copies that are due land. Called by every instruction on a barrier. */
void simt_copy_tick(void);

/**
 * Lands one copy although it is not due, because no thread can run on.
 * @return false if none is in flight
 */
bool simt_copy_land_one(void);

/**
 * Shows the data of the copies that have landed in the phase that is now complete.
 * @param barrier its object
 */
void simt_copy_reveal(struct simt_mbarrier *barrier);

/**
 * A copy in flight that overlaps some bytes.
 * @param memory first byte
 * @param bytes  length
 * @return whether there is one
 */
bool simt_copy_within(const void *memory, size_t bytes);

/** Starts a block with all named barriers empty. */
void simt_named_begin(void);

/**
 * What a named barrier waits for, for a report.
 * @param object of the waiting thread
 * @param text   [size] output
 * @param size   bytes of text
 * @return text
 */
const char *simt_named_describe(const void *object, char *text, size_t size);

/** Something has happened that a polling thread may have waited for. */
void simt_progress(void);
/**@}*/

#ifdef __cplusplus
} // extern "C"
#endif

#endif
