// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What a flash run finds out before its combination: who owns each query row, rows that are empty,
 * where row tiles are found, and the packed mask of a tree that is given by parents. Where main
 * needs such a mask, a kernel of its own does it; else warps of main that wait for their first
 * weights.
 */
#ifndef KERNELS_FLASH_ROWS_CUH
#define KERNELS_FLASH_ROWS_CUH

#include "flash_block.cuh"

/** Warps of a block of flash_own_rows. */
#define FLASH_ROWS_WARPS 8

/** What a launch of a run's first wave is told, but for the split. */
static void flash_first_launch(const struct ref_attention *a, const struct flash_layout *layout,
                               void *workspace, struct flash_launch *launch) {
    unsigned char *base = (unsigned char *)workspace;
    launch->call = *a;
    launch->scale = a->scale * 0x1.715476p+0f;
    launch->first_tile = 0;
    launch->end_tile = (int32_t)layout->wave_tiles;
    launch->places = (struct flash_place *)(base + layout->places);
    launch->owners = (int32_t *)(base + layout->owners);
    launch->states = (float2 *)(base + layout->states);
    launch->partials = (float4 *)(base + layout->partials);
    launch->row_tiles = (int32_t)layout->row_tiles;
    launch->prepares = a->mask_mode != REF_MASK_PARENTS;
}

/** Stores an empty row: o = 0, lse = -inf. By a warp; `again` as for flash_own_row. */
template <bool again>
static __device__ void flash_store_empty(const struct ref_attention &a, int64_t index) {
    for (int32_t head = 0; head < a.num_heads; head++) {
        for (int32_t d = again ? ptx_lane() : (int32_t)threadIdx.x % 32; d < FLASH_LATENT;
             d += 32) {
            ref_store_f32(a.o, a.o_dtype, ref_output_index(&a, index, head, d), 0.0f);
        }
        if (a.lse != NULL && threadIdx.x % 32 == 0) {
            a.lse[index * a.num_heads + head] = -INFINITY;
        }
    }
}

/** Packs the ancestors of a node; false if the parents do not point backwards. By one lane. */
static __device__ bool flash_pack_ancestors(const struct ref_attention &a,
                                            const struct ref_row &row, uint32_t *words) {
    const int32_t *parents = a.parents + row.first_row;
    int32_t word = row.node / 32;
    uint32_t bits = 0;
    for (int32_t j = row.node; j > 0;) {
        if (j / 32 != word) {
            words[word] = bits;
            word = j / 32;
            bits = 0;
        }
        bits |= 1u << (j % 32);
        int32_t parent = parents[j];
        if (parent < 0 || parent >= j) {
            return false;
        }
        j = parent;
    }
    if (word != 0) {
        words[word] = bits;
        bits = 0;
    }
    words[0] = bits | 1;
    return parents[0] == -1;
}

/**
 * Whether the row tiles of a run hold a row. They hold as many rows as the plan allows; requests
 * that overlap can ask for more.
 */
static __device__ bool flash_row_fits(const struct ref_attention &a, const struct ref_row &row,
                                      int32_t row_tiles) {
    struct ref_row other = {0, 0, 0, 0, 0};
    int64_t tiles = 0;
    for (int32_t b = (int32_t)threadIdx.x % 32; b < row.request; b += 32) {
        if (ref_request_bounds(&a, b, &other) == 0) {
            tiles += (other.num_nodes * a.num_heads + FLASH_ROWS - 1) / FLASH_ROWS;
        }
    }
    for (int32_t half = 16; half > 0; half /= 2) {
        tiles += __shfl_xor_sync(0xffffffffu, tiles, half);
    }
    return tiles + ((row.node + 1) * a.num_heads - 1) / FLASH_ROWS < row_tiles;
}

/** As ref_find_row, by a warp: lanes look at 32 requests at a time. */
static __device__ struct ref_row flash_find_row(const struct ref_attention &a, int64_t index) {
    int32_t lane = ptx_lane();
    struct ref_row found = {-1, 0, 0, 0, 0};
    for (int32_t first = 0; first < a.batch; first += 32) {
        struct ref_row row = {-1, 0, 0, 0, 0};
        bool holds = false;
        int32_t request = first + lane;
        if (request < a.batch) {
            uint32_t status = ref_request_bounds(&a, request, &row);
            holds = (status & REF_REQUEST_ROWS) == 0 && index >= row.first_row &&
                    index < row.first_row + row.num_nodes;
            row.request = status == 0 ? request : -1;
        }
        uint32_t holders = __ballot_sync(0xffffffffu, holds);
        if (holders != 0) {
            int32_t lowest = __ffs((int32_t)holders) - 1;
            found.request = __shfl_sync(0xffffffffu, row.request, lowest);
            found.num_nodes = __shfl_sync(0xffffffffu, row.num_nodes, lowest);
            found.first_row = __shfl_sync(0xffffffffu, row.first_row, lowest);
            found.prefix_len = __shfl_sync(0xffffffffu, row.prefix_len, lowest);
            found.node = (int32_t)(index - found.first_row);
            break;
        }
    }
    return found;
}

/** What a warp does for query row `index`. `again`: there are no registers to keep what follows
 * from the number of the lane. */
template <bool again = false>
static __device__ void flash_own_row(const struct flash_launch &launch, uint32_t *masks,
                                     int64_t mask_stride, int64_t index) {
    const struct ref_attention &a = launch.call;
    int32_t lane = (int32_t)threadIdx.x % 32;
    struct ref_row row = flash_find_row(a, index);
    int32_t owner = row.request;
    if (owner >= 0 && !flash_row_fits(a, row, launch.row_tiles)) {
        if (lane == 0 && a.device_status != NULL) {
            atomicOr(&a.device_status[owner], (unsigned)REF_REQUEST_ROWS);
        }
        owner = -1;
    }
    if (owner >= 0 && mask_stride > 0) {
        uint32_t *words = masks + index * mask_stride;
        for (int64_t i = lane; i < mask_stride; i += 32) {
            words[i] = 0;
        }
        __syncwarp();
        bool valid = lane != 0 || flash_pack_ancestors(a, row, words);
        owner = __all_sync(0xffffffffu, valid) ? owner : -1;
    }
    if (lane == 0) {
        launch.owners[index] = owner;
        for (int64_t b = index; a.device_status != NULL && b < a.batch; b += a.row_capacity) {
            atomicOr(&a.device_status[b], ref_request_status(&a, (int32_t)b));
        }
    }
    if (owner < 0) {
        flash_store_empty<again>(a, index);
    }
}

/**
 * What a warp does for query row `index`, and for the status of requests index, index + R, ...; or,
 * after the rows, for row tile index - R: where it is found. A launch of the first wave.
 */
static __device__ void flash_prepare(struct flash_launch launch, uint32_t *masks,
                                     int64_t mask_stride, int64_t index) {
    int64_t tile = index - launch.call.row_capacity;
    if (tile < 0) {
        flash_own_row(launch, masks, mask_stride, index);
    } else if (tile < launch.row_tiles) {
        int32_t first = (int32_t)(tile / launch.end_tile) * launch.end_tile;
        launch.end_tile += first;
        launch.first_tile = first;
        struct flash_place place;
        int32_t items;
        bool found = flash_find(launch, (int32_t)tile - first, true, &place, &items);
        if (place.request >= 0 || (!found && ptx_lane() == 0)) {
            launch.places[tile] = place;
        }
    }
}

/** A warp for each query row and row tile; where main needs the masks that it makes. */
__global__ void flash_own_rows(struct flash_launch launch, uint32_t *masks, int64_t mask_stride) {
    ptx_launch_dependents();
    flash_prepare(launch, masks, mask_stride,
                  (int64_t)blockIdx.x * FLASH_ROWS_WARPS + threadIdx.x / 32);
}

#endif
