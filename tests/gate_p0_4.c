// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-4: absorbed attention equals expanded attention, in float64, within a bound derived in
 * bounds.h. Queries and projections are small multiples of 1/8, so that the absorbed query is
 * exact in float32 and only float64 roundings are left between the two sides.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bounds.h"
#include "check_main.h"
#include "expanded_f64.h"
#include "make_problem.h"
#include "truth_f64.h"

/** Streams of test_hash used here. */
enum { STREAM_NOPE = 31, STREAM_WEIGHT = 32 };

/** Both sides of one problem. */
struct sides {
    struct test_problem problem;      /* absorbed */
    struct expanded_problem expanded; /* pointers below */
    struct truth_request request;
    double *q_nope, *q_rope, *weights, *latent, *rope;
    double *absorbed_out, *absorbed_lse, *expanded_out, *expanded_lse;
};

/** A multiple of 1/8 between -1 and 1: sums of their products are exact in float32. */
static double eighth(uint64_t stream, uint64_t x, uint64_t y) {
    return (double)((int64_t)(test_hash(test_seed(), stream, x, y) % 17) - 8) / 8.0;
}

/** Weight row of a head: the first D are W_uk, the others W_uv. */
static double *weight_row(const struct sides *s, int32_t head, int32_t row) {
    const struct expanded_problem *e = &s->expanded;
    return s->weights + ((int64_t)head * (e->nope_dim + e->value_dim) + row) * e->latent_dim;
}

/** q_latent = q_nope W_uk, into the array of the absorbed problem. */
static void absorb(struct sides *s) {
    const struct expanded_problem *e = &s->expanded;
    for (int64_t i = 0; i < e->rows * e->heads; i++) {
        for (int32_t l = 0; l < e->latent_dim; l++) {
            double sum = 0.0;
            for (int32_t d = 0; d < e->nope_dim; d++) {
                sum +=
                    s->q_nope[i * e->nope_dim + d] * weight_row(s, (int32_t)(i % e->heads), d)[l];
            }
            ck_assert_msg((double)(float)sum == sum, "the absorbed query is not exact");
            ((float *)(uintptr_t)s->problem.call.q_latent)[i * e->latent_dim + l] = (float)sum;
        }
    }
}

/** out = W_uv o for every row and head. */
static void project(const struct sides *s, const double *o, double *out) {
    const struct expanded_problem *e = &s->expanded;
    for (int64_t i = 0; i < e->rows * e->heads; i++) {
        for (int32_t v = 0; v < e->value_dim; v++) {
            double sum = 0.0;
            for (int32_t l = 0; l < e->latent_dim; l++) {
                sum += weight_row(s, (int32_t)(i % e->heads), e->nope_dim + v)[l] *
                       o[i * e->latent_dim + l];
            }
            out[i * e->value_dim + v] = sum;
        }
    }
}

/** Copies what both sides share out of the absorbed problem. */
static void make_expanded(struct sides *s, int32_t nope_dim, int32_t value_dim) {
    const struct ref_attention *a = &s->problem.call;
    struct expanded_problem *e = &s->expanded;
    truth_request_decode(a, 0, &s->request);
    *e = (struct expanded_problem){.rows = a->row_capacity,
                                   .tokens = s->request.tokens,
                                   .heads = a->num_heads,
                                   .nope_dim = nope_dim,
                                   .value_dim = value_dim,
                                   .latent_dim = a->latent_dim,
                                   .rope_dim = a->rope_dim,
                                   .scale = (double)a->scale,
                                   .visible = s->request.visible};
    int64_t heads = e->rows * e->heads;
    int64_t weight_rows = (int64_t)e->heads * (nope_dim + value_dim);
    s->q_nope = test_calloc((size_t)(heads * nope_dim) * sizeof(double));
    s->q_rope = test_calloc((size_t)(heads * e->rope_dim) * sizeof(double));
    s->weights = test_calloc((size_t)(weight_rows * e->latent_dim) * sizeof(double));
    s->latent = test_calloc((size_t)(e->tokens * e->latent_dim) * sizeof(double));
    s->rope = test_calloc((size_t)(e->tokens * e->rope_dim) * sizeof(double));
    for (int64_t i = 0; i < heads * nope_dim; i++) {
        s->q_nope[i] = eighth(STREAM_NOPE, (uint64_t)i, 0);
    }
    for (int64_t i = 0; i < heads * e->rope_dim; i++) {
        s->q_rope[i] = (double)ref_load_f32(a->q_rope, a->q_dtype, i);
    }
    for (int64_t i = 0; i < weight_rows * e->latent_dim; i++) {
        s->weights[i] = eighth(STREAM_WEIGHT, (uint64_t)i, 0);
    }
    for (int64_t t = 0; t < e->tokens; t++) {
        for (int32_t k = 0; k < e->latent_dim; k++) {
            s->latent[t * e->latent_dim + k] = (double)ref_load_f32(
                a->kv_latent, a->kv_dtype, s->request.slots[t] * a->kv_latent_stride + k);
        }
        for (int32_t k = 0; k < e->rope_dim; k++) {
            s->rope[t * e->rope_dim + k] = (double)ref_load_f32(
                a->kv_rope, a->kv_dtype, s->request.slots[t] * a->kv_rope_stride + k);
        }
    }
    e->q_nope = s->q_nope;
    e->q_rope = s->q_rope;
    e->kv_b_proj = s->weights;
    e->latent = s->latent;
    e->rope = s->rope;
}

/** Computes both sides. */
static void compute(struct sides *s) {
    const struct expanded_problem *e = &s->expanded;
    size_t heads = (size_t)(e->rows * e->heads);
    double *o = test_calloc(heads * (size_t)e->latent_dim * sizeof *o);
    s->absorbed_out = test_calloc(heads * (size_t)e->value_dim * sizeof(double));
    s->expanded_out = test_calloc(heads * (size_t)e->value_dim * sizeof(double));
    s->absorbed_lse = test_calloc(heads * sizeof(double));
    s->expanded_lse = test_calloc(heads * sizeof(double));
    attention_truth_f64(&s->problem.call, NULL, e->rows, o, s->absorbed_lse);
    project(s, o, s->absorbed_out);
    attention_expanded_f64(e, s->expanded_out, s->expanded_lse);
    free(o);
}

/** Size of a score and the score itself: sums of magnitudes, and of values. */
static double score_size(const struct sides *s, int64_t i, int64_t t, double *score) {
    const struct expanded_problem *e = &s->expanded;
    double size = 0.0;
    double sum = 0.0;
    for (int32_t d = 0; d < e->nope_dim; d++) {
        const double *weight = weight_row(s, (int32_t)(i % e->heads), d);
        double q = s->q_nope[i * e->nope_dim + d];
        for (int32_t l = 0; l < e->latent_dim; l++) {
            size += fabs(q * weight[l] * s->latent[t * e->latent_dim + l]);
            sum += q * weight[l] * s->latent[t * e->latent_dim + l];
        }
    }
    for (int32_t k = 0; k < e->rope_dim; k++) {
        size += fabs(s->q_rope[i * e->rope_dim + k] * s->rope[t * e->rope_dim + k]);
        sum += s->q_rope[i * e->rope_dim + k] * s->rope[t * e->rope_dim + k];
    }
    *score = e->scale * sum;
    return e->scale * size;
}

/** The larger of two shares of a bound; NaN once it is there. */
static double larger(double ratio, double next) {
    return isnan(ratio) || next <= ratio ? ratio : next;
}

/** Largest share of the bound that any output or lse of one row and head takes. */
static double row_ratio(const struct sides *s, int64_t i) {
    const struct expanded_problem *e = &s->expanded;
    const unsigned char *visible = e->visible + i / e->heads * e->tokens;
    double *weight = test_calloc((size_t)e->tokens * sizeof *weight);
    double score_error = 0.0;
    double lse = s->expanded_lse[i];
    double ratio = 0.0;
    double maximum = -INFINITY;
    for (int64_t t = 0; t < e->tokens; t++) {
        double score = 0.0;
        /* Roundings of a term: L in the key, D + P in the dot, scale, s - m, products. */
        double roundings = (double)(e->latent_dim + e->nope_dim + e->rope_dim) + 5.0;
        double error = test_gamma_f64(roundings) * score_size(s, i, t, &score);
        if (visible[t]) {
            error += TEST_UNIT_F64 * fabs(score - lse);
            score_error = fmax(score_error, error);
            maximum = fmax(maximum, score);
            weight[t] = exp(score - lse);
        }
    }
    for (int32_t v = 0; v < e->value_dim; v++) {
        const double *row = weight_row(s, (int32_t)(i % e->heads), e->nope_dim + v);
        double size = 0.0;
        for (int64_t t = 0; t < e->tokens; t++) {
            for (int32_t l = 0; l < e->latent_dim; l++) {
                size += weight[t] * fabs(row[l] * s->latent[t * e->latent_dim + l]);
            }
        }
        double bound =
            test_absorption_bound_f64(score_error, size, (double)e->tokens, (double)e->latent_dim);
        int64_t place = i * e->value_dim + v;
        ratio = larger(ratio, fabs(s->absorbed_out[place] - s->expanded_out[place]) / bound);
    }
    double bound =
        test_absorption_lse_bound_f64(score_error, lse, lse - maximum, (double)e->tokens);
    free(weight);
    return larger(ratio, fabs(s->absorbed_lse[i] - lse) / bound);
}

/** Largest share of the bound over all rows and heads. */
static double largest_ratio(const struct sides *s) {
    double ratio = 0.0;
    for (int64_t i = 0; i < s->expanded.rows * s->expanded.heads; i++) {
        ratio = larger(ratio, row_ratio(s, i));
    }
    return ratio;
}

/** Releases both sides. */
static void free_sides(struct sides *s) {
    double *arrays[] = {s->q_nope,       s->q_rope,       s->weights,      s->latent,      s->rope,
                        s->absorbed_out, s->absorbed_lse, s->expanded_out, s->expanded_lse};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        free(arrays[i]);
    }
    truth_request_free(&s->request);
    test_problem_free(&s->problem);
}

/** Makes and computes both sides; `change` is added to one weight of the expanded side. */
static double ratio_of(const struct test_case *record, int32_t nope_dim, int32_t value_dim,
                       int32_t changed_row, double change) {
    struct sides s = {0};
    test_problem_make(record, &s.problem);
    make_expanded(&s, nope_dim, value_dim);
    absorb(&s);
    if (change != 0.0) {
        double *changed = test_calloc((size_t)s.expanded.latent_dim * sizeof *changed);
        double *row = weight_row(&s, 0, changed_row);
        *changed = *row;
        compute(&s);
        double *out = s.absorbed_out;
        double *lse = s.absorbed_lse;
        free(s.expanded_out);
        free(s.expanded_lse);
        *row = *changed + change;
        compute(&s);
        free(s.absorbed_out);
        free(s.absorbed_lse);
        *row = *changed;
        s.absorbed_out = out;
        s.absorbed_lse = lse;
        free(changed);
    } else {
        compute(&s);
    }
    double ratio = largest_ratio(&s);
    free_sides(&s);
    return ratio;
}

/** Shapes of the gate. D times 1/64 must stay exact in float32, which it does by far. */
static const struct {
    struct test_case record;
    int32_t nope_dim, value_dim;
} shapes[] = {
    {{.name = "tree",
      .prefix = {20},
      .nodes = {6},
      .mask_mode = REF_MASK_PARENTS,
      .heads = 3,
      .latent_dim = 24,
      .rope_dim = 6},
     10,
     7},
    {{.name = "no prefix",
      .prefix = {0},
      .nodes = {9},
      .mask_mode = REF_MASK_PACKED,
      .heads = 2,
      .latent_dim = 40,
      .rope_dim = 8},
     5,
     33},
    {{.name = "bfloat16 cache, pages",
      .prefix = {75},
      .nodes = {4},
      .page_size = 16,
      .mask_mode = REF_MASK_CHAIN,
      .heads = 4,
      .latent_dim = 64,
      .rope_dim = 16,
      .bf16_kv = 1},
     32,
     16},
    {{.name = "model ratios",
      .prefix = {50},
      .nodes = {5},
      .mask_mode = REF_MASK_PARENTS,
      .heads = 2,
      .latent_dim = 128,
      .rope_dim = 16},
     32,
     32},
};

START_TEST(absorbed_equals_expanded) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        double ratio = ratio_of(&shapes[i].record, shapes[i].nope_dim, shapes[i].value_dim, 0, 0.0);
        printf("P0-4 %-24s largest difference is %.1e of its bound\n", shapes[i].record.name,
               ratio);
        ck_assert_msg(ratio <= 1.0, "%s: absorbed and expanded differ: %g of the bound",
                      shapes[i].record.name, ratio);
    }
}
END_TEST

START_TEST(a_changed_weight_is_noticed) {
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        int32_t rows[2] = {0, shapes[i].nope_dim}; /* of W_uk, of W_uv */
        for (int32_t k = 0; k < 2; k++) {
            double ratio = ratio_of(&shapes[i].record, shapes[i].nope_dim, shapes[i].value_dim,
                                    rows[k], TEST_NOTICEABLE_CHANGE);
            ck_assert_msg(ratio > 1.0, "%s: a change in weight row %d is not noticed",
                          shapes[i].record.name, rows[k]);
        }
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p0_4_suite(void) {
    Suite *suite = suite_create("P0-4 absorbed equals expanded");
    TCase *tcase = test_tcase(suite, "P0-4", "P0-4 absorbed equals expanded");
    tcase_add_test(tcase, absorbed_equals_expanded);
    tcase_add_test(tcase, a_changed_weight_is_noticed);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_4_suite};
    return check_main(makers, 1);
}
