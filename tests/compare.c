// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Comparator of the tests.
 */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Names of enum test_verdict. */
static const char *const verdict_names[] = {"equal",          "shape differs",    "NaN or infinity",
                                            "invalid bound",  "beyond the bound", "bits differ",
                                            "nothing checked"};

/** Starts a result. Returns TEST_EQUAL or the verdict that ends the comparison. */
static int32_t begin(const int64_t actual[3], const int64_t expected[3],
                     struct test_comparison *r) {
    memset(r, 0, sizeof *r);
    r->worst[0] = r->worst[1] = r->worst[2] = -1;
    if (memcmp(actual, expected, 3 * sizeof *actual) != 0) {
        r->verdict = TEST_SHAPE_DIFFERS;
        snprintf(r->text, sizeof r->text, "shape [%lld,%lld,%lld], expected [%lld,%lld,%lld]",
                 (long long)actual[0], (long long)actual[1], (long long)actual[2],
                 (long long)expected[0], (long long)expected[1], (long long)expected[2]);
    } else if (actual[0] <= 0 || actual[1] <= 0 || actual[2] <= 0) {
        r->verdict = TEST_NOTHING_CHECKED;
        snprintf(r->text, sizeof r->text, "nothing checked: no elements");
    }
    return r->verdict;
}

/** Remembers an element as the worst so far. */
static void set_worst(struct test_comparison *r, const int64_t shape[3], int64_t i, double actual,
                      double expected) {
    r->worst[0] = i / (shape[1] * shape[2]);
    r->worst[1] = i / shape[2] % shape[1];
    r->worst[2] = i % shape[2];
    r->worst_actual = actual;
    r->worst_expected = expected;
}

/** Writes the line and returns the verdict. */
static int32_t finish(struct test_comparison *r, int32_t trivial, int64_t telling) {
    if (r->verdict == TEST_EQUAL && telling == 0 && trivial == TEST_TRIVIAL_IS_ERROR) {
        r->verdict = TEST_NOTHING_CHECKED;
    }
    snprintf(r->text, sizeof r->text,
             "%s: %lld of %lld elements; worst [%lld,%lld,%lld] %.9g expected %.9g, error %.3g, "
             "ratio %.3g",
             verdict_names[r->verdict], (long long)r->differing, (long long)r->checked,
             (long long)r->worst[0], (long long)r->worst[1], (long long)r->worst[2],
             r->worst_actual, r->worst_expected, r->worst_error, r->worst_ratio);
    return r->verdict;
}

/** Whether two values are the same anomaly, or both are none. */
static int same_anomaly(double actual, double expected) {
    if (isfinite(actual) && isfinite(expected)) {
        return 1;
    }
    return (isnan(actual) && isnan(expected)) || actual == expected;
}

int32_t test_compare_bound(const struct test_array_f32 *actual,
                           const struct test_array_f64 *expected, const double *bound,
                           int32_t trivial, struct test_comparison *r) {
    if (begin(actual->shape, expected->shape, r) != TEST_EQUAL) {
        return r->verdict;
    }
    int64_t count = actual->shape[0] * actual->shape[1] * actual->shape[2];
    int64_t telling = 0;
    for (int64_t i = 0; i < count; i++) { /* first the positions of NaN and infinities */
        double x = (double)actual->data[i];
        r->checked++;
        telling += expected->data[i] != 0.0;
        if (!same_anomaly(x, expected->data[i])) {
            r->verdict = TEST_ANOMALY;
            if (r->differing++ == 0) {
                set_worst(r, actual->shape, i, x, expected->data[i]);
            }
        }
    }
    for (int64_t i = 0; r->verdict != TEST_ANOMALY && i < count; i++) {
        double x = (double)actual->data[i];
        if (!isfinite(x)) {
            continue;
        }
        if (!(bound[i] >= 0.0) || isinf(bound[i])) {
            r->verdict = TEST_BOUND_INVALID;
            r->differing++;
            set_worst(r, actual->shape, i, x, expected->data[i]);
            break;
        }
        double error = fabs(x - expected->data[i]);
        double ratio = error == 0.0 ? 0.0 : error / bound[i];
        if (ratio > r->worst_ratio) {
            r->worst_ratio = ratio;
            set_worst(r, actual->shape, i, x, expected->data[i]);
        }
        r->worst_error = error > r->worst_error ? error : r->worst_error;
        if (!(error <= bound[i])) {
            r->verdict = TEST_BEYOND_BOUND;
            r->differing++;
        }
    }
    return finish(r, trivial, telling);
}

/** The bits of a float. */
static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/** Position of a float on the line of all floats, so that neighbours differ by one. */
static int64_t ordinal(float x) {
    uint32_t bits = bits_of(x);
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffffu) : (int64_t)bits;
}

int32_t test_compare_bits(const struct test_array_f32 *actual,
                          const struct test_array_f32 *expected, int32_t trivial,
                          struct test_comparison *r) {
    if (begin(actual->shape, expected->shape, r) != TEST_EQUAL) {
        return r->verdict;
    }
    int64_t count = actual->shape[0] * actual->shape[1] * actual->shape[2];
    int64_t telling = 0;
    for (int64_t i = 0; i < count; i++) {
        float x = actual->data[i];
        float y = expected->data[i];
        r->checked++;
        telling += y != 0.0f;
        if (bits_of(x) == bits_of(y)) {
            continue;
        }
        r->verdict = same_anomaly((double)x, (double)y) && r->verdict != TEST_ANOMALY
                         ? TEST_BITS_DIFFER
                         : TEST_ANOMALY;
        double distance = fabs((double)(ordinal(x) - ordinal(y)));
        if (r->differing++ == 0 || distance > r->worst_ratio) {
            r->worst_ratio = distance;
            r->worst_error = fabs((double)x - (double)y);
            set_worst(r, actual->shape, i, (double)x, (double)y);
        }
    }
    return finish(r, trivial, telling);
}
