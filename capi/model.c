// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The model side of MLA and the bounds, as functions of the ABI.
 */
#include "absorb.h"
#include "bound.h"
#include "kdtr_bundle.h"
#include "run_args.h"

/** Sizes that a product of them cannot overflow. */
static int valid_shape(const struct ref_module_shape *s) {
    const int32_t most = 65536;
    return s->rows >= 1 && s->rows <= INT32_MAX && s->heads >= 1 && s->heads <= most &&
           s->nope_dim >= 1 && s->nope_dim <= most && s->value_dim >= 1 && s->value_dim <= most &&
           s->latent_dim >= 1 && s->latent_dim <= most;
}

int32_t kdtr_absorb_query(int64_t rows, int32_t heads, int32_t nope_dim, int32_t value_dim,
                          int32_t latent_dim, const float *q_nope, const float *kv_b_proj,
                          float *q_latent) {
    const struct ref_module_shape shape = {rows, heads, nope_dim, value_dim, latent_dim};
    if (!valid_shape(&shape) || q_nope == NULL || kv_b_proj == NULL || q_latent == NULL) {
        return KDTR_INVALID_ARGUMENT;
    }
    absorb_query_reference_f32(&shape, q_nope, kv_b_proj, q_latent);
    return KDTR_OK;
}

int32_t kdtr_absorb_query_bound(int64_t rows, int32_t heads, int32_t nope_dim, int32_t value_dim,
                                int32_t latent_dim, const float *q_nope, const float *kv_b_proj,
                                double *q_error) {
    const struct ref_module_shape shape = {rows, heads, nope_dim, value_dim, latent_dim};
    if (!valid_shape(&shape) || q_nope == NULL || kv_b_proj == NULL || q_error == NULL) {
        return KDTR_INVALID_ARGUMENT;
    }
    absorb_query_bound_f64(&shape, q_nope, kv_b_proj, q_error);
    return KDTR_OK;
}

int32_t kdtr_expand_value(int64_t rows, int32_t heads, int32_t nope_dim, int32_t value_dim,
                          int32_t latent_dim, const float *o, const float *kv_b_proj, float *out) {
    const struct ref_module_shape shape = {rows, heads, nope_dim, value_dim, latent_dim};
    if (!valid_shape(&shape) || o == NULL || kv_b_proj == NULL || out == NULL) {
        return KDTR_INVALID_ARGUMENT;
    }
    expand_value_reference_f32(&shape, o, kv_b_proj, out);
    return KDTR_OK;
}

int32_t kdtr_expand_value_bound(int64_t rows, int32_t heads, int32_t nope_dim, int32_t value_dim,
                                int32_t latent_dim, const float *o, const double *o_bound,
                                const float *kv_b_proj, double *out_bound) {
    const struct ref_module_shape shape = {rows, heads, nope_dim, value_dim, latent_dim};
    if (!valid_shape(&shape) || o == NULL || o_bound == NULL || kv_b_proj == NULL ||
        out_bound == NULL) {
        return KDTR_INVALID_ARGUMENT;
    }
    expand_value_bound_f64(&shape, o, o_bound, kv_b_proj, out_bound);
    return KDTR_OK;
}

int32_t kdtr_reference_bound(const kdtr_plan *plan, const kdtr_run_args *args,
                             const double *q_error, double *o_bound, double *lse_bound,
                             kdtr_error *error) {
    struct ref_attention call;
    int32_t status = capi_bind_args(plan, args, 0, &call, error);
    if (status != KDTR_OK) {
        return status;
    }
    if (!plan->context->backend->is_host) {
        return capi_fail(error, KDTR_UNSUPPORTED, "plan", "bounds need a plan of a CPU context");
    }
    if (o_bound == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "o_bound", "it is NULL");
    }
    if (attention_bound_f64(&call, q_error, o_bound, lse_bound) != REF_OK) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for the bound's sums");
    }
    return KDTR_OK;
}
