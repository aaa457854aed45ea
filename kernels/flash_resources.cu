// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the kernels of flash.cu take of the current device: flash.cu, in place of flash.o, with the
 * question. No part of the library.
 */
#include "flash_resources.h"

#include "flash.cu"

extern "C" cudaError_t flash_kernel_resources(int32_t index, struct flash_resources *resources) {
    static const struct {
        const char *name;
        const void *kernel;
        int32_t threads;
        int32_t dynamic_shared;
    } kernels[FLASH_KERNELS] = {
        {"flash_own_rows", (const void *)flash_own_rows, 32 * FLASH_ROWS_WARPS, 0},
        {"flash_main", (const void *)flash_main, FLASH_THREADS, sizeof(struct flash_shared)},
        {"flash_combine<1>", (const void *)flash_combine<1>, FLASH_COMBINE_THREADS, 0},
        {"flash_combine<2>", (const void *)flash_combine<2>, FLASH_COMBINE_THREADS, 0},
        {"flash_combine<4>", (const void *)flash_combine<4>, FLASH_COMBINE_THREADS, 0},
        {"flash_exact_own_rows", (const void *)flash_exact_own_rows, 32 * FLASH_ROWS_WARPS, 0},
        {"flash_exact_main", (const void *)flash_exact_main, FLASH_THREADS,
         sizeof(struct flash_exact_shared)},
        {"flash_exact_combine<1>", (const void *)flash_exact_combine<1>, FLASH_COMBINE_THREADS, 0},
        {"flash_exact_combine<2>", (const void *)flash_exact_combine<2>, FLASH_COMBINE_THREADS, 0},
        {"flash_exact_combine_many", (const void *)flash_exact_combine_many, FLASH_COMBINE_THREADS,
         0},
        {"flash_exact_check", (const void *)flash_exact_check, 32, 0}};
    struct cudaFuncAttributes attributes;
    int blocks = 0;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernels[index].kernel);
    if (error == cudaSuccess && kernels[index].dynamic_shared > 0) {
        error =
            cudaFuncSetAttribute(kernels[index].kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kernels[index].dynamic_shared);
    }
    if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, kernels[index].kernel, kernels[index].threads, kernels[index].dynamic_shared);
    }
    if (error == cudaSuccess) {
        resources->name = kernels[index].name;
        resources->registers = attributes.numRegs;
        resources->local_bytes = (int32_t)attributes.localSizeBytes;
        resources->static_shared = (int32_t)attributes.sharedSizeBytes;
        resources->dynamic_shared = kernels[index].dynamic_shared;
        resources->blocks = blocks;
    }
    return error;
}
