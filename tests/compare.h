// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The comparator. It looks at shape, then at the positions of NaN, +inf and -inf, which must
 * coincide, then at every element; and it refuses to say yes when there was nothing to compare.
 */
#ifndef TESTS_COMPARE_H
#define TESTS_COMPARE_H

#include <stdint.h>

/** A contiguous array of up to three dimensions. */
struct test_array_f32 {
    int64_t shape[3];  /**< Sizes; 1 where unused. */
    const float *data; /**< Elements. */
};

/** A contiguous array of up to three dimensions in float64. */
struct test_array_f64 {
    int64_t shape[3];   /**< Sizes; 1 where unused. */
    const double *data; /**< Elements. */
};

/** Why a comparison failed. */
enum test_verdict {
    TEST_EQUAL = 0,      /**< Within the bound, or equal bits. */
    TEST_SHAPE_DIFFERS,  /**< The shapes are not the same. */
    TEST_ANOMALY,        /**< NaN or an infinity on one side only, or of another sign. */
    TEST_BOUND_INVALID,  /**< A bound is NaN, infinite or negative: it would prove nothing. */
    TEST_BEYOND_BOUND,   /**< An element is farther off than its bound. */
    TEST_BITS_DIFFER,    /**< An element has other bits. */
    TEST_NOTHING_CHECKED /**< No elements, or the expected ones are all zero. */
};

/** Whether an expected array of nothing but zeros is an error. */
enum test_trivial {
    TEST_TRIVIAL_IS_ERROR = 0, /**< It is: the case tests nothing. */
    TEST_TRIVIAL_IS_FINE = 1   /**< It is what the case is about. */
};

/** What a comparison found. */
struct test_comparison {
    int32_t verdict;       /**< enum test_verdict. */
    int64_t checked;       /**< Elements that were compared. */
    int64_t differing;     /**< Elements that failed. */
    int64_t worst[3];      /**< Index of the worst element. */
    double worst_actual;   /**< Its value. */
    double worst_expected; /**< What was expected. */
    double worst_error;    /**< Largest |actual - expected| of finite elements. */
    double worst_ratio;    /**< Largest error / bound. */
    char text[256];        /**< One line for people. */
};

/**
 * Compares with a bound for every element: passes if |actual - expected| <= bound everywhere.
 *
 * @param actual   what an implementation gave
 * @param expected truth
 * @param bound    bounds, of the shape of `expected`
 * @param trivial  enum test_trivial
 * @param result   filled
 * @return enum test_verdict
 */
int32_t test_compare_bound(const struct test_array_f32 *actual,
                           const struct test_array_f64 *expected, const double *bound,
                           int32_t trivial, struct test_comparison *result);

/**
 * Compares bits. Two NaN are equal only with equal bits: stored NaN is canonical.
 *
 * @param actual   what an implementation gave
 * @param expected what another gave
 * @param trivial  enum test_trivial
 * @param result   filled; worst_ratio is the distance in units in the last place
 * @return enum test_verdict
 */
int32_t test_compare_bits(const struct test_array_f32 *actual,
                          const struct test_array_f32 *expected, int32_t trivial,
                          struct test_comparison *result);

#endif
