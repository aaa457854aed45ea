// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the suites of gate P0-8 and of the flash kernel's gates share: checks with every
 * implementation of the selected class, which fail the running test by Check's assertions; records;
 * and the main function.
 */
#ifndef TESTS_EDGE_CHECKS_H
#define TESTS_EDGE_CHECKS_H

#include "check_main.h"
#include "harness.h"

/** Records of edge_waves(). */
#define EDGE_WAVES 2

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
 * Runs a problem; on the emulator, its threads in an order.
 *
 * @param implementation its number
 * @param problem        the problem
 * @param order          simt_set_seed() takes it; elsewhere it means nothing
 * @param outputs        filled; test_outputs_free releases it
 */
void edge_run_in_order(int32_t implementation, const struct test_problem *problem, uint64_t order,
                       struct test_outputs *outputs);

/**
 * A record that the flash kernel runs in several waves, of few keys: its limits ask for more
 * partial outputs than a wave may have. The last wave would end behind the row tiles.
 *
 * @param index 0: every row tile is full; 1: the last one of a request is not
 * @return the record, for 132 multiprocessors or more
 */
const struct test_case *edge_waves(int32_t index);

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

/**
 * The main function of a gate of the flash kernel: the implementations of class BOUND.
 *
 * @param make makes the suite
 * @return exit code of the program
 */
int edge_main(test_suite_make *make);

#endif
