// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The schedule of exact mode: chunks follow from positions, runs cover them and share the work, and
 * the workspace holds what any batch within the plan's limits makes of it.
 */
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "flash_exact_schedule.h"
#include "make_values.h"

/** Key tiles up to which everything is counted out: beyond the second page of each chunk. */
#define COUNTED (3000 + 2 * FLASH_EXACT_ROUND)

/** What the page table depends on. */
static const int32_t smalls[] = {FLASH_EXACT_SHORT, FLASH_EXACT_LONG};

START_TEST(heads_choose_the_pages) {
    ck_assert_int_eq(flash_exact_small(1), 17);
    ck_assert_int_eq(flash_exact_small(15), 17);
    ck_assert_int_eq(flash_exact_small(16), 65);
    ck_assert_int_eq(flash_exact_small(128), 65);
    /* The nodes behind 4,096 positions have no chunk of their own. */
    ck_assert_int_eq(flash_exact_chunks(17, 257), flash_exact_chunks(17, 256));
    ck_assert_int_eq(flash_exact_chunks(65, 257), flash_exact_chunks(65, 256));
    ck_assert_int_eq(flash_exact_all_chunks(FLASH_EXACT_SHORT), FLASH_CHUNKS);
    ck_assert_int_eq(flash_exact_all_chunks(FLASH_EXACT_LONG), 181);
}
END_TEST

START_TEST(pages_cover_the_positions) {
    const int32_t small = smalls[_i];
    int32_t page = 0;
    for (int32_t tile = 0; tile < COUNTED; tile++) {
        page += tile == flash_exact_page_begin(small, page + 1);
        ck_assert_int_eq(flash_exact_page(small, tile), page);
    }
    for (page = 0; page < 600; page++) {
        int32_t size =
            flash_exact_page_begin(small, page + 1) - flash_exact_page_begin(small, page);
        ck_assert_int_gt(size, 0);
        ck_assert_int_le(size, FLASH_EXACT_LARGE);
    }
    ck_assert_int_eq(flash_exact_page(small, INT32_MAX / FLASH_KEYS),
                     flash_exact_large_first(small) +
                         (INT32_MAX / FLASH_KEYS - flash_exact_large_begin(small)) /
                             FLASH_EXACT_LARGE);
}
END_TEST

/** Counts out the key tiles of each chunk, and compares with what is said of so many. */
static void check_tiles(int32_t small, int32_t tiles) {
    static int32_t count[FLASH_CHUNKS];
    memset(count, 0, sizeof count);
    for (int32_t tile = 0; tile < tiles; tile++) {
        int32_t chunk = flash_exact_chunk(small, flash_exact_page(small, tile));
        ck_assert(chunk >= 0 && chunk < flash_exact_all_chunks(small));
        /* The next of its key tiles, in ascending order. */
        ck_assert_int_eq(flash_exact_page_begin(small, chunk) + flash_exact_leap(count[chunk]),
                         tile);
        count[chunk]++;
    }
    int32_t before = 0;
    int32_t chunks = 0;
    for (int32_t chunk = 0; chunk < flash_exact_all_chunks(small); chunk++) {
        ck_assert_int_eq(flash_exact_before(small, chunk, tiles), before);
        ck_assert_int_eq(flash_exact_tiles(small, chunk, tiles), count[chunk]);
        before += count[chunk];
        ck_assert(count[chunk] == 0 || chunks == chunk); /* the first ones */
        chunks += count[chunk] > 0;
    }
    ck_assert_int_eq(flash_exact_chunks(small, tiles), chunks);
    ck_assert_int_eq(flash_exact_before(small, flash_exact_all_chunks(small), tiles), tiles);
}

START_TEST(chunks_hold_their_key_tiles) {
    const int32_t small = smalls[_i];
    const int32_t large = flash_exact_large_begin(small);
    const int32_t edges[] = {0,
                             small,
                             flash_exact_medium_begin(small),
                             flash_exact_medium_begin(small) + FLASH_EXACT_MEDIUM,
                             large,
                             large + FLASH_EXACT_LARGE,
                             large + FLASH_EXACT_ROUND,
                             large + 2 * FLASH_EXACT_ROUND};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        for (int32_t tiles = edges[i] - 2; tiles <= edges[i] + 2; tiles++) {
            check_tiles(small, tiles > 0 ? tiles : 0);
        }
    }
    for (uint64_t i = 0; i < (test_scale_is_small() ? 5 : 50); i++) {
        check_tiles(small, (int32_t)(test_hash(test_seed(), 1, i, 0) % COUNTED));
    }
}
END_TEST

START_TEST(key_tiles_of_a_page_follow_each_other) {
    for (int32_t index = 0; index < 4 * FLASH_EXACT_LARGE; index++) {
        for (int32_t end = index + 1; end < index + 2 * FLASH_EXACT_LARGE; end += 7) {
            int32_t count = 1;
            while (index + count < end &&
                   flash_exact_leap(index + count) == flash_exact_leap(index) + count) {
                count++;
            }
            ck_assert_int_eq(flash_exact_in_page(index, end), count);
        }
    }
}
END_TEST

/** Largest run of a request, once runs have been found to cover its chunks. */
static int32_t largest_run(int32_t small, int32_t tiles, int32_t runs) {
    int32_t count = 0;
    int32_t room = 0;
    int32_t index = 0;
    do {
        ck_assert_int_lt(index, FLASH_EXACT_ROOMS);
        room = flash_exact_room(small, tiles, runs, index++);
        flash_exact_run_begin(small, tiles, room, 0, &count);
    } while (count > runs);
    int32_t most = 0;
    ck_assert_int_eq(flash_exact_run_begin(small, tiles, room, 0, &count), 0);
    for (int32_t run = 0; run < runs; run++) {
        int32_t begin = flash_exact_run_begin(small, tiles, room, run, &count);
        int32_t end = flash_exact_run_begin(small, tiles, room, run + 1, &count);
        ck_assert(run < count ? begin < end : begin == end);
        int32_t size = flash_exact_before(small, end, tiles) -
                       flash_exact_before(small, begin, tiles) + (end - begin) * FLASH_EXACT_END;
        most = size > most ? size : most;
    }
    ck_assert_int_eq(flash_exact_run_begin(small, tiles, room, runs, &count),
                     flash_exact_chunks(small, tiles));
    return most;
}

START_TEST(runs_cover_the_chunks) {
    const int32_t small = smalls[_i];
    for (uint64_t i = 0; i < (test_scale_is_small() ? 300 : 5000); i++) {
        uint64_t bits = test_hash(test_seed(), 2, i, 0);
        int32_t tiles = 1 + (int32_t)((bits >> 16) % (2u << bits % 22));
        int32_t chunks = flash_exact_chunks(small, tiles);
        int32_t runs = 1 + (int32_t)((bits >> 8) % 256) % chunks;
        int32_t most = largest_run(small, tiles, runs);
        /* No run has more than its share and the largest chunk. */
        int32_t large = flash_exact_large_first(small);
        int32_t last = chunks > large ? large : chunks - 1;
        int32_t chunk = flash_exact_tiles(small, last, tiles);
        chunk = chunk > FLASH_EXACT_LARGE ? chunk : FLASH_EXACT_LARGE;
        chunk += FLASH_EXACT_END;
        ck_assert_int_le(most, (tiles + chunks * FLASH_EXACT_END + runs - 1) / runs + 2 * chunk);
    }
}
END_TEST

/** What the points of the speed table come to on a card of 132 SMs. */
START_TEST(runs_of_the_table) {
    static const struct {
        int32_t batch, heads, nodes, prefix;
        int32_t parts, runs, most; /* of a part; the largest run, with the ends of its chunks */
    } points[] = {{1, 8, 1, 200000, 1, 132, 102}, {1, 8, 8, 200000, 1, 132, 102},
                  {1, 64, 8, 200000, 1, 16, 846}, {4, 16, 16, 32768, 1, 8, 276},
                  {16, 128, 1, 32768, 1, 4, 546}, {16, 128, 1, 4096, 1, 4, 69},
                  {16, 8, 8, 4096, 1, 8, 42},     {1, 8, 8, 4096, 4, 16, 21},
                  {1, 8, 8, 32768, 2, 36, 90}};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        int32_t small = flash_exact_small(points[i].heads);
        int32_t tiles = (points[i].prefix + points[i].nodes + FLASH_KEYS - 1) / FLASH_KEYS;
        int32_t pairs = points[i].heads * points[i].nodes;
        int32_t row_tiles = points[i].batch * ((pairs + 63) / 64);
        struct flash_exact_wave wave = {row_tiles * tiles,
                                        row_tiles * flash_exact_chunks(small, tiles)};
        int32_t parts = flash_exact_parts(&wave, 132, pairs);
        int32_t runs = flash_exact_runs(&wave, 132, parts, small, tiles);
        int32_t most = largest_run(small, tiles, runs);
        ck_assert_msg(parts == points[i].parts && runs == points[i].runs && most == points[i].most,
                      "point %zu: %d parts, %d runs, at most %d key tiles", i, parts, runs, most);
    }
}
END_TEST

/** The workspace at every point of the speed table: at most 256 MiB. */
START_TEST(workspace_of_the_table) {
    static const struct {
        int32_t batch, heads, nodes;
        int64_t prefix;
    } points[] = {{1, 8, 1, 200000},  {1, 8, 8, 200000},   {1, 8, 16, 200000}, {1, 8, 64, 200000},
                  {1, 64, 8, 200000}, {1, 64, 64, 200000}, {4, 16, 16, 32768}, {16, 128, 1, 32768},
                  {16, 128, 1, 4096}, {1, 8, 8, 32768},    {4, 8, 8, 32768},   {16, 8, 8, 4096},
                  {1, 8, 8, 4096}};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct ref_attention a;
        struct flash_layout layout;
        memset(&a, 0, sizeof a);
        a.batch = points[i].batch;
        a.num_heads = points[i].heads;
        a.max_nodes = points[i].nodes;
        a.row_capacity = (int64_t)points[i].batch * points[i].nodes;
        a.max_prefix_len = points[i].prefix;
        a.mask_mode = REF_MASK_PACKED;
        ck_assert_int_eq(flash_exact_workspace_layout(&a, &layout), REF_OK);
        printf("(%d,%d,%d,%lld): %.1f MiB, %lld of %lld row tiles a wave, %d chunks\n",
               points[i].batch, points[i].heads, points[i].nodes, (long long)points[i].prefix,
               (double)layout.bytes / 1048576.0, (long long)layout.wave_tiles,
               (long long)layout.row_tiles, flash_exact_most_chunks(&a));
        ck_assert_int_le(layout.bytes, (int64_t)256 << 20);
    }
}
END_TEST

START_TEST(the_workspace_holds_every_wave) {
    static const int32_t heads[] = {1, 3, 8, 9, 16, 64, 65, 128, 200};
    for (uint64_t draw = 0; draw < (test_scale_is_small() ? 300 : 5000); draw++) {
        struct ref_attention a;
        struct flash_layout layout;
        uint64_t bits = test_hash(test_seed(), 3, draw, 0);
        memset(&a, 0, sizeof a);
        a.batch = 1 + (int32_t)(bits % 20);
        a.num_heads = heads[bits >> 8 & 7];
        a.max_nodes = 1 + (int32_t)((bits >> 16) % 300);
        a.max_prefix_len = (int64_t)((bits >> 32) % (2u << (bits >> 56) % 25));
        a.mask_mode = (int32_t)(bits >> 60 & 3);
        int64_t tiles = 0;
        for (int32_t b = 0; b < a.batch; b++) {
            int64_t nodes =
                (int64_t)(test_hash(test_seed(), 4, draw, (uint64_t)b) % (uint64_t)a.max_nodes);
            a.row_capacity += nodes;
            tiles += (nodes * a.num_heads + FLASH_ROWS - 1) / FLASH_ROWS;
        }
        a.row_capacity = a.row_capacity > 0 ? a.row_capacity : 1;
        ck_assert_int_eq(flash_exact_workspace_layout(&a, &layout), REF_OK);
        ck_assert_int_le(tiles, layout.row_tiles);
        ck_assert_int_ge(layout.wave_tiles, 1);
        int64_t keys = a.max_prefix_len + (a.mask_mode == REF_MASK_NONE ? 0 : a.max_nodes);
        ck_assert_int_ge(layout.wave_items,
                         layout.wave_tiles * flash_exact_chunks(flash_exact_small(a.num_heads),
                                                                (int32_t)((keys + 15) / 16)));
        ck_assert_int_eq(layout.bytes % 256, 0);
        ck_assert_int_le(layout.wave_items * FLASH_PARTIAL_BYTES, FLASH_EXACT_WAVE_BYTES);
        int64_t last = 0;
        for (int64_t first = 0; first < layout.row_tiles; first += layout.wave_tiles) {
            last = flash_wave_end(&layout, first);
        }
        ck_assert_int_eq(last, layout.row_tiles);
    }
}
END_TEST

static Suite *flash_exact_schedule_suite(void) {
    Suite *suite = suite_create("flash_exact_schedule");
    TCase *tcase = test_tcase(suite, "flash-exact-schedule", "flash-exact-schedule");
    tcase_add_test(tcase, heads_choose_the_pages);
    tcase_add_loop_test(tcase, pages_cover_the_positions, 0, 2);
    tcase_add_loop_test(tcase, chunks_hold_their_key_tiles, 0, 2);
    tcase_add_test(tcase, key_tiles_of_a_page_follow_each_other);
    tcase_add_loop_test(tcase, runs_cover_the_chunks, 0, 2);
    tcase_add_test(tcase, runs_of_the_table);
    tcase_add_test(tcase, workspace_of_the_table);
    tcase_add_test(tcase, the_workspace_holds_every_wave);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {flash_exact_schedule_suite};
    return check_main(makers, 1);
}
