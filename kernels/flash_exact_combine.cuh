// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: merges the chunks of a row tile and stores o and lse.
 *
 * One way for every number of chunks: a block takes pieces of 16 rows and 8 or 16 columns of a row
 * tile; its warps take every eighth chunk, and their sums are added in order. A chunk that a
 * row does not reach has weight 0 and is left out, so that it does not matter how many chunks the
 * other rows of the piece have.
 */
#ifndef KERNELS_FLASH_EXACT_COMBINE_CUH
#define KERNELS_FLASH_EXACT_COMBINE_CUH

#include "flash_combine.cuh"
#include "flash_exact.cuh"

/**
 * States of a thread, the lanes' sums of each added: row t mod 16, and every sixteenth chunk from
 * t / 16.
 *
 * @param states of the first row in the first chunk
 * @param chunks of the request
 * @param state  filled; -inf where there is no chunk
 */
static __device__ __forceinline__ void
flash_exact_load_states(const float2 *states, int32_t chunks,
                        float2 state[FLASH_COMBINE_STATES(FLASH_M16)]) {
    const int32_t stride = FLASH_COMBINE_THREADS / FLASH_M16;
    int32_t first = (int32_t)threadIdx.x / FLASH_M16;
    states += (int64_t)first * FLASH_EXACT_STATES + (int32_t)threadIdx.x % FLASH_M16 * 4;
#pragma unroll
    for (int32_t i = 0; i < FLASH_COMBINE_STATES(FLASH_M16); i++) {
        state[i] = make_float2(-INFINITY, 0.0f);
        if (first + stride * i < chunks) {
            const float2 *lane = states + stride * i * FLASH_EXACT_STATES;
            state[i] = lane[0];
            state[i].y = (state[i].y + lane[1].y) + (lane[2].y + lane[3].y);
        }
    }
}

/** Piece number `number` of a row tile, [value warp][m16][n8 tiles], by the block. */
template <int32_t width>
static __device__ __forceinline__ void
flash_exact_combine_piece(const struct flash_launch &launch, const struct flash_place &place,
                          int32_t number, struct flash_combine_shared *shared) {
    int32_t chunks = place.cut.chunks;
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t n8 = number % (8 / width) * width;
    int32_t m = number / (8 / width) % 4;
    int32_t value_warp = number / (32 / width);
    int32_t first = warp; /* chunk of this warp */
    const float4 *partial = launch.partials + (int64_t)(place.base + first) * FLASH_COMBINE_FLOAT4 +
                            value_warp * 1024 + (m * 8 + n8) * 32 + lane;
    int32_t count = (chunks - first + FLASH_COMBINE_WARPS - 1) / FLASH_COMBINE_WARPS;
    float4 part[FLASH_COMBINE_LOADS(width)][width];
    float2 state[FLASH_COMBINE_STATES(FLASH_M16)];
    flash_exact_load_states(launch.states + (int64_t)place.base * FLASH_EXACT_STATES +
                                m * FLASH_M16 * 4,
                            chunks, state);
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_LOADS(width); k++) {
        flash_load_part<width>(partial, k, count, FLASH_COMBINE_WARPS, part[k]);
    }
    struct flash_output output = {};
    if (warp < 2 * width) {
        output = flash_find_output(launch, place, m * FLASH_M16 + lane / 4 + 8 * (warp % 2));
    }
    flash_combine_weights<FLASH_M16>(chunks, state, shared);
    float4 sum[width];
    flash_add_chunks<width>(partial, shared->state + first * FLASH_M16 + lane / 4, count, part,
                            sum);
#pragma unroll
    for (int32_t n = 0; n < width; n++) {
        shared->sums[warp][n][lane] = sum[n];
    }
    __syncthreads();
    if (warp < 2 * width) {
        flash_combine_store(launch.call, output, value_warp * 64 + n8 * 8, shared);
    }
    __syncthreads(); /* before the next piece */
}

/**
 * Blocks of row y of the grid walk over row tiles y, ... Of the row tiles that the plan has room
 * for, those in use come first.
 */
template <int32_t width>
__global__ void __launch_bounds__(FLASH_COMBINE_THREADS, 2)
    flash_exact_combine(struct flash_exact_launch exact) {
    KDTR_SHARED_ARRAY(struct flash_combine_shared, shared, 1);
    const struct flash_launch &launch = exact.common;
    int32_t tile = launch.first_tile + (int32_t)blockIdx.y;
    ptx_grid_wait();
#pragma unroll 1
    for (; tile < launch.end_tile; tile += (int32_t)gridDim.y) {
        const struct flash_place place = launch.places[tile];
        if (place.request < 0) {
            break;
        }
        int32_t m16 = flash_m16(place.nodes * launch.call.num_heads, 1, place.first + place.index);
#pragma unroll 1
        for (int32_t number = (int32_t)blockIdx.x; number < 256 / width;
             number += (int32_t)gridDim.x) {
            if (number / (8 / width) % 4 < m16) {
                flash_exact_combine_piece<width>(launch, place, number, shared);
            }
        }
    }
}

#endif
