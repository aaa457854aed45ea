// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What tests ask of the device code of the flash kernel. No part of the library.
 */
#ifndef KERNELS_FLASH_PROBE_H
#define KERNELS_FLASH_PROBE_H

#include <cuda_runtime.h>

#include "flash_schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the combination takes row tiles whose chunks are many. */
struct flash_probe_shape {
    int32_t width;  /**< Of a piece, in n8 tiles: 1, 2 or 4. */
    int32_t chunks; /**< Whose partial outputs the warps of a block ask for at a time. */
};

/**
 * The shape of a combination.
 *
 * @param tiles row tiles of the wave
 * @param shape filled
 */
void flash_probe_combine(int32_t tiles, struct flash_probe_shape *shape);

/** What is searched in a wave: flash_find(). */
struct flash_probe_search {
    int32_t first_tile; /**< Row tiles of the wave. */
    int32_t end_tile;   /**< One past the last. */
    int32_t index;      /**< Which item or row tile of the wave. */
    int32_t tiles;      /**< Whether row tiles are counted. */
};

/** What a search finds. */
struct flash_probe_found {
    struct flash_place
        place;     /**< All of it, if the search finds anything; else its request is -1. */
    int32_t items; /**< Of the wave, where the search came to its end; else INT32_MAX. */
};

/**
 * Searches by one warp.
 *
 * @param a      the call, device pointers; dimensions, limits and lengths are read
 * @param split  plan and card
 * @param search what
 * @param found  device memory
 * @param stream stream
 * @return cudaSuccess or the error of the launch
 */
cudaError_t flash_probe_find(const struct ref_attention *a, const struct flash_split *split,
                             const struct flash_probe_search *search,
                             struct flash_probe_found *found, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
