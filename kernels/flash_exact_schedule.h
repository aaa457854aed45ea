// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The schedule of exact mode in plain C (spec/numerics.md, "Exact mode").
 *
 * Positions are cut into *pages* of whole key tiles, and pages make *chunks*: both follow from the
 * position alone. A chunk is one chain of accumulation, whoever computes it. The first pages are
 * short, so that short contexts have enough chunks to fill a card; the last kind repeats for ever,
 * dealt out to its chunks in turn, so that a row has at most FLASH_CHUNKS of them.
 *
 * Which block computes which chunks follows from the run and changes no bit: a *run* of consecutive
 * chunks, whose key tiles do not exceed a *room*, is what a block does for a part of a row tile.
 */
#ifndef KERNELS_FLASH_EXACT_SCHEDULE_H
#define KERNELS_FLASH_EXACT_SCHEDULE_H

#include "flash_schedule.h"

/** Key tiles of a page of the first kind, and how many such pages there are: 4,096 positions. */
#define FLASH_EXACT_SMALL 16
#define FLASH_EXACT_SMALL_PAGES 16 /**< See FLASH_EXACT_SMALL. */
/** The same of the second kind: 32,992 positions with the first. */
#define FLASH_EXACT_MEDIUM 86
#define FLASH_EXACT_MEDIUM_PAGES 21 /**< See FLASH_EXACT_MEDIUM. */
/** Key tiles of a page of the third kind, which has no end. */
#define FLASH_EXACT_LARGE 98
/** Chunks of the third kind: page k of that kind is in its chunk k mod this. */
#define FLASH_EXACT_LARGE_CHUNKS (FLASH_CHUNKS - FLASH_EXACT_LARGE_FIRST)
/** First page, and chunk, of the third kind. */
#define FLASH_EXACT_LARGE_FIRST (FLASH_EXACT_SMALL_PAGES + FLASH_EXACT_MEDIUM_PAGES)
/** First key tile of the second kind. */
#define FLASH_EXACT_MEDIUM_BEGIN (FLASH_EXACT_SMALL * FLASH_EXACT_SMALL_PAGES)
/** First key tile of the third kind. */
#define FLASH_EXACT_LARGE_BEGIN \
    (FLASH_EXACT_MEDIUM_BEGIN + FLASH_EXACT_MEDIUM * FLASH_EXACT_MEDIUM_PAGES)
/** Key tiles of one page of each chunk of the third kind. */
#define FLASH_EXACT_ROUND (FLASH_EXACT_LARGE * FLASH_EXACT_LARGE_CHUNKS)
/** Workspace that partial outputs may take before row tiles run in waves. */
#define FLASH_EXACT_WAVE_BYTES ((int64_t)216 << 20)
/** Sizes of a room that are tried at a time: the lanes of a warp. */
#define FLASH_EXACT_ROOMS 32

/**
 * Page of a key tile.
 *
 * @param tile number of the key tile, which holds positions 16 tile to 16 tile + 15
 * @return the page
 */
REF_INLINE int32_t flash_exact_page(int32_t tile) {
    if (tile < FLASH_EXACT_MEDIUM_BEGIN) {
        return tile / FLASH_EXACT_SMALL;
    }
    if (tile < FLASH_EXACT_LARGE_BEGIN) {
        return FLASH_EXACT_SMALL_PAGES + (tile - FLASH_EXACT_MEDIUM_BEGIN) / FLASH_EXACT_MEDIUM;
    }
    return FLASH_EXACT_LARGE_FIRST + (tile - FLASH_EXACT_LARGE_BEGIN) / FLASH_EXACT_LARGE;
}

/**
 * First key tile of a page.
 *
 * @param page the page
 * @return its first key tile
 */
REF_INLINE int32_t flash_exact_page_begin(int32_t page) {
    if (page < FLASH_EXACT_SMALL_PAGES) {
        return page * FLASH_EXACT_SMALL;
    }
    if (page < FLASH_EXACT_LARGE_FIRST) {
        return FLASH_EXACT_MEDIUM_BEGIN + (page - FLASH_EXACT_SMALL_PAGES) * FLASH_EXACT_MEDIUM;
    }
    return FLASH_EXACT_LARGE_BEGIN + (page - FLASH_EXACT_LARGE_FIRST) * FLASH_EXACT_LARGE;
}

/**
 * Chunk of a page.
 *
 * @param page the page
 * @return 0 to FLASH_CHUNKS - 1
 */
REF_INLINE int32_t flash_exact_chunk(int32_t page) {
    return page < FLASH_CHUNKS ? page
                               : FLASH_EXACT_LARGE_FIRST +
                                     (page - FLASH_EXACT_LARGE_FIRST) % FLASH_EXACT_LARGE_CHUNKS;
}

/**
 * Chunks that hold any of the first key tiles: they are the first chunks.
 *
 * @param tiles how many key tiles
 * @return 0 to FLASH_CHUNKS
 */
REF_INLINE int32_t flash_exact_chunks(int32_t tiles) {
    int32_t pages = tiles > 0 ? flash_exact_page(tiles - 1) + 1 : 0;
    return pages < FLASH_CHUNKS ? pages : FLASH_CHUNKS;
}

/**
 * Of the first key tiles, those that lie in the chunks before a chunk.
 *
 * @param chunk 0 to FLASH_CHUNKS
 * @param tiles how many key tiles
 * @return 0 to tiles
 */
REF_INLINE int32_t flash_exact_before(int32_t chunk, int32_t tiles) {
    int32_t begin = flash_exact_page_begin(chunk);
    if (tiles <= begin || chunk <= FLASH_EXACT_LARGE_FIRST) {
        return tiles < begin ? tiles : begin;
    }
    int32_t rounds = (tiles - FLASH_EXACT_LARGE_BEGIN) / FLASH_EXACT_ROUND;
    int32_t rest = (tiles - FLASH_EXACT_LARGE_BEGIN) % FLASH_EXACT_ROUND;
    int32_t each = begin - FLASH_EXACT_LARGE_BEGIN;
    return FLASH_EXACT_LARGE_BEGIN + rounds * each + (rest < each ? rest : each);
}

/**
 * Of the first key tiles, those of a chunk.
 *
 * @param chunk 0 to FLASH_CHUNKS - 1
 * @param tiles how many key tiles
 * @return how many of them
 */
REF_INLINE int32_t flash_exact_tiles(int32_t chunk, int32_t tiles) {
    return flash_exact_before(chunk + 1, tiles) - flash_exact_before(chunk, tiles);
}

/**
 * How far a key tile of a chunk is from the chunk's first: its pages are a round apart.
 *
 * @param index which of the chunk's key tiles, in ascending order of positions
 * @return key tiles
 */
REF_INLINE int32_t flash_exact_leap(int32_t index) {
    /* Pages of the other kinds have fewer key tiles than FLASH_EXACT_LARGE. */
    return index + index / FLASH_EXACT_LARGE * (FLASH_EXACT_ROUND - FLASH_EXACT_LARGE);
}

/**
 * Kinds of chunks of about one size: of the first kind of pages, of the second, and of the third
 * those that have a page of the last round and those that have none.
 *
 * @param tiles of a request: those that hold prefix rows only
 * @param kind  0 to 3
 * @return one past the last chunk of the kind; the first ones may lie beyond the request's chunks
 */
REF_INLINE int32_t flash_exact_kind_end(int32_t tiles, int32_t kind) {
    if (kind != 2 || tiles <= FLASH_EXACT_LARGE_BEGIN) {
        return kind == 0   ? FLASH_EXACT_SMALL_PAGES
               : kind == 1 ? FLASH_EXACT_LARGE_FIRST
                           : FLASH_CHUNKS;
    }
    int32_t rest = (tiles - FLASH_EXACT_LARGE_BEGIN) % FLASH_EXACT_ROUND;
    return FLASH_EXACT_LARGE_FIRST + (rest + FLASH_EXACT_LARGE - 1) / FLASH_EXACT_LARGE;
}

/**
 * Packs chunks into runs: each takes as many as its room has place for, and at least one. A chunk
 * counts as one that is full.
 *
 * @param tiles of a request: those that hold prefix rows only
 * @param room  key tiles of a run
 * @param run   number of a run
 * @param runs  set to the number of runs
 * @return first chunk of the run; past the last run, the number of chunks
 */
REF_INLINE int32_t flash_exact_run_begin(int32_t tiles, int32_t room, int32_t run, int32_t *runs) {
    int32_t chunks = flash_exact_chunks(tiles);
    int32_t begun = 0;
    int32_t used = room; /* by the run that is open */
    int32_t found = chunks;
    int32_t end = 0;
    FLASH_ROLLED
    for (int32_t kind = 0; kind < 4 && end < chunks; kind++) {
        int32_t chunk = end; /* first of its kind */
        end = flash_exact_kind_end(tiles, kind);
        end = end < chunks ? end : chunks;
        int32_t left = end - chunk;
        if (left == 0) {
            continue;
        }
        int32_t size = flash_exact_tiles(chunk, tiles);
        int32_t fits = used < room ? (room - used) / size : 0;
        fits = fits < left ? fits : left;
        used += fits * size;
        left -= fits;
        if (left > 0) {
            int32_t each = room > size ? room / size : 1;
            int32_t fresh = (left + each - 1) / each;
            if (run >= begun && run < begun + fresh) {
                found = chunk + fits + (run - begun) * each;
            }
            begun += fresh;
            used = (left - (fresh - 1) * each) * size;
        }
    }
    *runs = begun;
    return found;
}

/**
 * A size of a room to try: one of FLASH_EXACT_ROOMS, ascending, of which the last always does.
 *
 * @param tiles as flash_exact_run_begin
 * @param runs  runs that there may be, at least 1
 * @param index which size, 0 to FLASH_EXACT_ROOMS - 1
 * @return key tiles
 */
REF_INLINE int32_t flash_exact_room(int32_t tiles, int32_t runs, int32_t index) {
    int32_t chunks = flash_exact_chunks(tiles);
    int32_t last = chunks > FLASH_EXACT_LARGE_FIRST ? FLASH_EXACT_LARGE_FIRST : 0;
    int32_t largest = flash_exact_tiles(last, tiles); /* none is larger, but for medium ones */
    largest = largest > FLASH_EXACT_LARGE ? largest : FLASH_EXACT_LARGE;
    return (tiles + runs - 1) / runs + index * (largest / (FLASH_EXACT_ROOMS - 8) + 1);
}

/** All that the prefixes of a wave hold, from which its runs follow. */
struct flash_exact_wave {
    int64_t tiles;  /**< Row tiles times their key tiles. */
    int64_t chunks; /**< Row tiles times their chunks. */
};

/**
 * Parts of a row tile: more than one where blocks would have nothing to do otherwise.
 *
 * @param wave   the wave
 * @param blocks M
 * @param pairs  Q H of the request
 * @return 1, 2 or 4
 */
REF_INLINE int32_t flash_exact_parts(const struct flash_exact_wave *wave, int32_t blocks,
                                     int32_t pairs) {
    int32_t m16 = flash_m16(pairs, 1, 0);
    int32_t parts = m16 > 2 ? FLASH_PARTS : m16;
    while (parts > 1 && wave->chunks * parts > blocks) {
        parts /= 2;
    }
    return parts;
}

/**
 * Most runs of each part of a request: its share of the blocks.
 *
 * @param wave   the wave
 * @param blocks M
 * @param parts  flash_exact_parts
 * @param tiles  of the request: those that hold prefix rows only
 * @return 0 without any, else 1 to the number of its chunks
 */
REF_INLINE int32_t flash_exact_runs(const struct flash_exact_wave *wave, int32_t blocks,
                                    int32_t parts, int32_t tiles) {
    int32_t chunks = flash_exact_chunks(tiles);
    if (tiles == 0 || parts > 1 || wave->tiles == 0) {
        return chunks;
    }
    int64_t runs = (int64_t)tiles * blocks / wave->tiles;
    runs = runs > 1 ? runs : 1;
    return (int32_t)(runs < chunks ? runs : chunks);
}

/**
 * Chunks that a row of the plan can have: what the workspace has for each row tile.
 *
 * @param a the call; limits only
 * @return 1 to FLASH_CHUNKS
 */
REF_INLINE int32_t flash_exact_most_chunks(const struct ref_attention *a) {
    int64_t keys = a->max_prefix_len + (a->mask_mode == REF_MASK_NONE ? 0 : a->max_nodes);
    int32_t chunks = flash_exact_chunks((int32_t)((keys + FLASH_KEYS - 1) / FLASH_KEYS));
    return chunks > 1 ? chunks : 1;
}

/**
 * The workspace of a run in exact mode. States are float2 [wave_items, 64, 4]: reference and sum of
 * weights of each of a row's four lanes.
 *
 * @param a      the call; limits only
 * @param layout filled; wave_items is wave_tiles times flash_exact_most_chunks
 * @return REF_OK or REF_SIZE_OVERFLOW
 */
REF_INLINE int32_t flash_exact_workspace_layout(const struct ref_attention *a,
                                                struct flash_layout *layout) {
    int64_t pairs = a->row_capacity * a->num_heads;
    int64_t requests = a->batch < a->row_capacity ? a->batch : a->row_capacity;
    /* A request ends in a row tile that is not full only where heads do not fill them. */
    layout->row_tiles = pairs / FLASH_ROWS + (a->num_heads % FLASH_ROWS == 0 ? 0 : requests);
    int64_t chunks = flash_exact_most_chunks(a);
    int64_t most = FLASH_EXACT_WAVE_BYTES / FLASH_PARTIAL_BYTES / chunks;
    int64_t waves = (layout->row_tiles + most - 1) / most;
    layout->wave_tiles = (layout->row_tiles + waves - 1) / waves;
    layout->wave_items = layout->wave_tiles * chunks;
    layout->mask_stride = a->mask_mode == REF_MASK_PARENTS ? (a->max_nodes + 31) / 32 : 0;
    int64_t limit = INT64_MAX / 8;
    if (pairs > limit / 64 || layout->mask_stride > limit / 4 / a->row_capacity) {
        return REF_SIZE_OVERFLOW;
    }
    layout->places = 0;
    layout->owners = (layout->row_tiles * (int64_t)sizeof(struct flash_place) + 255) / 256 * 256;
    layout->masks = (layout->owners + a->row_capacity * 4 + 255) / 256 * 256;
    layout->states = (layout->masks + a->row_capacity * layout->mask_stride * 4 + 255) / 256 * 256;
    layout->partials = layout->states + layout->wave_items * FLASH_ROWS * 4 * 8;
    layout->bytes = layout->partials + layout->wave_items * FLASH_PARTIAL_BYTES;
    return REF_OK;
}

/**
 * Most row tiles that the heads of a node lie in.
 *
 * @param heads H
 * @return at least 1
 */
REF_INLINE int32_t flash_exact_node_tiles(int32_t heads) {
    /* A node begins at a multiple of the largest power of two in heads, at most at 64 less that. */
    int32_t step = heads & -heads;
    step = step < FLASH_ROWS ? step : FLASH_ROWS;
    return (FLASH_ROWS - step + heads + FLASH_ROWS - 1) / FLASH_ROWS;
}

#endif
