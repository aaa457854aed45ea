// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The table of small problems that several gates iterate: every mask mode, type, addressing and
 * kind of values, in awkward sizes.
 */
#ifndef TESTS_CASE_TABLE_H
#define TESTS_CASE_TABLE_H

#include "make_values.h"

/** Number of cases. @return the number */
int32_t case_table_count(void);

/**
 * A case.
 *
 * @param index 0 to case_table_count() - 1
 * @return the record
 */
const struct test_case *case_table_at(int32_t index);

/**
 * Whether a case is skipped by the reduced set: it costs much under a sanitizer.
 *
 * @param c a case
 * @return 1 if so
 */
int case_is_large(const struct test_case *c);

#endif
