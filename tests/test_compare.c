// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The comparator's own test: it must say no where a hole in a comparator usually is.
 */
#include "compare.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "check_main.h"

/** Compares one number with a bound. */
static int32_t one_bound(float actual, double expected, double bound) {
    const struct test_array_f32 a = {{1, 1, 1}, &actual};
    const struct test_array_f64 e = {{1, 1, 1}, &expected};
    struct test_comparison r;
    return test_compare_bound(&a, &e, &bound, TEST_TRIVIAL_IS_FINE, &r);
}

/** Compares one number's bits. */
static int32_t one_bits(float actual, float expected) {
    const struct test_array_f32 a = {{1, 1, 1}, &actual};
    const struct test_array_f32 e = {{1, 1, 1}, &expected};
    struct test_comparison r;
    return test_compare_bits(&a, &e, TEST_TRIVIAL_IS_FINE, &r);
}

/** A float from its bits. */
static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

START_TEST(compare_rejects_anomalies) {
    ck_assert_int_eq(one_bound(NAN, 1.0, 10.0), TEST_ANOMALY);
    ck_assert_int_eq(one_bound(1.0f, NAN, 10.0), TEST_ANOMALY);
    ck_assert_int_eq(one_bound(NAN, NAN, 0.0), TEST_EQUAL);
    ck_assert_int_eq(one_bound(INFINITY, INFINITY, 0.0), TEST_EQUAL);
    ck_assert_int_eq(one_bound(INFINITY, -INFINITY, INFINITY), TEST_ANOMALY);
    ck_assert_int_eq(one_bound(-INFINITY, -INFINITY, 0.0), TEST_EQUAL);
    ck_assert_int_eq(one_bound(INFINITY, NAN, INFINITY), TEST_ANOMALY);
    ck_assert_int_eq(one_bound(FLT_MAX, INFINITY, INFINITY), TEST_ANOMALY);
    ck_assert_int_eq(one_bound(INFINITY, (double)FLT_MAX, INFINITY), TEST_ANOMALY);
}
END_TEST

START_TEST(compare_rejects_beyond_bound) {
    ck_assert_int_eq(one_bound(1.5f, 1.0, 0.5), TEST_EQUAL);
    ck_assert_int_eq(one_bound(1.5f, 1.0, 0.4999), TEST_BEYOND_BOUND);
    ck_assert_int_eq(one_bound(-1.5f, 1.5, 1.0), TEST_BEYOND_BOUND);
    ck_assert_int_eq(one_bound(1.0f, 1.0, 0.0), TEST_EQUAL);
    ck_assert_int_eq(one_bound(nextafterf(1.0f, 2.0f), 1.0, 0.0), TEST_BEYOND_BOUND);
    ck_assert_int_eq(one_bound(1.0f, 1.0, NAN), TEST_BOUND_INVALID);
    ck_assert_int_eq(one_bound(1.0f, 2.0, INFINITY), TEST_BOUND_INVALID);
    ck_assert_int_eq(one_bound(1.0f, 1.0, -1.0), TEST_BOUND_INVALID);
}
END_TEST

START_TEST(compare_rejects_other_bits) {
    ck_assert_int_eq(one_bits(1.0f, 1.0f), TEST_EQUAL);
    ck_assert_int_eq(one_bits(nextafterf(1.0f, 2.0f), 1.0f), TEST_BITS_DIFFER);
    ck_assert_int_eq(one_bits(nextafterf(1.0f, 0.0f), 1.0f), TEST_BITS_DIFFER);
    ck_assert_int_eq(one_bits(-0.0f, 0.0f), TEST_BITS_DIFFER);
    ck_assert_int_eq(one_bits(from_bits(0x7fc00000u), from_bits(0x7fc00000u)), TEST_EQUAL);
    ck_assert_int_ne(one_bits(from_bits(0xffc00000u), from_bits(0x7fc00000u)), TEST_EQUAL);
    ck_assert_int_ne(one_bits(from_bits(0x7fffffffu), from_bits(0x7fc00000u)), TEST_EQUAL);
    ck_assert_int_eq(one_bits(from_bits(0x7fc00000u), 1.0f), TEST_ANOMALY);
    ck_assert_int_eq(one_bits(INFINITY, FLT_MAX), TEST_ANOMALY);
    ck_assert_int_eq(one_bits(INFINITY, -INFINITY), TEST_ANOMALY);
    ck_assert_int_eq(one_bits(from_bits(1), from_bits(2)), TEST_BITS_DIFFER);
}
END_TEST

START_TEST(compare_rejects_shapes_and_emptiness) {
    const float zeros[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const double truth[4] = {0.0, 0.0, 0.0, 0.0};
    const double bound[4] = {1.0, 1.0, 1.0, 1.0};
    const struct test_array_f32 two_by_two = {{2, 2, 1}, zeros};
    const struct test_array_f32 flat = {{4, 1, 1}, zeros};
    const struct test_array_f64 expected = {{2, 2, 1}, truth};
    const struct test_array_f32 none = {{0, 2, 1}, zeros};
    const struct test_array_f64 none_expected = {{0, 2, 1}, truth};
    struct test_comparison r;
    ck_assert_int_eq(test_compare_bound(&flat, &expected, bound, TEST_TRIVIAL_IS_FINE, &r),
                     TEST_SHAPE_DIFFERS);
    ck_assert_int_eq(test_compare_bits(&flat, &two_by_two, TEST_TRIVIAL_IS_FINE, &r),
                     TEST_SHAPE_DIFFERS);
    ck_assert_int_eq(test_compare_bound(&none, &none_expected, bound, TEST_TRIVIAL_IS_FINE, &r),
                     TEST_NOTHING_CHECKED);
    ck_assert_int_eq(test_compare_bits(&none, &none, TEST_TRIVIAL_IS_FINE, &r),
                     TEST_NOTHING_CHECKED);
    ck_assert_int_eq(test_compare_bound(&two_by_two, &expected, bound, TEST_TRIVIAL_IS_ERROR, &r),
                     TEST_NOTHING_CHECKED);
    ck_assert_int_eq(test_compare_bits(&two_by_two, &two_by_two, TEST_TRIVIAL_IS_ERROR, &r),
                     TEST_NOTHING_CHECKED);
    ck_assert_int_eq(test_compare_bits(&two_by_two, &two_by_two, TEST_TRIVIAL_IS_FINE, &r),
                     TEST_EQUAL);
}
END_TEST

START_TEST(compare_reports_the_worst) {
    const float actual[6] = {1.0f, 2.0f, 3.0f, 4.0f, 5.5f, 6.25f};
    const double expected[6] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
    const double bound[6] = {1.0, 1.0, 1.0, 1.0, 1.0, 0.125};
    const struct test_array_f32 a = {{1, 2, 3}, actual};
    const struct test_array_f64 e = {{1, 2, 3}, expected};
    struct test_comparison r;
    ck_assert_int_eq(test_compare_bound(&a, &e, bound, TEST_TRIVIAL_IS_ERROR, &r),
                     TEST_BEYOND_BOUND);
    ck_assert_int_eq(r.differing, 1);
    ck_assert_int_eq(r.checked, 6);
    ck_assert_int_eq(r.worst[0], 0);
    ck_assert_int_eq(r.worst[1], 1);
    ck_assert_int_eq(r.worst[2], 2);
    ck_assert(r.worst_ratio == 2.0 && r.worst_error == 0.5);
    /* An anomaly is reported before any distance. */
    const float with_nan[6] = {1.0f, NAN, 3.0f, 4.0f, 50.0f, 6.0f};
    const struct test_array_f32 n = {{1, 2, 3}, with_nan};
    ck_assert_int_eq(test_compare_bound(&n, &e, bound, TEST_TRIVIAL_IS_ERROR, &r), TEST_ANOMALY);
    ck_assert_int_eq(r.worst[2], 1);
}
END_TEST

/** @return the suite */
static Suite *compare_suite(void) {
    Suite *suite = suite_create("comparator");
    TCase *tcase = test_tcase(suite, "P0-7", "P0-7 comparator");
    tcase_add_test(tcase, compare_rejects_anomalies);
    tcase_add_test(tcase, compare_rejects_beyond_bound);
    tcase_add_test(tcase, compare_rejects_other_bits);
    tcase_add_test(tcase, compare_rejects_shapes_and_emptiness);
    tcase_add_test(tcase, compare_reports_the_worst);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {compare_suite};
    return check_main(makers, 1);
}
