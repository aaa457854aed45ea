// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Kernels that benchmarks need: nothing of them is in the libraries.
 */
#ifndef KERNELS_MEASURE_H
#define KERNELS_MEASURE_H

#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads memory so that L2 holds nothing else. Reading evicts with clean lines; writing would leave
 * dirty ones, whose write-back would be timed with what follows.
 *
 * @param data   memory, several times the size of L2, 16-byte aligned
 * @param bytes  its size
 * @param sink   a float on the device, which keeps the reads alive
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_flush_l2(const void *data, size_t bytes, float *sink, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
