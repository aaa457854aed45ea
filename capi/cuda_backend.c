// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * CUDA contexts (capi/kdtr_cuda.h): the backend that libkdtr dispatches to. Calls set the context's
 * device and restore the caller's.
 */
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "cuda_implementations.h"
#include "kdtr_cuda.h"

/** Turns an error of the runtime into a status; clears the runtime's sticky copy of it. */
static int32_t cuda_fail(kdtr_error *error, int32_t code, const char *what, cudaError_t cause) {
    cudaGetLastError();
    return capi_fail(error, cause == cudaErrorMemoryAllocation ? KDTR_OUT_OF_MEMORY : code, "",
                     "%s: %s", what, cudaGetErrorString(cause));
}

/** Makes the context's device current; *previous is what leave() restores. */
static cudaError_t enter(const kdtr_context *context, int *previous) {
    cudaError_t cause = cudaGetDevice(previous);
    if (cause == cudaSuccess && *previous != context->device) {
        cause = cudaSetDevice(context->device);
    }
    return cause;
}

static void leave(const kdtr_context *context, int previous) {
    if (previous != context->device) {
        cudaSetDevice(previous);
    }
}

/** What shapes the grids of a plan. */
static struct flash_options options_of(const struct kdtr_plan *plan) {
    return (struct flash_options){plan->context->sm_count, plan->config.expected_batch,
                                  (plan->config.flags & KDTR_PLAN_EXACT) != 0};
}

static int32_t cuda_plan(const kdtr_context *context, struct kdtr_plan *plan, kdtr_error *error) {
    if (plan->config.num_threads != 0) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "num_threads",
                         "threads are for CPU contexts; a CUDA plan takes 0");
    }
    /* The naive kernel needs no check: it sums row by row. */
    if ((plan->config.flags & KDTR_PLAN_EXACT) != 0 && context->exact != KDTR_EXACT_HOLDS &&
        plan->config.implementation != KDTR_IMPLEMENTATION_NAIVE) {
        return capi_fail(error, KDTR_UNSUPPORTED, "flags",
                         context->exact == KDTR_EXACT_FAILS
                             ? "exact mode: the check of the device failed"
                             : "exact mode: the context was not created to check for it");
    }
    const struct cuda_implementation *implementation = NULL;
    int32_t status = cuda_implementation_choose(plan->config.implementation, context->loaded,
                                                &plan->call, &implementation, error);
    if (status != KDTR_OK) {
        return status;
    }
    const struct flash_options options = options_of(plan);
    plan->implementation = implementation->id;
    if (implementation->workspace(&plan->call, &options, &plan->workspace_bytes) != REF_OK) {
        return capi_fail(error, KDTR_SIZE_OVERFLOW, "max_prefix_len", "the workspace overflows");
    }
    return KDTR_OK;
}

static int32_t cuda_run(const struct kdtr_plan *plan, const struct ref_attention *call,
                        void *workspace, kdtr_stream stream, kdtr_error *error) {
    const struct cuda_implementation *implementation =
        cuda_implementation_find(plan->implementation);
    int32_t status = implementation->accepts(call, error);
    if (status != KDTR_OK) {
        return status;
    }
    int previous = 0;
    cudaError_t cause = enter(plan->context, &previous);
    if (cause != cudaSuccess) {
        return cuda_fail(error, KDTR_DEVICE_ERROR, "set device", cause);
    }
    const struct flash_options options = options_of(plan);
    cause = implementation->run(call, &options, workspace, stream);
    leave(plan->context, previous);
    return cause == cudaSuccess ? KDTR_OK : cuda_fail(error, KDTR_DEVICE_ERROR, "launch", cause);
}

static int32_t cuda_alloc(const kdtr_context *context, size_t bytes, void **pointer,
                          kdtr_error *error) {
    int previous = 0;
    cudaError_t cause = enter(context, &previous);
    if (cause == cudaSuccess) {
        cause = cudaMalloc(pointer, bytes > 0 ? bytes : 1);
        leave(context, previous);
    }
    if (cause != cudaSuccess) {
        *pointer = NULL;
        return cuda_fail(error, KDTR_DEVICE_ERROR, "allocate", cause);
    }
    return KDTR_OK;
}

static void cuda_release(const kdtr_context *context, void *pointer) {
    int previous = 0;
    if (enter(context, &previous) == cudaSuccess) {
        cudaFree(pointer);
        leave(context, previous);
    }
}

static int32_t cuda_copy(const kdtr_context *context, void *target, const void *source,
                         size_t bytes, int32_t direction, kdtr_stream stream, kdtr_error *error) {
    int previous = 0;
    cudaError_t cause = enter(context, &previous);
    if (cause == cudaSuccess) {
        cause = cudaMemcpyAsync(target, source, bytes,
                                direction == KDTR_COPY_TO_DEVICE ? cudaMemcpyHostToDevice
                                                                 : cudaMemcpyDeviceToHost,
                                stream);
        if (cause == cudaSuccess) {
            cause = cudaStreamSynchronize(stream);
        }
        leave(context, previous);
    }
    return cause == cudaSuccess ? KDTR_OK : cuda_fail(error, KDTR_DEVICE_ERROR, "copy", cause);
}

static int32_t cuda_synchronize(const kdtr_context *context, kdtr_stream stream,
                                kdtr_error *error) {
    int previous = 0;
    cudaError_t cause = enter(context, &previous);
    if (cause == cudaSuccess) {
        cause = cudaStreamSynchronize(stream);
        leave(context, previous);
    }
    return cause == cudaSuccess ? KDTR_OK
                                : cuda_fail(error, KDTR_DEVICE_ERROR, "synchronize", cause);
}

static void cuda_destroy(kdtr_context *context) {
    free(context);
}

static const struct kdtr_backend cuda_backend = {
    .plan = cuda_plan,
    .run = cuda_run,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .copy = cuda_copy,
    .synchronize = cuda_synchronize,
    .destroy = cuda_destroy,
    .is_host = 0,
};

int32_t kdtr_cuda_device_count(int32_t *count, kdtr_error *error) {
    if (count == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "count", "it is NULL");
    }
    *count = 0;
    int devices = 0;
    cudaError_t cause = cudaGetDeviceCount(&devices);
    if (cause == cudaErrorNoDevice) {
        cudaGetLastError();
        return KDTR_OK;
    }
    if (cause != cudaSuccess) {
        return cuda_fail(error, KDTR_NO_DEVICE, "no CUDA device", cause);
    }
    *count = devices;
    return KDTR_OK;
}

/** Whether a kernel could not be loaded because the library has no machine code for the device. */
static int lacks_code(cudaError_t cause) {
    /* Of cudaFuncGetAttributes the second is documented for this; the first is its own code. */
    return cause == cudaErrorNoKernelImageForDevice || cause == cudaErrorInvalidDeviceFunction;
}

/** Checks whether the device can give exact mode, if the flash kernel is there at all. */
static cudaError_t check_exact(kdtr_context *context) {
    uint32_t differing = 0;
    for (int32_t i = 0; i < cuda_implementation_count(); i++) {
        if (cuda_implementation_at(i)->id == KDTR_IMPLEMENTATION_FLASH &&
            (context->loaded >> i & 1) == 0) {
            return cudaSuccess;
        }
    }
    cudaError_t cause = attention_flash_cuda_exact_check(context->sm_count, &differing);
    context->exact = differing == 0 ? KDTR_EXACT_HOLDS : KDTR_EXACT_FAILS;
    return cause;
}

/** Names the device, loads the kernels onto it, and checks it if the flags ask for that. */
static int32_t open_device(kdtr_context *context, uint32_t flags, kdtr_error *error) {
    struct cudaDeviceProp properties = {0};
    int previous = 0;
    cudaError_t cause = enter(context, &previous);
    if (cause == cudaSuccess) {
        cause = cudaGetDeviceProperties(&properties, context->device);
        for (int32_t i = 0; cause == cudaSuccess && i < cuda_implementation_count(); i++) {
            cause = cuda_implementation_at(i)->load();
            context->loaded |= (cause == cudaSuccess ? 1u : 0u) << i;
            /* The last one has code for the most devices. */
            if (lacks_code(cause) && i + 1 < cuda_implementation_count()) {
                cause = cudaSuccess;
                cudaGetLastError();
            }
        }
        context->sm_count = properties.multiProcessorCount;
        if (cause == cudaSuccess && (flags & KDTR_CUDA_CONTEXT_EXACT) != 0) {
            cause = check_exact(context);
        }
        leave(context, previous);
    }
    if (cause != cudaSuccess) {
        return cuda_fail(error, KDTR_DEVICE_ERROR, "open device", cause);
    }
    memcpy(context->device_name, properties.name, sizeof context->device_name - 1);
    return KDTR_OK;
}

int32_t kdtr_cuda_context_exact(const kdtr_context *context) {
    return context == NULL ? KDTR_EXACT_UNCHECKED : context->exact;
}

int32_t kdtr_cuda_context_create(int32_t device, kdtr_context **context, kdtr_error *error) {
    return kdtr_cuda_context_create_flags(device, 0, context, error);
}

int32_t kdtr_cuda_context_create_flags(int32_t device, uint32_t flags, kdtr_context **context,
                                       kdtr_error *error) {
    if (context == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "context", "it is NULL");
    }
    *context = NULL;
    if ((flags & ~(uint32_t)KDTR_CUDA_CONTEXT_EXACT) != 0) {
        return capi_fail(error, KDTR_RESERVED_NOT_ZERO, "flags", "0x%x: an undefined flag is set",
                         flags);
    }
    const uint32_t version =
        KDTR_VERSION_MAJOR * 1000000u + KDTR_VERSION_MINOR * 1000u + KDTR_VERSION_PATCH;
    if (kdtr_version() != version) {
        return capi_fail(error, KDTR_VERSION_MISMATCH, "", "libkdtr is %u, libkdtr_cuda is %u",
                         kdtr_version(), version);
    }
    int32_t count = 0;
    int32_t status = kdtr_cuda_device_count(&count, error);
    if (status != KDTR_OK) {
        return status;
    }
    if (count == 0) {
        return capi_fail(error, KDTR_NO_DEVICE, "device", "no CUDA device");
    }
    if (device < 0 || device >= count) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "device", "device %d, there are %d", device,
                         count);
    }
    kdtr_context *created = calloc(1, sizeof *created);
    if (created == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for a context");
    }
    created->version = version;
    created->backend = &cuda_backend;
    created->device = device;
    status = open_device(created, flags, error);
    if (status != KDTR_OK) {
        free(created);
        return status;
    }
    *context = created;
    return KDTR_OK;
}
