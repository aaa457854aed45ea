// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Some rows of a problem of `kdtr bench` in float64 on the host. The values are those of
 * kernels/measure_value.h, generated again, so that nothing is copied from the device.
 */
#ifndef BENCH_GPU_TRUTH_H
#define BENCH_GPU_TRUTH_H

#include "gpu_points.h"

/** Most rows of one call. */
#define BENCH_MAX_PAIRS 16
/** Largest relative L2 error that passes: bfloat16 weights and outputs, twice over. */
#define BENCH_RELATIVE_LIMIT 4e-3
/**
 * Largest difference of a log-sum-exp that passes. It is about 14 here, so that its unit in the
 * last place is 1e-6; the flash kernel was seen within 2.1e-6 at 200,000 rows. A key tile of 16
 * rows that is left out of 200,000 moves it by 8e-5, one of 132 chunks by 8e-3.
 */
#define BENCH_LSE_LIMIT 2e-5

/** A problem: queries are numbers (row * H + head) * 576 + k, cache rows slot * 576 + k. */
struct bench_problem {
    struct bench_point point;   /**< Shapes. */
    uint64_t query_seed;        /**< Stream of the queries. */
    uint64_t cache_seed;        /**< Stream of the cache. */
    double scale;               /**< Factor of the scores. */
    const int32_t *slots;       /**< [B,N] */
    const int32_t *tree_slots;  /**< [B,Q] */
    const uint32_t *mask_words; /**< [B * Q, ceil(Q / 32)] */
};

/** A query row and head, and what is right for it. */
struct bench_pair {
    int64_t row;            /**< 0 to B * Q - 1 */
    int32_t head;           /**< 0 to H - 1 */
    double o[BENCH_LATENT]; /**< Output. */
    double lse;             /**< Natural log-sum-exp. */
};

/**
 * Computes.
 *
 * @param problem the problem
 * @param pairs   row and head set; the rest is filled
 * @param count   at most BENCH_MAX_PAIRS
 * @param threads at least 1
 * @return 0, or 1 without memory or threads
 */
int bench_truth(const struct bench_problem *problem, struct bench_pair *pairs, int32_t count,
                int32_t threads);

/** How far outputs are from the truth. */
struct bench_error {
    double max_abs_error;  /**< Largest difference; NaN if an output is. */
    double relative_error; /**< L2 of the differences by L2 of the truth; NaN likewise. */
};

/**
 * Compares bfloat16 outputs with the truth.
 *
 * @param pairs truth
 * @param count how many, at least one
 * @param heads H
 * @param o     [R,H,512] bfloat16
 * @return the errors
 */
struct bench_error bench_compare(const struct bench_pair *pairs, int32_t count, int32_t heads,
                                 const uint16_t *o);

/**
 * Compares log-sum-exps with the truth.
 *
 * @param pairs truth
 * @param count how many, at least one
 * @param heads H
 * @param lse   [R,H] float32
 * @return the largest difference; NaN if one of the pairs' is
 */
double bench_compare_lse(const struct bench_pair *pairs, int32_t count, int32_t heads,
                         const float *lse);

#endif
