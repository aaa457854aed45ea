// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-5: the naive kernel gives every bit of the reference: o, lse and device_status. It
 * needs KDTR_TEST_CUDA, and is one source for two programs: linked with the emulated library and
 * with the one for a GPU. Without KDTR_TEST_CUDA there is no such test, and the program fails.
 */
#include <stdio.h>
#include <string.h>

#include "case_table.h"
#include "check_main.h"
#include "harness.h"
#include "kdtr_bundle.h"
#include "named_problem.h"

#ifdef KDTR_TEST_CUDA

/** Runs a problem with the reference and with every other implementation. Returns runs made. */
static int compare_bits(const char *name, const struct test_problem *problem, int32_t trivial,
                        struct test_outputs *reference) {
    struct test_session session;
    int runs = 0;
    ck_assert_msg(test_session_open(test_implementation_at(0), &session) == 0, "%s", session.text);
    ck_assert_msg(test_run(&session, problem, reference) == 0, "%s: %s", name, session.text);
    test_session_close(&session);
    for (int32_t i = 1; i < test_implementation_count(); i++) {
        const struct test_implementation *implementation = test_implementation_at(i);
        struct test_outputs outputs;
        struct harness_report report;
        if (!test_affordable(implementation, &problem->call)) {
            printf("P0-5 %-42s not run: too large for the emulator\n", name);
            continue;
        }
        ck_assert_msg(test_session_open(implementation, &session) == 0, "%s", session.text);
        ck_assert_msg(test_run(&session, problem, &outputs) == 0, "%s: %s", name, session.text);
        int differs = harness_same_bits(&outputs, reference, trivial, &report);
        ck_assert_msg(!differs, "%s: %s: %s", implementation->name, name, report.text);
        printf("P0-5 %-42s %s: %lld elements, 0 differing bits\n", name, implementation->name,
               (long long)(report.o.checked + report.lse.checked));
        test_outputs_free(&outputs);
        test_session_close(&session);
        runs++;
    }
    return runs;
}

START_TEST(naive_equals_reference_on_the_table) {
    int runs = 0;
    for (int32_t i = 0; i < case_table_count(); i++) {
        struct test_problem problem;
        struct test_outputs reference;
        test_problem_make(case_table_at(i), &problem);
        runs += compare_bits(case_table_at(i)->name, &problem, TEST_TRIVIAL_IS_ERROR, &reference);
        test_outputs_free(&reference);
        test_problem_free(&problem);
    }
    ck_assert_int_gt(runs, 0);
}
END_TEST

#ifndef KDTR_TEST_EMULATED /* there the named case tree-long has as many */
START_TEST(naive_equals_reference_on_200k_tokens) {
    const struct test_case record = {.name = "200,000 tokens",
                                     .prefix = {200000},
                                     .nodes = {3},
                                     .mask_mode = REF_MASK_CHAIN,
                                     .latent_dim = 512,
                                     .rope_dim = 64,
                                     .bf16_kv = 1,
                                     .bf16_q = 1};
    if (test_implementation_at(1)->emulated) {
        printf("P0-5 %s: on a GPU only\n", record.name);
        return;
    }
    struct test_problem problem;
    struct test_outputs reference;
    test_problem_make(&record, &problem);
    ck_assert_int_gt(compare_bits(record.name, &problem, TEST_TRIVIAL_IS_ERROR, &reference), 0);
    test_outputs_free(&reference);
    test_problem_free(&problem);
}
END_TEST
#endif

/** One named case: the reference gives what the bundle holds, and the others its bits. */
static int check_named_case(const char *name) {
    struct test_problem problem;
    struct test_named named;
    struct test_outputs reference;
    struct harness_report report;
    ck_assert_msg(test_named_open(name, &named, &problem) == 0, "%s: %s", name, named.text);
    int runs = compare_bits(name, &problem, TEST_TRIVIAL_IS_FINE, &reference);
    struct test_outputs stored = reference;
    stored.o = (float *)(uintptr_t)named.problem.o.data;
    stored.lse = (float *)(uintptr_t)named.problem.lse.data;
    int differs = harness_same_bits(&reference, &stored, TEST_TRIVIAL_IS_FINE, &report);
    ck_assert_msg(!differs, "%s: not what the bundle holds: %s", name, report.text);
    test_outputs_free(&reference);
    test_problem_free(&problem);
    test_named_close(&named);
    return runs;
}

START_TEST(naive_equals_reference_on_named_cases) {
    int runs = 0;
    for (int32_t i = 0; i < kdtr_case_count(); i++) {
        runs += check_named_case(kdtr_case_name(i));
    }
    ck_assert_int_gt(runs, 0);
}
END_TEST

#endif

/** @return the suite */
static Suite *gate_p0_5_suite(void) {
    Suite *suite = suite_create("P0-5 naive equals reference");
    TCase *tcase = test_tcase(suite, "P0-5", "P0-5 naive equals reference");
#ifdef KDTR_TEST_CUDA
    tcase_add_test(tcase, naive_equals_reference_on_the_table);
#ifndef KDTR_TEST_EMULATED
    tcase_add_test(tcase, naive_equals_reference_on_200k_tokens);
#endif
    tcase_add_test(tcase, naive_equals_reference_on_named_cases);
#else
    (void)tcase;
#endif
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_5_suite};
    return check_main(makers, 1);
}
