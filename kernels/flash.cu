// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The flash kernel: tree-verify attention in one pass over the cache, within the budget of sm_120.
 *
 * rows     who owns each query row; empty rows; the packed mask of parents; where row tiles are
 *          found (flash_rows.cuh)
 * main     items of row tile and chunk: four warps make scores (flash_scores.cuh) and weights
 *          (flash_weights.cuh), eight add values (flash_values.cuh), four fetch keys
 *          (flash_fetch.cuh); results unnormalised, to the workspace
 * combine  merges the chunks, divides, stores (flash_combine.cuh)
 *
 * Exact mode has kernels of its own: flash_exact.cuh.
 */
#include "device.cuh"

#include "flash.h"
#include "flash_block.cuh"
#include "flash_combine.cuh"
#include "flash_exact_launch.cuh"
#include "flash_fetch.cuh"
#include "flash_rows.cuh"
#include "flash_scores.cuh"
#include "flash_values.cuh"

/** Block i: items i, i + blocks, ... of a wave. */
__global__ void __launch_bounds__(FLASH_THREADS, 1) flash_main(struct flash_launch launch) {
    KDTR_DYNAMIC_SHARED(unsigned char, memory);
    struct flash_shared *shared = (struct flash_shared *)memory;
    int32_t warp = flash_uniform((int32_t)threadIdx.x / 32);
    ptx_launch_dependents();
    if (threadIdx.x == 0) {
        flash_init_barriers(shared);
    }
    if (warp == FLASH_SCORE_WARPS) {
        shared->work.step = 0;
        shared->work.turn = 0;
        flash_find_item(launch, (int32_t)blockIdx.x, &shared->work);
    }
    __syncthreads();
    if (warp == 0) { /* it has nothing else to do yet */
        flash_ask_slots(launch.call, shared->work, shared->unread);
    }
    if (warp < FLASH_SCORE_WARPS) {
        ptx_more_registers<FLASH_SCORE_REGISTERS>();
        flash_score_items(launch, shared, warp);
    } else if (warp < FLASH_SCORE_WARPS + FLASH_VALUE_WARPS) {
        ptx_more_registers<FLASH_VALUE_REGISTERS>();
        flash_value_items(launch, shared, warp - FLASH_SCORE_WARPS);
    } else {
        ptx_fewer_registers<FLASH_FETCH_REGISTERS>();
        flash_fetch_items(launch, shared, warp - FLASH_SCORE_WARPS - FLASH_VALUE_WARPS);
    }
    ptx_grid_wait();
}

/** What follows from the options and the plan's limits: the split, and the workspace. */
static int32_t prepare(const struct ref_attention *a, const struct flash_options *options,
                       struct flash_split *split, struct flash_layout *layout) {
    split->blocks = options->sm_count;
    split->expected_batch = options->expected_batch;
    return flash_workspace_layout(a, split, layout);
}

extern "C" const char *attention_flash_cuda_unsupported(const struct ref_attention *a) {
    if (a->latent_dim != FLASH_LATENT) {
        return "latent_dim";
    }
    if (a->rope_dim != FLASH_ROPE) {
        return "rope_dim";
    }
    if (a->q_dtype != REF_BF16) {
        return "q_dtype";
    }
    if (a->kv_dtype != REF_BF16) {
        return "kv_dtype";
    }
    /* The pairs of all rows are counted in 32 bits, and of a request they are divided. */
    if (a->row_capacity > (INT32_MAX - FLASH_ROWS) / a->num_heads) {
        return "row_capacity";
    }
    if ((int64_t)a->max_nodes * a->num_heads >= FLASH_MOST_PAIRS) {
        return "max_nodes";
    }
    return a->max_prefix_len + a->max_nodes > FLASH_MOST_KEYS ? "max_prefix_len" : NULL;
}

extern "C" int32_t attention_flash_cuda_workspace(const struct ref_attention *a,
                                                  const struct flash_options *options,
                                                  size_t *bytes) {
    struct flash_split split;
    struct flash_layout layout;
    int32_t status = options->exact ? flash_exact_workspace_layout(a, &layout)
                                    : prepare(a, options, &split, &layout);
    *bytes = status == REF_OK ? (size_t)layout.bytes : 0;
    return status;
}

/** Main and combine of a wave. */
static cudaError_t launch_wave(const struct flash_launch &launch, int64_t items,
                               cudaStream_t stream) {
    int64_t most_items = items * FLASH_PARTS;
    unsigned blocks =
        (unsigned)(most_items < launch.split.blocks ? most_items : launch.split.blocks);
    int32_t tiles = launch.end_tile - launch.first_tile;
    const struct ref_attention &a = launch.call;
    struct flash_cut usual = flash_cut_lengths(
        &launch.split, a.max_nodes * a.num_heads,
        (int32_t)((a.max_prefix_len + a.max_nodes + FLASH_KEYS - 1) / FLASH_KEYS));
    struct flash_combine_grid grid = flash_combine_grid_of(tiles, usual.chunks);
    int32_t most = launch.split.blocks * FLASH_COMBINE_BLOCKS / grid.blocks + 1;
    dim3 pieces((unsigned)grid.blocks, (unsigned)(tiles < most ? tiles : most));
    bool follows_rows = launch.first_tile == 0 && !launch.prepares;
    cudaError_t error = follows_rows
                            ? KDTR_LAUNCH_DEPENDENT(flash_main, blocks, FLASH_THREADS,
                                                    sizeof(struct flash_shared), stream, launch)
                            : KDTR_LAUNCH(flash_main, blocks, FLASH_THREADS,
                                          sizeof(struct flash_shared), stream, launch);
    if (error != cudaSuccess) {
        return error;
    }
    if (grid.width == 1) {
        error = KDTR_LAUNCH_DEPENDENT(flash_combine<1>, pieces, FLASH_COMBINE_THREADS, 0, stream,
                                      launch);
    } else if (grid.width == 2) {
        error = KDTR_LAUNCH_DEPENDENT(flash_combine<2>, pieces, FLASH_COMBINE_THREADS, 0, stream,
                                      launch);
    } else {
        error = KDTR_LAUNCH_DEPENDENT(flash_combine<4>, pieces, FLASH_COMBINE_THREADS, 0, stream,
                                      launch);
    }
    return error;
}

extern "C" cudaError_t attention_flash_cuda(const struct ref_attention *a,
                                            const struct flash_options *options, void *workspace,
                                            cudaStream_t stream) {
    struct flash_launch launch;
    struct flash_layout layout;
    if (options->exact) {
        return flash_exact_run(a, options, workspace, stream);
    }
    if (prepare(a, options, &launch.split, &layout) != REF_OK) {
        return cudaErrorInvalidValue;
    }
    uint32_t *masks = (uint32_t *)((unsigned char *)workspace + layout.masks);
    flash_first_launch(a, &layout, workspace, &launch);
    cudaError_t error = cudaSuccess;
    if (!launch.prepares) {
        int64_t warps = a->row_capacity + layout.row_tiles;
        error = KDTR_LAUNCH(flash_own_rows,
                            (unsigned)((warps + FLASH_ROWS_WARPS - 1) / FLASH_ROWS_WARPS),
                            32 * FLASH_ROWS_WARPS, 0, stream, launch, masks, layout.mask_stride);
        launch.call.mask_words = masks;
        launch.call.mask_stride_words = layout.mask_stride;
    }
    for (int64_t tile = 0; error == cudaSuccess && tile < layout.row_tiles;
         tile += layout.wave_tiles) {
        launch.first_tile = (int32_t)tile;
        launch.end_tile = flash_wave_end(&layout, tile);
        error = launch_wave(launch, layout.wave_items, stream);
        launch.prepares = 0;
    }
    return error;
}

extern "C" cudaError_t attention_flash_cuda_exact_check(int32_t blocks, uint32_t *differing) {
    return flash_exact_run_check(blocks, differing);
}

extern "C" cudaError_t attention_flash_cuda_load(void) {
    const void *const kernels[] = {(const void *)flash_own_rows, (const void *)flash_main,
                                   (const void *)flash_combine<1>, (const void *)flash_combine<2>,
                                   (const void *)flash_combine<4>};
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; error == cudaSuccess && i < sizeof kernels / sizeof kernels[0]; i++) {
        struct cudaFuncAttributes attributes;
        error = cudaFuncGetAttributes(&attributes, kernels[i]);
    }
    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute((const void *)flash_main,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)sizeof(struct flash_shared));
    }
    return error == cudaSuccess ? flash_exact_load() : error;
}
