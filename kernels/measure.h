// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Kernels that benchmarks need: nothing of them is in the libraries. Each function enqueues one
 * kernel and returns cudaSuccess or the error of its launch.
 */
#ifndef KERNELS_MEASURE_H
#define KERNELS_MEASURE_H

#include <cuda_runtime.h>
#include <stdint.h>

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

/**
 * Keeps the stream busy, so that what the host enqueues meanwhile starts without a gap. The
 * emulator does not wait.
 *
 * @param cycles how long, in clocks of a multiprocessor
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_spin(int64_t cycles, cudaStream_t stream);

/**
 * A kernel that does nothing.
 *
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_empty(cudaStream_t stream);

/**
 * Fills rows with measure_value: element k of row r is number r * elements + k. What stands between
 * the rows is left alone.
 *
 * @param target   bfloat16 rows, 4-byte aligned
 * @param rows     how many
 * @param elements of a row, even
 * @param stride   elements from row to row, even
 * @param seed     stream of numbers
 * @param stream   stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_fill(void *target, int64_t rows, int32_t elements, int64_t stride,
                         uint64_t seed, cudaStream_t stream);

/**
 * Fills memory with bytes of 0xff: a NaN in every format, and no index.
 *
 * @param target memory, 4-byte aligned
 * @param bytes  its size
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_poison(void *target, size_t bytes, cudaStream_t stream);

/**
 * Copies.
 *
 * @param target 16-byte aligned
 * @param source 16-byte aligned
 * @param bytes  a multiple of 16
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_copy(void *target, const void *source, size_t bytes, cudaStream_t stream);

/**
 * Reads rows of 1,152 bytes.
 *
 * @param pool   rows, 16-byte aligned
 * @param slots  which row is the i-th, or NULL for row i
 * @param rows   how many
 * @param sink   a word on the device, which keeps the reads alive
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t measure_gather(const void *pool, const int32_t *slots, int64_t rows, uint32_t *sink,
                           cudaStream_t stream);

/**
 * Multiplies bfloat16 matrices from registers: blocks of MEASURE_MMA_WARPS warps, each with
 * MEASURE_MMA_ACCUMULATORS independent products of [16,16] and [16,8] an iteration.
 *
 * @param blocks     how many, at best the number of multiprocessors
 * @param iterations how many
 * @param sink       a float on the device, which keeps the results alive
 * @param stream     stream
 * @return cudaSuccess, the error of the launch, or cudaErrorNotSupported on the emulator
 */
cudaError_t measure_mma(int32_t blocks, int32_t iterations, float *sink, cudaStream_t stream);

/** Warps of a block of measure_mma. */
#define MEASURE_MMA_WARPS 8
/** Accumulators of a warp of measure_mma. */
#define MEASURE_MMA_ACCUMULATORS 16
/** Bytes of a row of measure_gather. */
#define MEASURE_ROW_BYTES 1152

#ifdef __cplusplus
}
#endif

#endif
