// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * exp, log and bfloat16 of the canonical arithmetic, against libm in double and against exact
 * values; and a canary for contraction. Part of gate P0-3: the bound rests on these errors.
 */
#include "exp_log.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "bounds.h"
#include "check_main.h"

/** Distance from a double in units in the last place of float32 at it. */
static double ulps(float x, double exact) {
    int exponent;
    frexp(exact, &exponent);
    exponent = exponent < -125 ? -125 : exponent; /* denormals share the last place of 2^-126 */
    return fabs((double)x - exact) / ldexp(1.0, exponent - 24);
}

/**
 * Step through the encodings: a prime meets every exponent. All of them (KDTR_TEST_EXHAUSTIVE=1)
 * take minutes; that run gives the figures of spec/numerics.md.
 */
static uint32_t step(void) {
    if (getenv("KDTR_TEST_EXHAUSTIVE") != NULL) {
        return 1;
    }
    return test_scale_is_small() ? 40009u : 1009u;
}

START_TEST(exp_is_within_its_bound) {
    double worst = 0.0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += step()) {
        float x = ref_f32_from_bits((uint32_t)bits);
        if (!(x >= REF_EXP_UNDERFLOW && x <= REF_EXP_OVERFLOW)) {
            continue;
        }
        double error = ulps(ref_exp_f32(x), exp((double)x));
        worst = error > worst ? error : worst;
    }
    printf("exp: worst error %.4f ulp, bound %.4f\n", worst, TEST_EXP_ULP);
    ck_assert(worst <= TEST_EXP_ULP);
}
END_TEST

START_TEST(log_is_within_its_bound) {
    double worst = 0.0;
    for (uint64_t bits = 1; bits < 0x7f800000u; bits += step()) {
        float x = ref_f32_from_bits((uint32_t)bits);
        double error = x == 1.0f ? 0.0 : ulps(ref_log_f32(x), log((double)x));
        worst = error > worst ? error : worst;
    }
    printf("log: worst error %.4f ulp, bound %.4f\n", worst, TEST_LOG_ULP);
    ck_assert(worst <= TEST_LOG_ULP);
}
END_TEST

START_TEST(special_values) {
    const float infinity = INFINITY;
    ck_assert(ref_exp_f32(0.0f) == 1.0f && ref_exp_f32(-0.0f) == 1.0f);
    ck_assert(ref_exp_f32(infinity) == infinity && ref_exp_f32(FLT_MAX) == infinity);
    ck_assert(ref_bits_from_f32(ref_exp_f32(-infinity)) == 0);
    ck_assert(ref_exp_f32(REF_EXP_UNDERFLOW) > 0.0f);
    ck_assert(ref_bits_from_f32(ref_exp_f32(nextafterf(REF_EXP_UNDERFLOW, -infinity))) == 0);
    ck_assert(ref_exp_f32(REF_EXP_OVERFLOW) < infinity);
    ck_assert(ref_exp_f32(nextafterf(REF_EXP_OVERFLOW, infinity)) == infinity);
    ck_assert(isnan(ref_exp_f32(NAN)) && isnan(ref_log_f32(NAN)) && isnan(ref_log_f32(-1.0f)));
    ck_assert(isnan(ref_log_f32(-infinity)));
    ck_assert(ref_bits_from_f32(ref_log_f32(1.0f)) == 0);
    ck_assert(ref_log_f32(0.0f) == -infinity && ref_log_f32(-0.0f) == -infinity);
    ck_assert(ref_log_f32(infinity) == infinity);
}
END_TEST

START_TEST(exp_never_exceeds_one_below_zero) {
    /* Weights are exp(s - maximum): one above 1 would break the bound of the sums. */
    uint64_t above = 0; /* counted: an assertion an argument would take longer than all of exp */
    for (uint64_t bits = 0x80000000u; bits <= 0xc2b00000u; bits += step()) {
        above += ref_exp_f32(ref_f32_from_bits((uint32_t)bits)) <= 1.0f ? 0 : 1;
    }
    ck_assert_uint_eq(above, 0);
}
END_TEST

START_TEST(bf16_rounds_to_nearest_even) {
    static const struct {
        uint32_t f32;
        uint16_t bf16;
    } pairs[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x0000},                       /* -0 is stored as +0 */
        {0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80}, {0x3f808000, 0x3f80}, /* tie to even */
        {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},                       /* tie to even, up */
        {0x7f7f7fff, 0x7f7f}, {0x7f7f8000, 0x7f80}, {0x7f800000, 0x7f80}, /* overflow */
        {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffffffff, 0x7fc0}, /* NaN */
        {0x00007fff, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001}, /* denormals */
        {0x80008001, 0x8001}, {0x80007fff, 0x0000},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        ck_assert_uint_eq(ref_bf16_from_f32(ref_f32_from_bits(pairs[i].f32)), pairs[i].bf16);
    }
    for (uint32_t h = 0; h <= 0xffff; h++) {
        float x = ref_f32_from_bf16((uint16_t)h);
        uint16_t expected = (uint16_t)(x != x ? 0x7fc0u : x == 0.0f ? 0u : h);
        ck_assert_uint_eq(ref_bf16_from_f32(x), expected);
    }
}
END_TEST

START_TEST(stored_form_is_canonical) {
    ck_assert_uint_eq(ref_bits_from_f32(ref_canonical_f32(-0.0f)), 0);
    ck_assert_uint_eq(ref_bits_from_f32(ref_canonical_f32(ref_f32_from_bits(0xffc00001u))),
                      0x7fc00000u);
    ck_assert_uint_eq(ref_bits_from_f32(ref_canonical_f32(-INFINITY)), 0xff800000u);
    ck_assert_uint_eq(ref_bits_from_f32(ref_canonical_f32(ref_f32_from_bits(1))), 1);
}
END_TEST

START_TEST(products_are_rounded_before_they_are_added) {
    /* (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 exactly; rounded first, the product loses it. */
    volatile float x = 1.0f + 0x1p-12f;
    volatile float y = -(1.0f + 0x1p-11f);
    float a = x;
    float sum = a * a + y;
    ck_assert_msg(sum == 0.0f, "the compiler contracts products and sums");
}
END_TEST

static Suite *exp_log_suite(void) {
    Suite *suite = suite_create("exp_log");
    TCase *numerics = test_tcase(suite, "P0-3", "P0-3 exp, log and bfloat16");
    tcase_add_test(numerics, exp_is_within_its_bound);
    tcase_add_test(numerics, log_is_within_its_bound);
    tcase_add_test(numerics, special_values);
    tcase_add_test(numerics, exp_never_exceeds_one_below_zero);
    tcase_add_test(numerics, bf16_rounds_to_nearest_even);
    tcase_add_test(numerics, stored_form_is_canonical);
    tcase_add_test(numerics, products_are_rounded_before_they_are_added);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {exp_log_suite};
    return check_main(makers, 1);
}
