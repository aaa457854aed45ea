// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-7: the harness accepts a right implementation on every case and rejects every
 * implementation that is wrong on purpose on at least one.
 */
#include <stdio.h>

#include "case_table.h"
#include "check_main.h"
#include "harness.h"
#include "wrong_attention.h"

/** Which case caught a bug first, and how many did. */
struct catch {
    const char *name;
    int32_t count;
    char text[100];
};

/** Runs every bug that is asked for on one case. */
static void try_bugs(const struct test_case *record, struct catch *caught, int32_t first,
                     int32_t end) {
    struct test_problem problem;
    struct harness_expected expected;
    test_problem_make(record, &problem);
    harness_expect(&problem, &expected);
    for (int32_t bug = first; bug < end; bug++) {
        const struct test_implementation wrong = {
            .name = wrong_bug_name(bug), .host_run = attention_wrong_f32, .option = bug};
        struct test_session session;
        struct harness_report report;
        test_session_open(&wrong, &session);
        if (harness_run(&session, &problem, &expected, &report)) {
            ck_assert_msg(bug != WRONG_NOTHING, "%s: the right one is rejected: %s", record->name,
                          report.text);
            if (caught[bug].count++ == 0) {
                caught[bug].name = record->name;
                snprintf(caught[bug].text, sizeof caught[bug].text, "%.99s", report.text);
            }
        }
        test_session_close(&session);
    }
    harness_expected_free(&expected);
    test_problem_free(&problem);
}

START_TEST(harness_rejects_what_is_wrong) {
    struct catch caught[WRONG_COUNT] = {0};
    for (int32_t i = 0; i < case_table_count(); i++) {
        if (!test_scale_is_small() || !case_is_large(case_table_at(i))) {
            try_bugs(case_table_at(i), caught, 0, WRONG_COUNT);
        }
    }
    for (int32_t bug = WRONG_NOTHING + 1; bug < WRONG_COUNT; bug++) {
        printf("P0-7 %-43s rejected by %2d cases, first '%s'\n       (%s)\n", wrong_bug_name(bug),
               caught[bug].count, caught[bug].count > 0 ? caught[bug].name : "", caught[bug].text);
    }
    for (int32_t bug = WRONG_NOTHING + 1; bug < WRONG_COUNT; bug++) {
        ck_assert_msg(caught[bug].count > 0, "an implementation that %s passes every case",
                      wrong_bug_name(bug));
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p0_7_suite(void) {
    Suite *suite = suite_create("P0-7 wrong on purpose");
    TCase *tcase = test_tcase(suite, "P0-7", "P0-7 harness rejects what is wrong");
    tcase_add_test(tcase, harness_rejects_what_is_wrong);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_7_suite};
    return check_main(makers, 1);
}
