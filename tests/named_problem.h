// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The problem of a named case, for a run by any implementation.
 */
#ifndef TESTS_NAMED_PROBLEM_H
#define TESTS_NAMED_PROBLEM_H

#include "kdtr_bundle.h"
#include "make_problem.h"

/** A named case that is open. */
struct test_named {
    kdtr_bundle *bundle;  /**< Owns the arrays of the problem. */
    kdtr_problem problem; /**< Its problem, with o and lse of the reference. */
    char text[300];       /**< Why it could not be opened. */
};

/**
 * Generates a case.
 *
 * @param name    name of the case
 * @param named   filled; test_named_close releases it, after the problem
 * @param problem filled, its arrays borrowed; test_problem_free releases it
 * @return 0, or 1 with named->text set
 */
int test_named_open(const char *name, struct test_named *named, struct test_problem *problem);

/** Closes a case. @param named an open case */
void test_named_close(struct test_named *named);

#endif
