// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Cases of gates P0-8 and P1-1: poison in every invisible place, sizes at the edges, ragged batches
 * with inactive, over-limit and malformed requests. For every implementation of the selected class.
 */
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "edge_cases.h"
#include "edge_checks.h"
#include "truth_f64.h"

START_TEST(poison_changes_nothing_for_those_who_do_not_see_it) {
    /* The same problem with and without NaN and infinities in nodes: the rows that see none of
       them have equal bits, although other rows of the call do see them. */
    struct test_case record = {.name = "poison",
                               .prefix = {61},
                               .nodes = {40},
                               .window = 40,
                               .mask_mode = REF_MASK_PARENTS,
                               .padding = 1,
                               .spare_rows = 2};
    struct test_problem clean;
    struct test_problem poisoned;
    edge_make(&record, &clean);
    record.kind = TEST_POISONED_NODES;
    edge_make(&record, &poisoned);
    struct truth_request q;
    truth_request_decode(&clean.call, 0, &q);
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        struct test_outputs a;
        struct test_outputs b;
        int64_t untouched = 0;
        if (!edge_run(k, &clean, &a) || !edge_run(k, &poisoned, &b)) {
            continue;
        }
        for (int64_t i = 0; i < q.nodes; i++) {
            int sees = 0;
            for (int64_t j = 0; j < q.nodes; j++) {
                sees |= test_node_is_poisoned(j) && q.visible[i * q.tokens + q.prefix + j];
            }
            int64_t size = a.heads * a.columns;
            untouched += !sees;
            ck_assert(sees ||
                      memcmp(a.o + i * size, b.o + i * size, (size_t)size * sizeof *a.o) == 0);
            ck_assert(sees || memcmp(a.lse + i * a.heads, b.lse + i * a.heads,
                                     (size_t)a.heads * sizeof *a.lse) == 0);
        }
        ck_assert_msg(untouched > 2 && untouched < q.nodes, "the case tells nothing");
        test_outputs_free(&a);
        test_outputs_free(&b);
    }
    truth_request_free(&q);
    test_problem_free(&clean);
    test_problem_free(&poisoned);
    edge_check_record(&record, TEST_TRIVIAL_IS_ERROR);
}
END_TEST

START_TEST(sizes_at_the_edges) {
    static const int32_t nodes[] = {1, 2, 31, 32, 33, 64, 65, 1025};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        for (int32_t mode = REF_MASK_NONE; mode <= REF_MASK_PACKED; mode++) {
            for (int64_t prefix = 0; prefix <= 3; prefix += 3) {
                char name[64];
                snprintf(name, sizeof name, "%d nodes, N = %d, mode %d", nodes[i], (int)prefix,
                         mode);
                int32_t trivial = prefix == 0 && mode == REF_MASK_NONE ? TEST_TRIVIAL_IS_FINE
                                                                       : TEST_TRIVIAL_IS_ERROR;
                /* A wide window keeps paths short: 1,025 nodes then fit the emulator. */
                edge_check_record(&(struct test_case){.name = name,
                                                      .prefix = {prefix},
                                                      .nodes = {nodes[i]},
                                                      .window = 1025,
                                                      .mask_mode = mode,
                                                      .heads = 1,
                                                      .latent_dim = 33,
                                                      .rope_dim = 3},
                                  trivial);
            }
        }
    }
}
END_TEST

START_TEST(fully_masked_rows_first_in_the_batch) {
    /* Row 0 of the call sees nothing: no prefix, no bit. An online softmax that starts from the
       first tile of a call divides by zero here. */
    edge_check_record(&(struct test_case){.name = "masked first",
                                          .batch = 3,
                                          .prefix = {0, 0, 300},
                                          .nodes = {3, 40, 7},
                                          .mask_mode = REF_MASK_PACKED,
                                          .pattern = TEST_PATTERN_RANDOM},
                      TEST_TRIVIAL_IS_ERROR);
    edge_check_record(&(struct test_case){.name = "prefix only, first empty",
                                          .batch = 2,
                                          .prefix = {0, 90},
                                          .nodes = {4, 2},
                                          .mask_mode = REF_MASK_NONE},
                      TEST_TRIVIAL_IS_ERROR);
    edge_check_record(&(struct test_case){.name = "every row empty",
                                          .batch = 2,
                                          .prefix = {5, 0},
                                          .nodes = {0, 0},
                                          .spare_rows = 4,
                                          .mask_mode = REF_MASK_CHAIN},
                      TEST_TRIVIAL_IS_FINE);
}
END_TEST

START_TEST(visible_infinities_and_nan) {
    static const int32_t kinds[] = {TEST_VISIBLE_NAN, TEST_VISIBLE_INF, TEST_NEGATIVE_INF,
                                    TEST_ALL_MINUS_INF};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (int32_t mode = REF_MASK_NONE; mode <= REF_MASK_PACKED; mode++) {
            edge_check_record(&(struct test_case){.name = "infinities and NaN",
                                                  .batch = 2,
                                                  .prefix = {44, 260},
                                                  .nodes = {6, 3},
                                                  .heads = 4,
                                                  .kind = kinds[i],
                                                  .mask_mode = mode,
                                                  .lead_rows = 1},
                              TEST_TRIVIAL_IS_ERROR);
        }
    }
}
END_TEST

START_TEST(a_request_does_not_depend_on_its_batch) {
    const struct test_case whole = {.name = "batch",
                                    .batch = 4,
                                    .prefix = {40, 0, 270, 3},
                                    .nodes = {5, 9, 4, 35},
                                    .mask_mode = REF_MASK_PARENTS,
                                    .spare_rows = 3,
                                    .heads = 2};
    struct test_problem problem;
    edge_make(&whole, &problem);
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        struct test_outputs all;
        if (!edge_run(k, &problem, &all)) {
            continue;
        }
        for (int32_t b = 0; b < whole.batch; b++) {
            struct test_problem alone;
            struct test_outputs one;
            struct harness_report report;
            edge_make(&(struct test_case){.name = "alone",
                                          .prefix = {whole.prefix[b]},
                                          .nodes = {whole.nodes[b]},
                                          .heads = 2,
                                          .mask_mode = REF_MASK_PARENTS,
                                          .first_request = b},
                      &alone);
            ck_assert_int_eq(edge_run(k, &alone, &one), 1);
            struct test_outputs part = all;
            part.rows = whole.nodes[b];
            part.o += problem.call.node_indptr[b] * all.heads * all.columns;
            part.lse += problem.call.node_indptr[b] * all.heads;
            part.status = NULL;
            int differs = harness_same_bits(&one, &part, TEST_TRIVIAL_IS_ERROR, &report);
            ck_assert_msg(!differs, "%s: request %d alone: %s", test_implementation_at(k)->name, b,
                          report.text);
            test_outputs_free(&one);
            test_problem_free(&alone);
        }
        test_outputs_free(&all);
    }
    test_problem_free(&problem);
}
END_TEST

START_TEST(requests_over_the_limits_are_inactive) {
    edge_check_record(&(struct test_case){.name = "nodes and prefix over the limits",
                                          .batch = 5,
                                          .prefix = {7, 41, 40, 50, 6},
                                          .nodes = {6, 3, 5, 6, 0},
                                          .limit_nodes = 5,
                                          .limit_prefix = 40,
                                          .spare_rows = 2,
                                          .lead_rows = 3,
                                          .mask_mode = REF_MASK_PACKED},
                      TEST_TRIVIAL_IS_ERROR);
    struct test_case record = {.name = "stale lengths",
                               .batch = 3,
                               .prefix = {12, 5, 30},
                               .nodes = {3, 0, 4},
                               .page_size = 16,
                               .wide_lengths = 1,
                               .mask_mode = REF_MASK_PARENTS};
    static const int64_t lengths[] = {-1, INT64_MIN, INT64_MAX, 31, (int64_t)1 << 32};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (int32_t b = 0; b < 2; b++) { /* of an active request and of an inactive one */
            struct test_problem problem;
            edge_make(&record, &problem);
            test_put_index(problem.call.prefix_len, REF_I64, b, lengths[i]);
            edge_check_problem(&problem, TEST_TRIVIAL_IS_ERROR);
            test_problem_free(&problem);
        }
    }
}
END_TEST

START_TEST(lists_out_of_order_are_inactive) {
    const struct test_case record = {.name = "lists out of order",
                                     .batch = 4,
                                     .prefix = {12, 5, 30, 8},
                                     .nodes = {3, 2, 4, 3},
                                     .spare_rows = 2,
                                     .mask_mode = REF_MASK_CHAIN};
    /* node_indptr is 0 3 5 9 12 of 14 rows. Each entry is replaced by each of these. */
    static const int32_t values[] = {-1, INT32_MIN, 0, 4, 7, 14, 15, INT32_MAX};
    for (int32_t entry = 0; entry <= record.batch; entry++) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            struct test_problem problem;
            edge_make(&record, &problem);
            /* Prefix only: a request that grows must not follow tree slots that are not there. */
            test_put_index(problem.call.node_indptr, REF_I32, entry, values[i]);
            problem.call.mask_mode = REF_MASK_NONE;
            edge_check_problem(&problem, TEST_TRIVIAL_IS_FINE);
            test_problem_free(&problem);
        }
    }
    /* indptr that falls, and one whose list is shorter than the nodes that should end it. */
    static const int64_t starts[][2] = {{1, 0}, {1, 16}, {2, 21}, {2, 5}, {3, 20}, {0, -3}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct test_problem problem;
        edge_make(&record, &problem);
        test_put_index(problem.call.indptr, REF_I32, starts[i][0], starts[i][1]);
        edge_check_problem(&problem, TEST_TRIVIAL_IS_FINE);
        test_problem_free(&problem);
    }
}
END_TEST

START_TEST(overlapping_requests_have_their_own_status) {
    /* Requests 0 and 2 claim rows 2 and 3: request 0 owns them, and as nodes 0 and 1 of request 2
     * they have malformed parents. Its bit must be set although it does not own these rows. */
    const struct test_case record = {.name = "overlapping requests",
                                     .batch = 3,
                                     .prefix = {12, 5, 9},
                                     .nodes = {4, 2, 4},
                                     .own_tree_list = 1,
                                     .mask_mode = REF_MASK_PARENTS};
    struct test_problem problem;
    edge_make(&record, &problem);
    test_put_index(problem.call.node_indptr, REF_I32, 2, 2);
    test_put_index(problem.call.node_indptr, REF_I32, 3, 6);
    for (int32_t row = 0; row < 6; row++) {
        problem.parents[row] = row < 4 ? row - 1 : 0;
    }
    struct harness_expected expected;
    harness_expect(&problem, &expected);
    ck_assert_uint_eq(expected.status[1], REF_REQUEST_ROWS);
    ck_assert_uint_eq(expected.status[2], REF_REQUEST_TREE);
    harness_expected_free(&expected);
    edge_check_problem(&problem, TEST_TRIVIAL_IS_FINE);
    test_problem_free(&problem);
}
END_TEST

START_TEST(malformed_parents_empty_their_rows) {
    const struct test_case record = {.name = "malformed parents",
                                     .batch = 2,
                                     .prefix = {12, 9},
                                     .nodes = {9, 9},
                                     .window = 2,
                                     .mask_mode = REF_MASK_PARENTS};
    static const int32_t values[] = {-2, -1, 4, 5, 8, INT32_MAX, INT32_MIN};
    for (int32_t node = 0; node < 9; node += 4) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            struct test_problem problem;
            edge_make(&record, &problem);
            problem.parents[node] = values[i];
            edge_check_problem(&problem, TEST_TRIVIAL_IS_ERROR);
            test_problem_free(&problem);
        }
    }
}
END_TEST

void edge_cases_poison(TCase *tcase) {
    tcase_add_test(tcase, poison_changes_nothing_for_those_who_do_not_see_it);
    tcase_add_test(tcase, sizes_at_the_edges);
    tcase_add_test(tcase, fully_masked_rows_first_in_the_batch);
    tcase_add_test(tcase, visible_infinities_and_nan);
}

void edge_cases_batches(TCase *tcase) {
    tcase_add_test(tcase, a_request_does_not_depend_on_its_batch);
    tcase_add_test(tcase, requests_over_the_limits_are_inactive);
    tcase_add_test(tcase, lists_out_of_order_are_inactive);
    tcase_add_test(tcase, overlapping_requests_have_their_own_status);
    tcase_add_test(tcase, malformed_parents_empty_their_rows);
}
