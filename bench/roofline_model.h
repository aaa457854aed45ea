// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * A roofline model of a verify call of the flash kernel in default mode, random slots.
 *
 * The schedule (kernels/flash_schedule.h) says how a call is cut: items, of which the busiest
 * block has n = ceil(items / SMs), each of t = ceil(key tiles / chunks) key tiles with m tiles of
 * 16 rows. The time of a call is modelled as
 *
 *     call + n item + max(gather, n t (tile + product m p), n t m p) + combine c
 *
 * gather: bytes of the cache rows, once, at the rate of gathering many; p: time of one m16 tile
 * against one key tile at a multiprocessor's share of the mma rate, below which no card comes;
 * c: bytes of the partial outputs, written and read, at 64 bytes a clock and multiprocessor, since
 * they stay in the L2. Five constants are fitted by least squares of relative differences: call and
 * item in microseconds, tile in clocks of a multiprocessor (the chain of dependent instructions of
 * a key tile), product (what each m16 tile adds to it) and combine as factors, none below 0.
 *
 * What the constants say on the card that they are fitted on is a summary of measurements. What
 * they say on another card is a projection.
 */
#ifndef BENCH_ROOFLINE_MODEL_H
#define BENCH_ROOFLINE_MODEL_H

#include "gpu_points.h"

/** Constants that are fitted. */
#define ROOFLINE_CONSTANTS 5
/** Fewest rows for a fit: twice as many as there are constants. */
#define ROOFLINE_FEWEST 10
/** Most rows of a fit. */
#define ROOFLINE_MOST 256

/** What the model takes from a card. */
struct roofline_card {
    const char *name;   /**< For people. */
    int32_t sms;        /**< Multiprocessors. */
    double clock_mhz;   /**< Of a multiprocessor. */
    double gather_gbps; /**< Rate of gathering many rows of 1,152 bytes. */
    double mma_tflops;  /**< Rate of mma.sync m16n8k16, bf16. */
};

/** The fitted constants. */
struct roofline_constants {
    double call_us;     /**< A call: launches, first and last instructions. */
    double item_us;     /**< Beginning and end of an item. */
    double tile_clocks; /**< A key tile, whatever its rows. */
    double product;     /**< Time of products by their time at the mma rate. */
    double combine;     /**< Time of partial outputs by that of their bytes. */
};

/** One measured row. */
struct roofline_sample {
    struct bench_point point; /**< Shapes. */
    double us;                /**< Median. */
};

/** How far a fit is from its samples. */
struct roofline_residual {
    double worst; /**< Largest relative difference, without sign. */
    double rms;   /**< Root of the mean square of the relative differences. */
};

/**
 * The time of a call.
 *
 * @param card      card
 * @param constants of the model
 * @param point     shapes
 * @return microseconds; 0 where a plan of these shapes would be refused
 */
double roofline_predict(const struct roofline_card *card,
                        const struct roofline_constants *constants,
                        const struct bench_point *point);

/**
 * The floor of a call: gathering its cache rows or, if longer, its products with query rows padded
 * to 16, spread evenly over the card.
 *
 * @param card  card
 * @param point shapes
 * @return microseconds
 */
double roofline_floor(const struct roofline_card *card, const struct bench_point *point);

/**
 * Fits the constants to measurements of one card.
 *
 * @param card      the card
 * @param samples   measured rows
 * @param count     of them, ROOFLINE_FEWEST to ROOFLINE_MOST
 * @param constants filled
 * @return 0, or 1 if there are too few or too many rows, or they do not determine the constants
 */
int roofline_fit(const struct roofline_card *card, const struct roofline_sample *samples,
                 int32_t count, struct roofline_constants *constants);

/**
 * Compares model and measurements.
 *
 * @param card      card
 * @param constants of the model
 * @param samples   measured rows
 * @param count     of them, at least one
 * @return worst and rms
 */
struct roofline_residual roofline_compare(const struct roofline_card *card,
                                          const struct roofline_constants *constants,
                                          const struct roofline_sample *samples, int32_t count);

#endif
