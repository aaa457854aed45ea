// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Pairwise combinations of gate P1-1: any two levels of two factors stand together in some case,
 * where the work of such a case is within the limits.
 */
#ifndef TESTS_PAIRS_H
#define TESTS_PAIRS_H

#include "make_values.h"

/** Most cases of a list. */
#define PAIRS_MOST 512
/** Factors that are combined. */
#define PAIRS_FACTORS 11

/** A list of cases. */
struct pairs_list {
    int32_t count;                      /**< Cases. */
    int32_t pairs;                      /**< Pairs of levels. */
    int32_t covered;                    /**< Pairs that stand in a case. */
    struct test_case cases[PAIRS_MOST]; /**< The cases; their names point into `names`. */
    int64_t work[PAIRS_MOST];           /**< (N + Q) H Q of the request that the factors shape. */
    char names[PAIRS_MOST][120];        /**< Their levels. */
    int32_t levels[PAIRS_MOST][PAIRS_FACTORS]; /**< The same as numbers. */
};

/**
 * Makes the list: first as many pairs as cases of at most `low` work can hold, then, where `high`
 * is larger, cases of at most that work for pairs that are left.
 *
 * @param low  work
 * @param high work
 * @param list filled
 */
void pairs_make(int64_t low, int64_t high, struct pairs_list *list);

/**
 * How many pairs some of the cases hold.
 *
 * @param list  from pairs_make
 * @param first number of a case
 * @param step  the cases are first, first + step, ...
 * @return number of pairs
 */
int32_t pairs_covered(const struct pairs_list *list, int32_t first, int32_t step);

#endif
