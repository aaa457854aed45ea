// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: what a launch is told, and how a block finds its work. Bits of a row follow from its
 * own tokens alone (spec/numerics.md, "Exact mode").
 *
 * main     runs of chunks of the key tiles that hold prefix rows only, for all nodes together
 * tail     for each node the key tiles from its first that holds anything else: it goes on from
 *          what main has left of their chunks
 * combine  merges the chunks (flash_exact_combine.cuh)
 *
 * Both walk over *segments*, key tiles of one chunk (flash_exact_items.cuh).
 */
#ifndef KERNELS_FLASH_EXACT_CUH
#define KERNELS_FLASH_EXACT_CUH

#include "flash_exact_schedule.h"
#include "flash_rows.cuh"

/** States of a slab: reference and sum of each lane of each row. */
#define FLASH_EXACT_STATES (FLASH_ROWS * 4)

/** Everything that a launch is told. */
struct flash_exact_launch {
    struct flash_launch common; /**< As in default mode. */
    int32_t chunks;             /**< Slabs of a row tile. */
};

/** Key tiles of one chunk, one after the other. */
struct flash_segment {
    int16_t chunk;   /**< The chunk. */
    int16_t resumes; /**< Tail: whether main has left results of the chunk. */
    int32_t end;     /**< One past its last key tile, counted from the item's first. */
};

/** What an item has beside its flash_work. */
struct flash_exact_item {
    int32_t table;      /**< Its place in the two tables of segments. */
    int32_t segments;   /**< How many it has. */
    int32_t whole;      /**< Key tiles of the request that hold prefix rows only. */
    int32_t chunks;     /**< Tail: chunks that any row of the request has. */
    int32_t node;       /**< Tail: the node. */
    int32_t first_pair; /**< Tail: its first pair that the item has. */
    int32_t end_pair;   /**< Tail: one past the last. */
};

/** Shared memory of a block. */
struct flash_exact_shared {
    struct flash_shared common;                    /**< As in default mode. */
    struct flash_exact_item next;                  /**< Beside common.next. */
    struct flash_exact_item item;                  /**< Beside common.work. */
    struct flash_segment segment[2][FLASH_CHUNKS]; /**< Of two items in turn. */
    uint32_t end[FLASH_VALUE_WARPS]; /**< Of each value warp: where its segment ends, by step. */
};

static_assert(sizeof(struct flash_exact_shared) <= 101376, "beyond a block of sm_120");

/** Whether a row of an item's row tile is one that the item stores. */
template <bool tail>
static __device__ __forceinline__ bool flash_own_pair(const struct flash_exact_shared *shared,
                                                      int32_t row) {
    int32_t pair = shared->common.work.first_pair + row;
    return !tail || (pair >= shared->item.first_pair && pair < shared->item.end_pair);
}

/** What a lane knows of the request that it looks at, in a search. */
struct flash_exact_request {
    struct ref_row row; /**< Its bounds. */
    int32_t row_tiles;  /**< Of the request. */
    int32_t begin;      /**< Row tiles of the requests before it. */
    int32_t first;      /**< First of its row tiles that is in the wave. */
    int32_t count;      /**< Its row tiles in the wave. */
    int32_t whole;      /**< Its key tiles that hold prefix rows only. */
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
    if (number < a.batch && ref_request_bounds(&a, number, &r.row) == 0) {
        r.row_tiles = (r.row.num_nodes * a.num_heads + FLASH_ROWS - 1) / FLASH_ROWS;
    }
    int32_t end = *before + flash_scan(r.row_tiles, ptx_lane(), 32);
    r.begin = end - r.row_tiles;
    int32_t low = r.begin > from ? r.begin : from;
    int32_t high = end < to ? end : to;
    r.first = low - r.begin;
    r.count = high > low ? high - low : 0;
    r.whole = (int32_t)(r.row.prefix_len / FLASH_KEYS);
    *before = __shfl_sync(0xffffffffu, end, 31);
    return r;
}

/** All that the prefixes of a wave hold, by a warp. */
static __device__ __forceinline__ struct flash_exact_wave
flash_exact_sum(const struct flash_launch &launch) {
    struct flash_exact_wave wave = {0, 0};
    int32_t before = 0;
    for (int32_t first = 0; first < launch.call.batch; first += 32) {
        struct flash_exact_request r = flash_exact_look(
            launch.call, first + ptx_lane(), launch.first_tile, launch.end_tile, &before);
        wave.tiles += (int64_t)r.count * r.whole;
        wave.chunks += (int64_t)r.count * flash_exact_chunks(r.whole);
        if (before >= launch.end_tile) {
            break;
        }
    }
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

/** The segments of a run of a request's chunks, by a whole warp: each lane tries a room. */
static __device__ __forceinline__ void
flash_exact_find_run(int32_t whole, int32_t runs, int32_t run, struct flash_exact_shared *shared) {
    struct flash_exact_item *item = &shared->next;
    struct flash_segment *segment = shared->segment[shared->item.table ^ 1];
    int32_t room = flash_exact_room(whole, runs, ptx_lane());
    int32_t count;
    flash_exact_run_begin(whole, room, 0, &count);
    uint32_t fits = __ballot_sync(0xffffffffu, count <= runs);
    room = __shfl_sync(0xffffffffu, room, __ffs((int32_t)fits) - 1);
    int32_t first = flash_exact_run_begin(whole, room, run, &count);
    int32_t end = flash_exact_run_begin(whole, room, run + 1, &count);
    int32_t begin = flash_exact_before(first, whole);
    for (int32_t chunk = first + ptx_lane(); chunk < end; chunk += 32) {
        segment[chunk - first].chunk = (int16_t)chunk;
        segment[chunk - first].end = flash_exact_before(chunk + 1, whole) - begin;
    }
    if (ptx_lane() == 0) {
        item->table = shared->item.table ^ 1;
        item->segments = end - first;
        item->whole = whole;
        shared->common.next.first_tile = begin;
        shared->common.next.end_tile = flash_exact_before(end, whole);
    }
    __syncwarp();
}

/**
 * An item of main of a wave, by one warp: a part of a row tile against a run of chunks. Parts
 * against one run are neighbours: they read the same rows.
 */
static __device__ __forceinline__ void flash_exact_find_work(const struct flash_exact_launch &exact,
                                                             int32_t number,
                                                             struct flash_exact_shared *shared) {
    const struct flash_launch &launch = exact.common;
    struct flash_work *work = &shared->common.next;
    struct flash_exact_wave wave = flash_exact_sum(launch);
    int32_t before = 0;
    int32_t items_before = 0;
    work->item = number; /* all lanes store the same */
    work->slab = -1;
    for (int32_t first = 0; first < launch.call.batch; first += 32) {
        struct flash_exact_request r = flash_exact_look(
            launch.call, first + ptx_lane(), launch.first_tile, launch.end_tile, &before);
        int32_t pairs = r.row.num_nodes * launch.call.num_heads;
        int32_t parts = flash_exact_parts(&wave, launch.split.blocks, pairs);
        int32_t runs = flash_exact_runs(&wave, launch.split.blocks, parts, r.whole);
        int32_t items = r.count * parts * runs;
        int32_t item = items_before + flash_scan(items, ptx_lane(), 32) - items;
        uint32_t hits = __ballot_sync(0xffffffffu, number >= item && number < item + items);
        items_before = __shfl_sync(0xffffffffu, item + items, 31);
        if (hits == 0) {
            continue;
        }
        int32_t source = __ffs((int32_t)hits) - 1;
        number -= __shfl_sync(0xffffffffu, item, source);
        parts = __shfl_sync(0xffffffffu, parts, source);
        int32_t all = parts * __shfl_sync(0xffffffffu, r.count, source);
        runs = __shfl_sync(0xffffffffu, runs, source);
        int32_t whole = __shfl_sync(0xffffffffu, r.whole, source);
        flash_exact_find_run(whole, runs, number / all, shared);
        if (ptx_lane() == source) {
            int32_t part = number % all + r.first * parts; /* within the request */
            int32_t tile = r.begin + part / parts;
            work->request = r.row.request;
            work->first_row = (int32_t)r.row.first_row;
            work->nodes = r.row.num_nodes;
            work->prefix = (int32_t)r.row.prefix_len;
            work->keys = whole * FLASH_KEYS;
            work->first_pair = part * (FLASH_ROWS / parts);
            work->m16 = flash_m16(pairs, parts, part);
            if (work->m16 == 0) {
                shared->next.segments = 0;
                work->end_tile = work->first_tile;
            }
            work->slab = (tile - launch.first_tile) * exact.chunks;
            work->slab_row = work->first_pair % FLASH_ROWS;
            work->list = flash_exact_list(launch.call, r.row.request);
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
            int32_t keys = (int32_t)flash_keys(&launch.call, &r.row);
            place->cut = {r.row_tiles, 1, (keys + FLASH_KEYS - 1) / FLASH_KEYS, 0};
            place->cut.chunks = flash_exact_chunks(place->cut.key_tiles);
            place->request = r.row.request;
            place->first_row = (int32_t)r.row.first_row;
            place->nodes = r.row.num_nodes;
            place->prefix = (int32_t)r.row.prefix_len;
            place->first = 0;
            place->count = 1;
            place->index = r.first;
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

/** A warp for each query row and row tile; where the tail needs the masks that it makes. */
__global__ void flash_exact_own_rows(struct flash_exact_launch exact, uint32_t *masks,
                                     int64_t mask_stride) {
    ptx_launch_dependents();
    flash_exact_prepare(exact, masks, mask_stride,
                        (int64_t)blockIdx.x * FLASH_ROWS_WARPS + threadIdx.x / 32);
}

#endif
