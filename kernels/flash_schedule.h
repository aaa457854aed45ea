// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The schedule of the flash kernel in plain C: row tiles, key tiles, chunks, and the workspace.
 *
 * A *row tile* is 64 (node, head) pairs of one request, a *key tile* 16 keys (prefix rows, then
 * tree rows), a *chunk* a range of key tiles, an *item* one row tile against one chunk: what a
 * block works on. How a request is cut follows from its own lengths, the plan's options and the
 * card, never from the batch, so that neither do its bits. Row tiles run in waves, which bounds
 * the workspace and changes no bit.
 */
#ifndef KERNELS_FLASH_SCHEDULE_H
#define KERNELS_FLASH_SCHEDULE_H

#include "rows.h"

/** Rows (node, head) of a row tile. */
#define FLASH_ROWS 64
/** Keys of a key tile: the k of one mma.sync. */
#define FLASH_KEYS 16
/** Latent dimension. */
#define FLASH_LATENT 512
/** Rope dimension. */
#define FLASH_ROPE 64
/** Rounds of items over all blocks that the choice of chunks weighs. */
#define FLASH_ROUNDS 2
/** Bytes of the unnormalised output of an item. */
#define FLASH_PARTIAL_BYTES ((int64_t)FLASH_ROWS * FLASH_LATENT * 4)
/** Workspace that partial outputs may take before row tiles run in waves. */
#define FLASH_WAVE_BYTES ((int64_t)88 << 20)

/** How one request is cut. */
struct flash_cut {
    int32_t row_tiles; /**< R = ceil(Q H / 64). */
    int32_t key_tiles; /**< T = ceil(keys / 16). */
    int32_t chunks;    /**< C; their key tiles: flash_chunk_begin(). */
};

/** Where an item or a row tile of a wave was found. */
struct flash_place {
    struct flash_cut cut; /**< Of the request. */
    int32_t request;      /**< Its number, or -1 if there is no such item. */
    int32_t first_row;    /**< Query row of node 0. */
    int32_t nodes;        /**< Q. */
    int32_t prefix;       /**< N. */
    int32_t first;        /**< First row tile of the request that is in the wave. */
    int32_t count;        /**< Its row tiles in the wave. */
    int32_t base;         /**< Items of the wave before it. */
    int32_t index;        /**< What was searched, counted from the request's first. */
};

/** What the choice of chunks takes from plan and card. */
struct flash_split {
    int32_t blocks;         /**< Blocks that run at once: the SMs of the card. */
    int32_t expected_batch; /**< Requests expected to run together. */
};

/**
 * Keys of a request: its prefix, and its nodes where the mask lets any be seen.
 *
 * @param a   the call
 * @param row an active request
 * @return number of keys
 */
REF_INLINE int64_t flash_keys(const struct ref_attention *a, const struct ref_row *row) {
    return row->prefix_len + (a->mask_mode == REF_MASK_NONE ? 0 : row->num_nodes);
}

/**
 * Integer square root of a quotient.
 *
 * @param x dividend, below 2^31
 * @param y divisor, >= 1
 * @return floor(sqrt(floor(x / y)))
 */
REF_INLINE uint32_t flash_root(uint32_t x, uint32_t y) {
    uint32_t root = 0;
    uint32_t square = x / y;
    for (uint32_t bit = 1u << 15; bit != 0; bit /= 2) {
        root |= (root | bit) * (root | bit) <= square ? bit : 0;
    }
    return root;
}

/**
 * Chunks of a request: of the splits that fill 1 to FLASH_ROUNDS rounds, the one with the shortest
 * estimated time, in units of a key tile: starting and ending an item costs 8, and combining a
 * seventeenth for each item.
 *
 * @param split     plan and card
 * @param row_tiles R >= 1
 * @param key_tiles T >= 0
 * @return C, 1 to max(T, 1)
 */
REF_INLINE int32_t flash_chunks(const struct flash_split *split, int32_t row_tiles,
                                int32_t key_tiles) {
    int64_t together = (int64_t)row_tiles * split->expected_batch;
    if (together >= split->blocks * FLASH_ROUNDS || key_tiles <= 1) {
        return 1;
    }
    uint32_t items = (uint32_t)together;
    uint32_t blocks = (uint32_t)split->blocks;
    uint32_t tiles = (uint32_t)key_tiles;
    /* More chunks than this cost more in the combine than they save. */
    uint32_t most = flash_root(17 * tiles, items);
    most = most < tiles ? most : tiles;
    uint32_t best = 1;
    uint32_t best_time = UINT32_MAX;
    for (uint32_t round = 1; round <= FLASH_ROUNDS; round++) {
        uint32_t chunks = round * blocks / items;
        chunks = chunks < most ? chunks : most;
        chunks = chunks > 1 ? chunks : 1;
        uint32_t rounds = (items * chunks + blocks - 1) / blocks;
        uint32_t time = rounds * ((tiles + chunks - 1) / chunks + 8) + items * chunks / 17;
        if (time < best_time) {
            best_time = time;
            best = chunks;
        }
    }
    return (int32_t)best;
}

/**
 * First key tile of a chunk: the first T mod C chunks have one more than the others.
 *
 * @param cut   of the request
 * @param chunk 0 to C; C gives T
 * @return key tile
 */
REF_INLINE int32_t flash_chunk_begin(const struct flash_cut *cut, int32_t chunk) {
    int32_t each = cut->key_tiles / cut->chunks;
    int32_t longer = cut->key_tiles % cut->chunks;
    return chunk * each + (chunk < longer ? chunk : longer);
}

/**
 * How a request is cut; all zero if it is inactive.
 *
 * @param a       the call
 * @param split   plan and card
 * @param request its number
 * @param row     gets its bounds
 * @return the cut
 */
REF_INLINE struct flash_cut flash_cut_request(const struct ref_attention *a,
                                              const struct flash_split *split, int32_t request,
                                              struct ref_row *row) {
    struct flash_cut cut = {0, 0, 0};
    row->request = request;
    row->num_nodes = 0;
    if (ref_request_bounds(a, request, row) == 0 && row->num_nodes > 0) {
        cut.row_tiles = (row->num_nodes * a->num_heads + FLASH_ROWS - 1) / FLASH_ROWS;
        cut.key_tiles = ((int32_t)flash_keys(a, row) + FLASH_KEYS - 1) / FLASH_KEYS;
        cut.chunks = flash_chunks(split, cut.row_tiles, cut.key_tiles);
    }
    return cut;
}

/** What a run needs of its workspace and how many waves it takes: plan limits only. */
struct flash_layout {
    int64_t row_tiles;   /**< Largest number of row tiles of a run. */
    int64_t wave_tiles;  /**< Row tiles of a wave. */
    int64_t wave_items;  /**< Largest number of items of a wave. */
    int64_t mask_stride; /**< PARENTS: words of a row of the mask made of them; else 0. */
    int64_t places;      /**< Offset of struct flash_place [row_tiles]. */
    int64_t owners;      /**< Offset of int32 [R]: request that owns a row, or -1. */
    int64_t masks;       /**< Offset of uint32 [R, mask_stride]. */
    int64_t states;      /**< Offset of float2 [wave_items, 64]: reference and sum of weights. */
    int64_t partials;    /**< Offset of float [wave_items, 64 * 512], in fragment order. */
    int64_t bytes;       /**< Whole size. */
};

/**
 * Items of a number of row tiles: of a request of r row tiles and T key tiles, flash_chunks() makes
 * at most max(r, 2 blocks / expected), and at most max(r, sqrt(17 T r)); sqrt(17 T r) is at most
 * r + 17/4 T.
 *
 * @param a     the call
 * @param split plan and card
 * @param tiles row tiles
 * @return an upper bound
 */
REF_INLINE int64_t flash_most_items(const struct ref_attention *a, const struct flash_split *split,
                                    int64_t tiles) {
    int64_t requests = tiles < a->batch ? tiles : a->batch;
    int64_t each = (int64_t)FLASH_ROUNDS * split->blocks / split->expected_batch;
    int64_t keys = a->max_prefix_len + a->max_nodes;
    int64_t longest = (keys + FLASH_KEYS - 1) / FLASH_KEYS;
    int64_t chunked = (17 * longest + 3) / 4;
    chunked = chunked < each ? chunked : each;
    return tiles + requests * chunked;
}

/**
 * The workspace of a run.
 *
 * @param a      the call; limits only
 * @param split  plan and card
 * @param layout filled
 * @return REF_OK or REF_SIZE_OVERFLOW
 */
REF_INLINE int32_t flash_workspace_layout(const struct ref_attention *a,
                                          const struct flash_split *split,
                                          struct flash_layout *layout) {
    /* Every active request ends in at most one row tile that is not full. */
    int64_t pairs = a->row_capacity * a->num_heads;
    int64_t requests = a->batch < a->row_capacity ? a->batch : a->row_capacity;
    layout->row_tiles = pairs / FLASH_ROWS + requests;
    int64_t most = FLASH_WAVE_BYTES / FLASH_PARTIAL_BYTES;
    int64_t tiles = layout->row_tiles;
    while (tiles > 1 && flash_most_items(a, split, tiles) > most) {
        tiles = (tiles + 1) / 2;
    }
    layout->wave_tiles = tiles;
    layout->wave_items = flash_most_items(a, split, tiles);
    layout->mask_stride = a->mask_mode == REF_MASK_PARENTS ? (a->max_nodes + 31) / 32 : 0;
    int64_t limit = INT64_MAX / 8;
    if (pairs > limit / 64 || layout->mask_stride > limit / 4 / a->row_capacity) {
        return REF_SIZE_OVERFLOW;
    }
    layout->places = 0;
    layout->owners = (layout->row_tiles * (int64_t)sizeof(struct flash_place) + 255) / 256 * 256;
    layout->masks = (layout->owners + a->row_capacity * 4 + 255) / 256 * 256;
    layout->states = (layout->masks + a->row_capacity * layout->mask_stride * 4 + 255) / 256 * 256;
    layout->partials = layout->states + layout->wave_items * FLASH_ROWS * 8;
    layout->bytes = layout->partials + layout->wave_items * FLASH_PARTIAL_BYTES;
    return REF_OK;
}

#endif
