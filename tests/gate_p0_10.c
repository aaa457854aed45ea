// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-10: the attention module of the transformers package for DeepSeek V3. The captured
 * queries are absorbed, attended with the reference, expanded, and must meet the module's output.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "absorb.h"
#include "bound.h"
#include "check_main.h"
#include "problem.h"

/** A bundle file in memory. */
static void *read_bundle(const char *path, struct ref_bundle *bundle) {
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
    size_t bytes = (size_t)ftell(stream);
    rewind(stream);
    ck_assert_uint_le(bytes, 1 << 20);
    void *file = aligned_alloc(64, (bytes / 64 + 1) * 64);
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(file, 1, bytes, stream), bytes);
    fclose(stream);
    struct ref_error error = {0};
    ck_assert_msg(ref_bundle_parse(file, bytes, bundle, &error) == REF_OK, "%s", error.text);
    return file;
}

static void *allocate(size_t count, size_t bytes) {
    void *data = calloc(count, bytes);
    ck_assert_ptr_nonnull(data);
    return data;
}

/** What the three steps give, and its bound. */
struct outcome {
    float *out;    /* [R,H,V] */
    double *bound; /* [R,H,V] */
};

/** Absorb, attend, expand; the bound is carried through all three. */
static struct outcome run_module(const struct ref_problem *p) {
    struct ref_attention call = p->call;
    const struct ref_module_shape shape = {call.row_capacity, call.num_heads,
                                           (int32_t)p->q_nope->shape[2],
                                           (int32_t)p->module_output->shape[2], call.latent_dim};
    const float *kv_b = p->kv_b_proj->data;
    size_t pairs = (size_t)call.row_capacity * (size_t)call.num_heads;
    size_t latent = pairs * (size_t)call.latent_dim;
    float *q_latent = allocate(latent, sizeof *q_latent);
    double *q_error = allocate(latent, sizeof *q_error);
    float *o = allocate(latent, sizeof *o);
    double *o_bound = allocate(latent, sizeof *o_bound);
    struct outcome r = {allocate(pairs * (size_t)shape.value_dim, sizeof *r.out),
                        allocate(pairs * (size_t)shape.value_dim, sizeof *r.bound)};
    absorb_query_reference_f32(&shape, p->q_nope->data, kv_b, q_latent);
    absorb_query_bound_f64(&shape, p->q_nope->data, kv_b, q_error);
    call.q_latent = q_latent;
    call.q_latent_stride[0] = (int64_t)call.num_heads * call.latent_dim;
    call.q_latent_stride[1] = call.latent_dim;
    call.o = o;
    size_t bytes;
    ck_assert_int_eq(attention_reference_f32_workspace(&call, &bytes), REF_OK);
    void *workspace = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(workspace);
    attention_reference_f32(&call, 0, call.row_capacity, workspace);
    ck_assert_int_eq(attention_bound_f64(&call, q_error, o_bound, NULL), REF_OK);
    expand_value_reference_f32(&shape, o, kv_b, r.out);
    expand_value_bound_f64(&shape, o, o_bound, kv_b, r.bound);
    free(workspace);
    free(q_latent);
    free(q_error);
    free(o);
    free(o_bound);
    return r;
}

/** Compares with the module's output; returns the number of elements beyond the bound. */
static size_t compare(const char *path, const struct ref_problem *p, const struct outcome *r) {
    const float *expected = p->module_output->data;
    size_t count = p->module_output->bytes / sizeof *expected;
    size_t beyond = 0;
    double worst = 0.0;
    double worst_ratio = 0.0;
    double largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)r->out[i] - (double)expected[i]);
        /* The module's softmax is float32 and obeys the reference's bound too (eq-bound-module),
         * and its output was rounded to float32: half an ulp, within the same bound. */
        double bound = 2.0 * r->bound[i];
        beyond += error <= bound ? 0 : 1;
        worst = error > worst ? error : worst;
        worst_ratio = error / bound > worst_ratio ? error / bound : worst_ratio;
        largest = fabs((double)expected[i]) > largest ? fabs((double)expected[i]) : largest;
    }
    printf("%s: largest output %.3g, worst error %.3g, worst error / bound %.3g\n", path, largest,
           worst, worst_ratio);
    ck_assert_msg(largest > 1.0, "%s: the output is trivial", path);
    return beyond;
}

static const char *const captured[] = {"tests/data/module-deepseek-a.kdtr",
                                       "tests/data/module-deepseek-b.kdtr"};

START_TEST(module_output_is_met) {
    static struct ref_bundle bundle;
    struct ref_problem problem;
    struct ref_error error = {0};
    void *file = read_bundle(captured[_i], &bundle);
    ck_assert_msg(ref_problem_bind(&bundle, &problem, &error) == REF_OK, "%s", error.text);
    ck_assert_int_eq(problem.is_module, 1);
    struct outcome r = run_module(&problem);
    ck_assert_uint_eq(compare(captured[_i], &problem, &r), 0);
    free(r.out);
    free(r.bound);
    free(file);
}
END_TEST

START_TEST(a_wrong_mask_or_scale_is_beyond_the_bound) {
    static struct ref_bundle bundle;
    struct ref_problem problem;
    struct ref_error error = {0};
    void *file = read_bundle(captured[_i], &bundle);
    ck_assert_int_eq(ref_problem_bind(&bundle, &problem, &error), REF_OK);
    struct ref_problem causal = problem;
    causal.call.mask_mode = REF_MASK_CHAIN;
    struct ref_problem scaled = problem;
    scaled.call.scale = 1.0f / 24.0f; /* 1 / sqrt(576) */
    const struct ref_problem *const wrong[] = {&causal, &scaled};
    for (size_t k = 0; k < 2; k++) {
        struct outcome r = run_module(wrong[k]);
        ck_assert_uint_gt(compare("wrong on purpose", wrong[k], &r), 0);
        free(r.out);
        free(r.bound);
    }
    free(file);
}
END_TEST

static Suite *module_suite(void) {
    Suite *suite = suite_create("gate_p0_10");
    TCase *module = test_tcase(suite, "P0-10", "P0-10 transformers' DeepSeek-V3 attention");
    tcase_add_loop_test(module, module_output_is_met, 0, 2);
    tcase_add_loop_test(module, a_wrong_mask_or_scale_is_beyond_the_bound, 0, 2);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {module_suite};
    return check_main(makers, 1);
}
