// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: items of the tail. An item is a node against one of the row tiles that its heads lie
 * in: the key tiles from the first that holds anything but prefix rows on, in which the prefix's
 * last rows come first and then what the node sees, without a gap.
 */
#ifndef KERNELS_FLASH_TAIL_CUH
#define KERNELS_FLASH_TAIL_CUH

#include "flash_exact.cuh"

/** Nodes that a node sees, by a warp. */
static __device__ __forceinline__ int32_t flash_count_nodes(const struct ref_attention &a,
                                                            const struct ref_row &row) {
    if (a.mask_mode == REF_MASK_NONE || a.mask_mode == REF_MASK_CHAIN) {
        return a.mask_mode == REF_MASK_NONE ? 0 : row.node + 1;
    }
    const uint32_t *words = a.mask_words + (row.first_row + row.node) * a.mask_stride_words;
    int32_t count = 0;
    for (int32_t word = ptx_lane(); word * 32 < row.num_nodes; word += 32) {
        int32_t bits = row.num_nodes - word * 32;
        count += __popc(bits >= 32 ? words[word] : words[word] & ((1u << bits) - 1));
    }
    for (int32_t half = 16; half > 0; half /= 2) {
        count += __shfl_xor_sync(0xffffffffu, count, half);
    }
    return count;
}

/** Row tiles of the requests before one, by a warp. */
static __device__ __forceinline__ int32_t flash_tiles_before(const struct ref_attention &a,
                                                             int32_t request) {
    int32_t before = 0;
    int32_t tiles = 0;
    for (int32_t first = 0; first <= request; first += 32) {
        struct flash_exact_request r = flash_exact_look(a, first + ptx_lane(), 0, 0, &before);
        tiles = __shfl_sync(0xffffffffu, r.begin, request - first < 32 ? request - first : 0);
    }
    return tiles;
}

/** The segments of key tiles first to end - 1, of which no whole one is prefix only; by a warp. */
static __device__ __forceinline__ void flash_tail_segments(int32_t first, int32_t end,
                                                           struct flash_exact_shared *shared) {
    struct flash_segment *segment = shared->segment[shared->item.table ^ 1];
    int32_t page = flash_exact_page(first);
    int32_t count = end > first ? flash_exact_page(end - 1) + 1 - page : 0;
    for (int32_t i = ptx_lane(); i < count; i += 32) {
        int32_t chunk = flash_exact_chunk(page + i);
        int32_t stop = flash_exact_page_begin(page + i + 1);
        segment[i].chunk = (int16_t)chunk;
        segment[i].resumes = flash_exact_tiles(chunk, first) > 0;
        segment[i].end = (stop < end ? stop : end) - first;
    }
    if (ptx_lane() == 0) {
        shared->next.segments = count;
    }
    __syncwarp();
}

/**
 * Looks at item `number` of the tail: row tile number mod n of those of a query row. By a warp.
 *
 * @param exact  the launch
 * @param number of the item
 * @param shared next is filled
 * @return whether there is such an item in the wave
 */
static __device__ __forceinline__ bool flash_tail_look(const struct flash_exact_launch &exact,
                                                       int32_t number,
                                                       struct flash_exact_shared *shared) {
    const struct flash_launch &launch = exact.common;
    const struct ref_attention &a = launch.call;
    int32_t each = flash_exact_node_tiles(a.num_heads);
    int32_t owner = launch.owners[number / each];
    struct ref_row row = {owner, 0, 0, 0, 0};
    if (owner < 0 || ref_request_bounds(&a, owner, &row) != 0) {
        return false;
    }
    row.node = (int32_t)(number / each - row.first_row);
    int32_t first = row.node * a.num_heads; /* pair */
    int32_t end = first + a.num_heads;
    int32_t part = first / FLASH_ROWS + number % each; /* row tile of the request */
    if (part * FLASH_ROWS >= end) {
        return false;
    }
    int32_t tile = flash_tiles_before(a, owner) + part;
    if (tile < launch.first_tile || tile >= launch.end_tile) {
        return false;
    }
    first = first > part * FLASH_ROWS ? first : part * FLASH_ROWS;
    end = end < (part + 1) * FLASH_ROWS ? end : (part + 1) * FLASH_ROWS;
    struct flash_work *work = &shared->common.next;
    struct flash_exact_item *item = &shared->next;
    int32_t prefix = (int32_t)row.prefix_len;
    int32_t keys = prefix + flash_count_nodes(a, row);
    int32_t most = prefix + (a.mask_mode == REF_MASK_NONE ? 0 : row.num_nodes);
    if (ptx_lane() == 0) {
        work->list = flash_exact_list(a, owner);
        work->request = owner;
        work->first_row = (int32_t)row.first_row;
        work->nodes = row.num_nodes;
        work->prefix = prefix;
        work->keys = keys;
        work->first_tile = prefix / FLASH_KEYS;
        work->end_tile = (keys + FLASH_KEYS - 1) / FLASH_KEYS;
        work->first_pair = first / FLASH_M16 * FLASH_M16;
        work->m16 = (end - work->first_pair + FLASH_M16 - 1) / FLASH_M16;
        work->slab = (tile - launch.first_tile) * exact.chunks;
        work->slab_row = work->first_pair % FLASH_ROWS;
        item->table = shared->item.table ^ 1;
        item->whole = work->first_tile;
        item->chunks = flash_exact_chunks((most + FLASH_KEYS - 1) / FLASH_KEYS);
        item->node = row.node;
        item->first_pair = first;
        item->end_pair = end;
    }
    flash_tail_segments(prefix / FLASH_KEYS, (keys + FLASH_KEYS - 1) / FLASH_KEYS, shared);
    return true;
}

/** The first item from `number` on that is the block's and exists; by a warp. */
static __device__ __forceinline__ void flash_tail_find_work(const struct flash_exact_launch &exact,
                                                            int32_t number,
                                                            struct flash_exact_shared *shared) {
    int64_t each = flash_exact_node_tiles(exact.common.call.num_heads);
    int64_t count = exact.common.call.row_capacity * each;
    int64_t item = number;
    while (item < count && !flash_tail_look(exact, (int32_t)item, shared)) {
        item += gridDim.x;
    }
    __syncwarp();
    if (ptx_lane() == 0) {
        shared->common.next.item = (int32_t)item;
        if (item >= count) {
            shared->common.next.slab = -1;
        }
    }
    __syncwarp();
}

#endif
