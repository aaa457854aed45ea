// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the emulator's own test programs share: a case of one test, the end of main, a launch that
 * must succeed. C and C++.
 */
#ifndef SIMT_CHECK_H
#define SIMT_CHECK_H

#include <check.h>

/** Fails the test unless a launch is right; prints the emulator's report. */
#define CHECK_LAUNCH(...)                                                                      \
    do {                                                                                       \
        cudaError_t launch_error = KDTR_LAUNCH(__VA_ARGS__);                                   \
        ck_assert_msg(launch_error == cudaSuccess, "%s: %s", cudaGetErrorString(launch_error), \
                      simt_last_report()->text);                                               \
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
