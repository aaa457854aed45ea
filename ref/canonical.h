// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Sums of the canonical order and the constants of their bounds (spec/numerics.md).
 */
#ifndef REF_CANONICAL_H
#define REF_CANONICAL_H

#include <float.h>

#include "inline.h"

#if defined(__FAST_MATH__) || defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "the canonical order needs IEEE arithmetic: build without fast-math"
#endif
#if FLT_EVAL_METHOD != 0
#error "the canonical order needs float arithmetic in float: FLT_EVAL_METHOD must be 0"
#endif

/** Accumulators of a dot product (eq-dot). */
#define CANONICAL_LANES 32
/** Tokens of a block (eq-block-sum). */
#define CANONICAL_BLOCK 256
/** Largest absolute error of one operation that underflows: half the least denormal, doubled. */
#define CANONICAL_TINY 0x1p-149

// [dot]
/**
 * Dot product in the canonical order (eq-dot): products are rounded, then added to 32 interleaved
 * accumulators, which are added by halves. With plain SSE2 this is eight vector accumulators.
 *
 * @param x      [length]
 * @param y      [length]
 * @param length number of elements
 * @return the sum
 */
static inline float dot_canonical(const float *x, const float *y, int length) {
    float sum[CANONICAL_LANES] = {0};
    int k = 0;
    for (; k + CANONICAL_LANES <= length; k += CANONICAL_LANES) {
        for (int lane = 0; lane < CANONICAL_LANES; lane++) {
            sum[lane] += x[k + lane] * y[k + lane];
        }
    }
    for (int lane = 0; k + lane < length; lane++) {
        sum[lane] += x[k + lane] * y[k + lane];
    }
    for (int half = CANONICAL_LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; lane++) {
            sum[lane] += sum[lane + half];
        }
    }
    return sum[0];
}
// [dot]

/**
 * Roundings that a term of dot_canonical passes: its product, the additions in its lane but the
 * first (0 + x is exact), and five halvings.
 *
 * @param length number of elements
 * @return the number
 */
static inline double canonical_dot_roundings(int length) {
    int additions = (length + CANONICAL_LANES - 1) / CANONICAL_LANES;
    return additions + 5.0;
}

/**
 * gamma_n = n u / (1 - n u) with u = 2^-24: what n roundings can do (Higham).
 *
 * @param roundings n
 * @return gamma_n
 */
static inline double canonical_gamma(double roundings) {
    return roundings * 0x1p-24 / (1.0 - roundings * 0x1p-24);
}

#endif
