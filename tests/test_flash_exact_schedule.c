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
#define COUNTED (FLASH_EXACT_LARGE_BEGIN + 2 * FLASH_EXACT_ROUND + 500)

START_TEST(pages_cover_the_positions) {
    int32_t page = 0;
    for (int32_t tile = 0; tile < COUNTED; tile++) {
        page += tile == flash_exact_page_begin(page + 1);
        ck_assert_int_eq(flash_exact_page(tile), page);
    }
    for (page = 0; page < 600; page++) {
        int32_t size = flash_exact_page_begin(page + 1) - flash_exact_page_begin(page);
        ck_assert_int_gt(size, 0);
        ck_assert_int_le(size, FLASH_EXACT_LARGE);
        ck_assert_int_eq(size % 2, 0); /* key tiles are fetched by two */
    }
    ck_assert_int_eq(flash_exact_page(INT32_MAX / FLASH_KEYS),
                     FLASH_EXACT_LARGE_FIRST +
                         (INT32_MAX / FLASH_KEYS - FLASH_EXACT_LARGE_BEGIN) / FLASH_EXACT_LARGE);
}
END_TEST

/** Counts out the key tiles of each chunk, and compares with what is said of so many. */
static void check_tiles(int32_t tiles) {
    static int32_t count[FLASH_CHUNKS];
    memset(count, 0, sizeof count);
    for (int32_t tile = 0; tile < tiles; tile++) {
        int32_t chunk = flash_exact_chunk(flash_exact_page(tile));
        ck_assert(chunk >= 0 && chunk < FLASH_CHUNKS);
        /* The next of its key tiles, in ascending order. */
        ck_assert_int_eq(flash_exact_page_begin(chunk) + flash_exact_leap(count[chunk]), tile);
        count[chunk]++;
    }
    int32_t before = 0;
    int32_t chunks = 0;
    for (int32_t chunk = 0; chunk < FLASH_CHUNKS; chunk++) {
        ck_assert_int_eq(flash_exact_before(chunk, tiles), before);
        ck_assert_int_eq(flash_exact_tiles(chunk, tiles), count[chunk]);
        before += count[chunk];
        ck_assert(count[chunk] == 0 || chunks == chunk); /* the first ones */
        chunks += count[chunk] > 0;
    }
    ck_assert_int_eq(flash_exact_chunks(tiles), chunks);
    ck_assert_int_eq(flash_exact_before(FLASH_CHUNKS, tiles), tiles);
}

START_TEST(chunks_hold_their_key_tiles) {
    static const int32_t edges[] = {0,
                                    FLASH_EXACT_SMALL,
                                    FLASH_EXACT_MEDIUM_BEGIN,
                                    FLASH_EXACT_LARGE_BEGIN,
                                    FLASH_EXACT_LARGE_BEGIN + FLASH_EXACT_LARGE,
                                    FLASH_EXACT_LARGE_BEGIN + FLASH_EXACT_ROUND,
                                    FLASH_EXACT_LARGE_BEGIN + 2 * FLASH_EXACT_ROUND};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        for (int32_t tiles = edges[i] - 2; tiles <= edges[i] + 2; tiles++) {
            check_tiles(tiles > 0 ? tiles : 0);
        }
    }
    for (uint64_t i = 0; i < (test_scale_is_small() ? 5 : 50); i++) {
        check_tiles((int32_t)(test_hash(test_seed(), 1, i, 0) % COUNTED));
    }
}
END_TEST

/** Largest run of a request, once runs have been found to cover its chunks. */
static int32_t largest_run(int32_t tiles, int32_t runs) {
    int32_t count = 0;
    int32_t room = 0;
    int32_t index = 0;
    do {
        ck_assert_int_lt(index, FLASH_EXACT_ROOMS);
        room = flash_exact_room(tiles, runs, index++);
        flash_exact_run_begin(tiles, room, 0, &count);
    } while (count > runs);
    int32_t most = 0;
    ck_assert_int_eq(flash_exact_run_begin(tiles, room, 0, &count), 0);
    for (int32_t run = 0; run < runs; run++) {
        int32_t begin = flash_exact_run_begin(tiles, room, run, &count);
        int32_t end = flash_exact_run_begin(tiles, room, run + 1, &count);
        ck_assert(run < count ? begin < end : begin == end);
        int32_t size = flash_exact_before(end, tiles) - flash_exact_before(begin, tiles);
        most = size > most ? size : most;
    }
    ck_assert_int_eq(flash_exact_run_begin(tiles, room, runs, &count), flash_exact_chunks(tiles));
    return most;
}

START_TEST(runs_cover_the_chunks) {
    for (uint64_t i = 0; i < (test_scale_is_small() ? 300 : 5000); i++) {
        uint64_t bits = test_hash(test_seed(), 2, i, 0);
        int32_t tiles = 1 + (int32_t)((bits >> 16) % (2u << bits % 22));
        int32_t chunks = flash_exact_chunks(tiles);
        int32_t runs = 1 + (int32_t)((bits >> 8) % 256) % chunks;
        int32_t most = largest_run(tiles, runs);
        /* No run has more than its share and the largest chunk. */
        int32_t last = chunks > FLASH_EXACT_LARGE_FIRST ? FLASH_EXACT_LARGE_FIRST : chunks - 1;
        int32_t chunk = flash_exact_tiles(last, tiles);
        chunk = chunk > FLASH_EXACT_LARGE ? chunk : FLASH_EXACT_LARGE;
        ck_assert_int_le(most, (tiles + runs - 1) / runs + 2 * chunk);
    }
}
END_TEST

/** What the points of the speed table come to on a card of 132 SMs. */
START_TEST(runs_of_the_table) {
    static const struct {
        int32_t batch, pairs, tiles; /* of a request */
        int32_t parts, runs, most;   /* of a part; key tiles of the largest run */
    } points[] = {{1, 8, 12500, 1, 132, 98},   {1, 64, 12500, 1, 132, 98},
                  {1, 512, 12500, 1, 16, 810}, {4, 256, 2048, 1, 8, 258},
                  {16, 128, 2048, 1, 4, 516},  {16, 128, 256, 1, 4, 64},
                  {1, 64, 256, 4, 16, 16},     {1, 64, 2048, 2, 37, 86}};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        int32_t tiles = points[i].tiles;
        int64_t row_tiles = (int64_t)points[i].batch * ((points[i].pairs + 63) / 64);
        struct flash_exact_wave wave = {row_tiles * tiles, row_tiles * flash_exact_chunks(tiles)};
        int32_t parts = flash_exact_parts(&wave, 132, points[i].pairs);
        int32_t runs = flash_exact_runs(&wave, 132, parts, tiles);
        int32_t most = largest_run(tiles, runs);
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
                         layout.wave_tiles * flash_exact_chunks((int32_t)((keys + 15) / 16)));
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

START_TEST(row_tiles_of_a_node) {
    for (int32_t heads = 1; heads <= 300; heads++) {
        int32_t most = 0;
        for (int32_t node = 0; node < 64; node++) {
            int32_t first = node * heads / FLASH_ROWS;
            int32_t last = ((node + 1) * heads - 1) / FLASH_ROWS;
            most = last - first + 1 > most ? last - first + 1 : most;
        }
        ck_assert_int_eq(flash_exact_node_tiles(heads), most);
    }
}
END_TEST

static Suite *flash_exact_schedule_suite(void) {
    Suite *suite = suite_create("flash_exact_schedule");
    TCase *tcase = test_tcase(suite, "flash-exact-schedule", "flash-exact-schedule");
    tcase_add_test(tcase, pages_cover_the_positions);
    tcase_add_test(tcase, chunks_hold_their_key_tiles);
    tcase_add_test(tcase, runs_cover_the_chunks);
    tcase_add_test(tcase, runs_of_the_table);
    tcase_add_test(tcase, workspace_of_the_table);
    tcase_add_test(tcase, the_workspace_holds_every_wave);
    tcase_add_test(tcase, row_tiles_of_a_node);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {flash_exact_schedule_suite};
    return check_main(makers, 1);
}
