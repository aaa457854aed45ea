// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Launches: checks as the hardware's, order of blocks, shared memory with fences around it, and
 * function attributes.
 */
#define _POSIX_C_SOURCE 200809L // posix_memalign
#include "simt_async.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/** Limits of sm_120, in bytes: a block without and with opting in. */
enum { SHARED_DEFAULT = 48 << 10, SHARED_OPTIN = 101376 };

/** Bytes before and after a shared array that must not change, and what they hold. */
enum { FENCE_BYTES = 128, FENCE_VALUE = 0xc5 };

/** Most shared arrays of one kernel, and most kernels with attributes in one process. */
enum { MAX_ARRAYS = 64, MAX_FUNCTIONS = 512 };

/** A shared array of the launch that runs. */
struct shared_array {
    const void *key;  /**< its declaration; NULL for dynamic shared memory */
    const char *name; /**< for reports */
    char *fence;      /**< start of the allocation: fence, array, fence */
    size_t bytes;     /**< size of the array */
};

/** What is kept of a kernel. */
struct function {
    const void *address; /**< the kernel */
    size_t max_dynamic;  /**< set by cudaFuncSetAttribute */
    size_t static_bytes; /**< of its latest launch */
};

/** One launch at a time: host threads take turns. */
static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER;
static int failing_functions;        /**< kernels that are to be unknown to the device */
static cudaError_t function_error;   /**< what is said of them */
static _Thread_local bool launching; /**< this host thread is inside a launch */
static uint64_t seed;                /**< of launches to come */

/** Shared arrays of the launch that runs; the dynamic one is the first. */
static struct shared_array arrays[MAX_ARRAYS];
static int num_arrays; /**< of arrays */

/** Kernels seen so far; they stay for the life of the process. */
static struct function functions[MAX_FUNCTIONS];
static int num_functions; /**< of functions */
/** Guards both. */
static pthread_mutex_t function_lock = PTHREAD_MUTEX_INITIALIZER;
static struct function *running_function; /**< the kernel that runs */

void simt_set_seed(uint64_t value) {
    seed = value;
}

/** Finds what is kept of a kernel. @param address the kernel @return NULL if the table is full */
static struct function *find_function(const void *address) {
    struct function *found = NULL;
    pthread_mutex_lock(&function_lock);
    for (int i = 0; i < num_functions && found == NULL; i++) {
        if (functions[i].address == address) {
            found = &functions[i];
        }
    }
    if (found == NULL && num_functions < MAX_FUNCTIONS) {
        found = &functions[num_functions++];
        found->address = address;
    }
    pthread_mutex_unlock(&function_lock);
    return found;
}

/** The array between the fences. @param array any @return its first byte */
static char *array_data(const struct shared_array *array) {
    return array->fence + FENCE_BYTES;
}

/** Size of both fences and the array. @param array any @return bytes, a multiple of 8 */
static size_t fenced_bytes(const struct shared_array *array) {
    return (2 * (size_t)FENCE_BYTES + array->bytes + 7) & ~(size_t)7;
}

/** Allocates a shared array full of NaN. @param key declaration @param name for reports
 * @param bytes size @return NULL, with a report, if there is no memory */
static char *add_array(const void *key, const char *name, size_t bytes) {
    struct shared_array *array = &arrays[num_arrays];
    array->key = key;
    array->name = name;
    array->bytes = bytes;
    size_t total = fenced_bytes(array);
    void *memory = NULL;
    if (num_arrays == MAX_ARRAYS || posix_memalign(&memory, FENCE_BYTES, total) != 0) {
        simt_fail(SIMT_OUT_OF_MEMORY, "no memory for shared array %s", name);
        return NULL;
    }
    array->fence = (char *)memory;
    num_arrays++;
    memset(memory, FENCE_VALUE, total);
    memset(array_data(array), 0xff, bytes);
    simt_poison(array->fence, FENCE_BYTES);
    simt_poison(array_data(array) + bytes, total - FENCE_BYTES - bytes);
    return array_data(array);
}

void *simt_shared_static(const void *key, const char *name, size_t bytes, size_t align) {
    size_t static_bytes = 0;
    for (int i = 1; i < num_arrays; i++) {
        if (arrays[i].key == key) {
            return array_data(&arrays[i]);
        }
        static_bytes += arrays[i].bytes;
    }
    static_bytes += bytes;
    running_function->static_bytes = static_bytes;
    size_t limit = static_bytes + running_function->max_dynamic;
    limit = limit < SHARED_DEFAULT ? SHARED_DEFAULT : limit;
    limit = limit > SHARED_OPTIN ? SHARED_OPTIN : limit;
    if (static_bytes > SHARED_DEFAULT || static_bytes + arrays[0].bytes > limit) {
        simt_fail(SIMT_SHARED_LIMIT, "%zu static and %zu dynamic bytes of shared memory",
                  static_bytes, arrays[0].bytes);
    }
    if (align > FENCE_BYTES) {
        simt_fail(SIMT_BAD_ARGUMENT, "alignment %zu of shared array %s", align, name);
    }
    return add_array(key, name, bytes);
}

void *simt_shared_dynamic(void) {
    return array_data(&arrays[0]);
}

const char *simt_shared_name(const void *pointer, size_t bytes, size_t *offset) {
    for (int i = 0; i < num_arrays; i++) {
        // Below the array the difference is huge.
        *offset = (size_t)((uintptr_t)pointer - (uintptr_t)array_data(&arrays[i]));
        if (*offset < arrays[i].bytes && bytes <= arrays[i].bytes - *offset) {
            return arrays[i].name;
        }
    }
    return NULL;
}

void simt_check_shared(const char *what, const void *pointer, size_t bytes, size_t align,
                       const char *file, int line) {
    size_t offset = 0;
    if (simt_shared_name(pointer, bytes, &offset) == NULL) {
        simt_fail(SIMT_NOT_SHARED, "%s of %zu bytes at %p is not in a shared array, %s:%d", what,
                  bytes, pointer, file, line);
    }
    if (((uintptr_t)pointer & (align - 1)) != 0) {
        simt_fail(SIMT_MISALIGNED, "%s at %p needs an alignment of %zu, %s:%d", what, pointer,
                  align, file, line);
    }
}

void simt_check_access(const void *pointer, size_t bytes, const char *file, int line) {
    if (((uintptr_t)pointer & (bytes - 1)) != 0) {
        simt_fail(SIMT_MISALIGNED, "access of %zu bytes at %p, %s:%d", bytes, pointer, file, line);
    }
}

// Whether nothing was written around an array. It reads what add_array() has poisoned.
__attribute__((no_sanitize_address)) static bool fences_intact(const struct shared_array *array) {
    const unsigned char *byte = (const unsigned char *)array->fence;
    size_t total = fenced_bytes(array);
    for (size_t i = 0; i < total; i++) {
        if (i == FENCE_BYTES) {
            i += array->bytes; // lands on the first byte of the second fence
        }
        if (byte[i] != FENCE_VALUE) {
            return false;
        }
    }
    return true;
}

/** Checks all fences after a block. @return false, with a report, if one was overwritten */
static bool check_fences(void) {
    for (int i = 0; i < num_arrays; i++) {
        if (!fences_intact(&arrays[i])) {
            simt_fail(SIMT_SHARED_OVERRUN, "write outside shared array %s of %zu bytes",
                      arrays[i].name, arrays[i].bytes);
            return false;
        }
    }
    return true;
}

/** Frees the shared memory of a launch. */
static void free_arrays(void) {
    for (int i = 0; i < num_arrays; i++) {
        simt_unpoison(arrays[i].fence, fenced_bytes(&arrays[i]));
        free(arrays[i].fence);
    }
    num_arrays = 0;
}

/** A launch that cannot be. @param error to return @param text reason @return error */
static cudaError_t refuse(cudaError_t error, const char *text) {
    simt_fail(SIMT_BAD_LAUNCH, "%s", text);
    return error;
}

/** Checks what the hardware checks. @param launch the launch @return cudaSuccess or the reason */
static cudaError_t check_launch(const struct simt_launch *launch) {
    dim3 grid = launch->grid;
    dim3 shape = launch->block;
    if (simt_device_error() != cudaSuccess) {
        return refuse(simt_device_error(), "no device");
    }
    if (launch->function == NULL) {
        return refuse(cudaErrorInvalidDeviceFunction, "null kernel");
    }
    if (!simt_stream_valid(launch->stream)) {
        return refuse(cudaErrorInvalidResourceHandle, "unknown stream");
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > 65535 ||
        grid.z > 65535) {
        return refuse(cudaErrorInvalidConfiguration, "grid is empty or too large");
    }
    if (shape.x == 0 || shape.y == 0 || shape.z == 0 || shape.x > 1024 || shape.y > 1024 ||
        shape.z > 64 || shape.x * shape.y * shape.z > SIMT_MAX_THREADS) {
        return refuse(cudaErrorInvalidConfiguration, "block is empty or too large");
    }
    running_function = find_function(launch->function);
    if (running_function == NULL) {
        return refuse(cudaErrorNotSupported, "too many kernels");
    }
    size_t most = running_function->max_dynamic;
    if (launch->dynamic_bytes > (most < SHARED_DEFAULT ? SHARED_DEFAULT : most)) {
        return refuse(cudaErrorInvalidValue, "more dynamic shared memory than the kernel may use");
    }
    return cudaSuccess;
}

/** Runs all blocks in an order that the seed gives. @return false if a detector fired */
static bool run_blocks(const struct simt_launch *launch) {
    uint64_t x = launch->grid.x;
    uint64_t y = launch->grid.y;
    uint64_t count = x * y * launch->grid.z;
    // A step that has no factor in common with the count visits every block, without a table.
    uint64_t step = 1;
    uint64_t at = 0;
    if (seed != 0) {
        uint64_t a = 0;
        do {
            step = simt_random() % count + 1;
            a = step;
            for (uint64_t b = count; b != 0;) {
                uint64_t rest = a % b;
                a = b;
                b = rest;
            }
        } while (a != 1);
        at = simt_random() % count;
    }
    for (uint64_t i = 0; i < count; i++, at = (at + step) % count) {
        simt_geometry.block_index.x = (unsigned)(at % x);
        simt_geometry.block_index.y = (unsigned)(at / x % y);
        simt_geometry.block_index.z = (unsigned)(at / x / y);
        for (int k = 0; k < num_arrays; k++) {
            memset(array_data(&arrays[k]), 0xff, arrays[k].bytes);
        }
        if (!simt_run_block(launch) || !check_fences()) {
            return false;
        }
    }
    return true;
}

cudaError_t simt_run_grid(const struct simt_launch *launch) {
    if (launching) {
        return cudaErrorNotSupported; // from inside a kernel
    }
    pthread_mutex_lock(&launch_lock);
    launching = true;
    dim3 shape = launch->block;
    memset(&simt_geometry, 0, sizeof(simt_geometry));
    simt_report_begin(launch->name);
    cudaError_t error = check_launch(launch);
    if (error == cudaSuccess) {
        uint3 block_size = {shape.x, shape.y, shape.z};
        uint3 grid_size = {launch->grid.x, launch->grid.y, launch->grid.z};
        simt_geometry.block = block_size;
        simt_geometry.grid = grid_size;
        simt_geometry.threads = shape.x * shape.y * shape.z;
        simt_schedule_begin(seed, simt_geometry.threads);
        bool right = add_array(NULL, "dynamic", launch->dynamic_bytes) != NULL;
        simt_guard_begin(simt_report_overflow);
        error = right && run_blocks(launch) ? cudaSuccess : cudaErrorLaunchFailure;
        simt_guard_end();
        free_arrays();
    }
    launching = false;
    pthread_mutex_unlock(&launch_lock);
    return error;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    if (simt_device_error() != cudaSuccess) {
        return simt_remember(simt_device_error());
    }
    if (function == NULL) {
        return simt_remember(cudaErrorInvalidDeviceFunction);
    }
    struct function *entry = find_function(function);
    if (entry == NULL) {
        return simt_remember(cudaErrorNotSupported);
    }
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
        return cudaSuccess;
    }
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > SHARED_OPTIN) {
        return simt_remember(cudaErrorInvalidValue);
    }
    entry->max_dynamic = (size_t)value;
    return cudaSuccess;
}

void simt_fail_functions(int count, cudaError_t error) {
    failing_functions = count;
    function_error = error;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    if (simt_device_error() != cudaSuccess) {
        return simt_remember(simt_device_error());
    }
    if (failing_functions > 0) {
        failing_functions--;
        return simt_remember(function_error);
    }
    if (attributes == NULL || function == NULL) {
        return simt_remember(function == NULL ? cudaErrorInvalidDeviceFunction
                                              : cudaErrorInvalidValue);
    }
    const struct function *entry = find_function(function);
    if (entry == NULL) {
        return simt_remember(cudaErrorNotSupported);
    }
    memset(attributes, 0, sizeof(*attributes));
    attributes->sharedSizeBytes = entry->static_bytes;
    attributes->maxThreadsPerBlock = SIMT_MAX_THREADS;
    attributes->ptxVersion = 120;
    attributes->binaryVersion = 120;
    attributes->preferredShmemCarveout = -1;
    attributes->maxDynamicSharedSizeBytes =
        (int)(entry->max_dynamic < SHARED_DEFAULT ? SHARED_DEFAULT : entry->max_dynamic);
    return cudaSuccess;
}
