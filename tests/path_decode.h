// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * From a verify call to plain decodes: one request for each query row, whose list is what that row
 * sees.
 */
#ifndef TESTS_PATH_DECODE_H
#define TESTS_PATH_DECODE_H

#include "make_problem.h"

/**
 * Makes the decodes of a problem's rows. They share its queries and pool.
 *
 * @param problem   the verify problem; must outlive the result
 * @param mask_mode REF_MASK_NONE: all that a row sees is prefix; REF_MASK_CHAIN: its last token is
 *                  the node of a tree of one
 * @param decodes   filled; test_problem_free releases it
 * @return 0, or 1 if the mode is CHAIN and a row sees nothing, which that mode cannot say
 */
int test_path_decodes(const struct test_problem *problem, int32_t mask_mode,
                      struct test_problem *decodes);

#endif
