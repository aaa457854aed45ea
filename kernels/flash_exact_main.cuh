// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: the kernel of main and of the tail. The warps are those of flash_main.
 */
#ifndef KERNELS_FLASH_EXACT_MAIN_CUH
#define KERNELS_FLASH_EXACT_MAIN_CUH

#include "flash_exact_items.cuh"
#include "flash_tail.cuh"

/** The block's item after `number`, by a warp. */
template <bool tail>
static __device__ __forceinline__ void flash_exact_find_next(const struct flash_exact_launch &exact,
                                                             struct flash_exact_shared *shared) {
    int32_t number = shared->common.work.item + ptx_blocks();
    flash_count_next(&shared->common);
    if (tail) {
        flash_tail_find_work(exact, number, shared);
    } else {
        flash_exact_find_work(exact, number, shared);
    }
}

/**
 * Rows and row tiles of the run, by all value warps of the grid but the first of each block. The
 * block's number comes from its first item: so the compiler does not keep what follows from it in
 * registers all along.
 */
static __device__ __forceinline__ void
flash_exact_prepare_rows(const struct flash_exact_launch &exact, int32_t block, int32_t warp) {
    int32_t warps = FLASH_VALUE_WARPS - 1;
    int64_t first = (int64_t)block * warps + warp;
#pragma unroll 1
    for (int64_t i = first; i < exact.common.call.row_capacity + exact.common.row_tiles;
         i += (int64_t)ptx_blocks() * warps) {
        flash_exact_prepare(exact, NULL, 0, i);
    }
}

/** A score warp's whole life. */
template <bool tail>
static __device__ __forceinline__ void flash_exact_score_items(const struct flash_launch &launch,
                                                               struct flash_exact_shared *shared,
                                                               int32_t warp) {
    while (shared->common.work.slab >= 0) {
        flash_exact_score_item<tail>(launch, shared, warp);
        flash_next_item(&shared->common);
    }
}

/** A fetch warp's whole life. */
template <bool tail>
static __device__ __forceinline__ void flash_exact_fetch_items(const struct flash_launch &launch,
                                                               struct flash_exact_shared *shared,
                                                               int32_t warp) {
    while (shared->common.work.slab >= 0) {
        flash_exact_fetch_item<tail>(launch, shared, warp);
        flash_next_item(&shared->common);
    }
}

/** A value warp's whole life; the first one also finds the block's items, each ahead of time. */
template <bool tail>
static __device__ __forceinline__ void
flash_exact_value_items(const struct flash_exact_launch &exact, struct flash_exact_shared *shared,
                        int32_t warp) {
    const struct flash_launch &launch = exact.common;
    struct flash_shared *common = &shared->common;
    for (;;) {
        bool more = common->work.slab >= 0;
        if (more) {
            flash_load_queries(launch, common, warp);
        }
        if (!tail && warp > 0 && launch.prepares && common->work.item == (int32_t)blockIdx.x) {
            /* Weights are not there for some time yet. */
            flash_exact_prepare_rows(exact, common->work.item, warp - 1);
        }
        if (!more) {
            break;
        }
        if (warp == 0 && !(tail && common->work.turn == 0)) {
            flash_exact_find_next<tail>(exact, shared);
        }
        int32_t m16 = flash_uniform(common->work.m16);
        if (m16 > 2) {
            flash_exact_value_item<tail, 4>(launch, shared, warp);
        } else if (m16 > 0) {
            flash_exact_value_item<tail, 2>(launch, shared, warp);
        }
        if (warp > 0) {
            flash_next_item(common);
            continue;
        }
        flash_end_item(common);
        if (ptx_lane() == 0) {
            shared->item = shared->next;
        }
        flash_begin_item(common);
    }
}

/** Block i: items i, i + blocks, ... of a wave. The tail begins when main has ended. */
template <bool tail>
__global__ void __launch_bounds__(FLASH_THREADS, 1)
    flash_exact_main(struct flash_exact_launch exact) {
    KDTR_DYNAMIC_SHARED(unsigned char, memory);
    struct flash_exact_shared *shared = (struct flash_exact_shared *)memory;
    struct flash_shared *common = &shared->common;
    int32_t warp = flash_uniform((int32_t)threadIdx.x / 32);
    ptx_launch_dependents();
    if (threadIdx.x == 0) {
        flash_init_barriers(common);
        /* Every block begins with an item of nothing, during which its first one is found. */
        common->work = {};
        common->work.item = (int32_t)blockIdx.x - (int32_t)gridDim.x;
        shared->item = {};
    }
    if (tail) {
        ptx_grid_wait();
    }
    __syncthreads();
    if (tail && warp == FLASH_SCORE_WARPS) { /* before it waits for registers, which main lacks */
        flash_exact_find_next<tail>(exact, shared);
    }
    if (warp < FLASH_SCORE_WARPS) {
        ptx_more_registers<FLASH_SCORE_REGISTERS>();
        flash_exact_score_items<tail>(exact.common, shared, warp);
    } else if (warp < FLASH_SCORE_WARPS + FLASH_VALUE_WARPS) {
        ptx_more_registers<FLASH_VALUE_REGISTERS>();
        flash_exact_value_items<tail>(exact, shared, warp - FLASH_SCORE_WARPS);
    } else {
        ptx_fewer_registers<FLASH_FETCH_REGISTERS>();
        flash_exact_fetch_items<tail>(exact.common, shared,
                                      warp - FLASH_SCORE_WARPS - FLASH_VALUE_WARPS);
    }
    if (!tail) {
        ptx_grid_wait();
    }
}

#endif
