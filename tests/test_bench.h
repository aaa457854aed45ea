// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Suites of test_bench.
 */
#ifndef TESTS_TEST_BENCH_H
#define TESTS_TEST_BENCH_H

#include "check_main.h"

/** What a run of `kdtr bench` is made of: rows, options, trees, progress. @return the suite */
Suite *bench_run_suite(void);

/** The files that it and `kdtr report` write. @return the suite */
Suite *output_file_suite(void);

#endif
