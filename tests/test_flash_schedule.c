// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The flash kernel's schedule: chunks cover the keys, and the workspace holds what any batch within
 * the plan's limits makes of it.
 */
#include <string.h>

#include "bound_flash.h"
#include "check_main.h"
#include "flash_schedule.h"
#include "make_values.h"

/** Requests of a random batch. */
#define BATCH 12

_Static_assert(FLASH_KEYS == FLASH_TILE, "the bound assumes tiles of another size");
_Static_assert(FLASH_CHUNKS <= FLASH_MAX_CHUNKS, "the bound assumes fewer chunks");

static const int32_t sm_counts[] = {1, 2, 7, 46, 84, 108, 132, 144, 170, 188};
static const int32_t expected[] = {1, 2, 3, 4, 16, 64, 1000};

/** The parts of a cut hold every row, and run at once if there are several of a row tile. */
static void check_parts(const struct flash_split *split, int32_t pairs,
                        const struct flash_cut *cut) {
    ck_assert_int_eq(cut->row_tiles, (pairs + FLASH_ROWS - 1) / FLASH_ROWS);
    ck_assert(cut->parts == 1 || cut->parts == 2 || cut->parts == 4);
    int64_t parts = (int64_t)cut->row_tiles * cut->parts;
    ck_assert(cut->parts == 1 || parts * split->expected_batch <= split->blocks);
    int32_t rows = FLASH_ROWS / cut->parts;
    for (int32_t part = 0; part < parts; part += part == 4 && parts > 9 ? (int32_t)parts - 9 : 1) {
        int32_t left = pairs - part * rows;
        left = left < 0 ? 0 : left < rows ? left : rows;
        int32_t m16 = flash_m16(pairs, cut->parts, part);
        ck_assert_int_ge(m16 * FLASH_M16, left);
        ck_assert_int_lt(m16 * FLASH_M16, left + FLASH_M16);
        ck_assert_int_le(m16 * FLASH_M16, rows);
    }
}

/** The chunks of a cut are ranges of key tiles, none of them empty. */
static void check_chunks(const struct flash_cut *cut) {
    ck_assert_int_ge(cut->chunks, 1);
    ck_assert_int_le(cut->chunks, cut->key_tiles > 1 ? cut->key_tiles : 1);
    ck_assert_int_eq(flash_chunk_begin(cut, 0), 0);
    ck_assert_int_eq(flash_chunk_begin(cut, cut->chunks), cut->key_tiles);
    for (int32_t chunk = 0; chunk < cut->chunks && cut->key_tiles > 0; chunk++) {
        ck_assert_int_lt(flash_chunk_begin(cut, chunk), flash_chunk_begin(cut, chunk + 1));
    }
}

START_TEST(a_cut_covers_rows_and_keys) {
    int32_t most = 0;
    int32_t seen = 0; /* numbers of parts */
    for (size_t i = 0; i < sizeof sm_counts / sizeof sm_counts[0]; i++) {
        for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
            struct flash_split split = {.blocks = sm_counts[i], .expected_batch = expected[k]};
            for (int32_t draw = 0; draw < (test_scale_is_small() ? 300 : 4000); draw++) {
                uint64_t bits = test_hash(test_seed(), i, k, (uint64_t)draw);
                int32_t pairs = 1 + (int32_t)(bits % (draw % 2 ? 600 : 60000));
                int32_t key_tiles = (int32_t)((bits >> 32) % (2u << draw % 17));
                struct flash_cut cut = flash_cut_lengths(&split, pairs, key_tiles);
                check_parts(&split, pairs, &cut);
                check_chunks(&cut);
                most = cut.chunks > most ? cut.chunks : most;
                seen |= cut.parts;
            }
        }
    }
    ck_assert_int_le(most, FLASH_CHUNKS);
    ck_assert_int_gt(most, 100);
    ck_assert_int_eq(seen, 1 | 2 | 4);
}
END_TEST

/** What the points of the speed table are cut into, on a card of 132 SMs. */
START_TEST(cuts_of_the_table) {
    static const struct {
        int32_t batch;
        struct flash_cut cut;
    } points[] = {
        {1, {1, 1, 12501, 132}}, {1, {8, 1, 12501, 33}}, {1, {64, 1, 12504, 2}},
        {16, {2, 1, 257, 4}},    {16, {1, 1, 257, 8}},   {1, {1, 4, 257, 33}},
    };
    static const int32_t pairs[] = {64, 512, 4096, 128, 64, 64};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct flash_split split = {.blocks = 132, .expected_batch = points[i].batch};
        const struct flash_cut *want = &points[i].cut;
        struct flash_cut cut = flash_cut_lengths(&split, pairs[i], want->key_tiles);
        ck_assert_msg(cut.row_tiles == want->row_tiles && cut.parts == want->parts &&
                          cut.chunks == want->chunks,
                      "point %zu: %d row tiles, %d parts, %d chunks", i, cut.row_tiles, cut.parts,
                      cut.chunks);
    }
}
END_TEST

/** Four parts up to two key tiles a block, two up to four, then one: on a card of 100 SMs. */
START_TEST(parts_by_the_length_of_items) {
    static const struct {
        int32_t pairs, expected_batch, key_tiles, parts;
    } points[] = {
        {64, 1, 1, 4},   {64, 1, 200, 4}, {64, 1, 201, 2}, {64, 1, 400, 2}, {64, 1, 401, 1},
        {640, 1, 20, 4}, {640, 1, 21, 2}, {640, 1, 40, 2}, {640, 1, 41, 1}, /* ten row tiles */
        {64, 10, 20, 4}, {64, 10, 21, 2}, {64, 10, 40, 2}, {64, 10, 41, 1}, /* ten requests */
        {32, 1, 200, 2}, {32, 1, 400, 2}, {32, 1, 401, 1}, /* two m16 tiles: no four parts */
        {16, 1, 200, 1},                                   /* nor two of a single one */
        {64, 25, 8, 4},  {64, 26, 7, 2},  {64, 50, 4, 2},  {64, 51, 3, 1}, /* not all at once */
    };
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        const struct flash_split split = {.blocks = 100,
                                          .expected_batch = points[i].expected_batch};
        struct flash_cut cut = flash_cut_lengths(&split, points[i].pairs, points[i].key_tiles);
        ck_assert_msg(cut.parts == points[i].parts, "point %zu: %d parts", i, cut.parts);
    }
}
END_TEST

/** A random call with its lists, within limits. */
static void draw_call(uint64_t seed, int32_t node_indptr[BATCH + 1], int32_t prefix[BATCH],
                      struct ref_attention *a) {
    static const int32_t heads[] = {1, 3, 8, 16, 64, 128};
    memset(a, 0, sizeof *a);
    a->batch = 1 + (int32_t)(test_hash(seed, 1, 0, 0) % BATCH);
    a->num_heads = heads[test_hash(seed, 2, 0, 0) % 6];
    a->addressing = REF_ADDRESSING_TABLE;
    a->length_dtype = REF_I32;
    a->mask_mode = (int32_t)(test_hash(seed, 3, 0, 0) % 4);
    a->page_size = 1;
    a->max_nodes = 1;
    node_indptr[0] = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        uint64_t bits = test_hash(seed, 4, (uint64_t)b, 0);
        int32_t nodes = bits % 4 == 0 ? 0 : (int32_t)((bits >> 8) % (2u << (bits >> 40) % 9));
        prefix[b] = (int32_t)((bits >> 16) % (2u << (bits >> 50) % 14));
        node_indptr[b + 1] = node_indptr[b] + nodes;
        a->max_nodes = nodes > a->max_nodes ? nodes : a->max_nodes;
        a->max_prefix_len = prefix[b] > a->max_prefix_len ? prefix[b] : a->max_prefix_len;
    }
    a->row_capacity = node_indptr[a->batch] + (int64_t)(test_hash(seed, 5, 0, 0) % 2);
    a->row_capacity = a->row_capacity > 0 ? a->row_capacity : 1;
    a->node_indptr = node_indptr;
    a->prefix_len = prefix;
}

/** Waves follow each other, none is too large, and the last ends with the row tiles. */
static void check_waves(const struct flash_layout *layout) {
    int64_t first = 0;
    while (first < layout->row_tiles) {
        int64_t end = flash_wave_end(layout, first);
        ck_assert_int_gt(end, first);
        ck_assert_int_le(end - first, layout->wave_tiles);
        ck_assert(end == first + layout->wave_tiles || end == layout->row_tiles);
        first = end;
    }
    ck_assert_int_eq(first, layout->row_tiles);
}

START_TEST(the_workspace_holds_every_item) {
    for (uint64_t draw = 0; draw < (test_scale_is_small() ? 3000 : 30000); draw++) {
        int32_t node_indptr[BATCH + 1];
        int32_t prefix[BATCH];
        struct ref_attention a;
        uint64_t seed = test_hash(test_seed(), 6, draw, 0);
        draw_call(seed, node_indptr, prefix, &a);
        struct flash_split split = {.blocks = sm_counts[seed % 10],
                                    .expected_batch = expected[seed / 16 % 7]};
        struct flash_layout layout;
        ck_assert_int_eq(flash_workspace_layout(&a, &split, &layout), REF_OK);
        ck_assert_int_eq(layout.bytes % 256, 0);
        ck_assert_int_ge(layout.bytes, layout.partials + layout.wave_items * FLASH_PARTIAL_BYTES);
        check_waves(&layout);
        int64_t items = 0; /* of the current wave */
        int64_t tiles = 0; /* of all requests so far */
        for (int32_t b = 0; b < a.batch; b++) {
            struct ref_row row;
            struct flash_cut cut = flash_cut_request(&a, &split, b, &row);
            for (int32_t tile = 0; tile < cut.row_tiles; tile++, tiles++) {
                items = tiles % layout.wave_tiles == 0 ? 0 : items;
                items += cut.chunks;
                ck_assert_int_le(items, layout.wave_items);
            }
        }
        ck_assert_int_le(tiles, layout.row_tiles);
    }
}
END_TEST

START_TEST(a_workspace_beyond_64_bits_is_refused) {
    /* What a plan refuses before; the layout must not wrap all the same. */
    const struct flash_split split = {.blocks = 132, .expected_batch = 1};
    struct flash_layout layout;
    struct ref_attention a = {.batch = 1,
                              .num_heads = 1,
                              .mask_mode = REF_MASK_PARENTS,
                              .max_nodes = 64,
                              .row_capacity = INT64_MAX / 8 / 64 + 1,
                              .max_prefix_len = 100};
    ck_assert_int_eq(flash_workspace_layout(&a, &split, &layout), REF_SIZE_OVERFLOW);
    a.row_capacity = INT64_MAX / 8 / 64 / 1024 + 1;
    a.num_heads = 1024;
    ck_assert_int_eq(flash_workspace_layout(&a, &split, &layout), REF_SIZE_OVERFLOW);
    /* Small enough for rows, too large for the mask made of their parents. */
    a.num_heads = 1;
    a.row_capacity = (int64_t)1 << 40;
    a.max_nodes = INT32_MAX - 31;
    ck_assert_int_eq(flash_workspace_layout(&a, &split, &layout), REF_SIZE_OVERFLOW);
    a.mask_mode = REF_MASK_CHAIN;
    ck_assert_int_eq(flash_workspace_layout(&a, &split, &layout), REF_OK);
    ck_assert_int_gt(layout.bytes, layout.partials);
    ck_assert_int_gt(layout.partials, layout.states);
    ck_assert_int_gt(layout.states, (int64_t)4 << 40);
}
END_TEST

/** What flash_quotient takes, 2^20, bounds the key tiles and chunks of a request. */
START_TEST(numbers_of_key_tiles_fit) {
    for (int64_t more = 0; more < 2; more++) {
        int64_t tiles = (FLASH_MOST_KEYS + more + FLASH_KEYS - 1) / FLASH_KEYS;
        ck_assert_int_eq(tiles + 2 * FLASH_CHUNKS <= 1 << 20, more == 0);
    }
}
END_TEST

/** The most chunks are those of the definition, by a search. */
START_TEST(most_chunks_by_definition) {
    for (int32_t items = 1; items < 400; items = items * 3 / 2 + 1) {
        for (int32_t tiles = 1; tiles < 1 << 20; tiles += 1 + tiles / 7) {
            int64_t most = 1;
            while (most < FLASH_CHUNKS && most < tiles &&
                   (most + 1) * (most + 1) * items <= 17 * (int64_t)tiles) {
                most++;
            }
            ck_assert_int_eq(flash_most_chunks(items, tiles), most);
        }
    }
}
END_TEST

static Suite *flash_schedule_suite(void) {
    Suite *suite = suite_create("flash_schedule");
    TCase *tcase = test_tcase(suite, "flash-schedule", "flash-schedule");
    tcase_add_test(tcase, a_cut_covers_rows_and_keys);
    tcase_add_test(tcase, cuts_of_the_table);
    tcase_add_test(tcase, parts_by_the_length_of_items);
    tcase_add_test(tcase, a_workspace_beyond_64_bits_is_refused);
    tcase_add_test(tcase, the_workspace_holds_every_item);
    tcase_add_test(tcase, numbers_of_key_tiles_fit);
    tcase_add_test(tcase, most_chunks_by_definition);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {flash_schedule_suite};
    return check_main(makers, 1);
}
