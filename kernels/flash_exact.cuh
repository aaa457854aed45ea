// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: what a launch is told, and what the warps of a block share. Bits of a row follow from
 * its own tokens alone (spec/numerics.md, "Exact mode").
 *
 * main     a part of a row tile against a run of chunks: of each chunk first the key tiles that
 *          hold prefix rows only, for all nodes together, then for one path of the tree after the
 *          other those that hold anything else (flash_exact_paths.cuh, flash_exact_items.cuh)
 * combine  merges the chunks (flash_exact_combine.cuh)
 *
 * Only the fetch warps know what an item consists of (of struct flash_work, end_tile and keys are
 * not used). They say with each key tile what the other warps need to know of it.
 */
#ifndef KERNELS_FLASH_EXACT_CUH
#define KERNELS_FLASH_EXACT_CUH

#include "flash_exact_schedule.h"
#include "flash_rows.cuh"

/** Everything that a launch is told. */
struct flash_exact_launch {
    struct flash_launch common; /**< As in default mode. */
    int32_t chunks;             /**< Slabs of a row tile. */
};

/** What an item has beside its flash_work. */
struct flash_exact_item {
    int32_t first_chunk; /**< Of its run of chunks: the first. */
    int32_t end_chunk;   /**< One past the last. */
};

/** What is said of key tiles has more places than the ring has slots: so it is said before the wait
 * for a slot, when those that read its place have gone on by more than the ring. */
#define FLASH_EXACT_TILES (2 * FLASH_SLOTS)

/** What goes with a key tile. */
struct flash_exact_tile {
    int32_t key;   /**< Position of its first key; -1: there are no keys, the item has ended. */
    int16_t path;  /**< The nodes on this path see of it what their positions reach, the others
                      nothing; -1: all rows see all of it. */
    int16_t ended; /**< The chunk that ended before the tile, or -1. */
};

/** What goes with a key tile, in one word. */
static __device__ __forceinline__ uint64_t flash_exact_pack(int32_t key, int32_t path,
                                                            int32_t ended) {
    return (uint32_t)key | (uint64_t)(uint16_t)path << 32 | (uint64_t)(uint16_t)ended << 48;
}

/** The nodes that an item has rows of, and the paths that they are on. A path goes by a node: it is
 * all that this node sees. A node is on it if it sees the path's beginning, and nothing else. */
struct flash_exact_nodes {
    int32_t count;            /**< Nodes. */
    int32_t first;            /**< Number of the first in the request. */
    int32_t sees[FLASH_ROWS]; /**< How many tokens each sees, with the prefix. */
    int32_t path[FLASH_ROWS]; /**< Of each: number, in here, of the node that its path goes by. */
};

/** Where a fetch warp is in its item, but for what it has in registers. */
struct flash_exact_walk {
    int32_t chunk; /**< The chunk. */
    int32_t path;  /**< The path; -1: the prefix. */
    int32_t keys;  /**< Keys that there are on it. */
    int32_t index; /**< Number, in the chunk, of the key tile after the stretch that is walked. */
    int32_t end;   /**< One past the path's last, likewise. */
    int32_t key;   /**< Position of the stretch's first key. */
    int32_t stop;  /**< One past its last, in whole key tiles. */
};

/** Shared memory of a block. */
struct flash_exact_shared {
    struct flash_shared common;       /**< As in default mode. */
    struct flash_exact_item next;     /**< Beside common.next. */
    struct flash_exact_item item;     /**< Beside common.work. */
    uint64_t tile[FLASH_EXACT_TILES]; /**< flash_exact_pack() of each, by its number. */
    struct flash_exact_nodes nodes;   /**< Of the item. */
    uint64_t listed;                  /**< They are there. */
    struct flash_exact_walk walk[FLASH_FETCH_WARPS]; /**< Of each fetch warp. */
};

static_assert(sizeof(struct flash_exact_shared) <= 101376, "beyond a block of sm_120");

/** What a lane knows of the request that it looks at, in a search. */
struct flash_exact_request {
    struct ref_row row; /**< Its bounds. */
    int32_t row_tiles;  /**< Of the request. */
    int32_t begin;      /**< Row tiles of the requests before it. */
    int32_t first;      /**< First of its row tiles that is in the wave. */
    int32_t count;      /**< Its row tiles in the wave. */
    int32_t tiles;      /**< Key tiles of its prefix and as many more as its nodes fill. */
};

/**
 * Looks at a request for each lane. By a whole warp.
 *
 * @param a      the call
 * @param number of the lane's request
 * @param from   first row tile that is of interest
 * @param to     one past the last
 * @param before row tiles of the requests before lane 0's; brought forward
 * @return what there is; no row tiles if the request is inactive, or is none
 */
static __device__ __forceinline__ struct flash_exact_request
flash_exact_look(const struct ref_attention &a, int32_t number, int32_t from, int32_t to,
                 int32_t *before) {
    struct flash_exact_request r;
    r.row = {number, 0, 0, 0, 0};
    r.row_tiles = 0;
    r.tiles = 0;
    if (number < a.batch && ref_request_bounds(&a, number, &r.row) == 0) {
        r.row_tiles = (r.row.num_nodes * a.num_heads + FLASH_ROWS - 1) / FLASH_ROWS;
        r.tiles = ((int32_t)flash_keys(&a, &r.row) + FLASH_KEYS - 1) / FLASH_KEYS;
    }
    int32_t end = *before + flash_scan(r.row_tiles, ptx_lane(), 32);
    r.begin = end - r.row_tiles;
    int32_t low = r.begin > from ? r.begin : from;
    int32_t high = end < to ? end : to;
    r.first = low - r.begin;
    r.count = high > low ? high - low : 0;
    *before = __shfl_sync(0xffffffffu, end, 31);
    return r;
}

/** All that the requests of a wave hold, by a warp. */
static __device__ __forceinline__ struct flash_exact_wave
flash_exact_sum(const struct flash_launch &launch) {
    struct flash_exact_wave wave = {0, 0};
    int32_t small = flash_exact_small(launch.call.num_heads);
    int32_t before = 0;
#pragma unroll 1
    for (int32_t first = 0; first < launch.call.batch; first += 32) {
        struct flash_exact_request r = flash_exact_look(
            launch.call, first + ptx_lane(), launch.first_tile, launch.end_tile, &before);
        wave.tiles += r.count * r.tiles;
        wave.chunks += r.count * flash_exact_chunks(small, r.tiles);
        if (before >= launch.end_tile) {
            break;
        }
    }
#pragma unroll 1
    for (int32_t half = 16; half > 0; half /= 2) {
        wave.tiles += __shfl_xor_sync(0xffffffffu, wave.tiles, half);
        wave.chunks += __shfl_xor_sync(0xffffffffu, wave.chunks, half);
    }
    return wave;
}

/** First entry of a request's list of slots, or of its row of the table. */
static __device__ __forceinline__ int64_t flash_exact_list(const struct ref_attention &a,
                                                           int32_t request) {
    if (a.addressing == REF_ADDRESSING_CSR) {
        return ref_load_index(a.indptr, a.length_dtype, request);
    }
    int32_t row = a.table_rows != NULL ? a.table_rows[request] : request;
    return row * a.row_table_stride;
}

/** A run of a request's chunks, by a whole warp: each lane tries a room. */
static __device__ __forceinline__ void flash_exact_find_run(int32_t small, int32_t tiles,
                                                            int32_t runs, int32_t run,
                                                            struct flash_exact_item *item) {
    int32_t lane = ptx_lane();
    int32_t chunk = run + lane % 2; /* each chunk is a run */
    if (runs < flash_exact_chunks(small, tiles)) {
        int32_t room = flash_exact_room(small, tiles, runs, lane);
#pragma unroll 1
        for (int32_t pass = 0; pass < 2; pass++) { /* the same code twice */
            int32_t count;
            chunk = flash_exact_run_begin(small, tiles, room, run + lane % 2, &count);
            uint32_t fits = __ballot_sync(0xffffffffu, count <= runs);
            room = __shfl_sync(0xffffffffu, room, __ffs((int32_t)fits) - 1);
        }
    }
    if (lane == 0) {
        item->first_chunk = chunk;
    } else if (lane == 1) {
        item->end_chunk = chunk;
    }
    __syncwarp();
}

/** The item that was found: part `part` of the row tiles of the lane's request. By one lane. */
static __device__ __forceinline__ void flash_exact_set_work(const struct flash_exact_launch &exact,
                                                            const struct flash_exact_request &r,
                                                            int32_t parts, int32_t part,
                                                            const struct flash_exact_item &item,
                                                            struct flash_work *work) {
    const struct ref_attention &a = exact.common.call;
    int32_t tile = r.begin + part / parts; /* of the run */
    work->request = r.row.request;
    work->first_row = (int32_t)r.row.first_row;
    work->nodes = r.row.num_nodes;
    work->prefix = (int32_t)r.row.prefix_len;
    work->first_tile = flash_exact_page_begin(flash_exact_small(a.num_heads), item.first_chunk);
    work->first_pair = part * (FLASH_ROWS / parts);
    /* There may be fewer runs than blocks: the last ones have no chunk, and so nothing to do. */
    work->m16 = item.first_chunk < item.end_chunk
                    ? flash_m16(r.row.num_nodes * a.num_heads, parts, part)
                    : 0;
    work->slab = (tile - exact.common.first_tile) * exact.chunks;
    work->slab_row = work->first_pair % FLASH_ROWS;
    work->list = flash_exact_list(a, r.row.request);
}

/**
 * An item of a wave, by one warp: a part of a row tile against a run of chunks. Parts against one
 * run are neighbours: they read the same rows.
 *
 * @param exact  the launch
 * @param number of the item
 * @param work   filled
 * @param item   filled
 */
static __device__ __forceinline__ void flash_exact_find_item(const struct flash_exact_launch &exact,
                                                             int32_t number,
                                                             struct flash_work *work,
                                                             struct flash_exact_item *item) {
    const struct flash_launch &launch = exact.common;
    struct flash_exact_wave wave = flash_exact_sum(launch);
    int32_t small = flash_exact_small(launch.call.num_heads);
    int32_t before = 0;
    int32_t items_before = 0;
    if (ptx_lane() == 0) {
        work->item = number;
        work->slab = -1;
    }
#pragma unroll 1
    for (int32_t first = 0; first < launch.call.batch; first += 32) {
        struct flash_exact_request r = flash_exact_look(
            launch.call, first + ptx_lane(), launch.first_tile, launch.end_tile, &before);
        int32_t pairs = r.row.num_nodes * launch.call.num_heads;
        int32_t parts = flash_exact_parts(&wave, launch.split.blocks, pairs);
        int32_t runs = flash_exact_runs(&wave, launch.split.blocks, parts, small, r.tiles);
        int32_t items = r.count * parts * runs;
        int32_t begin = items_before + flash_scan(items, ptx_lane(), 32) - items;
        uint32_t hits = __ballot_sync(0xffffffffu, number >= begin && number < begin + items);
        items_before = __shfl_sync(0xffffffffu, begin + items, 31);
        if (ptx_lane() == 0) {
            work->items = first + 32 < launch.call.batch ? INT32_MAX : items_before;
        }
        if (hits == 0) {
            continue;
        }
        int32_t source = __ffs((int32_t)hits) - 1;
        number -= __shfl_sync(0xffffffffu, begin, source);
        parts = __shfl_sync(0xffffffffu, parts, source);
        int32_t all = parts * __shfl_sync(0xffffffffu, r.count, source);
        runs = __shfl_sync(0xffffffffu, runs, source);
        int32_t run = flash_quotient(number, all);
        int32_t part = number - run * all + __shfl_sync(0xffffffffu, r.first, source) * parts;
        flash_exact_find_run(small, __shfl_sync(0xffffffffu, r.tiles, source), runs, run, item);
        if (ptx_lane() == source) {
            flash_exact_set_work(exact, r, parts, part, *item, work);
        }
        break;
    }
    __syncwarp();
}

/** Where row tile `tile` of the run lies, for the combination; by a warp, in the first wave. */
static __device__ __forceinline__ void
flash_exact_find_place(const struct flash_exact_launch &exact, int32_t tile) {
    const struct flash_launch &launch = exact.common;
    struct flash_place *place = &launch.places[tile];
    int32_t before = 0;
    if (ptx_lane() == 0) {
        place->request = -1;
    }
    __syncwarp();
    for (int32_t first = 0; first < launch.call.batch && before <= tile; first += 32) {
        struct flash_exact_request r =
            flash_exact_look(launch.call, first + ptx_lane(), tile, tile + 1, &before);
        if (r.count > 0) {
            place->cut = {r.row_tiles, 1, r.tiles, 0};
            place->cut.chunks =
                flash_exact_chunks(flash_exact_small(launch.call.num_heads), r.tiles);
            place->request = r.row.request;
            place->first_row = (int32_t)r.row.first_row;
            place->nodes = r.row.num_nodes;
            place->prefix = (int32_t)r.row.prefix_len;
            place->first = r.first;
            place->count = 1;
            place->index = 0;
            place->base = tile % launch.end_tile * exact.chunks; /* of the first wave */
        }
    }
    __syncwarp();
}

/** As flash_prepare: query row `index`, or after the rows row tile index - R. */
static __device__ __forceinline__ void flash_exact_prepare(const struct flash_exact_launch &exact,
                                                           uint32_t *masks, int64_t mask_stride,
                                                           int64_t index) {
    int64_t tile = index - exact.common.call.row_capacity;
    if (tile < 0) {
        flash_own_row<true>(exact.common, masks, mask_stride, index);
    } else if (tile < exact.common.row_tiles) {
        flash_exact_find_place(exact, (int32_t)tile);
    }
}

/** A warp for each query row and row tile; where main needs the masks that it makes. */
__global__ void flash_exact_own_rows(struct flash_exact_launch exact, uint32_t *masks,
                                     int64_t mask_stride) {
    ptx_launch_dependents();
    flash_exact_prepare(exact, masks, mask_stride,
                        (int64_t)blockIdx.x * FLASH_ROWS_WARPS + threadIdx.x / 32);
}

#endif
