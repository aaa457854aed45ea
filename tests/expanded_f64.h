// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Expanded (not absorbed) MLA in float64: keys and values of every head are made from the latent
 * rows, then plain multi-head attention. It proves the absorbed formula (spec/mla_attention.md,
 * "Absorption").
 */
#ifndef TESTS_EXPANDED_F64_H
#define TESTS_EXPANDED_F64_H

#include <stdint.h>

/** A small module problem. kv_b_proj holds for each head D rows of W_uk, then V rows of W_uv. */
struct expanded_problem {
    int64_t rows;                 /**< R query rows. */
    int64_t tokens;               /**< T cache rows. */
    int32_t heads;                /**< H. */
    int32_t nope_dim;             /**< D. */
    int32_t value_dim;            /**< V. */
    int32_t latent_dim;           /**< L. */
    int32_t rope_dim;             /**< P. */
    double scale;                 /**< Factor of the scores. */
    const double *q_nope;         /**< [R,H,D]. */
    const double *q_rope;         /**< [R,H,P]. */
    const double *kv_b_proj;      /**< [H*(D+V),L]. */
    const double *latent;         /**< [T,L]. */
    const double *rope;           /**< [T,P]. */
    const unsigned char *visible; /**< [R,T]. */
};

/**
 * Attention output before the output projection, and its lse.
 *
 * @param p   the problem
 * @param out [R,H,V]
 * @param lse [R,H], natural logarithm
 */
void attention_expanded_f64(const struct expanded_problem *p, double *out, double *lse);

#endif
