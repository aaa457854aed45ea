// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Trees and merging of partial states: ref/tree.h and ref/merge.h, against loops that follow the
 * definitions.
 */
#include "tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bf16.h"
#include "bounds.h"
#include "check_main.h"
#include "merge.h"
#include "random.h"

START_TEST(bad_parents_are_refused) {
    static const int32_t bad[][4] = {{0, 0, 0, 0},   {-1, 1, 0, 0},  {-1, 0, 3, 0},
                                     {-1, 0, -1, 0}, {-1, 0, 1, -2}, {1, 0, 0, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ref_error error = {0};
        ck_assert_int_eq(ref_tree_check(bad[i], 4, &error), REF_BAD_TREE);
        ck_assert_str_eq(error.field, "parents");
        ck_assert_int_eq(ref_tree_check(bad[i], 4, NULL), REF_BAD_TREE);
    }
    static const int32_t good[4] = {-1, 0, 0, 2};
    ck_assert_int_eq(ref_tree_check(good, 4, NULL), REF_OK);
    ck_assert_int_eq(ref_tree_check(good, 0, NULL), REF_OK);
}
END_TEST

START_TEST(random_trees_are_trees) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        int32_t nodes = 1 + (int32_t)(ref_random(seed, 99) % 70);
        int32_t window = 1 + (int32_t)(ref_random(seed, 98) % 9);
        int32_t parents[70];
        int32_t depth[70];
        uint32_t words[70 * 4];
        ref_tree_random(seed, nodes, window, parents);
        ck_assert_int_eq(ref_tree_check(parents, nodes, NULL), REF_OK);
        ref_tree_depth(parents, nodes, depth);
        memset(words, 0xff, sizeof words);
        ref_tree_packed_mask(parents, nodes, 4, words);
        for (int32_t i = 0; i < nodes; i++) {
            int32_t steps = 0;
            for (int32_t j = 0; j < 128; j++) {
                int visible = 0;
                steps = 0;
                for (int32_t k = i; k >= 0; k = parents[k], steps++) {
                    visible |= k == j;
                }
                ck_assert_int_eq((words[i * 4 + j / 32] >> (j % 32)) & 1u, visible);
            }
            ck_assert_int_eq(depth[i], steps - 1);
            ck_assert(i == 0 || i - parents[i] <= window);
        }
    }
}
END_TEST

START_TEST(chain_has_window_one) {
    int32_t parents[33];
    ref_tree_random(7, 33, 1, parents);
    for (int32_t i = 0; i < 33; i++) {
        ck_assert_int_eq(parents[i], i - 1);
    }
}
END_TEST

START_TEST(published_mask_vector) {
    /* parents -1 0 0 1: rows 1000, 1100, 1010, 1101, lowest bit first (SGLang pull 29587). */
    static const int32_t parents[4] = {-1, 0, 0, 1};
    static const uint32_t expected[4] = {0x1, 0x3, 0x5, 0xb};
    uint32_t words[4];
    ref_tree_packed_mask(parents, 4, 1, words);
    ck_assert_mem_eq(words, expected, sizeof expected);
}
END_TEST

START_TEST(merge_equals_the_definition) {
    enum { PARTS = 5, WIDTH = 7 };
    for (uint64_t seed = 0; seed < 100; seed++) {
        float rows[PARTS][WIDTH];
        float lse[PARTS];
        const float *o[PARTS];
        float out[WIDTH];
        double total[WIDTH] = {0};
        double size[WIDTH] = {0};
        double sum = 0.0;
        for (int k = 0; k < PARTS; k++) {
            lse[k] = 5.0f * ref_random_normal(seed, (uint64_t)k);
            lse[k] = ref_random(seed, 77 + (uint64_t)k) % 4 == 0 ? -INFINITY : lse[k];
            o[k] = rows[k];
            for (int d = 0; d < WIDTH; d++) {
                rows[k][d] = ref_random_normal(seed, (uint64_t)(100 + k * WIDTH + d));
                rows[k][d] = lse[k] == -INFINITY ? NAN : rows[k][d]; /* absent parts hold junk */
                if (lse[k] > -INFINITY) {
                    total[d] += exp((double)lse[k]) * (double)rows[k][d];
                    size[d] += exp((double)lse[k]) * fabs((double)rows[k][d]);
                }
            }
            sum += exp((double)lse[k]);
        }
        float merged = merge_states_reference_f32(PARTS, WIDTH, o, lse, out);
        if (sum == 0.0) {
            ck_assert(merged == -INFINITY && out[0] == 0.0f);
            continue;
        }
        ck_assert(fabs((double)merged - log(sum)) <= TEST_MERGE_LSE(log(sum)));
        for (int d = 0; d < WIDTH; d++) {
            ck_assert(fabs((double)out[d] - total[d] / sum) <= TEST_MERGE_O(PARTS, size[d] / sum));
        }
    }
}
END_TEST

START_TEST(merge_edges) {
    const float row[2] = {3.0f, -0.0f};
    const float junk[2] = {NAN, INFINITY};
    const float *const o[3] = {junk, row, junk};
    float out[2] = {9.0f, 9.0f};
    const float one[3] = {-INFINITY, 2.5f, -INFINITY};
    ck_assert(merge_states_reference_f32(3, 2, o, one, out) == 2.5f);
    ck_assert(out[0] == 3.0f && ref_bits_from_f32(out[1]) == 0);
    const float none[3] = {-INFINITY, -INFINITY, -INFINITY};
    ck_assert(merge_states_reference_f32(3, 2, o, none, out) == -INFINITY);
    ck_assert(ref_bits_from_f32(out[0]) == 0 && ref_bits_from_f32(out[1]) == 0);
    const float bad[3] = {1.0f, NAN, 2.0f};
    ck_assert_uint_eq(ref_bits_from_f32(merge_states_reference_f32(3, 2, o, bad, out)),
                      0x7fc00000u);
    ck_assert_uint_eq(ref_bits_from_f32(out[1]), 0x7fc00000u);
}
END_TEST

static Suite *tree_suite(void) {
    Suite *suite = suite_create("tree");
    TCase *tree = tcase_create("tree");
    tcase_set_timeout(tree, 900); /* Check's 4 seconds are too few on a busy machine */
    tcase_add_test(tree, bad_parents_are_refused);
    tcase_add_test(tree, random_trees_are_trees);
    tcase_add_test(tree, chain_has_window_one);
    tcase_add_test(tree, published_mask_vector);
    suite_add_tcase(suite, tree);
    TCase *merge = tcase_create("merge");
    tcase_set_timeout(merge, 900);
    tcase_add_test(merge, merge_equals_the_definition);
    tcase_add_test(merge, merge_edges);
    suite_add_tcase(suite, merge);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {tree_suite};
    return check_main(makers, 1);
}
