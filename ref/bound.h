// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The componentwise bound of the float32 reference (spec/numerics.md, "Bound of the reference"),
 * evaluated in double.
 */
#ifndef REF_BOUND_H
#define REF_BOUND_H

#include "attention.h"

/**
 * Bounds |reference - exact| of every element of o and lse. Rows that are empty get 0; rows that
 * are NaN get 0 (their outputs are NaN on both sides).
 * @param call      the call, host pointers; outputs are not read
 * @param q_error   [R,H,L] absolute errors of q_latent, or NULL
 * @param o_bound   [R,H,L] output, or NULL
 * @param lse_bound [R,H] output, or NULL
 * @return REF_OK or REF_OUT_OF_MEMORY
 */
int32_t attention_bound_f64(const struct ref_attention *call, const double *q_error,
                            double *o_bound, double *lse_bound);

#endif
