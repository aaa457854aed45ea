// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Single instructions on the device (kernels/probe.h).
 */
#include "probe.h"

#include "device.cuh"
#include "flash_schedule.h"
#include "ptx.cuh"

/** Two bfloat16, the first in the low half. */
static __device__ uint32_t pair(uint16_t low, uint16_t high) {
    return (uint32_t)low | (uint32_t)high << 16;
}

/** Warp w: mma w. Fragments as the PTX ISA lays them out for m16n8k16. */
__global__ void probe_mma(const uint16_t *a, const uint16_t *b, float *c) {
    int32_t row = (int32_t)threadIdx.x / 4;
    int32_t column = (int32_t)threadIdx.x % 4 * 2;
    const uint16_t *at = a + (int64_t)blockIdx.x * PROBE_A;
    const uint16_t *bt = b + (int64_t)blockIdx.x * PROBE_B;
    float *ct = c + (int64_t)blockIdx.x * PROBE_B;
    uint32_t af[4];
    uint32_t bf[2];
    float cf[4];
    for (int32_t i = 0; i < 4; i++) {
        const uint16_t *from = at + (row + i % 2 * 8) * 16 + column + i / 2 * 8;
        af[i] = pair(from[0], from[1]);
        cf[i] = ct[(row + i / 2 * 8) * 8 + column + i % 2];
    }
    for (int32_t i = 0; i < 2; i++) {
        const uint16_t *from = bt + (column + i * 8) * 8 + row;
        bf[i] = pair(from[0], from[8]);
    }
    ptx_mma(cf, af, bf[0], bf[1]);
    for (int32_t i = 0; i < 4; i++) {
        ct[(row + i / 2 * 8) * 8 + column + i % 2] = cf[i];
    }
}

/** Thread i: element i. */
__global__ void probe_exp2(float *x, int32_t count) {
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        x[i] = ptx_exp2(x[i]);
    }
}

/** Thread i: the schedule's arithmetic on pair i. */
__global__ void probe_schedule(int32_t *a, int32_t *b, int32_t count) {
    int32_t i = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        int32_t quotient = flash_quotient(a[i], b[i]);
        b[i] = flash_most_chunks(b[i] % PROBE_ITEMS + 1, a[i]);
        a[i] = quotient;
    }
}

extern "C" cudaError_t probe_mma_cuda(const uint16_t *a, const uint16_t *b, float *c, int32_t count,
                                      cudaStream_t stream) {
    return KDTR_LAUNCH(probe_mma, (unsigned)count, 32, 0, stream, a, b, c);
}

extern "C" cudaError_t probe_exp2_cuda(float *x, int32_t count, cudaStream_t stream) {
    return KDTR_LAUNCH(probe_exp2, (unsigned)((count + 127) / 128), 128, 0, stream, x, count);
}

extern "C" cudaError_t probe_schedule_cuda(int32_t *a, int32_t *b, int32_t count,
                                           cudaStream_t stream) {
    return KDTR_LAUNCH(probe_schedule, (unsigned)((count + 127) / 128), 128, 0, stream, a, b,
                       count);
}
