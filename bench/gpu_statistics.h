// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Numbers of `kdtr bench`: quartiles, the device's ceilings, the floor of a point.
 */
#ifndef BENCH_GPU_STATISTICS_H
#define BENCH_GPU_STATISTICS_H

#include "gpu_points.h"

/** Most samples of a time. */
#define BENCH_MAX_SAMPLES 1000
/** Sizes at which gathering is measured. */
#define BENCH_GATHER_SIZES 4

/** Median and quartiles. */
struct bench_summary {
    double median; /**< 50 % */
    double p25;    /**< 25 % */
    double p75;    /**< 75 % */
    int32_t count; /**< samples */
};

/** What the device did at best in this run; 0 where it was not measured. */
struct bench_ceilings {
    double copy_gbps;                                  /**< Read and written bytes. */
    double read_gbps;                                  /**< Consecutive, large. */
    double gather_rows[BENCH_GATHER_SIZES];            /**< Rows of 1,152 bytes, ascending. */
    double gather_random_gbps[BENCH_GATHER_SIZES];     /**< Random slots, cold L2. */
    double gather_contiguous_gbps[BENCH_GATHER_SIZES]; /**< Consecutive slots, cold L2. */
    double mma_tflops;                                 /**< m16n8k16 of bf16. */
    double event_us;                                   /**< Between two events, nothing. */
    double empty_us;                                   /**< The same with an empty kernel. */
};

/**
 * Sorts samples and takes quartiles, interpolated between neighbours.
 *
 * @param samples at least one; sorted on return
 * @param count   how many
 * @return the summary
 */
struct bench_summary bench_summarize(double *samples, int32_t count);

/**
 * Interpolates, linear in the logarithm of x; beyond the ends their values hold.
 *
 * @param x     ascending, above 0
 * @param y     values
 * @param count at least one
 * @param at    where, above 0
 * @return the value
 */
double bench_interpolate(const double *x, const double *y, int32_t count, double at);

/** Bytes of the cache rows that a point reads. @param point shapes @return bytes */
double bench_cache_bytes(const struct bench_point *point);

/**
 * Shortest time of a row: gathering its cache rows or, if longer, its products with rows padded to
 * 16.
 *
 * @param row      the row
 * @param ceilings what was measured
 * @return microseconds; 0 if nothing was measured
 */
double bench_floor_us(const struct bench_row *row, const struct bench_ceilings *ceilings);

#endif
