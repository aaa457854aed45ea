// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Expanded MLA in float64.
 */
#include "expanded_f64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "make_problem.h"

/** out[t,:] = weights[rows,L] latent[t,:] for every token: the keys or values of a head. */
static void project(const struct expanded_problem *p, const double *weights, int32_t rows,
                    double *out) {
    for (int64_t t = 0; t < p->tokens; t++) {
        for (int32_t i = 0; i < rows; i++) {
            double sum = 0.0;
            for (int32_t l = 0; l < p->latent_dim; l++) {
                sum += weights[(int64_t)i * p->latent_dim + l] * p->latent[t * p->latent_dim + l];
            }
            out[t * rows + i] = sum;
        }
    }
}

/** Softmax attention of one row and head over its keys and values. Returns lse. */
static double attend(const struct expanded_problem *p, int64_t row, int32_t h, const double *key,
                     const double *value, double *score, double *out) {
    const double *q_nope = p->q_nope + (row * p->heads + h) * p->nope_dim;
    const double *q_rope = p->q_rope + (row * p->heads + h) * p->rope_dim;
    const unsigned char *visible = p->visible + row * p->tokens;
    double maximum = -INFINITY;
    for (int64_t t = 0; t < p->tokens; t++) {
        double sum = 0.0;
        for (int32_t d = 0; d < p->nope_dim; d++) {
            sum += q_nope[d] * key[t * p->nope_dim + d];
        }
        for (int32_t d = 0; d < p->rope_dim; d++) {
            sum += q_rope[d] * p->rope[t * p->rope_dim + d];
        }
        score[t] = p->scale * sum;
        maximum = visible[t] && score[t] > maximum ? score[t] : maximum;
    }
    double total = 0.0;
    memset(out, 0, (size_t)p->value_dim * sizeof *out);
    for (int64_t t = 0; t < p->tokens; t++) {
        double weight = visible[t] ? exp(score[t] - maximum) : 0.0;
        total += weight;
        for (int32_t v = 0; v < p->value_dim; v++) {
            out[v] += weight * value[t * p->value_dim + v];
        }
    }
    for (int32_t v = 0; v < p->value_dim; v++) {
        out[v] /= total;
    }
    return maximum + log(total);
}

void attention_expanded_f64(const struct expanded_problem *p, double *out, double *lse) {
    double *key = test_calloc((size_t)(p->tokens * p->nope_dim) * sizeof *key);
    double *value = test_calloc((size_t)(p->tokens * p->value_dim) * sizeof *value);
    double *score = test_calloc((size_t)p->tokens * sizeof *score);
    for (int32_t h = 0; h < p->heads; h++) {
        const double *head =
            p->kv_b_proj + (int64_t)h * (p->nope_dim + p->value_dim) * p->latent_dim;
        project(p, head, p->nope_dim, key);
        project(p, head + (int64_t)p->nope_dim * p->latent_dim, p->value_dim, value);
        for (int64_t row = 0; row < p->rows; row++) {
            int64_t place = row * p->heads + h;
            lse[place] = attend(p, row, h, key, value, score, out + place * p->value_dim);
        }
    }
    free(key);
    free(value);
    free(score);
}
