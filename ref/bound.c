// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The bound of the reference (spec/numerics.md, "Bound of the reference"): eq-bound-score, then
 * eq-bound-o and eq-bound-lse, evaluated in double for each row and head.
 */
#include "bound.h"

#include <math.h>
#include <stdlib.h>

#include "canonical.h"
#include "exp_log.h"
#include "rows.h"

#define U32 0x1p-24 /**< Unit roundoff of float32. */
#define U16 0x1p-8  /**< Unit roundoff of bfloat16. */
/** Relative error of ref_exp_f32 and ref_log_f32: 1 ulp is at most 2 u. */
#define EXP_LOG_ERROR (2.0 * U32)
/** A weight below ln 2^-126 is stored as 0. */
#define FLUSHED 0x1p-125

/** Working arrays of a row. */
struct bound_scratch {
    int32_t *nodes; /* [max_nodes] */
    double *score;  /* [tokens] scores */
    double *error;  /* [tokens] eq-bound-score */
    double *sum;    /* [L] sum of w c */
    double *size;   /* [L] sum of w |c| */
    double *spread; /* [L] sum of w eta |c| */
};

/** Score and its bound (eq-bound-score) for one token. */
static void bound_score(const struct ref_attention *a, int64_t index, int32_t head, int64_t slot,
                        const double *q_error, double *score, double *error) {
    int32_t width = a->latent_dim + a->rope_dim;
    double dot = 0.0;
    double size = 0.0;
    double query = 0.0;
    for (int32_t k = 0; k < width; k++) {
        double q = (double)ref_query_element(a, index, head, k);
        double c = (double)ref_cache_element(a, slot, k);
        dot += q * c;
        size += fabs(q * c);
        if (q_error != NULL && k < a->latent_dim) {
            query += q_error[(index * a->num_heads + head) * a->latent_dim + k] * fabs(c);
        }
    }
    double scale = (double)a->scale;
    double gamma = canonical_gamma(canonical_dot_roundings(width) + 1.0);
    *score = scale * dot;
    *error = scale * (gamma * (size + query) + query) + (scale * width + 1.0) * CANONICAL_TINY;
}

/** Adds the weighted rows of every token to the three sums over columns. */
static void bound_columns(const struct ref_attention *a, const struct ref_row *row, int64_t tokens,
                          double maximum, const struct bound_scratch *s) {
    for (int32_t d = 0; d < a->latent_dim; d++) {
        s->sum[d] = s->size[d] = s->spread[d] = 0.0;
    }
    for (int64_t v = 0; v < tokens; v++) {
        double weight = exp(s->score[v] - maximum);
        if (weight == 0.0) {
            continue; /* also a score of -inf, whatever its row holds */
        }
        int64_t slot = ref_visible_slot(a, row, s->nodes, v);
        for (int32_t d = 0; d < a->latent_dim; d++) {
            double c = (double)ref_cache_element(a, slot, d);
            s->sum[d] += weight * c;
            s->size[d] += weight * fabs(c);
            s->spread[d] += (weight * s->error[v] + FLUSHED) * fabs(c);
        }
    }
}

/** eq-bound-o and eq-bound-lse for one head, from scores and their errors. */
static void bound_head(const struct ref_attention *a, int64_t index, int32_t head,
                       const struct ref_row *row, int64_t tokens, double maximum,
                       const struct bound_scratch *s, double *o_bound, double *lse_bound) {
    int64_t blocks = (tokens + CANONICAL_BLOCK - 1) / CANONICAL_BLOCK;
    int64_t block_tokens = tokens < CANONICAL_BLOCK ? tokens : CANONICAL_BLOCK;
    double roundings = (double)(block_tokens + blocks);
    double total = 0.0;
    double eta_total = 0.0;
    for (int64_t v = 0; v < tokens; v++) {
        /* The error of a score becomes the relative error eta of its weight. */
        double shift = fabs(s->score[v] - maximum);
        double eta = shift < INFINITY ? expm1(s->error[v] + U32 * (shift + 2.0 * s->error[v])) *
                                                (1.0 + EXP_LOG_ERROR) +
                                            EXP_LOG_ERROR
                                      : 0.0;
        s->error[v] = eta;
        double weight = exp(s->score[v] - maximum);
        total += weight;
        eta_total += weight * eta + FLUSHED;
    }
    double gamma = canonical_gamma(roundings);
    double rho = eta_total / total * (1.0 + gamma) + gamma;
    double slack = rho < 1.0 ? 1.0 / (1.0 - rho) : INFINITY;
    if (o_bound != NULL) {
        bound_columns(a, row, tokens, maximum, s);
        double gamma_product = canonical_gamma(roundings + 1.0);
        for (int32_t d = 0; d < a->latent_dim; d++) {
            double o = fabs(s->sum[d]) / total;
            double alpha = (s->spread[d] * (1.0 + gamma_product) + gamma_product * s->size[d] +
                            (double)tokens * CANONICAL_TINY) /
                           total;
            double bound = (alpha + o * rho) * slack * (1.0 + U32) + U32 * o + CANONICAL_TINY;
            if (a->o_dtype == REF_BF16) {
                bound += U16 * (o + bound) + 0x1p-133;
            }
            o_bound[(index * a->num_heads + head) * a->latent_dim + d] = bound;
        }
    }
    if (lse_bound != NULL) {
        double lse = fabs(maximum + log(total));
        double sum_error = rho < 1.0 ? -log1p(-rho) : INFINITY;
        double bound = sum_error + EXP_LOG_ERROR * (fabs(log(total)) + sum_error);
        bound = bound + 2.0 * U32 * (lse + bound) + CANONICAL_TINY;
        if (a->lse_base2) { /* a product, and the constant's own rounding: below u each */
            bound = (bound + 2.0 * U32 * (lse + bound)) * 0x1.71548p+0;
        }
        lse_bound[index * a->num_heads + head] = bound;
    }
}

/** One owned row, every head. */
static void bound_row(const struct ref_attention *a, int64_t index, const struct ref_row *row,
                      int32_t visible, const struct bound_scratch *s, const double *q_error,
                      double *o_bound, double *lse_bound) {
    int64_t tokens = row->prefix_len + visible;
    for (int32_t h = 0; h < a->num_heads; h++) {
        double maximum = -INFINITY;
        int not_a_number = 0;
        for (int64_t v = 0; v < tokens; v++) {
            int64_t slot = ref_visible_slot(a, row, s->nodes, v);
            bound_score(a, index, h, slot, q_error, &s->score[v], &s->error[v]);
            not_a_number |= !(s->score[v] <= FLT_MAX);
            s->score[v] = s->score[v] < -FLT_MAX ? -INFINITY : s->score[v];
            maximum = s->score[v] > maximum ? s->score[v] : maximum;
        }
        if (!not_a_number && maximum > -INFINITY) {
            bound_head(a, index, h, row, tokens, maximum, s, o_bound, lse_bound);
        }
    }
}

int32_t attention_bound_f64(const struct ref_attention *call, const double *q_error,
                            double *o_bound, double *lse_bound) {
    int64_t heads = call->row_capacity * call->num_heads;
    size_t tokens = (size_t)(call->max_prefix_len + call->max_nodes);
    size_t latent = (size_t)call->latent_dim;
    int32_t *nodes = malloc((size_t)call->max_nodes * sizeof *nodes);
    double *numbers = malloc((2 * tokens + 3 * latent) * sizeof *numbers);
    if (nodes == NULL || numbers == NULL) {
        free(nodes);
        free(numbers);
        return REF_OUT_OF_MEMORY;
    }
    const struct bound_scratch s = {nodes,
                                    numbers,
                                    numbers + tokens,
                                    numbers + 2 * tokens,
                                    numbers + 2 * tokens + latent,
                                    numbers + 2 * tokens + 2 * latent};
    for (int64_t i = 0; i < heads; i++) {
        for (int32_t d = 0; o_bound != NULL && d < call->latent_dim; d++) {
            o_bound[i * call->latent_dim + d] = 0.0;
        }
        if (lse_bound != NULL) {
            lse_bound[i] = 0.0;
        }
    }
    for (int64_t index = 0; index < call->row_capacity; index++) {
        struct ref_row row = ref_find_row(call, index);
        int32_t visible = row.request < 0 ? -1 : ref_visible_nodes(call, &row, nodes);
        if (visible >= 0) {
            bound_row(call, index, &row, visible, &s, q_error, o_bound, lse_bound);
        }
    }
    free(nodes);
    free(numbers);
    return REF_OK;
}
