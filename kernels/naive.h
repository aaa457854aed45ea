// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The naive CUDA kernel: the float32 reference on the device, bit for bit.
 */
#ifndef KERNELS_NAIVE_H
#define KERNELS_NAIVE_H

#include <cuda_runtime.h>

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Workspace of a run.
 *
 * @param a     the call; only its dimensions and limits are read
 * @param bytes set to the number of bytes, a multiple of 256
 * @return REF_OK or REF_SIZE_OVERFLOW
 */
int32_t attention_naive_cuda_workspace(const struct ref_attention *a, size_t *bytes);

/**
 * Enqueues the kernels of one call on a stream: no allocation, no synchronisation. Grid and
 * workspace depend on the plan's limits only, so that a captured run may be replayed with other
 * lengths, slots and masks.
 *
 * @param a         the call, device pointers
 * @param workspace attention_naive_cuda_workspace() bytes, 256-byte aligned, any content
 * @param stream    the caller's stream
 * @return cudaSuccess, or the first error of a launch
 */
cudaError_t attention_naive_cuda(const struct ref_attention *a, void *workspace,
                                 cudaStream_t stream);

/**
 * Loads the kernels on the current device, so that the first run may be captured.
 *
 * @return cudaSuccess or the error of the runtime
 */
cudaError_t attention_naive_cuda_load(void);

#ifdef __cplusplus
}
#endif

#endif
