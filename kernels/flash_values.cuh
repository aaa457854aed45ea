// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The value warps of a flash block: O = P V. Warp v owns columns 64 v to 64 v + 63 of all 64
 * rows: 128 accumulators a lane.
 */
#ifndef KERNELS_FLASH_VALUES_CUH
#define KERNELS_FLASH_VALUES_CUH

#include "flash_block.cuh"

/** Clears the elements of two bf16 that are not finite. */
static __device__ __forceinline__ uint32_t flash_finite(uint32_t pair) {
    pair = (pair & 0x7f80u) == 0x7f80u ? pair & 0xffff0000u : pair;
    return (pair & 0x7f800000u) == 0x7f800000u ? pair & 0xffffu : pair;
}

/**
 * Clears what is not finite in this warp's columns of a key tile. A row that sees such a key has a
 * score, and so a weight, that says so; to the others it must not matter, and 0 * NaN is NaN.
 */
static __device__ __forceinline__ void flash_clear_columns(unsigned char *keys, int32_t warp) {
    int32_t lane = (int32_t)threadIdx.x % 32;
#pragma unroll 1
    for (int32_t key = 0; key < FLASH_KEYS; key++) {
        uint32_t *pair = (uint32_t *)(keys + key * FLASH_PITCH + warp * 128) + lane;
        *pair = flash_finite(*pair);
    }
    ptx_fence_async();
    __syncwarp();
}

/** Multiplies accumulators by the factors of their rows. */
static __device__ __forceinline__ void flash_rescale(const struct flash_weights *weights,
                                                     float value[4][8][4]) {
    int32_t row = (int32_t)threadIdx.x % 32 / 4;
#pragma unroll
    for (int32_t m = 0; m < 4; m++) {
        if ((weights->event[m] & 1) != 0) {
            float low = weights->factor[16 * m + row];
            float high = weights->factor[16 * m + row + 8];
#pragma unroll
            for (int32_t n = 0; n < 8; n++) {
                value[m][n][0] *= low;
                value[m][n][1] *= low;
                value[m][n][2] *= high;
                value[m][n][3] *= high;
            }
        }
    }
}

/** Does what the events of a key tile ask for. */
static __device__ __forceinline__ uint32_t flash_events(const struct flash_weights *weights) {
    const uint4 events = *(const uint4 *)weights->event;
    return events.x | events.y | events.z | events.w;
}

/** O += P V for a key tile. */
static __device__ __forceinline__ void flash_add_values(const struct flash_weights *weights,
                                                        const unsigned char *keys, int32_t warp,
                                                        uint32_t never, float value[4][8][4]) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    const unsigned char *row = keys + lane % 16 * FLASH_PITCH + (warp * 64 + lane / 16 * 8) * 2;
    /* Half of the columns and one row tile's weights at a time: there are registers for no more. */
#pragma unroll
    for (int32_t half = 0; half < 2; half++) {
        uint32_t key[2][4];
        ptx_ldmatrix_trans(key[0], row + half * 64);
        ptx_ldmatrix_trans(key[1], row + half * 64 + 32);
#pragma unroll
        for (int32_t m = 0; m < 4; m++) {
            uint32_t weight[4];
            /* Another address for the second half: the same would be kept in registers. */
            ptx_load_shared(weight, &weights->fragment[m][lane + (half != 0 ? never : 0)]);
#pragma unroll
            for (int32_t n = 0; n < 2; n++) {
                ptx_mma(value[m][4 * half + 2 * n], weight, key[n][0], key[n][1]);
                ptx_mma(value[m][4 * half + 2 * n + 1], weight, key[n][2], key[n][3]);
            }
            ptx_keep_order((never >> (4 * half + m) & 1) != 0);
        }
    }
}

/** A value warp's part of an item; `step` counts the key tiles of the block so far. */
static __device__ __forceinline__ void flash_value_item(const struct flash_launch &launch,
                                                        struct flash_shared *shared, int32_t warp,
                                                        uint32_t step) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    float value[4][8][4];
#pragma unroll
    for (int32_t i = 0; i < 128; i++) {
        value[i / 32][i / 4 % 8][i % 4] = 0.0f;
    }
    uint32_t never = (uint32_t)flash_uniform(shared->work.partial) >> 31;
    uint32_t end = step + (uint32_t)flash_uniform(shared->work.end_tile - shared->work.first_tile);
    for (; step < end; step++) {
        const struct flash_weights *weights = &shared->weights[step % FLASH_WEIGHTS];
        unsigned char *keys = shared->keys[step % FLASH_SLOTS];
        ptx_mbarrier_wait(&shared->weighed[step % FLASH_WEIGHTS], step / FLASH_WEIGHTS % 2);
        uint32_t event = flash_events(weights);
        if (event != 0) {
            flash_rescale(weights, value);
            if ((event & 2) != 0) {
                flash_clear_columns(keys, warp);
            }
        }
        flash_add_values(weights, keys, warp, never, value);
        __syncwarp();
        if (lane == 0) {
            ptx_mbarrier_arrive(&shared->spent[step % FLASH_SLOTS]);
        }
    }
    float4 *partial = launch.partials + (int64_t)shared->work.partial * (FLASH_PARTIAL_BYTES / 16) +
                      warp * 1024 + lane;
#pragma unroll
    for (int32_t i = 0; i < 32; i++) {
        float *v = value[i / 8][i % 8];
        partial[i * 32] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

/** A value warp's whole life; the first one also finds the block's items, each ahead of time. */
static __device__ __forceinline__ void
flash_value_items(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp) {
    uint32_t step = 0;
    if (warp == 0) {
        flash_find_work(launch, (int32_t)blockIdx.x, &shared->place, &shared->next);
    }
    for (int32_t item = (int32_t)(blockIdx.x + gridDim.x);; item += (int32_t)gridDim.x) {
        if (warp == 0 && threadIdx.x % 32 == 0) {
            shared->work = shared->next;
        }
        flash_meet();
        if (shared->work.partial < 0) {
            break;
        }
        if (warp == 0) {
            flash_find_work(launch, item, &shared->place, &shared->next);
        }
        flash_value_item(launch, shared, warp, step);
        step += (uint32_t)flash_uniform(shared->work.end_tile - shared->work.first_tile);
        flash_meet();
    }
}

#endif
