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
/** Named barriers of the first and the second pair of score warps: this and the next. */
#define FLASH_PAIR_BARRIER 1
/** Whether every lane arrives at barriers, not only the first of its warp: for racecheck. */
#ifndef FLASH_EVERY_LANE
#define FLASH_EVERY_LANE 0
#endif
/** Arrivals of a warp. */
#define FLASH_ARRIVALS (FLASH_EVERY_LANE ? 32 : 1)
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

/** Events of a key tile: accumulators have factors; keys are not finite. In exact mode also: the
 * chunk before it has ended; it has no keys, and the item has ended. */
#define FLASH_EVENT_FACTORS 1u
#define FLASH_EVENT_ODD 2u   /**< See FLASH_EVENT_FACTORS. */
#define FLASH_EVENT_CHUNK 4u /**< See FLASH_EVENT_FACTORS. */
#define FLASH_EVENT_END 8u   /**< See FLASH_EVENT_FACTORS. */

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
    uint32_t turn;      /**< Items of the block before it. */
    int32_t first_pair; /**< Row 0: its pair of node and head in the request. */
    int32_t m16;        /**< The first m16 tiles, those that have a row; without any, no keys. */
    int32_t slab;     /**< Results of its row tile and chunk in the workspace; -1: no more work. */
    int32_t slab_row; /**< Row 0 in there: 0 but for a part of the row tile. */
    int32_t items;    /**< Items of the wave, where the search came to its end; else INT32_MAX. */
};

/** Shared memory of a block. */
struct flash_shared {
    unsigned char keys[FLASH_SLOTS][FLASH_KEYS * FLASH_PITCH];   /**< The ring. */
    uint4 queries[FLASH_SCORE_WARPS][FLASH_SHARED_STEPS][2][32]; /**< A fragments. */
    struct flash_weights weights[FLASH_WEIGHTS];                 /**< Partial scores, then P. */
    uint64_t full[FLASH_SLOTS];                                  /**< Keys have come. */
    uint64_t spent[FLASH_SLOTS];                                 /**< Values were used. */
    uint64_t weighed[FLASH_WEIGHTS];                             /**< Weights are there. */
    uint64_t loaded[2];     /**< Queries of a round are in the ring. */
    uint64_t taken[2];      /**< They are in the score warps' registers. */
    uint64_t ended;         /**< No warp looks at `work` any more. */
    uint64_t begun;         /**< `work` is the next item. */
    uint32_t unread[32];    /**< Of flash_ask_slots. */
    struct flash_work next; /**< The item after it. */
    struct flash_work work; /**< The item. */
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

/**
 * Arrives for a warp, after what all its lanes did. With FLASH_EVERY_LANE each lane arrives itself:
 * racecheck does not follow lane 0 through the __syncwarp.
 */
static __device__ __forceinline__ void flash_arrive(uint64_t *barrier) {
    __syncwarp();
    if (FLASH_EVERY_LANE || ptx_lane() == 0) {
        ptx_mbarrier_arrive(barrier);
    }
}

/** Slot of the ring, of the two that the item's queries come through: those of its third and fourth
 * key tile. */
static __device__ __forceinline__ unsigned char *flash_query_slot(struct flash_shared *shared,
                                                                  int32_t tile) {
    return shared->keys[(shared->work.step + 2 + (uint32_t)tile) % FLASH_SLOTS];
}

/** Ends the item for this warp, and waits for the next one. */
static __device__ __forceinline__ void flash_next_item(struct flash_shared *shared) {
    uint32_t turn = shared->work.turn;
    flash_arrive(&shared->ended);
    ptx_mbarrier_wait(&shared->begun, turn % 2);
}

/** As flash_next_item, by the warp that has found the next item: waits until no warp looks at
 * `work`. Then comes flash_begin_item. */
static __device__ __forceinline__ void flash_end_item(struct flash_shared *shared) {
    uint32_t turn = shared->work.turn;
    flash_arrive(&shared->ended);
    ptx_mbarrier_wait(&shared->ended, turn % 2);
    __syncwarp(); /* all have seen the phase, which can end once `begun` is arrived at */
}

/** Makes `next` the item, and begins it. */
static __device__ __forceinline__ void flash_begin_item(struct flash_shared *shared) {
    uint32_t turn = shared->work.turn;
    __syncwarp();
    const uint32_t *next = (const uint32_t *)&shared->next;
    for (int32_t i = ptx_lane(); i < (int32_t)sizeof(struct flash_work) / 4; i += 32) {
        ((uint32_t *)&shared->work)[i] = next[i];
    }
    flash_arrive(&shared->begun);
    ptx_mbarrier_wait(&shared->begun, turn % 2);
}

/** What `next` has beside what is searched, by one warp. */
static __device__ __forceinline__ void flash_count_next(struct flash_shared *shared) {
    const struct flash_work &work = shared->work;
    if (ptx_lane() == 0) {
        shared->next.step = work.step + (uint32_t)(work.end_tile - work.first_tile);
        shared->next.turn = work.turn + 1;
    }
}

/** Initialises the barriers of a block, by one thread. */
static __device__ __forceinline__ void flash_init_barriers(struct flash_shared *shared) {
    for (int32_t i = 0; i < FLASH_SLOTS; i++) {
        ptx_mbarrier_init(&shared->full[i], FLASH_FETCH_WARPS * FLASH_ARRIVALS);
        ptx_mbarrier_init(&shared->spent[i], FLASH_VALUE_WARPS * FLASH_ARRIVALS);
    }
    for (int32_t i = 0; i < FLASH_WEIGHTS; i++) {
        ptx_mbarrier_init(&shared->weighed[i], FLASH_SCORE_WARPS * FLASH_ARRIVALS);
    }
    for (int32_t i = 0; i < 2; i++) {
        ptx_mbarrier_init(&shared->loaded[i], FLASH_VALUE_WARPS * FLASH_ARRIVALS);
        ptx_mbarrier_init(&shared->taken[i], FLASH_SCORE_WARPS * FLASH_ARRIVALS);
    }
    ptx_mbarrier_init(&shared->ended, FLASH_THREADS / 32 * FLASH_ARRIVALS);
    ptx_mbarrier_init(&shared->begun, FLASH_ARRIVALS);
    ptx_fence_async();
}

/** What is the same in all lanes, in a form that the compiler knows to be so. */
static __device__ __forceinline__ int32_t flash_uniform(int32_t value) {
    return __shfl_sync(0xffffffffu, value, 0);
}

/** Sum over this lane and those before it, where only the first `count` lanes have more than 0. */
static __device__ __forceinline__ int32_t flash_scan(int32_t value, int32_t lane, int32_t count) {
#pragma unroll 1
    for (int32_t step = 1; step < count; step *= 2) {
        int32_t other = __shfl_up_sync(0xffffffffu, value, step);
        value += lane >= step ? other : 0;
    }
    return value;
}

/**
 * Finds the request of an item, or of a row tile, of a wave, by one warp: lanes look at 32 requests
 * at a time.
 *
 * Counts fit 32 bits even where requests overlap: a batch is below 2^16, and a request has at most
 * 2^14 row tiles (FLASH_MOST_PAIRS).
 *
 * @param launch the launch
 * @param index  which item or row tile of the wave
 * @param tiles  whether row tiles are counted
 * @param place  filled in one lane; its request is -1 in all others, and if there is no such item
 * @param items_of_wave set to their number, where the search came to its end; else to INT32_MAX
 * @return whether a lane has it
 */
static __device__ __forceinline__ bool flash_find(const struct flash_launch &launch, int32_t index,
                                                  bool tiles, struct flash_place *place,
                                                  int32_t *items_of_wave) {
    int32_t lane = ptx_lane();
    int32_t tiles_before = 0;
    int32_t slabs_before = 0;
    int32_t items_before = 0;
    *place = {};
    place->request = -1;
#pragma unroll 1
    for (int32_t first = 0; first < launch.call.batch; first += 32) {
        struct ref_row row = {0, 0, 0, 0, 0};
        struct flash_cut cut = {0, 0, 0, 0};
        int32_t lanes = min(launch.call.batch - first, 32);
        if (lane < lanes) {
            cut = flash_cut_request(&launch.call, &launch.split, first + lane, &row);
        }
        int32_t end = tiles_before + flash_scan(cut.row_tiles, lane, lanes);
        int32_t begin = end - cut.row_tiles;
        int32_t low = begin > launch.first_tile ? begin : launch.first_tile;
        int32_t high = end < launch.end_tile ? end : launch.end_tile;
        int32_t count = high > low ? high - low : 0;
        int32_t slabs = count * cut.chunks;
        int32_t items = slabs * cut.parts;
        int32_t base = slabs_before + flash_scan(slabs, lane, lanes) - slabs;
        int32_t item = items_before + flash_scan(items, lane, lanes) - items;
        int32_t offset = tiles ? index + launch.first_tile - low : index - item;
        bool hit = offset >= 0 && offset < (tiles ? count : items);
        *place = {cut,
                  hit ? first + lane : -1,
                  (int32_t)row.first_row,
                  row.num_nodes,
                  (int32_t)row.prefix_len,
                  low - begin,
                  count,
                  base,
                  offset};
        items_before = __shfl_sync(0xffffffffu, item + items, lanes - 1);
        *items_of_wave = first + 32 < launch.call.batch ? INT32_MAX : items_before;
        if (__any_sync(0xffffffffu, hit)) {
            return true;
        }
        tiles_before = __shfl_sync(0xffffffffu, end, 31);
        slabs_before = __shfl_sync(0xffffffffu, base + slabs, 31);
    }
    return false;
}

/** The item that was found at a place. Parts against one chunk are neighbours: they read the same
 * rows. By one lane. */
static __device__ __forceinline__ void flash_set_work(const struct ref_attention &a,
                                                      const struct flash_place &place,
                                                      struct flash_work *work) {
    int32_t together = place.count * place.cut.parts;
    int32_t chunk = flash_quotient(place.index, together);
    int32_t part = place.index - chunk * together;
    int32_t tile = part >> place.cut.parts / 2;
    part += place.first * place.cut.parts; /* within the request */
    work->request = place.request;
    work->first_row = place.first_row;
    work->nodes = place.nodes;
    work->prefix = place.prefix;
    work->keys = place.prefix + (a.mask_mode == REF_MASK_NONE ? 0 : place.nodes);
    work->first_tile = flash_chunk_begin(&place.cut, chunk);
    work->first_pair = part * flash_part_rows(place.cut.parts);
    work->m16 = flash_m16(work->nodes * a.num_heads, place.cut.parts, part);
    work->end_tile = work->m16 > 0 ? flash_chunk_begin(&place.cut, chunk + 1) : work->first_tile;
    work->slab = place.base + tile * place.cut.chunks + chunk;
    work->slab_row = work->first_pair % FLASH_ROWS;
    if (a.addressing == REF_ADDRESSING_CSR) {
        work->list = ref_load_index(a.indptr, a.length_dtype, place.request);
    } else {
        int32_t row = a.table_rows != NULL ? a.table_rows[place.request] : place.request;
        work->list = row * a.row_table_stride;
    }
}

/** Finds an item of the wave, by one warp. */
static __device__ __forceinline__ void flash_find_item(const struct flash_launch &launch,
                                                       int32_t item, struct flash_work *work) {
    struct flash_place place;
    int32_t items = 0;
    bool found = flash_find(launch, item, false, &place, &items);
    if (place.request >= 0) {
        flash_set_work(launch.call, place, work);
    } else if (!found) {
        work->slab = -1;
    }
    if (ptx_lane() == 0) {
        work->item = item;
        work->items = items;
    }
    __syncwarp();
}

/** Finds the block's next item, by one warp. A search takes long, and many blocks have one item. */
static __device__ __forceinline__ void flash_find_next(const struct flash_launch &launch,
                                                       struct flash_shared *shared) {
    int32_t item = shared->work.item + (int32_t)gridDim.x;
    flash_count_next(shared);
    if (item < shared->work.items) {
        flash_find_item(launch, item, &shared->next);
    } else if (ptx_lane() == 0) {
        shared->next.slab = -1;
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

/** Asks for the slots of an item's first two key tiles, by a warp: the fetch warps need a while to
 * come to them. */
static __device__ __forceinline__ void
flash_ask_slots(const struct ref_attention &a, const struct flash_work &work, uint32_t *unread) {
    int32_t lane = ptx_lane();
    int32_t key = work.first_tile * FLASH_KEYS + lane;
    int64_t index = work.list + key / a.page_size;
    const void *list = a.addressing == REF_ADDRESSING_CSR ? a.slots : a.row_table;
    if (work.slab >= 0 && key < work.prefix) {
        ptx_ask(unread + lane,
                (const unsigned char *)list + index * (a.slot_dtype == REF_I64 ? 8 : 4));
    }
}

#endif
