// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The wrappers. Each failure prints where the call is, as `SITE address`, for
 * tests/scripts/alloc_sites.sh.
 */
#include "failing_heap.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *pointer, size_t size);
void __real_free(void *pointer);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void __wrap_free(void *pointer);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

struct failing_heap failing_heap;
uint32_t refused_threads;
int asked_threads;

/** Start of the program in memory: addresses are printed relative to it. */
extern const char __executable_start[];

static int fails(const void *site) {
    if (!failing_heap.armed) {
        return 0;
    }
    failing_heap.count++;
    if (failing_heap.count < failing_heap.fail_from || failing_heap.count > failing_heap.fail_to) {
        return 0;
    }
    failing_heap.failed++;
    /* The return address is behind the call: one byte less is within it. */
    printf("SITE 0x%llx\n", (unsigned long long)((const char *)site - __executable_start) - 1);
    return 1;
}

static void *keep(void *pointer) {
    if (failing_heap.armed && pointer != NULL && failing_heap.live < FAILING_HEAP_MAX_LIVE) {
        failing_heap.pointers[failing_heap.live++] = pointer;
    }
    return pointer;
}

static void forget(const void *pointer) {
    for (int i = 0; i < failing_heap.live; i++) {
        if (failing_heap.pointers[i] == pointer) {
            failing_heap.pointers[i] = failing_heap.pointers[--failing_heap.live];
            return;
        }
    }
}

void *__wrap_malloc(size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : keep(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : keep(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return fails(__builtin_return_address(0)) ? NULL : keep(__real_aligned_alloc(alignment, size));
}

void *__wrap_realloc(void *pointer, size_t size) {
    if (fails(__builtin_return_address(0))) {
        return NULL;
    }
    forget(pointer);
    return keep(__real_realloc(pointer, size));
}

void __wrap_free(void *pointer) {
    if (pointer != NULL) {
        forget(pointer);
    }
    __real_free(pointer);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument) {
    int number = asked_threads++;
    return (refused_threads >> (number % 32)) & 1u
               ? EAGAIN
               : __real_pthread_create(thread, attributes, start, argument);
}
