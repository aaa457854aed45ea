// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the warps of a flash block share: its shared memory, its work, and where keys lie.
 */
#ifndef KERNELS_FLASH_BLOCK_CUH
#define KERNELS_FLASH_BLOCK_CUH

#include "device.cuh"

#include <math.h>

#include "flash_schedule.h"
#include "ptx.cuh"

#define FLASH_SCORE_WARPS 4 /**< Warps that make scores, the first of the block. */
#define FLASH_VALUE_WARPS 8 /**< Then those that make values. */
#define FLASH_FETCH_WARPS 4 /**< Then those that fetch. */
/** Threads of a block. */
#define FLASH_THREADS (32 * (FLASH_SCORE_WARPS + FLASH_VALUE_WARPS + FLASH_FETCH_WARPS))
/** Registers of a thread of each kind; together those that the block is launched with. */
#define FLASH_SCORE_REGISTERS 184
#define FLASH_VALUE_REGISTERS 152 /**< See FLASH_SCORE_REGISTERS. */
#define FLASH_FETCH_REGISTERS 24  /**< See FLASH_SCORE_REGISTERS. */
/** Named barriers: of the first and the second pair of score warps (this and the next), of all. */
#define FLASH_PAIR_BARRIER 1
#define FLASH_BLOCK_BARRIER 3 /**< See FLASH_PAIR_BARRIER. */
/** Slots of the ring of key tiles. */
#define FLASH_SLOTS 4
/** Bytes from a row of a slot to the next: 1,152 and 16 more, so that eight rows of an ldmatrix lie
 * in different banks. */
#define FLASH_PITCH 1168
/** Buffers of weights between the two kinds of warps: as many as slots, so that a buffer is free
 * when the keys of its tile have come. */
#define FLASH_WEIGHTS FLASH_SLOTS
/** k16 steps of a score warp: half of 576 dimensions. */
#define FLASH_STEPS 18
/** How many of them have their queries in shared memory: the last one. */
#define FLASH_SHARED_STEPS 1

/** Events of a key tile: accumulators have factors; keys are not finite. */
#define FLASH_EVENT_FACTORS 1u
#define FLASH_EVENT_ODD 2u /**< See FLASH_EVENT_FACTORS. */

/**
 * What goes from the score warps to the value warps for a key tile. The m16 tile of a warp first
 * takes the partial scores that its partner sends it (two float4 a lane), then its weights (the A
 * fragment, one uint4 a lane).
 */
struct flash_weights {
    uint4 fragment[4][64];    /**< [m16][lane] */
    float factor[FLASH_ROWS]; /**< Of each row's accumulators, where `event` says so. */
    uint32_t event[4];        /**< [m16] FLASH_EVENT_... */
};

/** One item of work. */
struct flash_work {
    int64_t list;       /**< CSR: first entry in slots. Table: first entry of its row. */
    int32_t item;       /**< Its number in the wave. */
    int32_t request;    /**< Number of its request. */
    int32_t first_row;  /**< Query row of node 0. */
    int32_t nodes;      /**< Q. */
    int32_t prefix;     /**< N. */
    int32_t keys;       /**< Prefix rows and tree rows. */
    int32_t first_tile; /**< First key tile. */
    int32_t end_tile;   /**< One past the last. */
    uint32_t step;      /**< Key tiles of the block before the item. */
    int32_t first_pair; /**< Row 0: its pair of node and head in the request. */
    int32_t m16;        /**< The first m16 tiles, those that have a row; without any, no keys. */
    int32_t slab;     /**< Results of its row tile and chunk in the workspace; -1: no more work. */
    int32_t slab_row; /**< Row 0 in there: 0 but for a part of the row tile. */
};

/** Shared memory of a block. */
struct flash_shared {
    unsigned char keys[FLASH_SLOTS][FLASH_KEYS * FLASH_PITCH];   /**< The ring. */
    uint4 queries[FLASH_SCORE_WARPS][FLASH_SHARED_STEPS][2][32]; /**< A fragments. */
    struct flash_weights weights[FLASH_WEIGHTS];                 /**< Partial scores, then P. */
    uint64_t full[FLASH_SLOTS];                                  /**< Keys have come. */
    uint64_t spent[FLASH_SLOTS];                                 /**< Values were used. */
    uint64_t weighed[FLASH_WEIGHTS];                             /**< Weights are there. */
    struct flash_place place;                                    /**< Where `next` was found. */
    struct flash_work next;                                      /**< The item after it. */
    struct flash_work work;                                      /**< The item. */
};

static_assert(sizeof(struct flash_shared) <= 101376, "beyond a block of sm_120");
static_assert(FLASH_SHARED_STEPS == 1, "flash_multiply loads one step ahead into one place");
static_assert(FLASH_SCORE_WARPS * FLASH_SCORE_REGISTERS +
                      FLASH_VALUE_WARPS * FLASH_VALUE_REGISTERS +
                      FLASH_FETCH_WARPS * FLASH_FETCH_REGISTERS <=
                  65536 / 32,
              "beyond the registers of an SM");

/** Everything a launch is told. */
struct flash_launch {
    struct ref_attention call;  /**< The call; masks are PACKED or CHAIN or NONE. */
    struct flash_split split;   /**< Plan and card. */
    float scale;                /**< Of scores, to base 2. */
    int32_t first_tile;         /**< Row tiles of this wave. */
    int32_t end_tile;           /**< One past the last. */
    int32_t row_tiles;          /**< Of all waves. */
    int32_t prepares;           /**< Whether main does what flash_own_rows would. */
    struct flash_place *places; /**< [row tiles] where each was found. */
    int32_t *owners;            /**< [R] request that owns a row, or -1. */
    float2 *states;             /**< [slabs, 64] */
    float4 *partials;           /**< [slabs, 8 warps, 32 fragments, 32 lanes] */
};

/** All threads of the block meet, each kind in its own code. */
static __device__ __forceinline__ void flash_meet() {
    ptx_named_barrier(FLASH_BLOCK_BARRIER, FLASH_THREADS);
}

/** What is the same in all lanes, in a form that the compiler knows to be so. */
static __device__ __forceinline__ int32_t flash_uniform(int32_t value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

/** Sum over this lane and those before it. */
static __device__ __forceinline__ int32_t flash_scan(int32_t value, int32_t lane) {
    for (int32_t step = 1; step < 32; step *= 2) {
        int32_t other = __shfl_up_sync(0xffffffffu, value, step);
        value += lane >= step ? other : 0;
    }
    return value;
}

/**
 * Finds the request of an item, or of a row tile, of a wave, by one warp: lanes look at 32 requests
 * at a time, and the one that has it stores the place.
 *
 * @param launch the launch
 * @param index  which item or row tile of the wave
 * @param tiles  whether row tiles are counted
 * @param place  in shared memory; its request is -1 if there is no such item
 */
static __device__ __forceinline__ void flash_find(const struct flash_launch &launch, int32_t index,
                                                  bool tiles, struct flash_place *place) {
    int32_t lane = ptx_lane();
    int32_t tiles_before = 0;
    int32_t slabs_before = 0;
    int32_t items_before = 0;
    if (lane == 0) {
        place->request = -1;
    }
    __syncwarp();
    for (int32_t first = 0; first < launch.call.batch; first += 32) {
        struct ref_row row = {0, 0, 0, 0, 0};
        struct flash_cut cut = {0, 0, 0, 0};
        if (first + lane < launch.call.batch) {
            cut = flash_cut_request(&launch.call, &launch.split, first + lane, &row);
        }
        int32_t end = tiles_before + flash_scan(cut.row_tiles, lane);
        int32_t begin = end - cut.row_tiles;
        int32_t low = begin > launch.first_tile ? begin : launch.first_tile;
        int32_t high = end < launch.end_tile ? end : launch.end_tile;
        int32_t count = high > low ? high - low : 0;
        int32_t slabs = count * cut.chunks;
        int32_t items = slabs * cut.parts;
        int32_t base = slabs_before + flash_scan(slabs, lane) - slabs;
        int32_t item = items_before + flash_scan(items, lane) - items;
        int32_t offset = tiles ? index + launch.first_tile - low : index - item;
        bool hit = offset >= 0 && offset < (tiles ? count : items);
        if (hit) {
            place->cut = cut;
            place->request = first + lane;
            place->first_row = (int32_t)row.first_row;
            place->nodes = row.num_nodes;
            place->prefix = (int32_t)row.prefix_len;
            place->first = low - begin;
            place->count = count;
            place->base = base;
            place->index = offset;
        }
        if (__any_sync(0xffffffffu, hit)) {
            break;
        }
        tiles_before = __shfl_sync(0xffffffffu, end, 31);
        slabs_before = __shfl_sync(0xffffffffu, base + slabs, 31);
        items_before = __shfl_sync(0xffffffffu, item + items, 31);
    }
    __syncwarp();
}

/** Item of a wave, by one warp. Parts against one chunk are neighbours: they read the same rows. */
static __device__ __forceinline__ void flash_find_work(const struct flash_launch &launch,
                                                       int32_t item, struct flash_place *place,
                                                       struct flash_work *work) {
    const struct ref_attention &a = launch.call;
    flash_find(launch, item, false, place);
    if (ptx_lane() != 0) {
        return;
    }
    work->item = item;
    work->slab = -1;
    if (place->request < 0) {
        return;
    }
    int32_t parts = place->cut.parts;
    int32_t chunk = place->index / (place->count * parts);
    int32_t part = place->index % (place->count * parts);
    int32_t tile = part / parts;
    part += place->first * parts; /* within the request */
    work->request = place->request;
    work->first_row = place->first_row;
    work->nodes = place->nodes;
    work->prefix = place->prefix;
    work->keys = place->prefix + (a.mask_mode == REF_MASK_NONE ? 0 : place->nodes);
    work->first_tile = flash_chunk_begin(&place->cut, chunk);
    work->first_pair = part * (FLASH_ROWS / parts);
    work->m16 = flash_m16(work->nodes * a.num_heads, parts, part);
    work->end_tile = work->m16 > 0 ? flash_chunk_begin(&place->cut, chunk + 1) : work->first_tile;
    work->slab = place->base + tile * place->cut.chunks + chunk;
    work->slab_row = work->first_pair % FLASH_ROWS;
    if (a.addressing == REF_ADDRESSING_CSR) {
        work->list = ref_load_index(a.indptr, a.length_dtype, place->request);
    } else {
        int32_t row = a.table_rows != NULL ? a.table_rows[place->request] : place->request;
        work->list = row * a.row_table_stride;
    }
}

/** Slot of a key of the item (eq-slot-csr, eq-slot-table); a pool has fewer than 2^32. */
static __device__ __forceinline__ uint32_t flash_slot(const struct ref_attention &a,
                                                      const struct flash_work &work, int32_t key) {
    if (a.tree_slots != NULL && key >= work.prefix) {
        return (uint32_t)ref_load_index(a.tree_slots, a.slot_dtype,
                                        work.first_row + (key - work.prefix));
    }
    if (a.addressing == REF_ADDRESSING_CSR) {
        return (uint32_t)ref_load_index(a.slots, a.slot_dtype, work.list + key);
    }
    uint32_t page =
        (uint32_t)ref_load_index(a.row_table, a.slot_dtype, work.list + key / a.page_size);
    return page * (uint32_t)a.page_size + (uint32_t)(key % a.page_size);
}

#endif
