// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The model side of MLA (spec/mla_attention.md, "Absorption") and the bounds of its rounding.
 */
#include "absorb.h"

#include <math.h>

#include "canonical.h"

/** Start of row `row` of W_uk (value = 0) or W_uv (value = 1) of a head. */
static const float *projection_row(const struct ref_module_shape *shape, const float *kv_b_proj,
                                   int32_t head, int value, int32_t row) {
    int64_t per_head = (int64_t)shape->nope_dim + shape->value_dim;
    int64_t index = head * per_head + (value ? shape->nope_dim : 0) + row;
    return kv_b_proj + index * shape->latent_dim;
}

void absorb_query_reference_f32(const struct ref_module_shape *shape, const float *q_nope,
                                const float *kv_b_proj, float *q_latent) {
    for (int64_t i = 0; i < shape->rows * shape->heads; i++) {
        float *out = q_latent + i * shape->latent_dim;
        for (int32_t l = 0; l < shape->latent_dim; l++) {
            out[l] = 0.0f;
        }
        for (int32_t d = 0; d < shape->nope_dim; d++) {
            float q = q_nope[i * shape->nope_dim + d];
            const float *w = projection_row(shape, kv_b_proj, (int32_t)(i % shape->heads), 0, d);
            for (int32_t l = 0; l < shape->latent_dim; l++) {
                out[l] += q * w[l];
            }
        }
    }
}

void absorb_query_bound_f64(const struct ref_module_shape *shape, const float *q_nope,
                            const float *kv_b_proj, double *q_error) {
    double gamma = canonical_gamma(shape->nope_dim); /* a product and D - 1 inexact additions */
    for (int64_t i = 0; i < shape->rows * shape->heads; i++) {
        double *out = q_error + i * shape->latent_dim;
        for (int32_t l = 0; l < shape->latent_dim; l++) {
            out[l] = 0.0;
        }
        for (int32_t d = 0; d < shape->nope_dim; d++) {
            double q = fabs((double)q_nope[i * shape->nope_dim + d]);
            const float *w = projection_row(shape, kv_b_proj, (int32_t)(i % shape->heads), 0, d);
            for (int32_t l = 0; l < shape->latent_dim; l++) {
                out[l] += gamma * q * fabs((double)w[l]) + CANONICAL_TINY;
            }
        }
    }
}

void expand_value_reference_f32(const struct ref_module_shape *shape, const float *o,
                                const float *kv_b_proj, float *out) {
    for (int64_t i = 0; i < shape->rows * shape->heads; i++) {
        for (int32_t v = 0; v < shape->value_dim; v++) {
            const float *w = projection_row(shape, kv_b_proj, (int32_t)(i % shape->heads), 1, v);
            out[i * shape->value_dim + v] =
                dot_canonical(w, o + i * shape->latent_dim, shape->latent_dim);
        }
    }
}

void expand_value_bound_f64(const struct ref_module_shape *shape, const float *o,
                            const double *o_bound, const float *kv_b_proj, double *out_bound) {
    double gamma = canonical_gamma(canonical_dot_roundings(shape->latent_dim));
    for (int64_t i = 0; i < shape->rows * shape->heads; i++) {
        for (int32_t v = 0; v < shape->value_dim; v++) {
            const float *w = projection_row(shape, kv_b_proj, (int32_t)(i % shape->heads), 1, v);
            double bound = 0.0;
            for (int32_t l = 0; l < shape->latent_dim; l++) {
                int64_t at = i * shape->latent_dim + l;
                bound += fabs((double)w[l]) *
                             (o_bound[at] * (1.0 + gamma) + gamma * fabs((double)o[at])) +
                         CANONICAL_TINY;
            }
            out_bound[i * shape->value_dim + v] = bound;
        }
    }
}
