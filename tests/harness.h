// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The harness: what a problem must give, and the check of what an implementation gave. The gates
 * use it, and P0-7 shows that it notices implementations that are wrong.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include "compare.h"
#include "implementations.h"

/** Truth and bounds of a problem. */
struct harness_expected {
    double *o;                    /**< [R,H,L] truth. */
    double *lse;                  /**< [R,H] truth. */
    double *o_bound;              /**< [R,H,L] bound of a float32 result. */
    double *lse_bound;            /**< [R,H] bound. */
    uint32_t *status;             /**< [B] bits that device_status must get. */
    int32_t trivial;              /**< enum test_trivial, for both arrays. */
    unsigned char *nan_permitted; /**< [R,H,L] 1 where a result on matrix units may be NaN, or NULL:
                                       nowhere (spec/mla_attention.md). */
};

/** What a check found. */
struct harness_report {
    char text[400];             /**< Why it failed. */
    struct test_comparison o;   /**< Comparison of o. */
    struct test_comparison lse; /**< Comparison of lse. */
};

/**
 * Computes truth and bounds. Ends the program if there is no memory.
 *
 * @param problem  the problem
 * @param expected filled; harness_expected_free releases it
 */
void harness_expect(const struct test_problem *problem, struct harness_expected *expected);

/**
 * Computes truth, and the bounds of the flash kernel in place of the reference's, for any split.
 *
 * @param problem  the problem
 * @param expected filled; harness_expected_free releases it
 */
void harness_expect_flash(const struct test_problem *problem, struct harness_expected *expected);

/**
 * Computes truth and the bounds of a class.
 *
 * @param comparison enum test_class
 * @param problem    the problem
 * @param expected   filled; harness_expected_free releases it
 */
void harness_expect_class(int32_t comparison, const struct test_problem *problem,
                          struct harness_expected *expected);

/** Releases what harness_expect made. @param expected its result */
void harness_expected_free(struct harness_expected *expected);

/**
 * Whether a problem can tell right from wrong: some row's softmax is far from flat and some output
 * far from zero.
 *
 * @param problem  a problem of benign values
 * @param expected its truth
 * @return 1 if so
 */
int harness_is_telling(const struct test_problem *problem, const struct harness_expected *expected);

/**
 * Checks outputs: device_status, o and lse within their bounds.
 *
 * @param problem  the problem
 * @param expected its truth and bounds
 * @param outputs  what an implementation gave; NaN that is permitted is replaced
 * @param report   filled
 * @return 0, or 1 with report->text set
 */
int harness_check(const struct test_problem *problem, const struct harness_expected *expected,
                  const struct test_outputs *outputs, struct harness_report *report);

/**
 * Runs a problem and checks its outputs.
 *
 * @param session  an open session
 * @param problem  the problem
 * @param expected its truth and bounds
 * @param report   filled
 * @return 0, or 1 with report->text set
 */
int harness_run(struct test_session *session, const struct test_problem *problem,
                const struct harness_expected *expected, struct harness_report *report);

/**
 * Compares the outputs of two runs bit for bit: o, lse and device_status.
 *
 * @param actual   outputs of one run
 * @param expected outputs of another
 * @param trivial  enum test_trivial
 * @param report   filled
 * @return 0, or 1 with report->text set
 */
int harness_same_bits(const struct test_outputs *actual, const struct test_outputs *expected,
                      int32_t trivial, struct harness_report *report);

#endif
