// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The schedule of exact mode in plain C (spec/numerics.md, "Exact mode").
 *
 * Positions are cut into *pages* of whole key tiles, and pages make *chunks*: both follow from the
 * position and from H alone. A chunk is one chain of accumulation, whoever computes it. The first
 * pages are short, so that short contexts have enough chunks to fill a card; the last kind repeats
 * for ever, dealt out to its chunks in turn, so that a row has at most FLASH_CHUNKS of them.
 *
 * With few heads, requests have few row tiles, and many short pages keep the card busy. With more
 * of them it is busy anyhow, and what a chunk leaves in the workspace is what costs time.
 *
 * Which block computes which chunks follows from the run and changes no bit: a *run* of consecutive
 * chunks, whose key tiles do not exceed a *room*, is what a block does for a part of a row tile.
 */
#ifndef KERNELS_FLASH_EXACT_SCHEDULE_H
#define KERNELS_FLASH_EXACT_SCHEDULE_H

#include "flash_schedule.h"

/** Key tiles of a page of the first kind, with few heads and with FLASH_EXACT_HEADS or more, and
 * how many such pages there are: about 4,096 positions, but not so that a context of 4,096 ends
 * with a page, since its nodes would be a chunk of their own then. */
#define FLASH_EXACT_SHORT 17
#define FLASH_EXACT_SHORT_PAGES 15 /**< See FLASH_EXACT_SHORT. */
#define FLASH_EXACT_LONG 65        /**< See FLASH_EXACT_SHORT. */
#define FLASH_EXACT_LONG_PAGES 4   /**< See FLASH_EXACT_SHORT. */
#define FLASH_EXACT_HEADS 16       /**< See FLASH_EXACT_SHORT. */
/** Key tiles of a page of the second kind, and how many such pages there are: to
 * 33,000 positions. */
#define FLASH_EXACT_MEDIUM 86
#define FLASH_EXACT_MEDIUM_PAGES 21 /**< See FLASH_EXACT_MEDIUM. */
/** Key tiles of a page of the third kind, which has no end. */
#define FLASH_EXACT_LARGE 98
/** Chunks of the third kind: page k of that kind is in its chunk k mod this. */
#define FLASH_EXACT_LARGE_CHUNKS (FLASH_CHUNKS - FLASH_EXACT_MEDIUM_PAGES - FLASH_EXACT_SHORT_PAGES)
/** Key tiles of one page of each chunk of the third kind. */
#define FLASH_EXACT_ROUND (FLASH_EXACT_LARGE * FLASH_EXACT_LARGE_CHUNKS)
/** What the end of a chunk costs, in key tiles. */
#define FLASH_EXACT_END 4
/** Workspace that partial outputs may take before row tiles run in waves. */
#define FLASH_EXACT_WAVE_BYTES ((int64_t)216 << 20)
/** Sizes of a room that are tried at a time: the lanes of a warp. */
#define FLASH_EXACT_ROOMS 32

/**
 * Key tiles of a page of the first kind.
 *
 * @param heads H
 * @return what the functions below take as `small`
 */
REF_INLINE int32_t flash_exact_small(int32_t heads) {
    return heads < FLASH_EXACT_HEADS ? FLASH_EXACT_SHORT : FLASH_EXACT_LONG;
}

/** First page, and chunk, of the second kind. @param small flash_exact_small @return the page */
REF_INLINE int32_t flash_exact_medium_first(int32_t small) {
    return small == FLASH_EXACT_SHORT ? FLASH_EXACT_SHORT_PAGES : FLASH_EXACT_LONG_PAGES;
}

/** First key tile of the second kind. @param small flash_exact_small @return the key tile */
REF_INLINE int32_t flash_exact_medium_begin(int32_t small) {
    return small == FLASH_EXACT_SHORT ? FLASH_EXACT_SHORT * FLASH_EXACT_SHORT_PAGES
                                      : FLASH_EXACT_LONG * FLASH_EXACT_LONG_PAGES;
}

/** First page, and chunk, of the third kind. @param small flash_exact_small @return the page */
REF_INLINE int32_t flash_exact_large_first(int32_t small) {
    return flash_exact_medium_first(small) + FLASH_EXACT_MEDIUM_PAGES;
}

/** First key tile of the third kind. @param small flash_exact_small @return the key tile */
REF_INLINE int32_t flash_exact_large_begin(int32_t small) {
    return flash_exact_medium_begin(small) + FLASH_EXACT_MEDIUM * FLASH_EXACT_MEDIUM_PAGES;
}

/**
 * Page of a key tile.
 *
 * @param small flash_exact_small
 * @param tile  number of the key tile, which holds positions 16 tile to 16 tile + 15
 * @return the page
 */
REF_INLINE int32_t flash_exact_page(int32_t small, int32_t tile) {
    if (tile < flash_exact_medium_begin(small)) {
        return small == FLASH_EXACT_SHORT ? tile / FLASH_EXACT_SHORT : tile / FLASH_EXACT_LONG;
    }
    if (tile < flash_exact_large_begin(small)) {
        return flash_exact_medium_first(small) +
               (tile - flash_exact_medium_begin(small)) / FLASH_EXACT_MEDIUM;
    }
    return flash_exact_large_first(small) +
           (tile - flash_exact_large_begin(small)) / FLASH_EXACT_LARGE;
}

/**
 * First key tile of a page.
 *
 * @param small flash_exact_small
 * @param page  the page
 * @return its first key tile
 */
REF_INLINE int32_t flash_exact_page_begin(int32_t small, int32_t page) {
    int32_t medium = flash_exact_medium_first(small);
    int32_t large = flash_exact_large_first(small);
    if (page < medium) {
        return page * small;
    }
    if (page < large) {
        return flash_exact_medium_begin(small) + (page - medium) * FLASH_EXACT_MEDIUM;
    }
    return flash_exact_large_begin(small) + (page - large) * FLASH_EXACT_LARGE;
}

/**
 * Most chunks that a row has.
 *
 * @param small flash_exact_small
 * @return at most FLASH_CHUNKS
 */
REF_INLINE int32_t flash_exact_all_chunks(int32_t small) {
    return flash_exact_large_first(small) + FLASH_EXACT_LARGE_CHUNKS;
}

/**
 * Chunk of a page.
 *
 * @param small flash_exact_small
 * @param page  the page
 * @return 0 to flash_exact_all_chunks() - 1
 */
REF_INLINE int32_t flash_exact_chunk(int32_t small, int32_t page) {
    int32_t large = flash_exact_large_first(small);
    return page < large ? page : large + (page - large) % FLASH_EXACT_LARGE_CHUNKS;
}

/**
 * Chunks that hold any of the first key tiles: they are the first chunks.
 *
 * @param small flash_exact_small
 * @param tiles how many key tiles
 * @return 0 to flash_exact_all_chunks()
 */
REF_INLINE int32_t flash_exact_chunks(int32_t small, int32_t tiles) {
    int32_t pages = tiles > 0 ? flash_exact_page(small, tiles - 1) + 1 : 0;
    int32_t most = flash_exact_all_chunks(small);
    return pages < most ? pages : most;
}

/**
 * Of the first key tiles, those that lie in the chunks before a chunk.
 *
 * @param small flash_exact_small
 * @param chunk 0 to flash_exact_all_chunks()
 * @param tiles how many key tiles
 * @return 0 to tiles
 */
REF_INLINE int32_t flash_exact_before(int32_t small, int32_t chunk, int32_t tiles) {
    int32_t begin = flash_exact_page_begin(small, chunk);
    if (tiles <= begin || chunk <= flash_exact_large_first(small)) {
        return tiles < begin ? tiles : begin;
    }
    int32_t rounds = (tiles - flash_exact_large_begin(small)) / FLASH_EXACT_ROUND;
    int32_t rest = (tiles - flash_exact_large_begin(small)) % FLASH_EXACT_ROUND;
    int32_t each = begin - flash_exact_large_begin(small);
    return flash_exact_large_begin(small) + rounds * each + (rest < each ? rest : each);
}

/**
 * Of the first key tiles, those of a chunk.
 *
 * @param small flash_exact_small
 * @param chunk 0 to flash_exact_all_chunks() - 1
 * @param tiles how many key tiles
 * @return how many of them
 */
REF_INLINE int32_t flash_exact_tiles(int32_t small, int32_t chunk, int32_t tiles) {
    return flash_exact_before(small, chunk + 1, tiles) - flash_exact_before(small, chunk, tiles);
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
 * Of a chunk's key tiles, those that follow each other in a page.
 *
 * @param index which of the chunk's key tiles is the first
 * @param end   one past the last
 * @return how many from `index` on, at most to `end`
 */
REF_INLINE int32_t flash_exact_in_page(int32_t index, int32_t end) {
    int32_t left = FLASH_EXACT_LARGE - index % FLASH_EXACT_LARGE;
    return end - index < left ? end - index : left;
}

/**
 * Kinds of chunks of about one size: of the first kind of pages, of the second, and of the third
 * those that have a page of the last round and those that have none.
 *
 * @param small flash_exact_small
 * @param tiles of a request
 * @param kind  0 to 3
 * @return one past the last chunk of the kind, whether or not the request reaches it
 */
REF_INLINE int32_t flash_exact_kind_end(int32_t small, int32_t tiles, int32_t kind) {
    if (kind != 2 || tiles <= flash_exact_large_begin(small)) {
        return kind == 0   ? flash_exact_medium_first(small)
               : kind == 1 ? flash_exact_large_first(small)
                           : flash_exact_all_chunks(small);
    }
    int32_t rest = (tiles - flash_exact_large_begin(small)) % FLASH_EXACT_ROUND;
    return flash_exact_large_first(small) + (rest + FLASH_EXACT_LARGE - 1) / FLASH_EXACT_LARGE;
}

/**
 * Packs chunks into runs: each takes as many as its room has place for, and at least one. A chunk
 * counts as one that is full, and its end counts too.
 *
 * @param small flash_exact_small
 * @param tiles of a request
 * @param room  of a run, in key tiles; what flash_quotient takes, with a margin
 * @param run   number of a run
 * @param runs  set to the number of runs
 * @return first chunk of the run; past the last run, the number of chunks
 */
REF_INLINE int32_t flash_exact_run_begin(int32_t small, int32_t tiles, int32_t room, int32_t run,
                                         int32_t *runs) {
    int32_t chunks = flash_exact_chunks(small, tiles);
    int32_t begun = 0;
    int32_t used = room; /* by the run that is open */
    int32_t found = chunks;
    int32_t end = 0;
    FLASH_ROLLED
    for (int32_t kind = 0; kind < 4 && end < chunks; kind++) {
        int32_t chunk = end; /* first of its kind */
        end = flash_exact_kind_end(small, tiles, kind);
        end = end < chunks ? end : chunks;
        int32_t left = end - chunk;
        if (left == 0) {
            continue;
        }
        int32_t size = flash_exact_tiles(small, chunk, tiles) + FLASH_EXACT_END;
        int32_t fits = used < room ? flash_quotient(room - used, size) : 0;
        fits = fits < left ? fits : left;
        used += fits * size;
        left -= fits;
        if (left > 0) {
            int32_t each = room > size ? flash_quotient(room, size) : 1;
            int32_t fresh = flash_quotient(left + each - 1, each);
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
 * @param small flash_exact_small
 * @param tiles as flash_exact_run_begin
 * @param runs  runs that there may be, at least 1
 * @param index which size, 0 to FLASH_EXACT_ROOMS - 1
 * @return key tiles
 */
REF_INLINE int32_t flash_exact_room(int32_t small, int32_t tiles, int32_t runs, int32_t index) {
    int32_t chunks = flash_exact_chunks(small, tiles);
    int32_t large = flash_exact_large_first(small);
    /* None is larger, but for medium ones. */
    int32_t largest = flash_exact_tiles(small, chunks > large ? large : 0, tiles);
    largest = largest > FLASH_EXACT_LARGE ? largest : FLASH_EXACT_LARGE;
    int32_t work = tiles + chunks * FLASH_EXACT_END;
    return flash_quotient(work + runs - 1, runs) + index * (largest / (FLASH_EXACT_ROOMS - 4) + 1);
}

/** All that the requests of a wave hold, from which its runs follow. The key tiles of a request are
 * counted as if its nodes were a chain. Both are below 2^31, since a wave has less than 2^11 row
 * tiles. */
struct flash_exact_wave {
    int32_t tiles;  /**< Row tiles times their key tiles. */
    int32_t chunks; /**< Row tiles times their chunks. */
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
    parts = wave->chunks * parts > blocks ? parts / 2 : parts;
    parts = wave->chunks * parts > blocks ? parts / 2 : parts;
    return parts > 1 ? parts : 1;
}

/**
 * Most runs of each part of a request: its share of the blocks.
 *
 * @param wave   the wave
 * @param blocks M
 * @param parts  flash_exact_parts
 * @param small  flash_exact_small
 * @param tiles  of the request
 * @return 0 without any, else 1 to the number of its chunks
 */
REF_INLINE int32_t flash_exact_runs(const struct flash_exact_wave *wave, int32_t blocks,
                                    int32_t parts, int32_t small, int32_t tiles) {
    int32_t chunks = flash_exact_chunks(small, tiles);
    if (tiles == 0 || parts > 1 || wave->chunks <= blocks) {
        return chunks;
    }
    /* Which share a rounding gives is the same to all that ask. */
    float share = (float)tiles * (float)blocks;
#ifdef __CUDA_ARCH__
    int32_t runs = (int32_t)__fdividef(share + 0.5f, (float)wave->tiles);
#else
    int32_t runs = (int32_t)((share + 0.5f) / (float)wave->tiles);
#endif
    runs = runs > 1 ? runs : 1;
    return runs < chunks ? runs : chunks;
}

/**
 * Chunks that a row of the plan can have: what the workspace has for each row tile.
 *
 * @param a the call; limits only
 * @return 1 to flash_exact_all_chunks()
 */
REF_INLINE int32_t flash_exact_most_chunks(const struct ref_attention *a) {
    int64_t keys = a->max_prefix_len + (a->mask_mode == REF_MASK_NONE ? 0 : a->max_nodes);
    int32_t chunks = flash_exact_chunks(flash_exact_small(a->num_heads),
                                        (int32_t)((keys + FLASH_KEYS - 1) / FLASH_KEYS));
    return chunks > 1 ? chunks : 1;
}

/**
 * The workspace of a run in exact mode.
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
    return flash_place_layout(a, layout);
}

#endif
