// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * malloc and its kin, and pthread_create, wrapped by the linker (--wrap) so that a chosen call
 * fails. For programs that link failing_heap.o with the flags $wrap_heap.
 */
#ifndef TESTS_FAILING_HEAP_H
#define TESTS_FAILING_HEAP_H

#include <stdint.h>

#define FAILING_HEAP_MAX_LIVE 256 /**< Allocations alive at once that are counted. */

/** What the wrappers do and have seen. Not for several threads. */
struct failing_heap {
    int armed;      /**< 0: allocations are passed on and not looked at. */
    long fail_from; /**< First allocation that fails, counted from 1 since it was armed. */
    long fail_to;   /**< Last one. */
    long count;     /**< Allocations while armed, failed ones included. */
    int failed;     /**< How many failed. */
    int live;       /**< Allocations made while armed and not freed. */
    void *pointers[FAILING_HEAP_MAX_LIVE]; /**< They. */
};

extern struct failing_heap failing_heap; /**< The one heap. */

extern uint32_t refused_threads; /**< Bit i: the i-th thread since asked_threads was 0 fails. */
extern int asked_threads;        /**< Calls of pthread_create. */

#endif
