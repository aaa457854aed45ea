// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The fetch warps of a flash block: they bring key tiles into the ring. Lanes l and 16 + l know the
 * slot of key l of two tiles in turn; warp f fetches rows 4 f to 4 f + 3 of each. Where a tile's
 * rows follow each other in the pool with the ring's own pitch, one lane fetches the whole tile.
 */
#ifndef KERNELS_FLASH_FETCH_CUH
#define KERNELS_FLASH_FETCH_CUH

#include "flash_block.cuh"

/** Rows of a tile that a fetch warp brings. */
#define FLASH_FETCH_ROWS (FLASH_KEYS / FLASH_FETCH_WARPS)
/** Bytes of a row. */
#define FLASH_ROW_BYTES (2 * (FLASH_LATENT + FLASH_ROPE))
/** Bytes of a tile with the ring's pitch: nothing follows its last row. */
#define FLASH_TILE_BYTES ((FLASH_KEYS - 1) * FLASH_PITCH + FLASH_ROW_BYTES)

/** Loads this lane's slot of two key tiles; 0 for an absent key. */
static __device__ __forceinline__ uint32_t flash_load_slot(const struct ref_attention &a,
                                                           const struct flash_work &work,
                                                           int32_t tile) {
    int32_t key = tile * FLASH_KEYS + (int32_t)threadIdx.x % 32;
    return key < work.keys ? flash_slot(a, work, key) : 0;
}

/** Fills rows of the ring where there are no keys. By a whole warp. */
static __device__ __forceinline__ void flash_clear_rows(unsigned char *target, int32_t first,
                                                        int32_t end) {
    for (int32_t i = first * (FLASH_PITCH / 16) + (int32_t)threadIdx.x % 32;
         i < end * (FLASH_PITCH / 16); i += 32) {
        ((uint4 *)target)[i] = make_uint4(0, 0, 0, 0);
    }
    ptx_fence_async();
    __syncwarp();
}

/** Whether rope follows latent in each row of the pool. */
static __device__ __forceinline__ bool flash_joined(const struct ref_attention &a) {
    return (const uint16_t *)a.kv_rope == (const uint16_t *)a.kv_latent + FLASH_LATENT &&
           a.kv_rope_stride == a.kv_latent_stride;
}

/** Fetches one row. */
static __device__ __forceinline__ void flash_fetch_row(const struct ref_attention &a,
                                                       unsigned char *target, uint32_t slot,
                                                       uint64_t *full) {
    const uint16_t *latent = (const uint16_t *)a.kv_latent + slot * a.kv_latent_stride;
    if (flash_joined(a)) {
        ptx_bulk_load(target, latent, FLASH_ROW_BYTES, full);
    } else {
        ptx_bulk_load(target, latent, 2 * FLASH_LATENT, full);
        ptx_bulk_load(target + 2 * FLASH_LATENT,
                      (const uint16_t *)a.kv_rope + slot * a.kv_rope_stride, 2 * FLASH_ROPE, full);
    }
}

/** Waits until the slot of the block's key tile `step` is free. */
static __device__ __forceinline__ void flash_wait_slot(struct flash_shared *shared, uint32_t step) {
    if (step >= FLASH_SLOTS) {
        uint32_t before = step - FLASH_SLOTS;
        ptx_mbarrier_wait(&shared->spent[before % FLASH_SLOTS], before / FLASH_SLOTS % 2);
        /* Before one lane arrives for all: a lane that looked later could miss this phase. */
        __syncwarp();
    }
}

/**
 * Fetches this warp's share of a key tile, the block's number `step`, to its slot, which is free.
 *
 * @param launch the launch
 * @param shared of the block
 * @param warp   number of the fetch warp
 * @param left   keys from the tile's first on
 * @param step   number of the key tile in the block
 * @param slot   of this lane's key
 * @param half   the lanes that know the tile: 0 or 16
 * @param run    the tile's rows lie in the pool as in the ring
 */
static __device__ __forceinline__ void flash_fetch(const struct flash_launch &launch,
                                                   struct flash_shared *shared, int32_t warp,
                                                   int32_t left, uint32_t step, uint32_t slot,
                                                   int32_t half, bool run) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    unsigned char *target = shared->keys[step % FLASH_SLOTS];
    uint64_t *full = &shared->full[step % FLASH_SLOTS];
    if (run) {
        if (lane == half && (int32_t)(step % FLASH_FETCH_WARPS) == warp) {
            ptx_mbarrier_expect(full, FLASH_TILE_BYTES);
            ptx_bulk_load(target,
                          (const uint16_t *)launch.call.kv_latent +
                              slot * launch.call.kv_latent_stride,
                          FLASH_TILE_BYTES, full);
        } else if (FLASH_EVERY_LANE || lane == half) {
            ptx_mbarrier_arrive(full);
        }
        return;
    }
    int32_t first = FLASH_FETCH_ROWS * warp;
    int32_t end = min(left, first + FLASH_FETCH_ROWS);
    if (end < first + FLASH_FETCH_ROWS) {
        end = max(end, first);
        flash_clear_rows(target, end, first + FLASH_FETCH_ROWS);
    }
    if (lane == half) {
        ptx_mbarrier_expect(full, (uint32_t)(end - first) * FLASH_ROW_BYTES);
    } else if (FLASH_EVERY_LANE) {
        ptx_mbarrier_arrive(full);
    }
    __syncwarp();
    int32_t key = lane - half;
    if (key >= first && key < end) {
        flash_fetch_row(launch.call, target + key * FLASH_PITCH, slot, full);
    }
}

/** Waits until queries no longer need the slots of the item's third and fourth key tile. */
static __device__ __forceinline__ void flash_wait_queries(struct flash_shared *shared) {
    ptx_mbarrier_wait(&shared->taken[0], shared->work.turn % 2);
    ptx_mbarrier_wait(&shared->taken[1], shared->work.turn % 2);
}

/** A fetch warp's part of an item. */
static __device__ __forceinline__ void flash_fetch_item(const struct flash_launch &launch,
                                                        struct flash_shared *shared, int32_t warp) {
    uint32_t step = (uint32_t)flash_uniform((int32_t)shared->work.step);
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t end = flash_uniform(shared->work.end_tile);
    int32_t begin = flash_uniform(shared->work.first_tile);
    uint32_t next = flash_load_slot(launch.call, shared->work, begin);
    for (int32_t tile = begin; tile < end; tile += 2, step += 2) {
        if (tile == begin + 2) {
            flash_wait_queries(shared);
        }
        uint32_t slot = next;
        next = flash_load_slot(launch.call, shared->work, tile + 2);
        uint32_t runs = 0;
        if (launch.call.kv_latent_stride * 2 == FLASH_PITCH && flash_joined(launch.call)) {
            uint32_t first = __shfl_sync(0xffffffffu, slot, lane & 16);
            runs = __ballot_sync(0xffffffffu, tile * FLASH_KEYS + lane < shared->work.keys &&
                                                  slot == first + (uint32_t)(lane % 16));
        }
        int32_t left = shared->work.keys - tile * FLASH_KEYS;
        flash_wait_slot(shared, step);
        flash_fetch(launch, shared, warp, left, step, slot, 0, (runs & 0xffffu) == 0xffffu);
        if (tile + 1 < end) {
            flash_wait_slot(shared, step + 1);
            flash_fetch(launch, shared, warp, left - FLASH_KEYS, step + 1, slot, 16,
                        runs >> 16 == 0xffffu);
        }
    }
    if (end <= begin + 2) {
        flash_wait_queries(shared); /* no phase of a barrier passes unseen */
    }
}

/** A fetch warp's whole life. */
static __device__ __forceinline__ void
flash_fetch_items(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp) {
    while (shared->work.slab >= 0) {
        flash_fetch_item(launch, shared, warp);
        flash_next_item(shared);
    }
}

#endif
