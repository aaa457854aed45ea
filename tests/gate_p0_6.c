// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-6: the row of a node equals, bit for bit, the row of a plain decode of its path: the
 * same tokens in a list of their own, whatever they were split into and in whatever tree they
 * stood. For every implementation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "case_table.h"
#include "check_main.h"
#include "harness.h"
#include "path_decode.h"

/** Runs one case and its decodes in one mode. Returns rows compared. */
static int64_t compare_mode(struct test_session *session, const struct test_problem *problem,
                            const struct test_outputs *verify, int32_t mask_mode) {
    struct test_problem decodes;
    struct test_outputs outputs;
    struct harness_report report;
    const char *name = session->implementation->name;
    if (test_path_decodes(problem, mask_mode, &decodes)) {
        return 0;
    }
    ck_assert_msg(test_run(session, &decodes, &outputs) == 0, "%s: %s", problem->spec.name,
                  session->text);
    /* The decodes are other requests: their status is not that of the verify call. */
    free(outputs.status);
    outputs.status = NULL;
    int differs = harness_same_bits(&outputs, verify, TEST_TRIVIAL_IS_ERROR, &report);
    ck_assert_msg(!differs, "%s: %s: decodes by mode %d: %s", name, problem->spec.name, mask_mode,
                  report.text);
    int64_t rows = outputs.rows;
    test_outputs_free(&outputs);
    test_problem_free(&decodes);
    return rows;
}

/** Runs one case as a verify call and as decodes. */
static int64_t compare_case(const struct test_implementation *implementation,
                            const struct test_case *record) {
    struct test_problem problem;
    struct test_session session;
    struct test_outputs verify;
    int64_t rows = 0;
    test_problem_make(record, &problem);
    if (!test_affordable(implementation, &problem.call)) {
        test_problem_free(&problem);
        return 0;
    }
    ck_assert_msg(test_session_open(implementation, &session) == 0, "%s", session.text);
    ck_assert_msg(test_run(&session, &problem, &verify) == 0, "%s: %s", record->name, session.text);
    rows += compare_mode(&session, &problem, &verify, REF_MASK_NONE);
    rows += compare_mode(&session, &problem, &verify, REF_MASK_CHAIN);
    test_outputs_free(&verify);
    test_session_close(&session);
    test_problem_free(&problem);
    return rows;
}

START_TEST(path_equals_decode) {
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        const struct test_implementation *implementation = test_implementation_at(k);
        int64_t rows = 0;
        for (int32_t i = 0; i < case_table_count(); i++) {
            const struct test_case *record = case_table_at(i);
            if (!test_scale_is_small() || !case_is_large(record)) {
                rows += compare_case(implementation, record);
            }
        }
        printf("P0-6 %s: %lld decoded rows, 0 differing bits\n", implementation->name,
               (long long)rows);
        ck_assert_int_gt(rows, 0);
    }
}
END_TEST

START_TEST(path_equals_decode_around_a_block) {
    /* The prefix ends within a path's length of a block's edge, so that nodes of one call have
       their last token on both sides of it. */
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        int64_t rows = 0;
        for (int64_t prefix = 253; prefix <= 257; prefix++) {
            rows += compare_case(test_implementation_at(k),
                                 &(struct test_case){.name = "around a block",
                                                     .prefix = {prefix},
                                                     .nodes = {12},
                                                     .window = 3,
                                                     .heads = 1,
                                                     .latent_dim = 32,
                                                     .mask_mode = REF_MASK_PARENTS});
        }
        ck_assert_int_gt(rows, 0);
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p0_6_suite(void) {
    Suite *suite = suite_create("P0-6 path equals decode");
    TCase *tcase = test_tcase(suite, "P0-6", "P0-6 path equals decode");
    tcase_add_test(tcase, path_equals_decode);
    tcase_add_test(tcase, path_equals_decode_around_a_block);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_6_suite};
    return check_main(makers, 1);
}
