// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-4: the bits of a run do not depend on the order in which the emulator takes blocks and
 * threads. The sanitizers see the same cases in the asan variant, as they see the other suites.
 */
#include <stdio.h>

#include "check_main.h"
#include "edge_checks.h"
#include "simt/simt_runtime.h"

/** Orders of a case: the natural one first. */
#define ORDERS 5

/** Runs a case in all orders; the case itself is right by gate P1-1. */
static void check_orders_of(int32_t implementation, const struct test_case *record, int sm_count) {
    struct test_problem problem;
    struct test_outputs first;
    edge_make(record, &problem);
    simt_set_sm_count(sm_count);
    edge_run_in_order(implementation, &problem, 0, &first);
    for (uint64_t order = 1; order < ORDERS; order++) {
        struct test_outputs other;
        struct harness_report report;
        edge_run_in_order(implementation, &problem, test_hash(test_seed(), 9, order, 0) | 1,
                          &other);
        ck_assert_msg(harness_same_bits(&other, &first, TEST_TRIVIAL_IS_FINE, &report) == 0,
                      "%s, %d multiprocessors, order %d: %s", problem.spec.name, sm_count,
                      (int)order, report.text);
        test_outputs_free(&other);
    }
    printf("P1-4 %s: %s, %d multiprocessors: %d orders\n",
           test_implementation_at(implementation)->name, problem.spec.name, sm_count, ORDERS);
    test_outputs_free(&first);
    test_problem_free(&problem);
}

/** The same of every implementation: exact mode is one. */
static void check_orders(const struct test_case *record, int sm_count) {
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        check_orders_of(k, record, sm_count);
    }
}

START_TEST(row_tiles_of_every_fill) {
    /* Nodes and heads whose product leaves 1 to 4 m16 tiles, full and not, of one row tile or of
       the last of several. */
    static const int32_t fills[][2] = {{1, 1},  {5, 1},  {1, 16}, {17, 1}, {4, 8},  {11, 3},
                                       {3, 16}, {49, 1}, {21, 3}, {8, 8},  {13, 5}, {25, 9}};
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++) {
        char name[64];
        int32_t mode = (int32_t)i % 4;
        if (test_scale_is_small() && i % 3 != 0) {
            continue;
        }
        snprintf(name, sizeof name, "%d nodes, %d heads, mask %d", fills[i][0], fills[i][1], mode);
        check_orders(&(struct test_case){.name = name,
                                         .batch = 2,
                                         .prefix = {70 + (int64_t)i, 9},
                                         .nodes = {fills[i][0], 2},
                                         .heads = fills[i][1],
                                         .mask_mode = mode},
                     i % 2 ? 3 : 188);
    }
}
END_TEST

START_TEST(masks_and_kinds_of_values) {
    /* Among them keys that are not finite, seen and unseen, and rows that see nothing. */
    static const int32_t kinds[] = {TEST_BENIGN,      TEST_POISONED_NODES, TEST_VISIBLE_NAN,
                                    TEST_VISIBLE_INF, TEST_ALL_MINUS_INF,  TEST_BEYOND_80};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (int32_t mode = REF_MASK_NONE; mode <= REF_MASK_PACKED; mode++) {
            char name[64];
            if (test_scale_is_small() && mode != REF_MASK_PARENTS) {
                continue;
            }
            snprintf(name, sizeof name, "kind %d, mask %d", kinds[i], mode);
            check_orders(&(struct test_case){.name = name,
                                             .batch = 3,
                                             .prefix = {40, 0, 150},
                                             .nodes = {40, 6, 5},
                                             .heads = 2,
                                             .lead_rows = 1,
                                             .kind = kinds[i],
                                             .mask_mode = mode},
                         3);
        }
    }
}
END_TEST

START_TEST(chunks_and_rounds) {
    /* One chunk, few and many of them; on one multiprocessor all items follow each other. */
    static const int sm_counts[] = {1, 3, 20, 188};
    static const int32_t expected[] = {1, 1, 1, 200};
    for (size_t i = 0; i < sizeof sm_counts / sizeof sm_counts[0]; i++) {
        check_orders(&(struct test_case){.name = "long",
                                         .prefix = {test_scale_is_small() ? 400 : 1500},
                                         .nodes = {9},
                                         .heads = 8,
                                         .expected_batch = expected[i],
                                         .mask_mode = REF_MASK_PARENTS},
                     sm_counts[i]);
    }
    check_orders(&(struct test_case){.name = "chunks of a tile",
                                     .prefix = {600},
                                     .nodes = {2},
                                     .heads = 8,
                                     .mask_mode = REF_MASK_CHAIN},
                 188);
}
END_TEST

START_TEST(pools_and_lists) {
    /* Rows that follow each other in the pool are fetched otherwise than others. */
    struct test_case record = {.name = "pages, padded rows",
                               .batch = 2,
                               .prefix = {300, 77},
                               .nodes = {8, 8},
                               .heads = 8,
                               .page_size = 64,
                               .one_pool = 1,
                               .padding = 1,
                               .bf16_o = 1,
                               .mask_mode = REF_MASK_CHAIN};
    check_orders(&record, 3);
    record.name = "two pools, list of the tree";
    record.page_size = record.one_pool = record.padding = 0;
    record.own_tree_list = 1;
    check_orders(&record, 3);
}
END_TEST

START_TEST(items_without_keys) {
    check_orders(&(struct test_case){.name = "without keys",
                                     .batch = 4,
                                     .prefix = {0, 20, 0, 0},
                                     .nodes = {5, 70, 1, 3},
                                     .heads = 3,
                                     .mask_mode = REF_MASK_NONE},
                 2);
}
END_TEST

START_TEST(several_waves) {
    check_orders(edge_waves(0), 132);
    check_orders(edge_waves(1), 188);
}
END_TEST

/** @return the suite */
static Suite *gate_p1_4_suite(void) {
    Suite *suite = suite_create("P1-4 orders of threads");
    TCase *tcase = test_tcase(suite, "P1-4", "P1-4 equal bits in every order");
    tcase_add_test(tcase, row_tiles_of_every_fill);
    tcase_add_test(tcase, masks_and_kinds_of_values);
    tcase_add_test(tcase, chunks_and_rounds);
    tcase_add_test(tcase, pools_and_lists);
    tcase_add_test(tcase, items_without_keys);
    tcase_add_test(tcase, several_waves);
    return suite;
}

int main(void) {
    return edge_main(gate_p1_4_suite);
}
