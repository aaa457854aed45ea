// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-1: what the bound of the flash kernel assumes of single instructions (eq-flash-mma,
 * ex2.approx), and its schedule of the device's arithmetic, on the device that is present. The
 * emulated program shows that the emulator's instructions are within the assumption, and that the
 * operands fit the test; it says nothing of a GPU.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bf16.h"
#include "bound_flash.h"
#include "bounds.h"
#include "check_main.h"
#include "flash_schedule.h"
#include "kdtr_cuda.h"
#include "make_problem.h"
#include "make_values.h"
#include "probe.h"

#define TILES 8192 /**< mma, each of 128 sums. */
#define KINDS 6    /**< Kinds of operands. */
/** Arguments of ex2. */
#define POINTS (1 << 20)
/** The reduced set has one so-many-th of both. */
#define REDUCED 16

static int32_t scaled(int32_t count) {
    return test_scale_is_small() ? count / REDUCED : count;
}

/** A number with random sign and mantissa, its exponent from `low` to `low + width`. */
static float draw(uint64_t hash, int low, int width) {
    float mantissa = 1.0f + (float)(hash >> 40 & 0x7f) / 128.0f;
    float sign = hash >> 63 ? -1.0f : 1.0f;
    return sign * ldexpf(mantissa, low + (int)(hash % (uint64_t)(width + 1)));
}

/** An element of a, b or c (which = 0, 1, 2); k is its place in the sum. */
static float operand(int32_t kind, int32_t which, int32_t k, uint64_t hash) {
    switch (kind) {
    case 0: /* all alike */
        return draw(hash, 0, 0);
    case 1: /* far apart */
        return draw(hash, -20, 40);
    case 2: /* one sign, every bit set: each cut is as large as it can be */
        return which == 2 ? ldexpf(0x1.fffffep0f, (int)(hash % 24) - 4) : 0x1.fep0f;
    case 3: /* a large accumulator and small products */
        return which == 2 ? draw(hash, 20, 4) : draw(hash, -4, 6);
    case 4: /* one large product, the others just below where it is cut */
        return which == 2 ? draw(hash, -24, 2) : draw(hash, k == 0 ? 10 : -2, which);
    default: /* denormal sums */
        return which == 2 ? ldexpf(draw(hash, 0, 10), -140) : draw(hash, -70, 5);
    }
}

/** Copies to the device; the caller frees it with the context. */
static void *upload(kdtr_context *context, const void *data, size_t bytes) {
    void *memory = NULL;
    ck_assert_int_eq(kdtr_memory_alloc(context, bytes, &memory, NULL), KDTR_OK);
    ck_assert_int_eq(
        kdtr_memory_copy(context, memory, data, bytes, KDTR_COPY_TO_DEVICE, NULL, NULL), KDTR_OK);
    return memory;
}

static kdtr_context *open_context(void) {
    kdtr_context *context = NULL;
    kdtr_error error = {0};
    ck_assert_msg(kdtr_cuda_context_create(0, &context, &error) == KDTR_OK, "%s", error.text);
    return context;
}

/** Largest error of the sums of a kind, in units of the bound; *units in units of u times sizes. */
static double worst_mma(const uint16_t *a, const uint16_t *b, const float *c, const float *d,
                        int32_t tiles, int32_t kind, double *units) {
    double worst = 0.0;
    for (int64_t i = 0; i < (int64_t)tiles * PROBE_B; i++) {
        int64_t tile = i / PROBE_B;
        if (tile % KINDS != kind) {
            continue;
        }
        double exact = (double)c[i];
        double size = fabs((double)c[i]);
        for (int32_t k = 0; k < 16; k++) {
            double term = (double)ref_f32_from_bf16(a[tile * PROBE_A + i % PROBE_B / 8 * 16 + k]) *
                          (double)ref_f32_from_bf16(b[tile * PROBE_B + k * 8 + i % 8]);
            exact += term;
            size += fabs(term);
        }
        double error = fabs((double)d[i] - exact);
        double ratio = error / (FLASH_MMA_ERROR * size + FLASH_MMA_TINY);
        ck_assert_msg(ratio <= 1.0, "kind %d: %a, exact %a, sum of magnitudes %a", kind,
                      (double)d[i], exact, size);
        worst = fmax(worst, ratio);
        *units = fmax(*units, size > 0x1p-100 ? error / size / 0x1p-24 : 0.0);
    }
    return worst;
}

START_TEST(an_mma_errs_by_what_is_assumed) {
    kdtr_context *context = open_context();
    const int32_t tiles = scaled(TILES);
    uint16_t *a = test_calloc((size_t)tiles * PROBE_A * sizeof *a);
    uint16_t *b = test_calloc((size_t)tiles * PROBE_B * sizeof *b);
    float *c = test_calloc((size_t)tiles * PROBE_B * sizeof *c);
    float *d = test_calloc((size_t)tiles * PROBE_B * sizeof *d);
    for (int32_t i = 0; i < tiles * PROBE_A; i++) {
        int32_t kind = i / PROBE_A % KINDS;
        uint64_t at = (uint64_t)i;
        a[i] = ref_bf16_from_f32(operand(kind, 0, i % 16, test_hash(test_seed(), 1, at, 0)));
        if (i < tiles * PROBE_B) {
            kind = i / PROBE_B % KINDS;
            b[i] = ref_bf16_from_f32(
                operand(kind, 1, i % PROBE_B / 8, test_hash(test_seed(), 2, at, 0)));
            c[i] = operand(kind, 2, 0, test_hash(test_seed(), 3, at, 0));
        }
    }
    void *da = upload(context, a, (size_t)tiles * PROBE_A * sizeof *a);
    void *db = upload(context, b, (size_t)tiles * PROBE_B * sizeof *b);
    void *dc = upload(context, c, (size_t)tiles * PROBE_B * sizeof *c);
    ck_assert_int_eq(probe_mma_cuda(da, db, dc, tiles, NULL), cudaSuccess);
    ck_assert_int_eq(kdtr_memory_copy(context, d, dc, (size_t)tiles * PROBE_B * sizeof *d,
                                      KDTR_COPY_TO_HOST, NULL, NULL),
                     KDTR_OK);
    for (int32_t kind = 0; kind < KINDS; kind++) {
        double units = 0.0;
        double ratio = worst_mma(a, b, c, d, tiles, kind, &units);
        printf("P1-1 mma, operands of kind %d: %.3f of what is assumed, %.2f u\n", kind, ratio,
               units);
    }
    kdtr_memory_free(context, da);
    kdtr_memory_free(context, db);
    kdtr_memory_free(context, dc);
    kdtr_context_destroy(context);
    free(a);
    free(b);
    free(c);
    free(d);
}
END_TEST

START_TEST(ex2_errs_by_what_is_assumed) {
    kdtr_context *context = open_context();
    const int32_t points = scaled(POINTS);
    float *x = test_calloc((size_t)points * sizeof *x);
    float *y = test_calloc((size_t)points * sizeof *y);
    double worst = 0.0;
    for (int32_t i = 0; i < points; i++) { /* the arguments of weights: -130 to 8 */
        x[i] = 8.0f - (float)(test_hash(test_seed(), 4, (uint64_t)i, 0) >> 40) * (138.0f / 0x1p24f);
    }
    x[0] = -INFINITY;
    x[1] = 0.0f;
    void *device = upload(context, x, (size_t)points * sizeof *x);
    ck_assert_int_eq(probe_exp2_cuda(device, points, NULL), cudaSuccess);
    ck_assert_int_eq(kdtr_memory_copy(context, y, device, (size_t)points * sizeof *y,
                                      KDTR_COPY_TO_HOST, NULL, NULL),
                     KDTR_OK);
    ck_assert(y[0] == 0.0f);
    for (int32_t i = 1; i < points; i++) {
        double exact = exp2((double)x[i]);
        double error = fabs((double)y[i] - exact);
        /* A result near 2^-126 may be flushed or not. */
        ck_assert_msg(error <= TEST_EX2_ERROR * exact || (y[i] == 0.0f && exact < 0x1.00001p-126),
                      "ex2(%a) is %a", (double)x[i], (double)y[i]);
        worst = fmax(worst, y[i] > 0.0f ? error / exact : 0.0);
    }
    printf("P1-1 ex2: error 2^%.2f, assumed 2^-22\n", log2(worst));
    kdtr_memory_free(context, device);
    kdtr_context_destroy(context);
    free(x);
    free(y);
}
END_TEST

/** Dividend i: 0 to 2^20 - 1, by threes around a multiple of its divisor. */
static int32_t dividend(int64_t i, int32_t divisor) {
    uint64_t bits = test_hash(test_seed(), 6, (uint64_t)i / 3, 0);
    int64_t multiple = (int64_t)(bits % ((1u << 20) / (uint32_t)divisor + 1)) * divisor;
    int64_t a = multiple + i % 3 - 1;
    return (int32_t)(a < 0 ? 0 : a < 1 << 20 ? a : (1 << 20) - 1);
}

START_TEST(the_schedule_is_the_same_on_the_device) {
    kdtr_context *context = open_context();
    const int32_t points = scaled(POINTS);
    size_t bytes = (size_t)points * sizeof(int32_t);
    int32_t *a = test_calloc(bytes);
    int32_t *b = test_calloc(bytes);
    int32_t *quotient = test_calloc(bytes);
    int32_t *most = test_calloc(bytes);
    for (int32_t i = 0; i < points; i++) {
        uint64_t bits = test_hash(test_seed(), 5, (uint64_t)i / 3, 0);
        b[i] = 1 + (int32_t)((bits >> 8) % (1u << bits % 21));
        b[i] = b[i] < 1 << 20 ? b[i] : (1 << 20) - 1;
        a[i] = dividend(i, b[i]);
    }
    void *da = upload(context, a, bytes);
    void *db = upload(context, b, bytes);
    ck_assert_int_eq(probe_schedule_cuda(da, db, points, NULL), cudaSuccess);
    ck_assert_int_eq(kdtr_memory_copy(context, quotient, da, bytes, KDTR_COPY_TO_HOST, NULL, NULL),
                     KDTR_OK);
    ck_assert_int_eq(kdtr_memory_copy(context, most, db, bytes, KDTR_COPY_TO_HOST, NULL, NULL),
                     KDTR_OK);
    for (int32_t i = 0; i < points; i++) {
        ck_assert_msg(quotient[i] == a[i] / b[i], "%d / %d is %d", a[i], b[i], quotient[i]);
        ck_assert_msg(most[i] == flash_most_chunks(b[i] % PROBE_ITEMS + 1, a[i]),
                      "%d items, %d key tiles: %d chunks", b[i] % PROBE_ITEMS + 1, a[i], most[i]);
    }
    kdtr_memory_free(context, da);
    kdtr_memory_free(context, db);
    kdtr_context_destroy(context);
    free(a);
    free(b);
    free(quotient);
    free(most);
}
END_TEST

/** @return the suite */
static Suite *mma_suite(void) {
    Suite *suite = suite_create("P1-1 single instructions");
    TCase *tcase = test_tcase(suite, "P1-1", "P1-1 single instructions");
    tcase_add_test(tcase, an_mma_errs_by_what_is_assumed);
    tcase_add_test(tcase, ex2_errs_by_what_is_assumed);
    tcase_add_test(tcase, the_schedule_is_the_same_on_the_device);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {mma_suite};
    return check_main(makers, 1);
}
