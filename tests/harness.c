// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Harness of the gates.
 */
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "bound_flash.h"
#include "bounds.h"
#include "rows.h"
#include "truth_f64.h"

/** Truth, and memory for the bounds. */
static void expect_truth(const struct test_problem *problem, struct harness_expected *e) {
    const struct ref_attention *a = &problem->call;
    size_t heads = (size_t)(a->row_capacity * a->num_heads);
    size_t elements = heads * (size_t)a->latent_dim;
    memset(e, 0, sizeof *e);
    e->o = test_calloc(elements * sizeof *e->o);
    e->lse = test_calloc(heads * sizeof *e->lse);
    e->o_bound = test_calloc(elements * sizeof *e->o_bound);
    e->lse_bound = test_calloc(heads * sizeof *e->lse_bound);
    e->status = test_calloc((size_t)a->batch * sizeof *e->status);
    attention_truth_f64(a, NULL, a->row_capacity, e->o, e->lse);
    attention_truth_status(a, e->status);
}

/** Ends the program if there was no memory. */
static void need_bounds(int32_t status) {
    if (status != REF_OK) {
        fprintf(stderr, "out of memory for bounds\n");
        exit(EXIT_FAILURE);
    }
}

void harness_expect(const struct test_problem *problem, struct harness_expected *e) {
    expect_truth(problem, e);
    need_bounds(attention_bound_f64(&problem->call, NULL, e->o_bound, e->lse_bound));
}

/** Marks the infinite columns of a visible token for the heads in which it scores -inf. */
static void permit_nan(const struct ref_attention *a, int64_t row, int64_t slot,
                       unsigned char *permitted) {
    int32_t width = a->latent_dim + a->rope_dim;
    int infinite = 0;
    for (int32_t d = 0; d < a->latent_dim; d++) {
        infinite |= isinf(ref_cache_element(a, slot, d)) != 0;
    }
    for (int32_t h = 0; h < a->num_heads && infinite; h++) {
        double dot = 0.0;
        for (int32_t k = 0; k < width; k++) {
            dot += (double)ref_query_element(a, row, h, k) * (double)ref_cache_element(a, slot, k);
        }
        for (int32_t d = 0; d < a->latent_dim && dot == -INFINITY; d++) {
            if (isinf(ref_cache_element(a, slot, d))) {
                permitted[(row * a->num_heads + h) * a->latent_dim + d] = 1;
            }
        }
    }
}

void harness_expect_flash(const struct test_problem *problem, struct harness_expected *e) {
    const struct ref_attention *a = &problem->call;
    const struct flash_bound_limits limits = flash_bound_limits_of(a);
    expect_truth(problem, e);
    need_bounds(
        attention_bound_flash_f64(a, &limits, NULL, a->row_capacity, e->o_bound, e->lse_bound));
    e->nan_permitted = test_calloc((size_t)(a->row_capacity * a->num_heads * a->latent_dim));
    for (int32_t b = 0; b < a->batch; b++) {
        struct truth_request q;
        truth_request_decode(a, b, &q);
        for (int64_t i = 0; i < q.nodes * q.tokens && q.active; i++) {
            if (q.visible[i]) {
                permit_nan(a, q.first_row + i / q.tokens, q.slots[i % q.tokens], e->nan_permitted);
            }
        }
        truth_request_free(&q);
    }
}

void harness_expect_class(int32_t comparison, const struct test_problem *problem,
                          struct harness_expected *e) {
    if (comparison == TEST_CLASS_BOUND) {
        harness_expect_flash(problem, e);
    } else {
        harness_expect(problem, e);
    }
}

void harness_expected_free(struct harness_expected *e) {
    free(e->o);
    free(e->lse);
    free(e->o_bound);
    free(e->lse_bound);
    free(e->status);
    free(e->nan_permitted);
    memset(e, 0, sizeof *e);
}

int harness_is_telling(const struct test_problem *problem, const struct harness_expected *e) {
    const struct ref_attention *a = &problem->call;
    double largest = 0.0;
    int spread = 0;
    for (int32_t b = 0; b < a->batch; b++) {
        struct truth_request q;
        truth_request_decode(a, b, &q);
        for (int64_t i = 0; i < q.nodes && q.active; i++) {
            double visible = 0.0;
            for (int64_t t = 0; t < q.tokens; t++) {
                visible += q.visible[i * q.tokens + t];
            }
            for (int32_t h = 0; h < a->num_heads; h++) {
                int64_t place = (q.first_row + i) * a->num_heads + h;
                double lse = a->lse_base2 ? e->lse[place] / TEST_LOG2_E : e->lse[place];
                spread |= lse - log(visible) >= TEST_MIN_SPREAD;
                for (int32_t d = 0; d < a->latent_dim; d++) {
                    largest = fmax(largest, fabs(e->o[place * a->latent_dim + d]));
                }
            }
        }
        truth_request_free(&q);
    }
    return spread && largest >= TEST_MIN_OUTPUT;
}

/** Puts what is expected in place of NaN that is permitted. */
static void forgive(const struct harness_expected *e, const struct test_outputs *outputs) {
    int64_t elements = outputs->rows * outputs->heads * outputs->columns;
    for (int64_t i = 0; i < elements && e->nan_permitted != NULL; i++) {
        if (e->nan_permitted[i] && isnan(outputs->o[i])) {
            outputs->o[i] = (float)e->o[i];
        }
    }
}

int harness_check(const struct test_problem *problem, const struct harness_expected *e,
                  const struct test_outputs *outputs, struct harness_report *report) {
    const struct ref_attention *a = &problem->call;
    memset(report, 0, sizeof *report);
    for (int64_t b = 0; outputs->status != NULL && b < outputs->batch; b++) {
        if (outputs->status[b] != e->status[b]) {
            snprintf(report->text, sizeof report->text, "device_status[%lld] is %u, expected %u",
                     (long long)b, outputs->status[b], e->status[b]);
            return 1;
        }
    }
    forgive(e, outputs);
    const struct test_array_f64 o = {{a->row_capacity, a->num_heads, a->latent_dim}, e->o};
    const struct test_array_f64 lse = {{a->row_capacity, a->num_heads, 1}, e->lse};
    const struct test_array_f32 run_o = {{outputs->rows, outputs->heads, outputs->columns},
                                         outputs->o};
    const struct test_array_f32 run_lse = {{outputs->rows, outputs->heads, 1}, outputs->lse};
    if (test_compare_bound(&run_o, &o, e->o_bound, e->trivial, &report->o) != TEST_EQUAL) {
        snprintf(report->text, sizeof report->text, "o: %s", report->o.text);
        return 1;
    }
    if (outputs->lse != NULL &&
        test_compare_bound(&run_lse, &lse, e->lse_bound, e->trivial, &report->lse) != TEST_EQUAL) {
        snprintf(report->text, sizeof report->text, "lse: %s", report->lse.text);
        return 1;
    }
    return 0;
}

int harness_run(struct test_session *session, const struct test_problem *problem,
                const struct harness_expected *expected, struct harness_report *report) {
    struct test_outputs outputs;
    memset(report, 0, sizeof *report);
    if (test_run(session, problem, &outputs)) {
        snprintf(report->text, sizeof report->text, "%s", session->text);
        return 1;
    }
    int wrong = harness_check(problem, expected, &outputs, report);
    test_outputs_free(&outputs);
    return wrong;
}

int harness_same_bits(const struct test_outputs *actual, const struct test_outputs *expected,
                      int32_t trivial, struct harness_report *report) {
    memset(report, 0, sizeof *report);
    const struct test_array_f32 o[2] = {
        {{actual->rows, actual->heads, actual->columns}, actual->o},
        {{expected->rows, expected->heads, expected->columns}, expected->o}};
    const struct test_array_f32 lse[2] = {{{actual->rows, actual->heads, 1}, actual->lse},
                                          {{expected->rows, expected->heads, 1}, expected->lse}};
    if (test_compare_bits(&o[0], &o[1], trivial, &report->o) != TEST_EQUAL) {
        snprintf(report->text, sizeof report->text, "o: %s", report->o.text);
        return 1;
    }
    if (actual->lse != NULL && expected->lse != NULL &&
        test_compare_bits(&lse[0], &lse[1], trivial, &report->lse) != TEST_EQUAL) {
        snprintf(report->text, sizeof report->text, "lse: %s", report->lse.text);
        return 1;
    }
    for (int64_t b = 0; actual->status != NULL && expected->status != NULL && b < actual->batch;
         b++) {
        if (actual->status[b] != expected->status[b]) {
            snprintf(report->text, sizeof report->text, "device_status[%lld] is %u and %u",
                     (long long)b, actual->status[b], expected->status[b]);
            return 1;
        }
    }
    return 0;
}
