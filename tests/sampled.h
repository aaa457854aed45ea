// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The check of a run against truth in some of its rows, and in some heads of very long ones: where
 * all of them would take too long.
 */
#ifndef TESTS_SAMPLED_H
#define TESTS_SAMPLED_H

#include "implementations.h"

/** What a check found. */
struct sampled_report {
    int64_t rows;     /**< Rows that were compared. */
    double o_ratio;   /**< Largest error of o, of its bound. */
    double lse_ratio; /**< The same of lse. */
    char text[640];   /**< Why it failed. */
};

/**
 * Checks device_status; the first, the last and some rows of each request against truth, within
 * the bound of the flash kernel; and that rows that nobody owns are empty. Of a row with more than
 * 200,000 visible tokens times heads, the first, the last and some heads are checked. Not for kinds
 * of values with infinities that may give NaN (harness.h).
 *
 * @param problem the problem
 * @param outputs of a run
 * @param work    visible tokens times heads that the truth may take of a request, beyond one row
 * @param report  filled
 * @return 0, or 1 with report->text set
 */
int sampled_check(const struct test_problem *problem, const struct test_outputs *outputs,
                  int64_t work, struct sampled_report *report);

#endif
