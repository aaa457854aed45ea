// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the suites of gate P0-8 and of the flash kernel's gates share.
 */
#include "edge_checks.h"

#include <stdio.h>

#ifdef KDTR_TEST_EMULATED
#include "simt/simt_runtime.h"
#endif

void edge_make(const struct test_case *record, struct test_problem *problem) {
    struct test_case fitting = *record;
    test_fit_record(&fitting);
    test_problem_make(&fitting, problem);
}

/** One run; on the emulator with this order of threads, or that of the run's seed. */
static void run(int32_t implementation, const struct test_problem *problem, const uint64_t *order,
                struct test_outputs *outputs) {
    struct test_session session;
    ck_assert_msg(test_session_open(test_implementation_at(implementation), &session) == 0, "%s",
                  session.text);
#ifdef KDTR_TEST_EMULATED
    if (order != NULL) {
        simt_set_seed(*order); /* opening the session has set another */
    }
#else
    (void)order;
#endif
    ck_assert_msg(test_run(&session, problem, outputs) == 0, "%s: %s", problem->spec.name,
                  session.text);
    test_session_close(&session);
}

int edge_run(int32_t implementation, const struct test_problem *problem,
             struct test_outputs *outputs) {
    if (!test_affordable(test_implementation_at(implementation), &problem->call)) {
        return 0;
    }
    run(implementation, problem, NULL, outputs);
    return 1;
}

void edge_run_in_order(int32_t implementation, const struct test_problem *problem, uint64_t order,
                       struct test_outputs *outputs) {
    run(implementation, problem, &order, outputs);
}

const struct test_case *edge_waves(int32_t index) {
    static const struct test_case records[EDGE_WAVES] = {{.name = "waves",
                                                          .batch = 3,
                                                          .prefix = {5, 70, 0},
                                                          .nodes = {1, 1, 1},
                                                          .heads = 128,
                                                          .limit_prefix = 1000,
                                                          .mask_mode = REF_MASK_PARENTS},
                                                         {.name = "waves, last row tile not full",
                                                          .batch = 3,
                                                          .prefix = {5, 70, 0},
                                                          .nodes = {1, 3, 1},
                                                          .heads = 80,
                                                          .limit_prefix = 1000,
                                                          .mask_mode = REF_MASK_PARENTS}};
    return &records[index];
}

void edge_check_problem(const struct test_problem *problem, int32_t trivial) {
    struct harness_expected expected;
    harness_expect_class(test_selected_class(), problem, &expected);
    expected.trivial = trivial;
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        struct test_outputs outputs;
        struct harness_report report;
        if (!edge_run(k, problem, &outputs)) {
            printf("%s: %s not run: too large\n", test_implementation_at(k)->name,
                   problem->spec.name);
            continue;
        }
        ck_assert_msg(harness_check(problem, &expected, &outputs, &report) == 0, "%s: %s: %s",
                      test_implementation_at(k)->name, problem->spec.name, report.text);
        test_outputs_free(&outputs);
    }
    harness_expected_free(&expected);
}

void edge_check_record(const struct test_case *record, int32_t trivial) {
    struct test_problem problem;
    edge_make(record, &problem);
    edge_check_problem(&problem, trivial);
    test_problem_free(&problem);
}

void edge_check_same_bits(const struct test_case *one, const struct test_case *other) {
    struct test_problem problems[2];
    edge_make(one, &problems[0]);
    edge_make(other, &problems[1]);
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        struct test_outputs outputs[2];
        struct harness_report report;
        if (edge_run(k, &problems[0], &outputs[0]) && edge_run(k, &problems[1], &outputs[1])) {
            int differs =
                harness_same_bits(&outputs[0], &outputs[1], TEST_TRIVIAL_IS_ERROR, &report);
            ck_assert_msg(!differs, "%s: %s and %s: %s", test_implementation_at(k)->name, one->name,
                          other->name, report.text);
            test_outputs_free(&outputs[0]);
            test_outputs_free(&outputs[1]);
        }
    }
    test_problem_free(&problems[0]);
    test_problem_free(&problems[1]);
}

int edge_main(test_suite_make *make) {
    test_select_class(TEST_CLASS_BOUND);
    return check_main(&make, 1);
}
