// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-1: scores below any finite sentinel, and the tolerance that FlashMLA publishes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bounds.h"
#include "check_main.h"
#include "edge_checks.h"
#include "truth_f64.h"

/** A power of two; its square times the scale is a score. */
#define FAR 0x1p60f
/** The scale of scores that are in base 2 as they are. */
#define LN_2 0x1.62e43p-1f

/** Queries that see one rope column only, and that with a factor; every key has -FAR there. */
static void make_far(struct test_problem *problem, float factor) {
    const struct ref_attention *a = &problem->call;
    for (int64_t i = 0; i < a->row_capacity * a->num_heads; i++) {
        int64_t row = i / a->num_heads;
        int64_t head = i % a->num_heads;
        int64_t latent = row * a->q_latent_stride[0] + head * a->q_latent_stride[1];
        int64_t rope = row * a->q_rope_stride[0] + head * a->q_rope_stride[1];
        for (int32_t k = 0; k < a->latent_dim; k++) {
            ref_store_f32((void *)(uintptr_t)a->q_latent, REF_BF16, latent + k, 0.0f);
        }
        for (int32_t k = 0; k < a->rope_dim; k++) {
            ref_store_f32((void *)(uintptr_t)a->q_rope, REF_BF16, rope + k, k == 0 ? factor : 0.0f);
        }
    }
    for (int64_t slot = 0; slot < problem->num_slots; slot++) {
        ref_store_f32((void *)(uintptr_t)a->kv_rope, REF_BF16, slot * a->kv_rope_stride, -FAR);
    }
}

START_TEST(scores_below_any_sentinel) {
    /* All scores are -2^120 times the scale, far below what a kernel may take for "nothing". The
       weights are those of scores of zero, and so is every bit of o. */
    for (int32_t mode = REF_MASK_NONE; mode <= REF_MASK_PACKED; mode++) {
        const struct test_case record = {.name = "far scores",
                                         .batch = 2,
                                         .prefix = {700, 3},
                                         .nodes = {9, 20},
                                         .heads = 3,
                                         .mask_mode = mode};
        struct test_problem problem;
        struct test_outputs far;
        struct test_outputs zero;
        struct harness_report report;
        edge_make(&record, &problem);
        make_far(&problem, 0.0f);
        ck_assert_int_eq(edge_run(0, &problem, &zero), 1);
        make_far(&problem, FAR);
        ck_assert_int_eq(edge_run(0, &problem, &far), 1);
        double lse = -(double)FAR * (double)FAR * (double)problem.call.scale;
        for (int64_t i = 0; i < far.rows * far.heads; i++) {
            ck_assert(fabs((double)far.lse[i] - lse) <= TEST_FAR_LSE * fabs(lse));
            far.lse[i] = zero.lse[i];
        }
        ck_assert_msg(harness_same_bits(&far, &zero, TEST_TRIVIAL_IS_ERROR, &report) == 0,
                      "mode %d: %s", mode, report.text);
        test_outputs_free(&far);
        test_outputs_free(&zero);
        test_problem_free(&problem);
    }
}
END_TEST

/** Scores in base 2 of 0, but of `large` for one key, the only one whose latent row is not 0. */
static void make_large(struct test_problem *problem, int64_t key, float large) {
    const struct ref_attention *a = &problem->call;
    make_far(problem, 1.0f);
    for (int64_t slot = 0; slot < problem->num_slots; slot++) {
        int is_large = slot == ref_load_index(a->slots, a->slot_dtype, key);
        ref_store_f32((void *)(uintptr_t)a->kv_rope, REF_BF16, slot * a->kv_rope_stride,
                      is_large ? large : 0.0f);
        for (int32_t d = 0; d < a->latent_dim; d++) {
            ref_store_f32((void *)(uintptr_t)a->kv_latent, REF_BF16, slot * a->kv_latent_stride + d,
                          is_large ? 1.0f : 0.0f);
        }
    }
    problem->call.scale = LN_2;
}

START_TEST(a_large_weight_of_few_keys_is_exact) {
    /* The weight is 2^4.40625 times those before it, which bfloat16 would round by 1/472: it must
       move the reference. Once for a pair of score warps with one m16 tile, once with two. */
    const float large = 4.40625f;
    for (int32_t heads = 1; heads <= 64; heads += 63) {
        const struct test_case record = {.name = "a large weight",
                                         .prefix = {40},
                                         .nodes = {1},
                                         .heads = heads,
                                         .mask_mode = REF_MASK_NONE};
        struct test_problem problem;
        struct test_outputs outputs;
        edge_make(&record, &problem);
        make_large(&problem, 20, large);
        ck_assert_int_eq(edge_run(0, &problem, &outputs), 1);
        double weight = exp2((double)large);
        double expected = weight / (weight + 39.0);
        for (int64_t i = 0; i < outputs.rows * outputs.heads * outputs.columns; i++) {
            double error = fabs((double)outputs.o[i] - expected) / expected;
            ck_assert_msg(error <= TEST_LEAD, "%d heads, element %lld: %.9g, expected %.9g", heads,
                          (long long)i, (double)outputs.o[i], expected);
        }
        test_outputs_free(&outputs);
        test_problem_free(&problem);
    }
}
END_TEST

/** The bf16 elements of the array that a pointer points into, clamped to [-1, 1]. */
static void clamp(const struct test_problem *problem, const void *pointer) {
    for (int32_t i = 0; i < problem->buffer_count; i++) {
        const struct test_buffer *buffer = &problem->buffers[i];
        for (size_t k = 0; buffer->data == pointer && k < buffer->bytes / 2; k++) {
            float x = ref_load_f32(buffer->data, REF_BF16, (int64_t)k);
            float low = x < -1.0f ? -1.0f : x;
            ref_store_f32(buffer->data, REF_BF16, (int64_t)k, low > 1.0f ? 1.0f : low);
        }
    }
}

/** Whether all of FlashMLA's three conditions hold; says the worst figures. */
static void check_close(const char *name, const float *actual, const double *expected,
                        int64_t count, double absolute, double relative) {
    double product = 0.0;
    double squares = 0.0;
    double worst = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double error = fabs((double)actual[i] - expected[i]);
        worst = fmax(worst, error);
        double size = fabs(expected[i]) + TEST_FLASHMLA_TINY;
        ck_assert_msg(error < absolute || error < relative * size,
                      "%s: element %lld: %.9g, expected %.9g", name, (long long)i,
                      (double)actual[i], expected[i]);
        product += (double)actual[i] * expected[i];
        squares += (double)actual[i] * (double)actual[i] + expected[i] * expected[i];
    }
    double cosine = 1.0 - 2.0 * product / squares;
    printf("P1-1 FlashMLA's tolerance, %s: worst error %.3g, cosine difference %.3g\n", name, worst,
           cosine);
    ck_assert(fabs(cosine) <= TEST_FLASHMLA_COSINE);
}

START_TEST(tolerance_of_flashmla) {
    /* Normal numbers clamped to [-1, 1], scale 576^-1/2, one and two query rows, causal: as that
       project's test of dense decoding makes them. It compares bf16 with bf16; here the truth is
       float64, which is stricter. An element passes by either of the first two figures. For lse the
       absolute one means nothing (it is about a unit in the last place): the relative one
       decides. */
    static const int32_t nodes[] = {1, 2};
    for (size_t i = 0; i < 2; i++) {
        const struct test_case record = {.name = "FlashMLA",
                                         .batch = 2,
                                         .prefix = {600, 130},
                                         .nodes = {nodes[i], nodes[i]},
                                         .heads = test_scale_is_small() ? 16 : 64,
                                         .page_size = 64,
                                         .one_pool = 1,
                                         .bf16_o = 1,
                                         .mask_mode = REF_MASK_CHAIN};
        struct test_problem problem;
        struct test_outputs outputs;
        edge_make(&record, &problem);
        const struct ref_attention *a = &problem.call;
        problem.call.scale = 1.0f / 24.0f;
        clamp(&problem, a->q_latent);
        clamp(&problem, a->q_rope);
        clamp(&problem, a->kv_latent);
        ck_assert_int_eq(edge_run(0, &problem, &outputs), 1);
        int64_t heads = a->row_capacity * a->num_heads;
        double *o = test_calloc((size_t)(heads * a->latent_dim) * sizeof *o);
        double *lse = test_calloc((size_t)heads * sizeof *lse);
        attention_truth_f64(a, NULL, a->row_capacity, o, lse);
        check_close("o", outputs.o, o, heads * a->latent_dim, TEST_FLASHMLA_O, TEST_FLASHMLA_O_REL);
        check_close("lse", outputs.lse, lse, heads, TEST_FLASHMLA_LSE, TEST_FLASHMLA_LSE_REL);
        free(o);
        free(lse);
        test_outputs_free(&outputs);
        test_problem_free(&problem);
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p1_1_values_suite(void) {
    Suite *suite = suite_create("P1-1 values");
    TCase *tcase = test_tcase(suite, "P1-1", "P1-1 sentinels and a peer's tolerance");
    tcase_add_test(tcase, scores_below_any_sentinel);
    tcase_add_test(tcase, a_large_weight_of_few_keys_is_exact);
    tcase_add_test(tcase, tolerance_of_flashmla);
    return suite;
}

int main(void) {
    return edge_main(gate_p1_1_values_suite);
}
