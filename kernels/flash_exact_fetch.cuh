// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: the fetch warps. They walk over the chunks of an item, in each over the prefix and
 * the paths, in *stretches* of key tiles whose positions follow each other for the same rows; and
 * say with each key tile what it is. Slots are loaded two key tiles ahead, from one stretch to the
 * next too.
 */
#ifndef KERNELS_FLASH_EXACT_FETCH_CUH
#define KERNELS_FLASH_EXACT_FETCH_CUH

#include "flash_exact_paths.cuh"
#include "flash_fetch.cuh"

/** Two key tiles, or one, or none. */
struct flash_exact_pair {
    uint32_t slot; /**< Of this lane's key. */
    int32_t left;  /**< Keys from the first one on. */
    int32_t count; /**< How many key tiles. */
};

/** What a fetch warp keeps of its walk in registers: the same in all lanes. */
struct flash_exact_place {
    int32_t key;    /**< Position of the next key tile. */
    int32_t stop;   /**< Where the stretch ends. */
    int32_t change; /**< The key tile of the stretch that begins a chunk, or -1. */
    int32_t said;   /**< The chunk of the key tile before it; at first that before the run. */
};

/** Key tiles that hold so many keys. */
static __device__ __forceinline__ int32_t flash_exact_holding(int32_t keys) {
    return (keys + FLASH_KEYS - 1) / FLASH_KEYS;
}

/**
 * Goes on to what comes after the last key tile of a path, or of the prefix, in a chunk: the next
 * path, or the next chunk.
 *
 * @param shared of the block
 * @param small  flash_exact_small
 * @param walk   of the warp: chunk and path
 * @return whether there is another chunk
 */
static __device__ __forceinline__ bool flash_exact_turn(struct flash_exact_shared *shared,
                                                        int32_t small,
                                                        volatile struct flash_exact_walk *walk) {
    const struct flash_work &work = shared->common.work;
    int32_t chunk = walk->chunk;
    int32_t path = walk->path;
    int32_t most = flash_exact_tiles(small, chunk, flash_exact_holding(work.prefix + work.nodes));
    int32_t whole = flash_exact_tiles(small, chunk, work.prefix / FLASH_KEYS);
    bool paths = most > whole;
    if (paths) {
        ptx_mbarrier_wait(&shared->listed, work.turn % 2);
        do {
            path++;
        } while (path < shared->nodes.count && shared->nodes.path[path] != path);
    }
    if (!paths || path >= shared->nodes.count) {
        path = -1;
        chunk++;
    }
    int32_t keys = path < 0 ? work.prefix / FLASH_KEYS * FLASH_KEYS : shared->nodes.sees[path];
    __syncwarp();
    if (ptx_lane() == 0 && chunk < shared->item.end_chunk) {
        walk->chunk = chunk;
        walk->path = path;
        walk->keys = keys;
        walk->index = path < 0 ? 0 : flash_exact_tiles(small, chunk, work.prefix / FLASH_KEYS);
        walk->end = flash_exact_tiles(small, chunk, flash_exact_holding(keys));
    }
    __syncwarp();
    return chunk < shared->item.end_chunk;
}

/** Goes on to the next stretch. @return whether there is one */
static __device__ __forceinline__ bool
flash_exact_next_stretch(struct flash_exact_shared *shared, int32_t small,
                         volatile struct flash_exact_walk *walk) {
    const struct flash_work &work = shared->common.work;
    while (walk->index >= walk->end) {
        if (!flash_exact_turn(shared, small, walk)) {
            return false;
        }
    }
    int32_t index = walk->index;
    int32_t end = walk->end;
    int32_t chunk = walk->chunk;
    int32_t first = flash_exact_page_begin(small, chunk) + flash_exact_leap(index);
    int32_t stop = first + flash_exact_in_page(index, end);
    int32_t whole = work.prefix / FLASH_KEYS;
    index += stop - first;
    int32_t most = flash_exact_holding(work.prefix + work.nodes);
    if (walk->path < 0 && most <= flash_exact_large_begin(small) + FLASH_EXACT_ROUND) {
        /* Each chunk has one page, and the pages of the run follow each other. */
        stop = flash_exact_page_begin(small, shared->item.end_chunk);
        stop = stop < whole ? stop : whole;
        chunk = flash_exact_page(small, stop - 1);
        index = end = flash_exact_tiles(small, chunk, whole);
    }
    __syncwarp();
    if (ptx_lane() == 0) {
        walk->chunk = chunk;
        walk->index = index;
        walk->end = end;
        walk->key = first * FLASH_KEYS;
        walk->stop = stop * FLASH_KEYS;
    }
    __syncwarp();
    return true;
}

/** Says what a key tile is, the block's number `step`. By all fetch warps, of which one does it. */
static __device__ __forceinline__ void flash_exact_say(struct flash_exact_shared *shared,
                                                       int32_t warp, uint32_t step, int32_t key,
                                                       int32_t path, int32_t small,
                                                       struct flash_exact_place *place) {
    int32_t ended = -1;
    if (key == place->change) {
        ended = place->said >= shared->item.first_chunk ? place->said : -1;
        place->said++; /* chunks that are reached follow each other */
        place->change = flash_exact_page_begin(small, place->said + 1) * FLASH_KEYS;
    }
    if (warp == 0 && threadIdx.x % 32 == 0) {
        shared->tile[step % FLASH_EXACT_TILES] = flash_exact_pack(key, path, ended);
    }
}

/** Slot of this lane's key of two key tiles from position `key` on, of which there are `left` keys;
 * 0 for an absent key. */
static __device__ __forceinline__ uint32_t
flash_exact_slot(const struct ref_attention &a, const struct flash_exact_shared *shared,
                 const volatile struct flash_exact_walk *walk, int32_t key, int32_t left) {
    const struct flash_work &work = shared->common.work;
    int32_t lane = (int32_t)threadIdx.x % 32;
    if (lane >= left) {
        return 0;
    }
    key += lane;
    if (key >= work.prefix) {
        int64_t row = work.first_row + shared->nodes.first + walk->path;
        key = work.prefix + flash_nth_node(a, row, key - work.prefix);
    }
    return flash_slot(a, work, key);
}

/**
 * The next two key tiles of the walk, or one at the end of a stretch.
 *
 * @param launch the launch
 * @param shared of the block
 * @param warp   number of the fetch warp
 * @param step   number of the first in the block
 * @param place  in the walk, brought forward
 * @return the key tiles; none at the end of the item
 */
static __device__ __forceinline__ struct flash_exact_pair
flash_exact_next_pair(const struct flash_launch &launch, struct flash_exact_shared *shared,
                      int32_t warp, uint32_t step, struct flash_exact_place *place) {
    volatile struct flash_exact_walk *walk = &shared->walk[warp];
    int32_t small = flash_exact_small(launch.call.num_heads);
    if (place->key >= place->stop) {
        if (!flash_exact_next_stretch(shared, small, walk)) {
            return {0, 0, 0};
        }
        place->key = flash_uniform(walk->key);
        place->stop = flash_uniform(walk->stop);
        int32_t page = flash_exact_page(small, place->key / FLASH_KEYS);
        place->change = flash_exact_chunk(small, page) == place->said ? -1 : place->key;
    }
    struct flash_exact_pair pair;
    int32_t path = walk->path;
    pair.left = walk->keys - place->key;
    pair.count = place->stop - place->key > FLASH_KEYS ? 2 : 1;
    flash_exact_say(shared, warp, step, place->key, path, small, place);
    if (pair.count == 2) {
        flash_exact_say(shared, warp, step + 1, place->key + FLASH_KEYS, path, small, place);
    }
    __syncwarp(); /* before another lane arrives for the warp */
    pair.slot = flash_exact_slot(launch.call, shared, walk, place->key, pair.left);
    place->key += 2 * FLASH_KEYS;
    return pair;
}

/** Fetches key tiles, the block's numbers from `step` on. */
static __device__ __forceinline__ void flash_exact_fetch(const struct flash_launch &launch,
                                                         struct flash_exact_shared *shared,
                                                         int32_t warp, uint32_t step,
                                                         const struct flash_exact_pair &pair) {
    struct flash_shared *common = &shared->common;
    uint32_t runs = 0;
    if (launch.call.kv_latent_stride * 2 == FLASH_PITCH && flash_joined(launch.call)) {
        int32_t lane = (int32_t)threadIdx.x % 32;
        uint32_t first = __shfl_sync(0xffffffffu, pair.slot, lane & 16);
        runs = __ballot_sync(0xffffffffu,
                             lane < pair.left && pair.slot == first + (uint32_t)(lane % 16));
    }
    /* The second of two may be the item's third; behind its fifth, nobody waits any more. */
    if (step - common->work.step - 1 < FLASH_SLOTS) {
        flash_wait_queries(common);
    }
    flash_wait_slot(common, step);
    flash_fetch(launch, common, warp, pair.left, step, pair.slot, 0, (runs & 0xffffu) == 0xffffu);
    if (pair.count == 2) {
        flash_wait_slot(common, step + 1);
        flash_fetch(launch, common, warp, pair.left - FLASH_KEYS, step + 1, pair.slot, 16,
                    runs >> 16 == 0xffffu);
    }
}

/** Begins the walk of an item. */
static __device__ __forceinline__ struct flash_exact_place
flash_exact_begin_walk(struct flash_exact_shared *shared, int32_t small,
                       volatile struct flash_exact_walk *walk) {
    int32_t whole = flash_uniform(shared->common.work.prefix / FLASH_KEYS);
    int32_t chunk = flash_uniform(shared->item.first_chunk);
    if (ptx_lane() == 0) {
        walk->chunk = chunk;
        walk->path = -1;
        walk->keys = whole * FLASH_KEYS;
        walk->index = 0;
        walk->end = flash_exact_tiles(small, chunk, whole);
    }
    __syncwarp();
    return {0, 0, 0, chunk - 1};
}

/** A fetch warp's part of an item: in the end it says that there is nothing more. */
static __device__ __forceinline__ void flash_exact_fetch_item(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    uint32_t step = (uint32_t)flash_uniform((int32_t)common->work.step);
    bool some = common->work.m16 > 0;
    struct flash_exact_place place = flash_exact_begin_walk(
        shared, flash_exact_small(launch.call.num_heads), &shared->walk[warp]);
    struct flash_exact_pair pair = {0, 0, 0};
    do {
        struct flash_exact_pair next = {0, 0, 0};
        if (some) {
            next = flash_exact_next_pair(launch, shared, warp, step + (uint32_t)pair.count, &place);
        }
        if (pair.count > 0) {
            flash_exact_fetch(launch, shared, warp, step, pair);
        }
        step += (uint32_t)pair.count;
        pair = next;
    } while (pair.count > 0);
    /* No phase of a barrier passes unseen. */
    flash_wait_queries(common);
    ptx_mbarrier_wait(&shared->listed, common->work.turn % 2);
    if (some) {
        if (warp == 0 && ptx_lane() == 0) {
            int32_t ended = place.said >= shared->item.first_chunk ? place.said : -1;
            shared->tile[step % FLASH_EXACT_TILES] = flash_exact_pack(-1, -1, ended);
        }
        flash_wait_slot(common, step);
        flash_arrive(&common->full[step % FLASH_SLOTS]);
    }
}

#endif
