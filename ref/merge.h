// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Merging partial states (spec/numerics.md, "Merging partial states", eq-merge): the attention of a
 * row over several disjoint sets of tokens, from the o and lse over each.
 */
#ifndef REF_MERGE_H
#define REF_MERGE_H

#include <stdint.h>

/**
 * Merges the states of one row and head, in order of the parts. Parts whose lse is -inf are absent;
 * with all absent the result is o = 0, lse = -inf. A NaN lse makes o and lse NaN.
 *
 * @param parts  number of parts, at least 1
 * @param width  L, elements of a row
 * @param o      o[k]: row of part k, [L]
 * @param lse    [parts] natural logarithms
 * @param out    [L] merged row; may be one of the parts
 * @return the merged natural log-sum-exp
 */
float merge_states_reference_f32(int32_t parts, int32_t width, const float *const *o,
                                 const float *lse, float *out);

#endif
