// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: the kernel of main. Its warps are those of flash_main.
 */
#ifndef KERNELS_FLASH_EXACT_MAIN_CUH
#define KERNELS_FLASH_EXACT_MAIN_CUH

#include "flash_exact_fetch.cuh"
#include "flash_exact_items.cuh"

/** Rows and row tiles of the run, by all value warps of the grid but the first of each block. */
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
static __device__ __forceinline__ void flash_exact_score_items(const struct flash_launch &launch,
                                                               struct flash_exact_shared *shared,
                                                               int32_t warp) {
    while (shared->common.work.slab >= 0) {
        flash_exact_score_item(launch, shared, warp);
        flash_next_item(&shared->common);
    }
}

/** A fetch warp's whole life. */
static __device__ __forceinline__ void flash_exact_fetch_items(const struct flash_launch &launch,
                                                               struct flash_exact_shared *shared,
                                                               int32_t warp) {
    while (shared->common.work.slab >= 0) {
        flash_exact_fetch_item(launch, shared, warp);
        flash_next_item(&shared->common);
    }
}

/** What value warps do while there are no weights yet: the first finds the block's next item, the
 * second lists the item's nodes, and in the block's first item all but the first prepare rows. */
static __device__ __forceinline__ void
flash_exact_begin_item(const struct flash_exact_launch &exact, struct flash_exact_shared *shared,
                       int32_t warp) {
    struct flash_shared *common = &shared->common;
    bool more = common->work.slab >= 0;
    if (more && warp == 0) {
        int32_t number = common->work.item + ptx_blocks();
        if (ptx_lane() == 0) {
            common->next.turn = common->work.turn + 1;
            common->next.step = common->work.step; /* where it has no key tiles */
            common->next.item = number;
            common->next.slab = -1;
        }
        __syncwarp();
        if (number < common->work.items) { /* as flash_find_next */
            flash_exact_find_item(exact, number, &common->next, &shared->next);
        }
    }
    if (more && warp == 1) {
        flash_list_nodes(exact.common.call, shared);
    }
    if (warp > 0 && exact.common.prepares && common->work.item == (int32_t)blockIdx.x) {
        flash_exact_prepare_rows(exact, common->work.item, warp - 1);
    }
}

/** A value warp's whole life. */
static __device__ __forceinline__ void
flash_exact_value_items(const struct flash_exact_launch &exact, struct flash_exact_shared *shared,
                        int32_t warp) {
    struct flash_shared *common = &shared->common;
    for (;;) {
        bool more = common->work.slab >= 0;
        if (more) {
            flash_load_queries(exact.common, common, warp);
        }
        flash_exact_begin_item(exact, shared, warp);
        if (!more) {
            break;
        }
        int32_t m16 = flash_uniform(common->work.m16);
        if (m16 > 2) {
            flash_exact_value_item<4>(exact.common, shared, warp);
        } else if (m16 > 0) {
            flash_exact_value_item<2>(exact.common, shared, warp);
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

/** Block i: items i, i + blocks, ... of a wave. */
__global__ void __launch_bounds__(FLASH_THREADS, 1)
    flash_exact_main(struct flash_exact_launch exact) {
    KDTR_DYNAMIC_SHARED(unsigned char, memory);
    struct flash_exact_shared *shared = (struct flash_exact_shared *)memory;
    struct flash_shared *common = &shared->common;
    int32_t warp = flash_uniform((int32_t)threadIdx.x / 32);
    ptx_launch_dependents();
    if (threadIdx.x == 0) {
        ptx_mbarrier_init(&shared->listed, FLASH_ARRIVALS);
        flash_init_barriers(common);
    }
    if (warp == FLASH_SCORE_WARPS) {
        common->work.step = 0;
        common->work.turn = 0;
        flash_exact_find_item(exact, (int32_t)blockIdx.x, &common->work, &shared->item);
    }
    __syncthreads();
    if (warp == 0) { /* it has nothing else to do yet */
        flash_ask_slots(exact.common.call, common->work, common->unread);
    }
    if (warp < FLASH_SCORE_WARPS) {
        ptx_more_registers<FLASH_SCORE_REGISTERS>();
        flash_exact_score_items(exact.common, shared, warp);
    } else if (warp < FLASH_SCORE_WARPS + FLASH_VALUE_WARPS) {
        ptx_more_registers<FLASH_VALUE_REGISTERS>();
        flash_exact_value_items(exact, shared, warp - FLASH_SCORE_WARPS);
    } else {
        ptx_fewer_registers<FLASH_FETCH_REGISTERS>();
        flash_exact_fetch_items(exact.common, shared, warp - FLASH_SCORE_WARPS - FLASH_VALUE_WARPS);
    }
    ptx_grid_wait();
}

#endif
