// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Poison, sizes at the edges, ragged and malformed batches, for the implementations of the selected
 * class (tests/implementations.h).
 */
#ifndef TESTS_EDGE_CASES_H
#define TESTS_EDGE_CASES_H

#include <check.h>

/** Adds the tests of poison, infinities and sizes. @param tcase test case of a gate */
void edge_cases_poison(TCase *tcase);

/** Adds the tests of batches, limits and malformed requests. @param tcase test case of a gate */
void edge_cases_batches(TCase *tcase);

#endif
