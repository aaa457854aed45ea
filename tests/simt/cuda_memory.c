// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulated device's memory: exact host allocations, so that AddressSanitizer sees overruns,
 * use after free and leaks; copies and fills with checked ranges.
 */
#define _POSIX_C_SOURCE 200809L // posix_memalign
#include "cuda_runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "simt_runtime.h"

/** One allocation. */
struct allocation {
    struct allocation *next; /**< older one */
    size_t bytes;            /**< size */
    uintptr_t hidden;        /**< complement of its address, so that LeakSanitizer sees it leak */
};

/** Guards what follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations; /**< newest first */
static size_t live_bytes;              /**< of all allocations */
static int mallocs_left = -1;          /**< before they fail; negative: no limit */

void simt_fail_malloc_after(int count) {
    mallocs_left = count;
}

size_t simt_live_bytes(void) {
    return live_bytes;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    cudaError_t error =
        simt_check(free_bytes != NULL && total_bytes != NULL, cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        *free_bytes = SIMT_TOTAL_BYTES - live_bytes;
        *total_bytes = SIMT_TOTAL_BYTES;
    }
    return error;
}

/** Allocates and lists; under the lock. @param bytes size @return NULL if there is no memory */
static void *allocate(size_t bytes) {
    if (mallocs_left == 0 || bytes > SIMT_TOTAL_BYTES - live_bytes) {
        return NULL;
    }
    struct allocation *entry = (struct allocation *)malloc(sizeof(*entry));
    void *memory = NULL;
    if (entry == NULL || posix_memalign(&memory, 256, bytes) != 0) {
        free(entry);
        return NULL;
    }
    mallocs_left -= mallocs_left > 0;
    memset(memory, 0xff, bytes);
    entry->next = allocations;
    entry->bytes = bytes;
    entry->hidden = ~(uintptr_t)memory;
    allocations = entry;
    live_bytes += bytes;
    return memory;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    cudaError_t error = simt_check(pointer != NULL, cudaErrorInvalidValue);
    if (error != cudaSuccess) {
        return error;
    }
    *pointer = NULL;
    if (bytes == 0) {
        return cudaSuccess;
    }
    pthread_mutex_lock(&lock);
    *pointer = allocate(bytes);
    pthread_mutex_unlock(&lock);
    return simt_remember(*pointer != NULL ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *pointer) {
    cudaError_t error = simt_check(true, cudaSuccess);
    if (error != cudaSuccess || pointer == NULL) {
        return error;
    }
    pthread_mutex_lock(&lock);
    struct allocation **link = &allocations;
    while (*link != NULL && (*link)->hidden != ~(uintptr_t)pointer) {
        link = &(*link)->next;
    }
    struct allocation *entry = *link;
    if (entry != NULL) {
        *link = entry->next;
        live_bytes -= entry->bytes;
        free(pointer);
        free(entry);
    }
    pthread_mutex_unlock(&lock);
    return simt_remember(entry != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

/** How a range lies to device memory. */
enum place { ON_HOST, ON_DEVICE, ACROSS };

/** Finds where a range lies. @param pointer first byte @param bytes length @return its place */
static enum place find_place(const void *pointer, size_t bytes) {
    uintptr_t first = (uintptr_t)pointer;
    enum place place = ON_HOST;
    pthread_mutex_lock(&lock);
    for (const struct allocation *entry = allocations; entry != NULL; entry = entry->next) {
        uintptr_t start = ~entry->hidden;
        if (first >= start && first - start < entry->bytes) {
            place = bytes <= entry->bytes - (first - start) ? ON_DEVICE : ACROSS;
        } else if (first < start && start - first < bytes) {
            place = ACROSS;
        }
    }
    pthread_mutex_unlock(&lock);
    return place;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    bool valid = to != NULL && from != NULL && (unsigned)kind <= cudaMemcpyDefault;
    if (bytes == 0) {
        return simt_check((unsigned)kind <= cudaMemcpyDefault, cudaErrorInvalidValue);
    }
    if (valid) {
        enum place target = find_place(to, bytes);
        enum place source = find_place(from, bytes);
        bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        valid = target != ACROSS && source != ACROSS && (target == ON_DEVICE || !to_device) &&
                (source == ON_DEVICE || !from_device);
    }
    cudaError_t error = simt_check(valid, cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        memmove(to, from, bytes);
    }
    return error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    cudaError_t error = simt_check(simt_stream_valid(stream), cudaErrorInvalidResourceHandle);
    return error != cudaSuccess ? error : cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    bool valid = bytes == 0 || (to != NULL && find_place(to, bytes) == ON_DEVICE);
    cudaError_t error = simt_check(valid, cudaErrorInvalidValue);
    if (error == cudaSuccess && bytes != 0) {
        memset(to, value, bytes);
    }
    return error;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    cudaError_t error = simt_check(simt_stream_valid(stream), cudaErrorInvalidResourceHandle);
    return error != cudaSuccess ? error : cudaMemset(to, value, bytes);
}
