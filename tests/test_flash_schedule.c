// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The flash kernel's schedule: chunks cover the keys, and the workspace holds what any batch within
 * the plan's limits makes of it.
 */
#include <string.h>

#include "check_main.h"
#include "flash_schedule.h"
#include "make_values.h"

/** Most chunks that the bound assumes: FLASH_MAX_CHUNKS of ref/bound_flash.h. */
#define BOUND_CHUNKS 264
/** Requests of a random batch. */
#define BATCH 12

static const int32_t sm_counts[] = {1, 2, 7, 46, 84, 108, 132, 144, 170, 188};
static const int32_t expected[] = {1, 2, 3, 4, 16, 64, 1000};

START_TEST(chunks_cover_the_keys) {
    int32_t most = 0;
    for (size_t i = 0; i < sizeof sm_counts / sizeof sm_counts[0]; i++) {
        for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
            struct flash_split split = {.blocks = sm_counts[i], .expected_batch = expected[k]};
            for (int32_t draw = 0; draw < (test_scale_is_small() ? 300 : 4000); draw++) {
                uint64_t bits = test_hash(test_seed(), i, k, (uint64_t)draw);
                struct flash_cut cut = {.row_tiles = 1 + (int32_t)(bits % (draw % 2 ? 20 : 900)),
                                        .key_tiles = (int32_t)((bits >> 32) % (2u << draw % 17))};
                cut.chunks = flash_chunks(&split, cut.row_tiles, cut.key_tiles);
                ck_assert_int_ge(cut.chunks, 1);
                ck_assert_int_le(cut.chunks, cut.key_tiles > 1 ? cut.key_tiles : 1);
                ck_assert_int_eq(flash_chunk_begin(&cut, 0), 0);
                ck_assert_int_eq(flash_chunk_begin(&cut, cut.chunks), cut.key_tiles);
                for (int32_t chunk = 0; chunk < cut.chunks && cut.key_tiles > 0; chunk++) {
                    ck_assert_int_lt(flash_chunk_begin(&cut, chunk),
                                     flash_chunk_begin(&cut, chunk + 1));
                }
                most = cut.chunks > most ? cut.chunks : most;
            }
        }
    }
    ck_assert_int_le(most, BOUND_CHUNKS);
    ck_assert_int_gt(most, 100);
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

static Suite *flash_schedule_suite(void) {
    Suite *suite = suite_create("flash_schedule");
    TCase *tcase = test_tcase(suite, "flash-schedule", "flash-schedule");
    tcase_add_test(tcase, chunks_cover_the_keys);
    tcase_add_test(tcase, the_workspace_holds_every_item);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {flash_schedule_suite};
    return check_main(makers, 1);
}
