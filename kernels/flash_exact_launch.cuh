// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: the launches of a run.
 */
#ifndef KERNELS_FLASH_EXACT_LAUNCH_CUH
#define KERNELS_FLASH_EXACT_LAUNCH_CUH

#include "flash_exact_check.cuh"
#include "flash_exact_combine.cuh"
#include "flash_exact_main.cuh"

/** Main and combine of a wave. */
static cudaError_t flash_exact_launch_wave(const struct flash_exact_launch &exact,
                                           cudaStream_t stream) {
    const struct flash_launch &launch = exact.common;
    const size_t bytes = sizeof(struct flash_exact_shared);
    int32_t tiles = launch.end_tile - launch.first_tile;
    int64_t items = (int64_t)tiles * exact.chunks * FLASH_PARTS;
    unsigned blocks = (unsigned)(items < launch.split.blocks ? items : launch.split.blocks);
    /* So that all SMs are busy, and many chunks are shared out to more than one warp. */
    int32_t width = tiles <= 2 ? 1 : tiles <= 4 || exact.chunks > FLASH_EXACT_WIDE ? 2 : 8;
    int32_t blocks_each = width == 2 && tiles > 4 ? 64 : 256 / width;
    int32_t most = launch.split.blocks * FLASH_COMBINE_BLOCKS / blocks_each + 1;
    dim3 pieces((unsigned)blocks_each, (unsigned)(tiles < most ? tiles : most));
    bool follows_rows = launch.first_tile == 0 && !launch.prepares;
    cudaError_t error =
        follows_rows
            ? KDTR_LAUNCH_DEPENDENT(flash_exact_main, blocks, FLASH_THREADS, bytes, stream, exact)
            : KDTR_LAUNCH(flash_exact_main, blocks, FLASH_THREADS, bytes, stream, exact);
    if (error != cudaSuccess) {
        return error;
    }
    if (width == 1) {
        return KDTR_LAUNCH_DEPENDENT(flash_exact_combine<1>, pieces, FLASH_COMBINE_THREADS, 0,
                                     stream, exact);
    }
    if (width == 2) {
        return KDTR_LAUNCH_DEPENDENT(flash_exact_combine<2>, pieces, FLASH_COMBINE_THREADS, 0,
                                     stream, exact);
    }
    return KDTR_LAUNCH_DEPENDENT(flash_exact_combine_many, pieces, FLASH_COMBINE_THREADS, 0, stream,
                                 exact);
}

/** A run in exact mode; see attention_flash_cuda. */
static cudaError_t flash_exact_run(const struct ref_attention *a,
                                   const struct flash_options *options, void *workspace,
                                   cudaStream_t stream) {
    struct flash_exact_launch exact;
    struct flash_layout layout;
    if (flash_exact_workspace_layout(a, &layout) != REF_OK) {
        return cudaErrorInvalidValue;
    }
    uint32_t *masks = (uint32_t *)((unsigned char *)workspace + layout.masks);
    struct flash_launch &launch = exact.common;
    flash_first_launch(a, &layout, workspace, &launch);
    launch.split.blocks = options->sm_count;
    launch.split.expected_batch = 1; /* no work is cut by it */
    exact.chunks = flash_exact_most_chunks(a);
    cudaError_t error = cudaSuccess;
    if (!launch.prepares) {
        int64_t warps = a->row_capacity + layout.row_tiles;
        error = KDTR_LAUNCH(flash_exact_own_rows,
                            (unsigned)((warps + FLASH_ROWS_WARPS - 1) / FLASH_ROWS_WARPS),
                            32 * FLASH_ROWS_WARPS, 0, stream, exact, masks, layout.mask_stride);
        launch.call.mask_words = masks;
        launch.call.mask_stride_words = layout.mask_stride;
    }
    for (int64_t tile = 0; error == cudaSuccess && tile < layout.row_tiles;
         tile += layout.wave_tiles) {
        launch.first_tile = (int32_t)tile;
        launch.end_tile = flash_wave_end(&layout, tile);
        error = flash_exact_launch_wave(exact, stream);
        launch.prepares = 0;
    }
    return error;
}

/** Loads the kernels of exact mode; see attention_flash_cuda_load. */
static cudaError_t flash_exact_load(void) {
    const void *const kernels[] = {
        (const void *)flash_exact_own_rows,     (const void *)flash_exact_main,
        (const void *)flash_exact_combine<1>,   (const void *)flash_exact_combine<2>,
        (const void *)flash_exact_combine_many, (const void *)flash_exact_check};
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; error == cudaSuccess && i < sizeof kernels / sizeof kernels[0]; i++) {
        struct cudaFuncAttributes attributes;
        error = cudaFuncGetAttributes(&attributes, kernels[i]);
    }
    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute((const void *)flash_exact_main,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)sizeof(struct flash_exact_shared));
    }
    return error;
}

/** Runs the check of E8; see attention_flash_cuda_exact_check. */
static cudaError_t flash_exact_run_check(int32_t blocks, uint32_t *differing) {
    uint32_t *count = NULL;
    cudaError_t error = cudaMalloc((void **)&count, sizeof *count);
    if (error != cudaSuccess) {
        return error;
    }
    error = cudaMemset(count, 0, sizeof *count);
    if (error == cudaSuccess) {
        error = KDTR_LAUNCH(flash_exact_check, (unsigned)blocks, 32, 0, NULL, count);
    }
    if (error == cudaSuccess) {
        error = cudaMemcpy(differing, count, sizeof *count, cudaMemcpyDeviceToHost);
    }
    cudaError_t freed = cudaFree(count);
    return error == cudaSuccess ? freed : error;
}

#endif
