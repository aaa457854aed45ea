// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The schedule of the flash kernel in plain C: row tiles, key tiles, chunks, and the workspace.
 *
 * A *row tile* is 64 (node, head) pairs of one request, a *part* all of its rows, half or a quarter
 * of them, a *key tile* 16 keys (prefix rows, then tree rows), a *chunk* a range of key tiles, an
 * *item* a part against a chunk: what a block works on. How a request is cut follows from its own
 * lengths, the plan's options and the card, never from the batch, so that neither do its bits. Row
 * tiles run in waves, which bounds the workspace and changes no bit.
 */
#ifndef KERNELS_FLASH_SCHEDULE_H
#define KERNELS_FLASH_SCHEDULE_H

#include <math.h>

#include "rows.h"

/** Rows (node, head) of a row tile. */
#define FLASH_ROWS 64
/** A loop that is not to be unrolled on the device, where its code would be fetched in vain. */
#ifdef __CUDA_ARCH__
#define FLASH_ROLLED _Pragma("unroll 1")
#else
#define FLASH_ROLLED
#endif
/** Rows of an m16 tile, which a row tile has four of: the m of one mma.sync. */
#define FLASH_M16 16
/** Keys of a key tile: the k of one mma.sync. */
#define FLASH_KEYS 16
/** Latent dimension. */
#define FLASH_LATENT 512
/** Rope dimension. */
#define FLASH_ROPE 64
/** Most rounds of items over all blocks that the choice of chunks weighs. */
#define FLASH_ROUNDS 2
/** Most chunks of a request: the SMs of the largest sm_120 die. The bound assumes no more
 * (FLASH_MAX_CHUNKS of ref/bound_flash.h). */
#define FLASH_CHUNKS 192
/** Bytes of the unnormalised output of a row tile and a chunk. */
#define FLASH_PARTIAL_BYTES ((int64_t)FLASH_ROWS * FLASH_LATENT * 4)
/** Workspace that partial outputs may take before row tiles run in waves. */
#define FLASH_WAVE_BYTES ((int64_t)88 << 20)

/** What flash_quotient takes: pairs of a request are fewer. */
#define FLASH_MOST_PAIRS (1 << 20)
/** Most keys of a request: their key tiles and as many chunks more are fewer than 2^20. */
#define FLASH_MOST_KEYS ((int64_t)((1 << 20) - 2 * FLASH_CHUNKS) * FLASH_KEYS)
/** Most parts of a row tile. */
#define FLASH_PARTS 4
/** Key tiles of a block up to which a row tile has two parts, and four. */
#define FLASH_SHORT 4
#define FLASH_SHORTEST 2 /**< See FLASH_SHORT. */

/** How one request is cut. */
struct flash_cut {
    int32_t row_tiles; /**< R = ceil(Q H / 64). */
    int32_t parts;     /**< Of a row tile, P: 1, 2 or 4. */
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
    int32_t base;         /**< Partial results of the wave before it: row tiles times chunks. */
    int32_t index;        /**< What was searched, counted from the request's first. */
};

/** What the choice of chunks takes from plan and card. */
struct flash_split {
    int32_t blocks;         /**< M: blocks that run at once, the SMs of the card. */
    int32_t expected_batch; /**< E: requests expected to run together. */
};

/**
 * Quotient of two numbers below 2^20. On the device a division of integers takes 150 clocks, and a
 * block waits for several of them before it knows what to do.
 *
 * @param a dividend
 * @param b divisor, not 0
 * @return a / b
 */
REF_INLINE int32_t flash_quotient(int32_t a, int32_t b) {
#ifdef __CUDA_ARCH__
    /* (a + 1/2) / b is 1 / (2 b) or more from an integer, a relative distance above 2^-21. */
    return (int32_t)__fdividef((float)a + 0.5f, (float)b);
#else
    return a / b;
#endif
}

/** Rows of a part: 64 / P. @param parts 1, 2 or 4 @return 64, 32 or 16 */
REF_INLINE int32_t flash_part_rows(int32_t parts) {
    return FLASH_ROWS >> parts / 2;
}

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
 * The m16 tiles of a part that have a row: what has none is neither computed nor stored.
 *
 * @param pairs Q H of the request
 * @param parts P, of a row tile
 * @param part  number of the part in the request
 * @return 0 to 4 / P
 */
REF_INLINE int32_t flash_m16(int32_t pairs, int32_t parts, int32_t part) {
    int32_t rows = flash_part_rows(parts);
    int32_t left = pairs - part * rows;
    left = left < rows ? left : rows;
    return left > 0 ? (left + FLASH_M16 - 1) / FLASH_M16 : 0;
}

/**
 * Estimated time of a request in eighths of a key tile of four m16 tiles. With one or two of them a
 * key tile takes 6; starting and ending an item costs 32 and 8 for each m16 tile, combining it 2/17
 * for each.
 *
 * @param split  plan and card
 * @param items  of all requests together, for each chunk
 * @param tiles  T
 * @param m16    m16 tiles of a part
 * @param chunks C, such that no block has more than two items
 * @return the time
 */
REF_INLINE uint32_t flash_time(const struct flash_split *split, int32_t items, int32_t tiles,
                               int32_t m16, int32_t chunks) {
    int32_t rounds = items * chunks > split->blocks ? 2 : 1;
    int32_t each = flash_quotient(tiles + chunks - 1, chunks);
    return (uint32_t)(rounds * (each * (m16 > 2 ? 8 : 6) + 32 + 8 * m16)) +
           (uint32_t)(items * chunks * m16) * 2 / 17;
}

/**
 * Most chunks that are worth their combination.
 *
 * @param items  of all requests together, for each chunk
 * @param tiles  T
 * @return the largest C with C^2 items <= 17 T, at most FLASH_CHUNKS and T, at least 1
 */
REF_INLINE int32_t flash_most_chunks(int32_t items, int32_t tiles) {
    /* A root that may be one off, then the exact one. */
#ifdef __CUDA_ARCH__
    float square = __fdividef((float)(17 * tiles), (float)items);
    int32_t most = (int32_t)(square * rsqrtf(square));
#else
    int32_t most = (int32_t)sqrtf((float)(17 * tiles) / (float)items);
#endif
    most = most < FLASH_CHUNKS ? most : FLASH_CHUNKS;
    most = (most + 1) * (most + 1) * items <= 17 * tiles ? most + 1 : most;
    most = most * most * items > 17 * tiles ? most - 1 : most;
    most = most < FLASH_CHUNKS ? most : FLASH_CHUNKS;
    most = most < tiles ? most : tiles;
    return most > 1 ? most : 1;
}

/**
 * Chunks of a request: of the splits that fill one round of items over all blocks, and two, the one
 * with the shorter estimated time.
 *
 * @param split plan and card
 * @param m16   m16 tiles of a part
 * @param cut   of the request; its chunks are set: 1 to min(max(T, 1), FLASH_CHUNKS)
 */
REF_INLINE void flash_set_chunks(const struct flash_split *split, int32_t m16,
                                 struct flash_cut *cut) {
    int64_t together = (int64_t)cut->row_tiles * cut->parts * split->expected_batch;
    cut->chunks = 1;
    if (together >= split->blocks * FLASH_ROUNDS || cut->key_tiles <= 1) {
        return;
    }
    int32_t items = (int32_t)together;
    int32_t one = flash_quotient(split->blocks, items);
    int32_t two = 2 * one + (2 * (split->blocks - one * items) >= items ? 1 : 0);
    int32_t most = flash_most_chunks(items, cut->key_tiles);
    one = one < most ? one : most;
    one = one > 1 ? one : 1;
    two = two < most ? two : most;
    uint32_t time_of_one = flash_time(split, items, cut->key_tiles, m16, one);
    uint32_t time_of_two = flash_time(split, items, cut->key_tiles, m16, two);
    cut->chunks = time_of_two < time_of_one ? two : one;
}

/**
 * Parts of a row tile. With one, the cache is read the fewest times. Where blocks have few key
 * tiles, beginnings and ends take longer than the keys: then two or four, which store less each, as
 * long as all of them run at once and have rows.
 *
 * @param split     plan and card
 * @param together  row tiles of all requests together
 * @param key_tiles T
 * @param m16       m16 tiles of the first row tile
 * @return P
 */
REF_INLINE int32_t flash_parts(const struct flash_split *split, int64_t together, int32_t key_tiles,
                               int32_t m16) {
    int64_t work = together * key_tiles;
    int32_t parts = work <= FLASH_SHORTEST * (int64_t)split->blocks ? 4
                    : work <= FLASH_SHORT * (int64_t)split->blocks  ? 2
                                                                    : 1;
    parts = parts > m16 ? (m16 > 2 ? 4 : m16) : parts;
    parts = together * parts > split->blocks ? parts / 2 : parts;
    return parts > 1 && together * parts <= split->blocks ? parts : 1;
}

/**
 * How a request is cut.
 *
 * @param split     plan and card
 * @param pairs     Q H, at least 1
 * @param key_tiles T
 * @return the cut
 */
REF_INLINE struct flash_cut flash_cut_lengths(const struct flash_split *split, int32_t pairs,
                                              int32_t key_tiles) {
    struct flash_cut cut = {(pairs + FLASH_ROWS - 1) / FLASH_ROWS, 1, key_tiles, 1};
    cut.parts = flash_parts(split, (int64_t)cut.row_tiles * split->expected_batch, key_tiles,
                            flash_m16(pairs, 1, 0));
    flash_set_chunks(split, flash_m16(pairs, cut.parts, 0), &cut);
    return cut;
}

/**
 * First key tile of a chunk: the first T mod C chunks have one more than the others.
 *
 * @param cut   of the request
 * @param chunk 0 to C; C gives T
 * @return key tile
 */
REF_INLINE int32_t flash_chunk_begin(const struct flash_cut *cut, int32_t chunk) {
    int32_t each = flash_quotient(cut->key_tiles, cut->chunks);
    int32_t longer = cut->key_tiles - each * cut->chunks;
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
    struct flash_cut cut = {0, 0, 0, 0};
    row->request = request;
    row->num_nodes = 0;
    if (ref_request_bounds(a, request, row) == 0 && row->num_nodes > 0) {
        cut = flash_cut_lengths(split, row->num_nodes * a->num_heads,
                                ((int32_t)flash_keys(a, row) + FLASH_KEYS - 1) / FLASH_KEYS);
    }
    return cut;
}

/** What a run needs of its workspace and how many waves it takes: plan limits only. */
struct flash_layout {
    int64_t row_tiles;   /**< Largest number of row tiles of a run. */
    int64_t wave_tiles;  /**< Row tiles of a wave. */
    int64_t wave_items;  /**< Largest number of row tiles times chunks of a wave. */
    int64_t mask_stride; /**< PARENTS: words of a row of the mask made of them; else 0. */
    int64_t places;      /**< Offset of struct flash_place [row_tiles]. */
    int64_t owners;      /**< Offset of int32 [R]: request that owns a row, or -1. */
    int64_t masks;       /**< Offset of uint32 [R, mask_stride]. */
    int64_t states;      /**< Offset of float2 [wave_items, 64]: reference and sum of weights. */
    int64_t partials;    /**< Offset of float [wave_items, 64 * 512], in fragment order. */
    int64_t bytes;       /**< Whole size. */
};

/**
 * Row tiles times chunks: of a request of r row tiles and T key tiles, flash_set_chunks makes
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
 * Where things lie in the workspace.
 *
 * @param a      the call; limits only
 * @param layout its numbers of row tiles and items; the rest is filled
 * @return REF_OK or REF_SIZE_OVERFLOW
 */
REF_INLINE int32_t flash_place_layout(const struct ref_attention *a, struct flash_layout *layout) {
    layout->mask_stride = a->mask_mode == REF_MASK_PARENTS ? (a->max_nodes + 31) / 32 : 0;
    int64_t limit = INT64_MAX / 8;
    if (a->row_capacity * a->num_heads > limit / 64 ||
        layout->mask_stride > limit / 4 / a->row_capacity) {
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
    return flash_place_layout(a, layout);
}

/**
 * Where a wave ends: the last one at the last row tile, behind which there are no places.
 *
 * @param layout of the run
 * @param first  first row tile of the wave
 * @return one past its last
 */
REF_INLINE int32_t flash_wave_end(const struct flash_layout *layout, int64_t first) {
    int64_t end = first + layout->wave_tiles;
    return (int32_t)(end < layout->row_tiles ? end : layout->row_tiles);
}

#endif
