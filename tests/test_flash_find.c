// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The flash kernel's search for items and row tiles, in the emulator: it finds what a plain walk
 * over the requests finds, and nothing behind the end of a wave, however many row tiles requests
 * that overlap have.
 */
#include <string.h>

#include "check_main.h"
#include "flash_probe.h"
#include "make_values.h"
#include "simt/simt_runtime.h"

/** Requests of a batch: more than two times 32. */
#define BATCH 70
/** Rows and heads of requests that overlap: the most that a plan may have, 2^14 row tiles. */
#define ROWS 1023
#define HEADS 1024
/** These requests, every other one well-formed: they have 2^27 row tiles. */
#define OVERLAPPING 16400

/** Searches on the device. */
static struct flash_probe_found find(const struct ref_attention *a, const struct flash_split *split,
                                     const struct flash_probe_search *search) {
    struct flash_probe_found found;
    memset(&found, 0x55, sizeof found);
    ck_assert_int_eq(flash_probe_find(a, split, search, &found, NULL), cudaSuccess);
    ck_assert_msg(simt_last_report()->code == SIMT_OK, "%s", simt_last_report()->text);
    return found;
}

/** The same by a walk. Its request is -1 if there is nothing. */
static struct flash_place walk(const struct ref_attention *a, const struct flash_split *split,
                               const struct flash_probe_search *search) {
    struct flash_place place = {.request = -1};
    int64_t begin = 0; /* row tiles of the requests before */
    int64_t base = 0;  /* partial results of the wave before */
    int64_t items = 0; /* of the wave before */
    for (int32_t b = 0; b < a->batch; b++) {
        struct ref_row row = {-1, 0, 0, 0, 0};
        struct flash_cut cut = flash_cut_request(a, split, b, &row);
        int64_t low = begin > search->first_tile ? begin : search->first_tile;
        int64_t end = begin + cut.row_tiles;
        int64_t high = end < search->end_tile ? end : search->end_tile;
        int64_t count = high > low ? high - low : 0;
        int64_t found = count * (search->tiles ? 1 : (int64_t)cut.chunks * cut.parts);
        int64_t offset = search->index - (search->tiles ? low - search->first_tile : items);
        if (offset >= 0 && offset < found) {
            place.cut = cut;
            place.request = b;
            place.first_row = (int32_t)row.first_row;
            place.nodes = row.num_nodes;
            place.prefix = (int32_t)row.prefix_len;
            place.first = (int32_t)(low - begin);
            place.count = (int32_t)count;
            place.base = (int32_t)base;
            place.index = (int32_t)offset;
            return place;
        }
        begin = end;
        base += count * cut.chunks;
        items += count * cut.chunks * cut.parts;
    }
    return place;
}

/** Searches for everything in a wave, and for two more; returns how much there is. */
static int32_t check_wave(const struct ref_attention *a, const struct flash_split *split,
                          struct flash_probe_search search) {
    int32_t found = 0;
    int32_t least = INT32_MAX; /* that any search says there are */
    for (int32_t missing = 0; missing < 2; search.index++) {
        struct flash_place expected = walk(a, split, &search);
        struct flash_probe_found got = find(a, split, &search);
        least = got.items < least ? got.items : least;
        if (expected.request < 0) {
            ck_assert_msg(got.place.request == -1, "tiles %d: request %d has number %d of %d",
                          search.tiles, got.place.request, search.index, found);
            missing++;
            continue;
        }
        found++;
        ck_assert_msg(memcmp(&got.place, &expected, sizeof expected) == 0, "tiles %d, number %d",
                      search.tiles, search.index);
    }
    /* A block looks for no item from what a search says on: there must be none, wherever the
     * block is, and the searches behind the last item must say it. */
    ck_assert_msg(search.tiles || least == found, "%d items, said to be %d", found, least);
    return found;
}

START_TEST(a_search_finds_what_a_walk_finds) {
    static const int32_t waves[] = {200, 31, 7};
    static int32_t node_indptr[BATCH + 1];
    static int32_t prefix[BATCH];
    struct ref_attention a = {.batch = BATCH,
                              .num_heads = 16,
                              .mask_mode = REF_MASK_CHAIN,
                              .addressing = REF_ADDRESSING_TABLE,
                              .page_size = 1,
                              .max_nodes = 20,
                              .max_prefix_len = 700,
                              .node_indptr = node_indptr,
                              .prefix_len = prefix};
    for (int32_t b = 0; b < BATCH; b++) {
        uint64_t bits = test_hash(test_seed(), 7, (uint64_t)b, 0);
        prefix[b] = (int32_t)(bits % 701);
        node_indptr[b + 1] =
            node_indptr[b] + (bits % 3 == 0 ? 0 : 1 + (int32_t)((bits >> 32) % 20));
    }
    a.row_capacity = node_indptr[BATCH];
    for (size_t i = 0; i < sizeof waves / sizeof waves[0]; i++) {
        const struct flash_split split = {.blocks = 132, .expected_batch = 4};
        int32_t tiles = 0;
        int32_t items = 0;
        for (int32_t first = 0; first < 200; first += waves[i]) {
            struct flash_probe_search search = {first, first + waves[i], 0, 1};
            tiles += check_wave(&a, &split, search);
            search.tiles = 0;
            items += check_wave(&a, &split, search);
        }
        ck_assert_int_gt(tiles, BATCH);
        ck_assert_int_gt(items, tiles);
    }
}
END_TEST

START_TEST(nothing_is_behind_a_wave) {
    /* node_indptr is 0 R 0 R ...: every other request has all rows, the rest are malformed. */
    static int32_t node_indptr[OVERLAPPING + 1];
    static int32_t prefix[OVERLAPPING];
    struct ref_attention a = {.batch = OVERLAPPING,
                              .num_heads = HEADS,
                              .mask_mode = REF_MASK_NONE,
                              .addressing = REF_ADDRESSING_TABLE,
                              .page_size = 1,
                              .max_nodes = ROWS,
                              .max_prefix_len = 100,
                              .row_capacity = ROWS,
                              .node_indptr = node_indptr,
                              .prefix_len = prefix};
    const struct flash_split split = {.blocks = 132, .expected_batch = 1};
    struct flash_layout layout;
    for (int32_t b = 0; b < OVERLAPPING; b++) {
        prefix[b] = 100;
        node_indptr[b + 1] = b % 2 == 0 ? ROWS : 0;
    }
    ck_assert_int_eq(flash_workspace_layout(&a, &split, &layout), REF_OK);
    int32_t last = (int32_t)((layout.row_tiles - 1) / layout.wave_tiles * layout.wave_tiles);
    const int32_t firsts[] = {0, (int32_t)layout.wave_tiles, last};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        const int32_t end = flash_wave_end(&layout, firsts[i]);
        for (int32_t tiles = 0; tiles < 2; tiles++) {
            struct flash_probe_search search = {firsts[i], end, 0, tiles};
            ck_assert_int_eq(check_wave(&a, &split, search), end - firsts[i]);
        }
    }
}
END_TEST

static Suite *flash_find_suite(void) {
    Suite *suite = suite_create("flash_find");
    TCase *tcase = test_tcase(suite, "flash-find", "flash-find");
    tcase_add_test(tcase, a_search_finds_what_a_walk_finds);
    tcase_add_test(tcase, nothing_is_behind_a_wave);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {flash_find_suite};
    return check_main(makers, 1);
}
