// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What every test program shares: the runner, the seed, the scale, and how a gate's cases are
 * named and tagged.
 */
#ifndef TESTS_CHECK_MAIN_H
#define TESTS_CHECK_MAIN_H

#include <check.h>
#include <stdint.h>

/** Where the program runs its implementations: a tag of every test case. */
#if defined(KDTR_TEST_CUDA) && defined(KDTR_TEST_EMULATED)
#define TEST_PLACE "emulated"
#elif defined(KDTR_TEST_CUDA)
#define TEST_PLACE "gpu"
#else
#define TEST_PLACE "cpu"
#endif

/** Makes a suite. @return a new suite */
typedef Suite *test_suite_make(void);

/**
 * Runs suites under Check; CK_RUN_CASE, CK_FORK, CK_TAP_LOG_FILE_NAME and the like are honoured.
 *
 * @param makers functions that make a suite each
 * @param count  how many
 * @return exit code: failure also when no test ran, because a selection that matches nothing
 *         must not look like success
 */
int check_main(test_suite_make *const *makers, int count);

/**
 * Makes a test case of a gate, tagged "phase0", the ID and the place, with a timeout that a
 * sanitizer's build meets too.
 *
 * @param suite suite to add it to
 * @param id    gate ID, e.g. "P0-6"
 * @param name  name, which starts with the ID
 * @return the test case
 */
TCase *test_tcase(Suite *suite, const char *id, const char *name);

/** Seed of the run: the environment's KDTR_TEST_SEED, or 1. @return the seed, never 0 */
uint64_t test_seed(void);

/**
 * Whether a reduced set is asked for (KDTR_TEST_SCALE=small): under sanitizers and emulation.
 * @return 1 for the reduced set
 */
int test_scale_is_small(void);

#endif
