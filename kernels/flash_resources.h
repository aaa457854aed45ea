// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the kernels of flash.cu take of the current device, for gate P1-2.
 */
#ifndef KERNELS_FLASH_RESOURCES_H
#define KERNELS_FLASH_RESOURCES_H

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kernels of flash.cu. */
#define FLASH_KERNELS 11

/** What a kernel takes. */
struct flash_resources {
    const char *name;       /**< Of the kernel. */
    int32_t registers;      /**< Of a thread. */
    int32_t local_bytes;    /**< Local memory of a thread: spills and arrays. */
    int32_t static_shared;  /**< Static shared memory of a block. */
    int32_t dynamic_shared; /**< Dynamic shared memory of a block. */
    int32_t blocks;         /**< Most blocks that a multiprocessor holds. */
};

/**
 * Asks the runtime.
 *
 * @param index     0 to FLASH_KERNELS - 1
 * @param resources filled
 * @return cudaSuccess or the error of the runtime
 */
cudaError_t flash_kernel_resources(int32_t index, struct flash_resources *resources);

#ifdef __cplusplus
}
#endif

#endif
