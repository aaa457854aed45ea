// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Single instructions on the device, for tests of what spec/numerics.md ("Bound of the flash
 * kernel") assumes of them. No part of the library.
 */
#ifndef KERNELS_PROBE_H
#define KERNELS_PROBE_H

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Elements of a of one mma: [16,16]. */
#define PROBE_A 256
/** Elements of b of one mma: [16,8]; and of c: [16,8]. */
#define PROBE_B 128

/**
 * Computes c += a b once for each of `count` independent mma.
 *
 * @param a      [count,16,16] bfloat16, device
 * @param b      [count,16,8] bfloat16, device
 * @param c      [count,16,8] float32, device, replaced by the result
 * @param count  how many
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t probe_mma_cuda(const uint16_t *a, const uint16_t *b, float *c, int32_t count,
                           cudaStream_t stream);

/**
 * Replaces each x by ex2.approx of it.
 *
 * @param x      [count] float32, device
 * @param count  how many
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t probe_exp2_cuda(float *x, int32_t count, cudaStream_t stream);

/** Items of probe_schedule_cuda: 1 to so many. */
#define PROBE_ITEMS 512

/**
 * Arithmetic of the flash kernel's schedule, which the device does in another way than the host.
 *
 * @param a      device memory, [count]: dividends and key tiles; gets flash_quotient(a, b)
 * @param b      device memory, [count]: divisors; gets flash_most_chunks(b % PROBE_ITEMS + 1, a)
 * @param count  how many
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t probe_schedule_cuda(int32_t *a, int32_t *b, int32_t count, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
