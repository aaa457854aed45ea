// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the emulator's own test programs share: a case of one test, the end of main, a launch that
 * must succeed, and one that must not. C and C++.
 */
#ifndef SIMT_CHECK_H
#define SIMT_CHECK_H

#include <check.h>
#include <string.h>

#include "simt_runtime.h"

/** Fails the test unless a launch is right; prints the emulator's report. */
#define CHECK_LAUNCH(...)                                                                      \
    do {                                                                                       \
        cudaError_t launch_error = KDTR_LAUNCH(__VA_ARGS__);                                   \
        ck_assert_msg(launch_error == cudaSuccess, "%s: %s", cudaGetErrorString(launch_error), \
                      simt_last_report()->text);                                               \
    } while (0)

/**
 * Checks the report of a launch that failed.
 * @param error of the launch
 * @param code  expected
 * @param text  part of the text expected
 */
static inline void check_report(cudaError_t error, enum simt_code code, const char *text) {
    const struct simt_report *report = simt_last_report();
    ck_assert_int_eq(error, cudaErrorLaunchFailure);
    ck_assert_msg(report->code == code, "code %d: %s", (int)report->code, report->text);
    ck_assert_msg(strstr(report->text, text) != NULL, "%s", report->text);
    ck_assert_ptr_nonnull(strstr(report->kernel, "_kernel"));
}

/** Runs a wrong kernel with several seeds, checks each report, and the file's check_reuse(). */
#define CHECK_FAILS(code, text, ...)                            \
    do {                                                        \
        for (uint64_t seed = 0; seed < 6; seed++) {             \
            simt_set_seed(seed);                                \
            check_report(KDTR_LAUNCH(__VA_ARGS__), code, text); \
            check_reuse();                                      \
        }                                                       \
    } while (0)

/**
 * Makes a test case with room for slow sanitizers.
 * @param suite to add it to
 * @param name  of the case
 * @return the case, without tests
 */
static inline TCase *check_case(Suite *suite, const char *name) {
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

/**
 * Runs a suite, each test in a process of its own unless CK_FORK says otherwise.
 * @param suite the suite
 * @return for main: 0 if all tests passed; 1 if one failed or none ran
 */
static inline int check_run(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int run = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return run > 0 && failed == 0 ? 0 : 1;
}

#endif
