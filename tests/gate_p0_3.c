// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-3: the float32 reference is within its derived bound of the float64 truth, at every
 * length and on every kind of values. Each line printed is a measurement: the largest error and
 * the largest share of its bound that an error took. A bound leaves room for another order of
 * the sums, so the order is pinned by a second, scalar implementation with equal bits.
 */
#include <stdio.h>

#include "canonical_f32.h"
#include "case_table.h"
#include "check_main.h"
#include "harness.h"

/** Checks one case with the reference and prints what was measured. */
static void check_case(const struct test_case *record) {
    struct test_problem problem;
    struct harness_expected expected;
    struct harness_report report;
    struct test_session session;
    test_problem_make(record, &problem);
    harness_expect(&problem, &expected);
    if (record->kind == TEST_BENIGN) {
        ck_assert_msg(harness_is_telling(&problem, &expected), "%s: the case tells nothing",
                      record->name);
    }
    ck_assert_msg(test_session_open(test_implementation_at(0), &session) == 0, "%s", session.text);
    int wrong = harness_run(&session, &problem, &expected, &report);
    printf("P0-3 %-38s o error %8.2e, %5.3f of its bound; lse error %8.2e, %5.3f\n", record->name,
           report.o.worst_error, report.o.worst_ratio, report.lse.worst_error,
           report.lse.worst_ratio);
    ck_assert_msg(!wrong, "%s: %s", record->name, report.text);
    test_session_close(&session);
    harness_expected_free(&expected);
    test_problem_free(&problem);
}

START_TEST(reference_within_bound_on_the_table) {
    for (int32_t i = 0; i < case_table_count(); i++) {
        if (!test_scale_is_small() || !case_is_large(case_table_at(i))) {
            check_case(case_table_at(i));
        }
    }
}
END_TEST

static const char *const kinds[TEST_KIND_COUNT] = {
    "benign",         "huge score",  "equal scores", "beyond 80",    "cancellation", "denormal",
    "poisoned nodes", "visible NaN", "visible inf",  "negative inf", "all minus inf"};

START_TEST(reference_within_bound_on_all_kinds_and_lengths) {
    /* 0 and 1: nothing and one token before the tree; 17: less than one group of 32; 4,096: 16
       blocks, so that block sums matter. */
    static const int64_t lengths[] = {0, 1, 17, 4096};
    for (int32_t kind = 0; kind < TEST_KIND_COUNT; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            char name[64];
            int64_t prefix = test_scale_is_small() && lengths[i] > 600 ? 600 : lengths[i];
            snprintf(name, sizeof name, "%s, N = %lld", kinds[kind], (long long)prefix);
            /* A second request keeps the case telling where the first is NaN or empty. */
            check_case(&(struct test_case){.name = name,
                                           .batch = 2,
                                           .prefix = {prefix, prefix},
                                           .nodes = {5, 2},
                                           .kind = kind,
                                           .window = 3,
                                           .mask_mode = REF_MASK_PARENTS,
                                           .bf16_kv = 1,
                                           .latent_dim = 64,
                                           .rope_dim = 16});
        }
    }
}
END_TEST

START_TEST(reference_within_bound_on_long_prefixes) {
    static const int64_t lengths[] = {65536, 200000};
    for (int32_t kind = 0; kind < TEST_KIND_COUNT; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            char name[64];
            int64_t prefix = test_scale_is_small() ? lengths[i] / 100 : lengths[i];
            snprintf(name, sizeof name, "%s, N = %lld", kinds[kind], (long long)prefix);
            check_case(&(struct test_case){.name = name,
                                           .batch = 2,
                                           .prefix = {prefix, 40},
                                           .nodes = {2, 1},
                                           .kind = kind,
                                           .heads = 1,
                                           .mask_mode = REF_MASK_CHAIN,
                                           .bf16_kv = 1,
                                           .latent_dim = 64,
                                           .rope_dim = 16});
        }
    }
}
END_TEST

START_TEST(reference_within_bound_on_long_prefixes_of_model_sizes) {
    struct test_case record = {.name = "model sizes, N = 200,000",
                               .prefix = {200000},
                               .nodes = {2},
                               .mask_mode = REF_MASK_CHAIN,
                               .bf16_q = 1,
                               .bf16_kv = 1,
                               .latent_dim = 512,
                               .rope_dim = 64};
    if (test_scale_is_small()) {
        record.prefix[0] = 500;
        record.name = "model sizes, N = 500";
    }
    check_case(&record);
}
END_TEST

START_TEST(reference_follows_the_canonical_order) {
    for (int32_t i = 0; i < case_table_count(); i++) {
        const struct test_case *record = case_table_at(i);
        struct test_problem problem;
        struct test_session session;
        struct test_outputs actual;
        struct test_outputs expected;
        struct harness_report report;
        if (test_scale_is_small() && case_is_large(record)) {
            continue;
        }
        test_problem_make(record, &problem);
        attention_canonical_f32(&problem.call, &expected);
        ck_assert_msg(test_session_open(test_implementation_at(0), &session) == 0, "%s",
                      session.text);
        ck_assert_msg(test_run(&session, &problem, &actual) == 0, "%s: %s", record->name,
                      session.text);
        ck_assert_msg(harness_same_bits(&actual, &expected, TEST_TRIVIAL_IS_ERROR, &report) == 0,
                      "%s: %s", record->name, report.text);
        test_outputs_free(&actual);
        test_outputs_free(&expected);
        test_session_close(&session);
        test_problem_free(&problem);
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p0_3_suite(void) {
    Suite *suite = suite_create("P0-3 reference within its bound of truth");
    TCase *tcase = test_tcase(suite, "P0-3", "P0-3 reference within bound");
    tcase_add_test(tcase, reference_within_bound_on_the_table);
    tcase_add_test(tcase, reference_within_bound_on_all_kinds_and_lengths);
    tcase_add_test(tcase, reference_within_bound_on_long_prefixes);
    tcase_add_test(tcase, reference_within_bound_on_long_prefixes_of_model_sizes);
    TCase *order = test_tcase(suite, "P0-3", "P0-3 canonical order");
    tcase_add_test(order, reference_follows_the_canonical_order);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_3_suite};
    return check_main(makers, 1);
}
