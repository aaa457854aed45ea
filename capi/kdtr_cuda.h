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

#ifdef __cplusplus
}
#endif

#endif
