// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Device code of the flash kernel on its own (kernels/flash_probe.h).
 */
#include "device.cuh"

#include "flash_combine.cuh"
#include "flash_probe.h"

/** A warp: one search. */
__global__ void probe_find(struct flash_launch launch, int32_t index, int32_t tiles,
                           struct flash_probe_found *found) {
    struct flash_place place;
    int32_t items = 0;
    bool any = flash_find(launch, index, tiles != 0, &place, &items);
    if (place.request >= 0 || (!any && threadIdx.x == 0)) {
        *found = {place, items};
    }
}

extern "C" void flash_probe_combine(int32_t tiles, struct flash_probe_shape *shape) {
    shape->width = flash_combine_grid_of(tiles, FLASH_CHUNKS).width;
    shape->chunks = FLASH_COMBINE_WARPS * FLASH_COMBINE_LOADS(shape->width);
}

extern "C" cudaError_t flash_probe_find(const struct ref_attention *a,
                                        const struct flash_split *split,
                                        const struct flash_probe_search *search,
                                        struct flash_probe_found *found, cudaStream_t stream) {
    struct flash_launch launch = {};
    launch.call = *a;
    launch.split = *split;
    launch.first_tile = search->first_tile;
    launch.end_tile = search->end_tile;
    return KDTR_LAUNCH(probe_find, 1, 32, 0, stream, launch, search->index, search->tiles, found);
}
