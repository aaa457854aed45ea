/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * CUDA contexts, in libkdtr_cuda. The library loads on a machine without a GPU and says so; all
 * other work goes through kdtr.h with the context made here.
 */
#ifndef KDTR_CUDA_H
#define KDTR_CUDA_H

#include "kdtr.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of the flags of kdtr_cuda_context_create_flags. */
typedef enum kdtr_cuda_context_flag {
    KDTR_CUDA_CONTEXT_EXACT = 1 /**< Check whether the device can give exact mode. */
} kdtr_cuda_context_flag;

/** What the check of a context said of exact mode (condition E8 of spec/numerics.md). */
typedef enum kdtr_exact_verdict {
    KDTR_EXACT_UNCHECKED = 0, /**< It was not asked for, or there is no code for the device. */
    KDTR_EXACT_HOLDS = 1,     /**< Plans may ask for exact mode. */
    KDTR_EXACT_FAILS = 2      /**< Rows depend on their neighbours: plans may not. */
} kdtr_exact_verdict;

/**
 * Number of usable CUDA devices.
 * @param count set to the number; 0 on failure
 * @param error filled on failure, or NULL
 * @return OK (count may be 0), INVALID_ARGUMENT or NO_DEVICE (no usable driver)
 */
KDTR_API int32_t kdtr_cuda_device_count(int32_t *count, kdtr_error *error);
/**
 * Creates a context bound to one CUDA device: loads every kernel and sets every attribute, so that
 * the first run may happen under stream capture. The current device is restored.
 * @param device  device number
 * @param context set to the new context, which kdtr_context_destroy destroys; NULL on failure
 * @param error   filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, NO_DEVICE, DEVICE_ERROR, OUT_OF_MEMORY or VERSION_MISMATCH
 */
KDTR_API int32_t kdtr_cuda_context_create(int32_t device, kdtr_context **context,
                                          kdtr_error *error);
/**
 * As kdtr_cuda_context_create, which has flags 0. With KDTR_CUDA_CONTEXT_EXACT it also runs the
 * check of exact mode, on the device's default stream, and waits for it. A check that fails is no
 * error: the context keeps the verdict.
 * @param device  device number
 * @param flags   kdtr_cuda_context_flag bits
 * @param context as there
 * @param error   filled on failure, or NULL
 * @return as there, or RESERVED_NOT_ZERO for an undefined flag
 */
KDTR_API int32_t kdtr_cuda_context_create_flags(int32_t device, uint32_t flags,
                                                kdtr_context **context, kdtr_error *error);
/**
 * The verdict on exact mode.
 * @param context a CUDA context
 * @return kdtr_exact_verdict; KDTR_EXACT_UNCHECKED for NULL
 */
KDTR_API int32_t kdtr_cuda_context_exact(const kdtr_context *context);

#ifdef __cplusplus
}
#endif

#endif
