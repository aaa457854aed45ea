// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the suites of gates P0-8 and P1-1 share: checks with every implementation of the selected
 * class. They fail the running test by Check's assertions.
 */
#ifndef TESTS_EDGE_CHECKS_H
#define TESTS_EDGE_CHECKS_H

#include "harness.h"

/**
 * Makes a problem that the implementations of the selected class take (test_fit_record).
 *
 * @param record  parameters
 * @param problem filled; test_problem_free releases it
 */
void edge_make(const struct test_case *record, struct test_problem *problem);

/**
 * Runs a problem.
 *
 * @param implementation number in the table
 * @param problem        the problem
 * @param outputs        filled if it is run; test_outputs_free releases it
 * @return 0 if it is too large for the implementation, otherwise 1
 */
int edge_run(int32_t implementation, const struct test_problem *problem,
             struct test_outputs *outputs);

/**
 * Checks a problem against truth with every implementation.
 *
 * @param problem the problem
 * @param trivial enum test_trivial
 */
void edge_check_problem(const struct test_problem *problem, int32_t trivial);

/**
 * Makes a problem and checks it.
 *
 * @param record  parameters
 * @param trivial enum test_trivial
 */
void edge_check_record(const struct test_case *record, int32_t trivial);

/**
 * Two records must give equal bits with every implementation.
 *
 * @param one   parameters
 * @param other parameters
 */
void edge_check_same_bits(const struct test_case *one, const struct test_case *other);

#endif
