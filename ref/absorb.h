// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The model side of MLA: absorbing queries and expanding outputs with kv_b_proj
 * (spec/mla_attention.md, "Absorption"), each with the bound of its rounding (spec/numerics.md).
 * kv_b_proj is [H*(D+V),L]: per head D rows of W_uk, then V rows of W_uv.
 */
#ifndef REF_ABSORB_H
#define REF_ABSORB_H

#include <stdint.h>

/** Sizes of a module. */
struct ref_module_shape {
    int64_t rows;       /**< R, query rows. */
    int32_t heads;      /**< H. */
    int32_t nope_dim;   /**< D. */
    int32_t value_dim;  /**< V. */
    int32_t latent_dim; /**< L. */
};

/**
 * q_latent[r,h,l] = sum_d q_nope[r,h,d] W_uk[h][d][l]: products, then added in order of d.
 * @param shape sizes
 * @param q_nope [R,H,D]
 * @param kv_b_proj [H*(D+V),L]
 * @param q_latent [R,H,L] output
 */
void absorb_query_reference_f32(const struct ref_module_shape *shape, const float *q_nope,
                                const float *kv_b_proj, float *q_latent);

/**
 * Bound of the rounding of absorb_query_reference_f32.
 * @param shape sizes
 * @param q_nope [R,H,D]
 * @param kv_b_proj [H*(D+V),L]
 * @param q_error [R,H,L] output
 */
void absorb_query_bound_f64(const struct ref_module_shape *shape, const float *q_nope,
                            const float *kv_b_proj, double *q_error);

/**
 * out[r,h,v] = sum_l W_uv[h][v][l] o[r,h,l], in the canonical dot order.
 * @param shape sizes
 * @param o [R,H,L]
 * @param kv_b_proj [H*(D+V),L]
 * @param out [R,H,V] output
 */
void expand_value_reference_f32(const struct ref_module_shape *shape, const float *o,
                                const float *kv_b_proj, float *out);

/**
 * Bound of expand_value_reference_f32's output, given a bound of its input.
 * @param shape sizes
 * @param o [R,H,L]
 * @param o_bound [R,H,L]
 * @param kv_b_proj [H*(D+V),L]
 * @param out_bound [R,H,V] output
 */
void expand_value_bound_f64(const struct ref_module_shape *shape, const float *o,
                            const double *o_bound, const float *kv_b_proj, double *out_bound);

#endif
