// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Builds the problem that a record describes, each array in memory of exactly its size, so that
 * AddressSanitizer sees a read past its end. Whatever a run must not use is poisoned: unused
 * slots, gaps of strides and spare query rows are NaN, unused list entries are absurd slots,
 * mask bits at and beyond Q are random.
 */
#ifndef TESTS_MAKE_PROBLEM_H
#define TESTS_MAKE_PROBLEM_H

#include <stddef.h>

#include "attention.h"
#include "make_values.h"

/** Most arrays a problem has. */
#define TEST_MAX_BUFFERS 16

/** An array of a problem. */
struct test_buffer {
    void *data;   /**< Its memory. */
    size_t bytes; /**< Its size. */
};

/** A problem. The pointers of the call point into the buffers; outputs are NULL. */
struct test_problem {
    struct test_case spec;     /**< The record, defaults filled in. */
    struct ref_attention call; /**< The call; o_stride is set. */
    int64_t num_slots;         /**< Slots of the pool. */
    int64_t slot_shift;        /**< In a run the pool's base lies so many slots before it. */
    int32_t omit_lse;          /**< 1: run with lse NULL. */
    int32_t omit_status;       /**< 1: run with device_status NULL. */
    int32_t *parents;          /**< [R] parents, whatever the mask mode; one of the buffers. */
    int32_t buffer_count;      /**< Number of buffers. */
    struct test_buffer buffers[TEST_MAX_BUFFERS]; /**< All arrays. */
    int32_t borrowed; /**< So many buffers, the first ones, belong to someone else. */
};

/**
 * Builds a problem. Running out of memory ends the program: a test cannot go on.
 *
 * @param record  parameters
 * @param problem filled; test_problem_free releases it
 */
void test_problem_make(const struct test_case *record, struct test_problem *problem);

/** Releases a problem. @param problem a problem; may be zeroed */
void test_problem_free(struct test_problem *problem);

/**
 * Memory that is filled with 0xff and registered with a problem.
 *
 * @param problem its owner
 * @param count   elements
 * @param bytes   bytes of an element
 * @return the memory
 */
void *test_problem_alloc(struct test_problem *problem, int64_t count, int64_t bytes);

/**
 * Writes an element of an int32 or int64 array of a problem.
 *
 * @param array array
 * @param dtype REF_I32 or REF_I64
 * @param index element
 * @param value what to write
 */
void test_put_index(const void *array, int32_t dtype, int64_t index, int64_t value);

/**
 * Memory or the end of the program.
 *
 * @param bytes size
 * @return zeroed memory, released with free
 */
void *test_calloc(size_t bytes);

#endif
