// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the device can do at best: copies, reads of rows, products on the tensor cores.
 */
#include "device.cuh"

#include "measure.h"
#include "measure_value.h"

#ifdef __CUDACC__
#include "ptx.cuh"
#endif

/** Threads of every block. */
#define BLOCK_THREADS 256
/** 16-byte pieces that a thread has in flight. */
#define PIECES 4
/** 16-byte pieces of a row. */
#define ROW_PIECES (MEASURE_ROW_BYTES / 16)

/** Blocks for so many pieces. */
static unsigned blocks_for(size_t pieces) {
    return (unsigned)((pieces + BLOCK_THREADS * PIECES - 1) / (BLOCK_THREADS * PIECES));
}

/** PIECES pieces a thread, a block's lie together. */
__global__ void copy_pieces(uint4 *target, const uint4 *source, size_t count) {
    size_t first = blockIdx.x * (size_t)(BLOCK_THREADS * PIECES) + threadIdx.x;
    uint4 piece[PIECES];
    for (int i = 0; i < PIECES; i++) {
        if (first + i * BLOCK_THREADS < count) {
            piece[i] = source[first + i * BLOCK_THREADS];
        }
    }
    for (int i = 0; i < PIECES; i++) {
        if (first + i * BLOCK_THREADS < count) {
            target[first + i * BLOCK_THREADS] = piece[i];
        }
    }
}

extern "C" cudaError_t measure_copy(void *target, const void *source, size_t bytes,
                                    cudaStream_t stream) {
    return KDTR_LAUNCH(copy_pieces, blocks_for(bytes / 16), BLOCK_THREADS, 0, stream,
                       (uint4 *)target, (const uint4 *)source, bytes / 16);
}

/** PIECES pieces a thread of rows that a list names. */
__global__ void gather_pieces(const uint4 *pool, const int32_t *slots, int64_t rows,
                              uint32_t *sink) {
    size_t count = (size_t)rows * ROW_PIECES;
    size_t first = blockIdx.x * (size_t)(BLOCK_THREADS * PIECES) + threadIdx.x;
    uint4 piece[PIECES];
    uint32_t mixed = 0;
    for (int i = 0; i < PIECES; i++) {
        size_t at = first + i * BLOCK_THREADS;
        at = at < count ? at : count - 1;
        size_t row = at / ROW_PIECES;
        size_t slot = slots != NULL ? (size_t)slots[row] : row;
        piece[i] = pool[slot * ROW_PIECES + at % ROW_PIECES];
    }
    for (int i = 0; i < PIECES; i++) {
        mixed ^= piece[i].x ^ piece[i].y ^ piece[i].z ^ piece[i].w;
    }
    if (mixed == 0x9e3779b9u) { /* hardly ever, and the store is harmless */
        *sink = mixed;
    }
}

extern "C" cudaError_t measure_gather(const void *pool, const int32_t *slots, int64_t rows,
                                      uint32_t *sink, cudaStream_t stream) {
    return KDTR_LAUNCH(gather_pieces, blocks_for((size_t)rows * ROW_PIECES), BLOCK_THREADS, 0,
                       stream, (const uint4 *)pool, slots, rows, sink);
}

#ifdef __CUDACC__
/** Two values in one register. */
static __device__ uint32_t value_pair(uint32_t number) {
    return (uint32_t)measure_value(1, 2 * number + 1) << 16 | measure_value(1, 2 * number);
}

/** Products of values as large as those of a run: the power they take limits the clock. */
__global__ void __launch_bounds__(32 * MEASURE_MMA_WARPS)
    multiply(int32_t iterations, float *sink) {
    uint32_t a[4];
    uint32_t b[2];
    float c[MEASURE_MMA_ACCUMULATORS][4];
    for (uint32_t i = 0; i < 4; i++) {
        a[i] = value_pair(threadIdx.x * 6 + i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        b[i] = value_pair(threadIdx.x * 6 + 4 + i);
    }
#pragma unroll
    for (int i = 0; i < MEASURE_MMA_ACCUMULATORS; i++) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            c[i][k] = 0.0f;
        }
    }
    for (int32_t step = 0; step < iterations; step++) {
#pragma unroll
        for (int i = 0; i < MEASURE_MMA_ACCUMULATORS; i++) {
            ptx_mma(c[i], a, b[0], b[1]);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < MEASURE_MMA_ACCUMULATORS; i++) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            sum += c[i][k];
        }
    }
    if (sum == 0.123456789f) { /* hardly ever */
        *sink = sum;
    }
}

extern "C" cudaError_t measure_mma(int32_t blocks, int32_t iterations, float *sink,
                                   cudaStream_t stream) {
    return KDTR_LAUNCH(multiply, (unsigned)blocks, 32 * MEASURE_MMA_WARPS, 0, stream, iterations,
                       sink);
}
#else
extern "C" cudaError_t measure_mma(int32_t blocks, int32_t iterations, float *sink,
                                   cudaStream_t stream) {
    (void)blocks;
    (void)iterations;
    (void)sink;
    (void)stream;
    return cudaErrorNotSupported;
}
#endif
