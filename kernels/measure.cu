// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Kernels that benchmarks need around what they measure.
 */
#include "device.cuh"

#include "measure.h"
#include "measure_value.h"

/** Threads of every block. */
#define BLOCK_THREADS 256

/** Blocks for so many threads, at most `most`; the kernels stride over the rest. */
static unsigned blocks_for(size_t threads, size_t most) {
    size_t blocks = (threads + BLOCK_THREADS - 1) / BLOCK_THREADS;
    blocks = blocks < 1 ? 1 : blocks;
    return (unsigned)(blocks < most ? blocks : most);
}

/** Adds up all of `data`, so that it passes through L2. */
__global__ void flush_l2(const float4 *data, size_t count, float *sink) {
    float sum = 0.0f;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x) {
        sum += data[i].x + data[i].y + data[i].z + data[i].w;
    }
    if (sum == 1.0f) { /* never, with the zeros that benchmarks put there */
        *sink = sum;
    }
}

extern "C" cudaError_t measure_flush_l2(const void *data, size_t bytes, float *sink,
                                        cudaStream_t stream) {
    return KDTR_LAUNCH(flush_l2, blocks_for(bytes / 16, 1024), BLOCK_THREADS, 0, stream,
                       (const float4 *)data, bytes / 16, sink);
}

/** Waits for so many clocks. */
__global__ void spin(int64_t cycles) {
#ifdef __CUDACC__
    int64_t start = clock64();
    while (clock64() - start < cycles) {
    }
#else
    (void)cycles;
#endif
}

extern "C" cudaError_t measure_spin(int64_t cycles, cudaStream_t stream) {
    return KDTR_LAUNCH(spin, 1, 32, 0, stream, cycles);
}

/** Nothing. */
__global__ void empty() {}

extern "C" cudaError_t measure_empty(cudaStream_t stream) {
    return KDTR_LAUNCH(empty, 1, 32, 0, stream);
}

/** Two values a thread and step. */
__global__ void fill(uint32_t *target, int64_t rows, int32_t pairs, int64_t stride_pairs,
                     uint64_t seed) {
    int64_t count = rows * pairs;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        uint32_t low = measure_value(seed, 2 * (uint64_t)i);
        uint32_t high = measure_value(seed, 2 * (uint64_t)i + 1);
        target[i / pairs * stride_pairs + i % pairs] = high << 16 | low;
    }
}

extern "C" cudaError_t measure_fill(void *target, int64_t rows, int32_t elements, int64_t stride,
                                    uint64_t seed, cudaStream_t stream) {
    return KDTR_LAUNCH(fill, blocks_for((size_t)rows * (size_t)elements / 2, 4096), BLOCK_THREADS,
                       0, stream, (uint32_t *)target, rows, elements / 2, stride / 2, seed);
}

/** A word a thread and step; thread 0 of all fills what is less than a word at the end. */
__global__ void poison(uint32_t *target, size_t bytes) {
    size_t first = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    for (size_t i = first; i < bytes / 4; i += (size_t)gridDim.x * blockDim.x) {
        target[i] = 0xffffffffu;
    }
    for (size_t i = bytes / 4 * 4; first == 0 && i < bytes; i++) {
        ((unsigned char *)target)[i] = 0xff;
    }
}

extern "C" cudaError_t measure_poison(void *target, size_t bytes, cudaStream_t stream) {
    return KDTR_LAUNCH(poison, blocks_for(bytes / 4, 4096), BLOCK_THREADS, 0, stream,
                       (uint32_t *)target, bytes);
}
