// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-3, grades (a) and (b): two runs of the flash kernel give equal bits, in whatever order
 * the emulator takes the threads; and the bits of a request depend neither on its place in the
 * batch, nor on the other requests, nor on the plan's maxima, nor on what the workspace held.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check_main.h"
#include "edge_checks.h"

#ifdef KDTR_TEST_EMULATED
#include "simt/simt_runtime.h"
#define RUNS 4
#else
#define RUNS 20
#endif

/** Contents of the workspace that a case is run with. */
#define WORKSPACES 48

/** Values of the request under test, wherever it stands: of request 10 of the seed. */
#define VALUES 10

START_TEST(two_runs_have_equal_bits) {
    static const struct test_case records[] = {{.name = "chunks",
                                                .prefix = {700},
                                                .nodes = {9},
                                                .heads = 16,
                                                .mask_mode = REF_MASK_PARENTS},
                                               {.name = "batch",
                                                .batch = 4,
                                                .prefix = {0, 90, 3, 257},
                                                .nodes = {5, 0, 40, 2},
                                                .heads = 3,
                                                .spare_rows = 2,
                                                .mask_mode = REF_MASK_PACKED,
                                                .pattern = TEST_PATTERN_RANDOM},
                                               {.name = "poison",
                                                .batch = 2,
                                                .prefix = {100, 40},
                                                .nodes = {40, 8},
                                                .kind = TEST_POISONED_NODES,
                                                .mask_mode = REF_MASK_PARENTS},
                                               {.name = "pages",
                                                .batch = 2,
                                                .prefix = {300, 77},
                                                .nodes = {8, 8},
                                                .heads = 8,
                                                .page_size = 64,
                                                .one_pool = 1,
                                                .padding = 1,
                                                .bf16_o = 1,
                                                .kind = TEST_BEYOND_80,
                                                .mask_mode = REF_MASK_CHAIN}};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct test_problem problem;
        struct test_outputs first;
        edge_make(&records[i], &problem);
        edge_run_in_order(0, &problem, 1, &first);
        for (uint64_t r = 1; r < RUNS; r++) {
            struct test_outputs other;
            struct harness_report report;
            edge_run_in_order(0, &problem, r * test_seed() + 1, &other);
            ck_assert_msg(harness_same_bits(&other, &first, TEST_TRIVIAL_IS_ERROR, &report) == 0,
                          "%s, run %d: %s", records[i].name, (int)r, report.text);
            test_outputs_free(&other);
        }
        test_outputs_free(&first);
        test_problem_free(&problem);
    }
}
END_TEST

/** The request under test alone must have the bits that it has as request b of a batch. */
static void check_place(const struct test_case *batch, int32_t b) {
    struct test_case record = *batch;
    struct test_problem whole;
    struct test_problem alone;
    struct test_outputs all;
    struct test_outputs one;
    struct harness_report report;
    record.first_request = VALUES - b;
    edge_make(&record, &whole);
    edge_make(&(struct test_case){.name = "alone",
                                  .prefix = {batch->prefix[b]},
                                  .nodes = {batch->nodes[b]},
                                  .heads = batch->heads,
                                  .mask_mode = batch->mask_mode,
                                  .expected_batch = batch->expected_batch,
                                  .first_request = VALUES},
              &alone);
    edge_run_in_order(0, &whole, 5, &all);
    edge_run_in_order(0, &alone, 6, &one);
    struct test_outputs part = all;
    int64_t first = whole.call.node_indptr[b];
    part.rows = batch->nodes[b];
    part.batch = 1;
    part.o += first * all.heads * all.columns;
    part.lse += first * all.heads;
    part.status += b;
    ck_assert_msg(harness_same_bits(&one, &part, TEST_TRIVIAL_IS_ERROR, &report) == 0,
                  "%s, request %d: %s", batch->name, b, report.text);
    test_outputs_free(&all);
    test_outputs_free(&one);
    test_problem_free(&whole);
    test_problem_free(&alone);
}

/** Runs a case with a workspace of NaN, then with others that look like results of a run. */
static void check_workspaces_of(int32_t implementation, const struct test_case *record,
                                int sm_count) {
    struct test_problem problem;
    struct test_outputs first;
    struct test_session session;
    edge_make(record, &problem);
    ck_assert_msg(test_session_open(test_implementation_at(implementation), &session) == 0, "%s",
                  session.text);
#ifdef KDTR_TEST_EMULATED
    simt_set_sm_count(sm_count);
#else
    (void)sm_count;
#endif
    for (int32_t i = 0; i < (test_scale_is_small() ? 4 : WORKSPACES); i++) {
        struct test_outputs other;
        struct harness_report report;
        session.poison = i == 0 ? TEST_POISON_NAN : TEST_POISON_COUNTS;
        ck_assert_msg(test_run(&session, &problem, i == 0 ? &first : &other) == 0, "%s: %s",
                      record->name, session.text);
        if (i == 0) {
            continue;
        }
        ck_assert_msg(harness_same_bits(&other, &first, TEST_TRIVIAL_IS_ERROR, &report) == 0,
                      "%s, workspace %d: %s", record->name, i, report.text);
        test_outputs_free(&other);
    }
    test_session_close(&session);
    test_outputs_free(&first);
    test_problem_free(&problem);
}

/** The same of every implementation. */
static void check_workspaces(const struct test_case *record, int sm_count) {
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        check_workspaces_of(k, record, sm_count);
    }
}

START_TEST(bits_do_not_depend_on_the_workspace) {
    for (int32_t i = 0; i < EDGE_WAVES; i++) {
        /* What lies behind the row tiles, where the last wave would end, is nobody's. */
        check_workspaces(edge_waves(i), 132);
    }
    check_workspaces(&(struct test_case){.name = "inactive requests, keys that nobody sees",
                                         .batch = 4,
                                         .prefix = {90, 0, 300, 40},
                                         .nodes = {3, 2, 0, 20},
                                         .heads = 8,
                                         .lead_rows = 1,
                                         .mask_mode = REF_MASK_PACKED,
                                         .pattern = TEST_PATTERN_RANDOM},
                     46);
}
END_TEST

/** Rows of some problem's outputs that start at `first` are those of another's. */
static void check_rows(const struct test_outputs *one, const struct test_outputs *other,
                       int64_t first, int64_t rows) {
    int64_t heads = one->heads;
    int64_t columns = heads * one->columns;
    ck_assert(memcmp(one->o + first * columns, other->o + first * columns,
                     (size_t)(rows * columns) * sizeof *one->o) == 0);
    ck_assert(memcmp(one->lse + first * heads, other->lse + first * heads,
                     (size_t)(rows * heads) * sizeof *one->lse) == 0);
}

/** Gives the requests other rows. */
static void set_rows(const struct test_problem *problem, const int32_t rows[6]) {
    for (int32_t b = 0; b <= 5; b++) {
        test_put_index(problem->call.node_indptr, REF_I32, b, rows[b]);
    }
}

START_TEST(rows_that_the_plan_has_no_room_for_are_empty) {
    /* With 64 heads a row is a row tile, and the plan has 14 + 5 of them. Requests 0, 2 and 4 claim
       the first rows, 1 and 3 are malformed. Request 4 owns rows 8 to 13 as its nodes 8 to 13; its
       row tiles begin behind the 8 and `second` of the others. */
    static const int32_t seconds[] = {8, 2};
    static const int32_t ends[] = {8, 9};
    const struct test_case record = {.name = "more row tiles than the plan has",
                                     .batch = 5,
                                     .prefix = {20, 7, 30, 9, 40},
                                     .nodes = {8, 1, 1, 1, 3},
                                     .heads = 64,
                                     .limit_nodes = 14,
                                     .mask_mode = REF_MASK_NONE};
    static const uint32_t status[] = {0, REF_REQUEST_ROWS, 0, REF_REQUEST_ROWS, REF_REQUEST_ROWS};
    struct test_problem problem;
    struct test_outputs first;
    struct test_outputs last;
    edge_make(&record, &problem);
    edge_run_in_order(0, &problem, 1, &first);
    set_rows(&problem, (const int32_t[]){0, 0, 0, 0, 0, 14});
    edge_run_in_order(0, &problem, 1, &last);
    for (int32_t i = 0; i < 2; i++) {
        struct test_outputs all;
        set_rows(&problem, (const int32_t[]){0, 8, 0, seconds[i], 0, 14});
        edge_run_in_order(0, &problem, 2, &all);
        check_rows(&all, &first, 0, 8);
        check_rows(&all, &last, 8, ends[i] - 8);
        for (int64_t k = ends[i] * 64; k < (int64_t)14 * 64; k++) {
            ck_assert(all.lse[k] == -INFINITY);
            for (int64_t d = 0; d < all.columns; d++) {
                ck_assert(all.o[k * all.columns + d] == 0.0f);
            }
        }
        ck_assert(memcmp(all.status, status, sizeof status) == 0);
        test_outputs_free(&all);
    }
    test_outputs_free(&first);
    test_outputs_free(&last);
    test_problem_free(&problem);
}
END_TEST

START_TEST(bits_do_not_depend_on_the_batch) {
    static const int32_t expected[] = {1, 4, 200};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        for (int32_t b = 0; b < 5; b += 2) {
            struct test_case record = {.name = "place in the batch",
                                       .batch = 5,
                                       .prefix = {0, 35, 900, 1, 60},
                                       .nodes = {3, 0, 4, 33, 12},
                                       .heads = 8,
                                       .lead_rows = 2,
                                       .spare_rows = 1,
                                       .expected_batch = expected[i],
                                       .mask_mode = REF_MASK_PARENTS};
            record.prefix[b] = 300;
            record.nodes[b] = 20;
            check_place(&record, b);
        }
    }
}
END_TEST

START_TEST(bits_do_not_depend_on_the_maxima) {
    struct test_case record = {.name = "large limits",
                               .prefix = {300},
                               .nodes = {20},
                               .heads = 16,
                               .limit_nodes = 300,
                               .limit_prefix = 100000,
                               .spare_rows = 60,
                               .mask_mode = REF_MASK_PARENTS};
    check_place(&record, 0);
    record.name = "large limits, one chunk";
    record.expected_batch = 500;
    check_place(&record, 0);
    record.name = "batch of 64";
    record.batch = 64;
    for (int32_t b = 0; b < 64; b++) {
        record.prefix[b] = b == 40 ? 170 : b % 7;
        record.nodes[b] = b == 40 ? 9 : b % 9 == 0;
    }
    record.spare_rows = 0;
    record.expected_batch = 8;
    check_place(&record, 40);
}
END_TEST

/** @return the suite */
static Suite *gate_p1_3_suite(void) {
    Suite *suite = suite_create("P1-3 determinism");
    TCase *tcase = test_tcase(suite, "P1-3", "P1-3 equal bits");
    tcase_add_test(tcase, two_runs_have_equal_bits);
    tcase_add_test(tcase, bits_do_not_depend_on_the_workspace);
    tcase_add_test(tcase, rows_that_the_plan_has_no_room_for_are_empty);
    tcase_add_test(tcase, bits_do_not_depend_on_the_batch);
    tcase_add_test(tcase, bits_do_not_depend_on_the_maxima);
    return suite;
}

int main(void) {
#ifdef KDTR_TEST_EMULATED
    simt_set_sm_count(test_seed() % 2 ? 3 : 188);
#endif
    return edge_main(gate_p1_3_suite);
}
