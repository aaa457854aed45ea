// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The flash kernel: verify attention by tiles of the cache, split over the device, for a latent of
 * 512, a rope key of 64 and bfloat16 queries and cache. Its error obeys the bound of
 * spec/numerics.md ("Bound of the flash kernel").
 */
#ifndef KERNELS_FLASH_H
#define KERNELS_FLASH_H

#include <cuda_runtime.h>

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What shapes the grid and the split, fixed by the plan and its context. */
struct flash_options {
    int32_t sm_count;       /**< Multiprocessors of the device, >= 1. */
    int32_t expected_batch; /**< Requests expected to run together, >= 1: shapes the split, so that
                                 result bits may depend on it. */
    int32_t exact;          /**< 1: exact mode, whose bits depend on neither of them. */
};

/**
 * Whether the kernel takes a call, by its dimensions and types.
 *
 * @param a the call; no pointer and no stride is looked at
 * @return NULL, or the name of the field that the kernel does not take
 */
const char *attention_flash_cuda_unsupported(const struct ref_attention *a);

/**
 * Workspace of a run.
 *
 * @param a       the call; only its dimensions and limits are read
 * @param options what shapes the split
 * @param bytes   set to the number of bytes, a multiple of 256; 0 on failure
 * @return REF_OK or REF_SIZE_OVERFLOW
 */
int32_t attention_flash_cuda_workspace(const struct ref_attention *a,
                                       const struct flash_options *options, size_t *bytes);

/**
 * Enqueues the kernels of one call on a stream: no allocation, no synchronisation. Grid and
 * workspace depend on the plan's limits and the options only, so that a captured run may be
 * replayed with other lengths, slots and masks.
 *
 * @param a         a call that attention_flash_cuda_unsupported takes, device pointers; q 4-byte
 *                  aligned with even strides, kv 16-byte aligned with strides of multiples of 8
 *                  elements; slots below 2^32 - 1
 * @param options   those that the workspace was asked with
 * @param workspace attention_flash_cuda_workspace() bytes, 256-byte aligned, any content
 * @param stream    the caller's stream
 * @return cudaSuccess, or the first error of a launch
 */
cudaError_t attention_flash_cuda(const struct ref_attention *a, const struct flash_options *options,
                                 void *workspace, cudaStream_t stream);

/**
 * Loads the kernels on the current device, so that the first run may be captured.
 *
 * @return cudaSuccess or the error of the runtime
 */
cudaError_t attention_flash_cuda_load(void);

/**
 * Checks on the current device what exact mode rests on (E8 of spec/numerics.md): that a row of an
 * mma has the same bits whatever the other rows hold and wherever in the tile it stands. Allocates
 * a few bytes and waits.
 *
 * @param blocks    warps that check, each with numbers of its own: the multiprocessors, >= 1
 * @param differing set to the number of sums that differed; 0: exact mode may be used
 * @return cudaSuccess or the error of the runtime
 */
cudaError_t attention_flash_cuda_exact_check(int32_t blocks, uint32_t *differing);

#ifdef __cplusplus
}
#endif

#endif
