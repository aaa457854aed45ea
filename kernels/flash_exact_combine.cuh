// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: merges the chunks of a row tile and stores o and lse.
 *
 * One order for every number of chunks: eight sums, each of every eighth chunk, are added in
 * order. A chunk that a row does not reach has weight 0 and is left out, so that it does not matter
 * how many chunks the other rows have. Of few row tiles, or many chunks, a block takes pieces of 16
 * rows and 8 or 16 columns, and each of its warps makes one of the sums; of many row tiles it takes
 * 16 rows and 64 columns, and each thread makes all of them for two columns of two rows.
 */
#ifndef KERNELS_FLASH_EXACT_COMBINE_CUH
#define KERNELS_FLASH_EXACT_COMBINE_CUH

#include "flash_combine.cuh"
#include "flash_exact.cuh"

/** Most chunks whose partial outputs a thread adds alone. */
#define FLASH_EXACT_WIDE 32
/** Partial outputs of a thread that are on their way at a time. */
#define FLASH_EXACT_AHEAD 6
/** Blocks that an SM holds then: the more bytes are on their way. */
#define FLASH_EXACT_WIDE_BLOCKS 4
/** States of a thread then. */
#define FLASH_EXACT_WIDE_STATES (FLASH_EXACT_WIDE * FLASH_M16 / FLASH_COMBINE_THREADS)

/** Shared memory of a block then. */
struct flash_exact_wide {
    float2 state[FLASH_EXACT_WIDE * FLASH_M16]; /**< As of flash_combine_shared. */
    float maximum[FLASH_COMBINE_THREADS];       /**< Likewise. */
    float total[FLASH_COMBINE_THREADS];         /**< Likewise. */
};

/** The chunk after another in the order of the sums: every eighth, from the first, the second, ...
 */
static __device__ __forceinline__ int32_t flash_exact_after(int32_t chunk, int32_t chunks) {
    chunk += FLASH_COMBINE_WARPS;
    return chunk < chunks ? chunk : chunk % FLASH_COMBINE_WARPS + 1;
}

/** Adds the partial outputs of all chunks, by a thread; its first is `partial`. */
static __device__ __forceinline__ float4 flash_exact_add(const float4 *partial,
                                                         const float2 *weight, int32_t chunks,
                                                         float4 part[FLASH_EXACT_AHEAD],
                                                         int32_t next) {
    float4 all = make_float4(0, 0, 0, 0);
    float4 sum = make_float4(0, 0, 0, 0);
    int32_t chunk = 0;
#pragma unroll 1
    for (int32_t left = chunks; left > 0; left -= FLASH_EXACT_AHEAD) {
#pragma unroll
        for (int32_t k = 0; k < FLASH_EXACT_AHEAD; k++) {
            if (k < left) {
                flash_add_part(weight[chunk * FLASH_M16].x, weight[chunk * FLASH_M16 + 8].x,
                               part[k], &sum);
                if (chunk + FLASH_COMBINE_WARPS >= chunks) { /* the last of this sum */
                    all = make_float4(all.x + sum.x, all.y + sum.y, all.z + sum.z, all.w + sum.w);
                    sum = make_float4(0, 0, 0, 0);
                }
                chunk = flash_exact_after(chunk, chunks);
            }
            if (k + FLASH_EXACT_AHEAD < left) {
                part[k] = partial[next * FLASH_COMBINE_FLOAT4];
                next = flash_exact_after(next, chunks);
            }
        }
    }
    return all;
}

/** 16 rows and 64 columns of a row tile, those of a value warp, by the block. */
static __device__ __forceinline__ void flash_exact_combine_wide(const struct flash_launch &launch,
                                                                const struct flash_place &place,
                                                                int32_t m, int32_t value_warp,
                                                                struct flash_exact_wide *shared) {
    int32_t chunks = place.cut.chunks;
    int32_t lane = (int32_t)threadIdx.x % 32;
    const float4 *partial = launch.partials + (int64_t)place.base * FLASH_COMBINE_FLOAT4 +
                            value_warp * 1024 + m * 256 + threadIdx.x;
    float2 state[FLASH_EXACT_WIDE_STATES];
    flash_load_states<FLASH_M16, FLASH_EXACT_WIDE_STATES>(
        launch.states + (int64_t)place.base * FLASH_ROWS + m * FLASH_M16, chunks, state);
    float4 part[FLASH_EXACT_AHEAD];
    int32_t next = 0;
#pragma unroll
    for (int32_t k = 0; k < FLASH_EXACT_AHEAD; k++) {
        if (k < chunks) {
            part[k] = partial[next * FLASH_COMBINE_FLOAT4];
            next = flash_exact_after(next, chunks);
        }
    }
    flash_combine_weights<FLASH_M16, FLASH_EXACT_WIDE_STATES>(chunks, state, shared);
    float4 all = flash_exact_add(partial, shared->state + lane / 4, chunks, part, next);
    int32_t column = value_warp * 64 + (int32_t)threadIdx.x / 32 * 8 + lane % 4 * 2;
#pragma unroll 1
    for (int32_t r = 0; r < 2; r++) {
        int32_t row = lane / 4 + 8 * r;
        flash_store(launch.call, flash_find_output(launch, place, m * FLASH_M16 + row), column,
                    r == 0 ? make_float2(all.x, all.y) : make_float2(all.z, all.w),
                    flash_row_total<FLASH_M16>(shared, row),
                    flash_row_reference<FLASH_M16>(shared, row));
    }
    __syncthreads(); /* before the next ones */
}

/**
 * Calls a function for the block's share of each row tile: blocks of row y of the grid walk over
 * row tiles y, ... Of the row tiles that the plan has room for, those in use come first.
 */
template <int32_t pieces, class function>
static __device__ __forceinline__ void flash_exact_each_tile(const struct flash_launch &launch,
                                                             function take) {
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
        for (int32_t number = (int32_t)blockIdx.x; number < pieces; number += (int32_t)gridDim.x) {
            take(place, number, m16);
        }
    }
}

/** Few row tiles, or many chunks: pieces of `width` n8 tiles. */
template <int32_t width>
__global__ void __launch_bounds__(FLASH_COMBINE_THREADS, 2)
    flash_exact_combine(struct flash_exact_launch exact) {
    KDTR_SHARED_ARRAY(struct flash_combine_shared, shared, 1);
    const struct flash_launch &launch = exact.common;
    flash_exact_each_tile<256 / width>(
        launch, [&](const struct flash_place &place, int32_t number, int32_t m16) {
            if (number / (8 / width) % 4 < m16) {
                flash_combine_many<width>(launch, place, number, shared);
            }
        });
}

/** Many row tiles of at most FLASH_EXACT_WIDE chunks. */
__global__ void __launch_bounds__(FLASH_COMBINE_THREADS, FLASH_EXACT_WIDE_BLOCKS)
    flash_exact_combine_many(struct flash_exact_launch exact) {
    KDTR_SHARED_ARRAY(struct flash_exact_wide, shared, 1);
    const struct flash_launch &launch = exact.common;
    flash_exact_each_tile<32>(
        launch, [&](const struct flash_place &place, int32_t number, int32_t m16) {
            if (number % 4 < m16) {
                flash_exact_combine_wide(launch, place, number % 4, number / 4, shared);
            }
        });
}

#endif
