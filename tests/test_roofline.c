// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The roofline model: what it predicts, and that the fit finds constants that were planted.
 */
#include <math.h>

#include "check_main.h"
#include "roofline_model.h"

/** How near to planted constants a fit must come: far above rounding, far below any use. */
#define NEAR 0x1p-20

static const struct roofline_card card = {"planted", 132, 2000.0, 4000.0, 640.0};
static const struct roofline_constants planted = {7.0, 3.0, 900.0, 1.25, 0.75};

/** Rows of many kinds: a batch, few and many heads, short and long. */
static int32_t plant(struct roofline_sample *samples, const struct roofline_constants *constants) {
    static const int32_t batches[] = {1, 4, 16};
    static const int32_t nodes[] = {1, 8, 64};
    static const int64_t prefixes[] = {4096, 32768, 200000};
    int32_t count = 0;
    for (int i = 0; i < 27; i++) {
        struct bench_point point = {batches[i / 9], i % 2 ? 8 : 64, nodes[i / 3 % 3],
                                    prefixes[i % 3]};
        samples[count].point = point;
        samples[count].us = roofline_predict(&card, constants, &point);
        ck_assert(samples[count++].us > 0.0);
    }
    return count;
}

static void ck_near(double value, double right) {
    ck_assert_msg(fabs(value - right) <= NEAR * (1.0 + fabs(right)), "%.17g, not %.17g", value,
                  right);
}

START_TEST(a_call_is_the_sum_of_its_parts) {
    /* 132 items of 95 key tiles, one m16 tile: 8 rows, padded. */
    struct bench_point point = {1, 8, 1, 200000};
    const struct roofline_constants only_call = {5.0, 0.0, 0.0, 0.0, 0.0};
    double gather_us = 200001.0 * 1152.0 / 4e6;
    ck_near(roofline_predict(&card, &only_call, &point), 5.0 + gather_us);
    const struct roofline_constants tiles = {0.0, 2.0, 2000.0, 0.0, 0.0};
    ck_near(roofline_predict(&card, &tiles, &point), 2.0 + 95.0);
    /* Products: 2 * 16 * 16 * 1,088 operations of 640e12 / 132 a second. */
    const struct roofline_constants products = {0.0, 0.0, 0.0, 10.0, 0.0};
    ck_near(roofline_predict(&card, &products, &point),
            10.0 * 95.0 * 2.0 * 256.0 * 1088.0 * 132.0 / 640e6);
    const struct roofline_constants combine = {0.0, 0.0, 0.0, 0.0, 1.0};
    ck_near(roofline_predict(&card, &combine, &point),
            gather_us + 16.0 * 512.0 * 4.0 * 2.0 / (64.0 * 2000.0));
    /* Never below the products' own time, here of four m16 tiles at a slow rate. */
    const struct bench_point full = {1, 8, 8, 200000};
    const struct roofline_constants nothing = {0.0, 0.0, 0.0, 0.0, 0.0};
    struct roofline_card slow = card;
    slow.mma_tflops = 1.0;
    ck_near(roofline_predict(&slow, &nothing, &full),
            95.0 * 4.0 * 2.0 * 256.0 * 1088.0 * 132.0 / 1e6);
    /* The floor, spread evenly: gathers, or 64 query rows. */
    ck_near(roofline_floor(&card, &point), gather_us);
    ck_near(roofline_floor(&slow, &full), 2.0 * 64.0 * 200008.0 * 1088.0 / 1e6);
    /* Half of the multiprocessors: twice the key tiles a block. */
    struct roofline_card half = card;
    half.sms = 66;
    ck_near(roofline_predict(&half, &tiles, &point), 2.0 + 190.0);
    half.sms = 0;
    ck_assert(roofline_predict(&half, &tiles, &point) == 0.0);
}
END_TEST

START_TEST(planted_constants_are_found) {
    struct roofline_sample samples[ROOFLINE_MOST];
    const struct roofline_constants others[] = {
        planted, {4.0, 6.0, 300.0, 2.0, 0.1}, {0.5, 0.25, 1500.0, 1.0, 2.0}};
    for (int i = 0; i < 3; i++) {
        struct roofline_constants found;
        int32_t count = plant(samples, &others[i]);
        ck_assert_int_eq(roofline_fit(&card, samples, count, &found), 0);
        ck_near(found.call_us, others[i].call_us);
        ck_near(found.item_us, others[i].item_us);
        ck_near(found.tile_clocks, others[i].tile_clocks);
        ck_near(found.product, others[i].product);
        ck_near(found.combine, others[i].combine);
        struct roofline_residual residual = roofline_compare(&card, &found, samples, count);
        ck_assert(residual.worst <= NEAR && residual.rms <= residual.worst);
    }
}
END_TEST

START_TEST(noise_moves_them_little) {
    struct roofline_sample samples[ROOFLINE_MOST];
    struct roofline_constants found;
    int32_t count = plant(samples, &planted);
    for (int32_t i = 0; i < count; i++) {
        samples[i].us *= i % 2 ? 1.01 : 0.99;
    }
    ck_assert_int_eq(roofline_fit(&card, samples, count, &found), 0);
    struct roofline_residual residual = roofline_compare(&card, &found, samples, count);
    ck_assert(residual.rms <= 0.011 && residual.worst <= 0.04);
    ck_assert(fabs(found.product - planted.product) <= 0.2 * planted.product);
    /* A single row that is off by a fifth is the worst one. */
    samples[3].us *= 1.25;
    residual = roofline_compare(&card, &planted, samples, count);
    ck_assert(residual.worst > 0.18 && residual.worst < 0.22 && residual.rms < 0.06);
}
END_TEST

START_TEST(no_constant_is_below_zero) {
    struct roofline_sample samples[ROOFLINE_MOST];
    struct roofline_constants found;
    const struct roofline_constants none = {0.0, 3.0, 900.0, 1.25, 0.0};
    int32_t count = plant(samples, &none);
    for (int32_t i = 0; i < count; i++) {
        samples[i].us -= 1.0; /* a call that takes less than nothing */
    }
    ck_assert_int_eq(roofline_fit(&card, samples, count, &found), 0);
    ck_assert(found.call_us >= 0.0 && found.item_us >= 0.0 && found.tile_clocks >= 0.0 &&
              found.product >= 0.0 && found.combine >= 0.0);
    ck_assert(found.call_us == 0.0);
}
END_TEST

START_TEST(what_does_not_determine_them_is_refused) {
    struct roofline_sample samples[ROOFLINE_MOST + 1];
    struct roofline_constants found;
    int32_t count = plant(samples, &planted);
    /* Enough kinds of rows, but one too few of them. */
    struct roofline_sample few[ROOFLINE_FEWEST];
    for (int32_t i = 0; i < ROOFLINE_FEWEST; i++) {
        few[i] = samples[8 * i % count];
    }
    ck_assert_int_eq(roofline_fit(&card, few, ROOFLINE_FEWEST, &found), 0);
    ck_assert_int_eq(roofline_fit(&card, few, ROOFLINE_FEWEST - 1, &found), 1);
    ck_assert_int_eq(roofline_fit(&card, samples, 0, &found), 1);
    ck_assert_int_eq(roofline_fit(&card, samples, ROOFLINE_MOST + 1, &found), 1);
    samples[4].us = 0.0;
    ck_assert_int_eq(roofline_fit(&card, samples, count, &found), 1);
    /* One point again and again. */
    for (int32_t i = 0; i < count; i++) {
        samples[i] = samples[0];
    }
    ck_assert_int_eq(roofline_fit(&card, samples, count, &found), 1);
}
END_TEST

/** @return the suite */
static Suite *roofline_suite(void) {
    Suite *suite = suite_create("roofline");
    TCase *tcase = tcase_create("roofline_model");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, a_call_is_the_sum_of_its_parts);
    tcase_add_test(tcase, planted_constants_are_found);
    tcase_add_test(tcase, noise_moves_them_little);
    tcase_add_test(tcase, no_constant_is_below_zero);
    tcase_add_test(tcase, what_does_not_determine_them_is_refused);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {roofline_suite};
    return check_main(makers, 1);
}
