// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The componentwise bound of the flash kernel (spec/numerics.md, "Bound of the flash kernel"),
 * evaluated in double.
 */
#ifndef REF_BOUND_FLASH_H
#define REF_BOUND_FLASH_H

#include "attention.h"

/** Keys of a tile: the reference of a row changes at tile boundaries only, and one mma adds one. */
#define FLASH_TILE 16
/** Most chunks of a row. */
#define FLASH_MAX_CHUNKS 264

/**
 * Relative error of one mma.sync with float32 accumulation (eq-flash-mma): 24 truncations of 2 u
 * each, and one u for terms of second order.
 */
#define FLASH_MMA_ERROR (49.0 * 0x1p-24)
/** Absolute error of one mma where addends or sums underflow. */
#define FLASH_MMA_TINY 0x1p-144

/** What the bound assumes of the split of the cache: upper bounds of two numbers. */
struct flash_bound_limits {
    int64_t chunks; /**< Most chunks of a row, at least 1. */
    int64_t tiles;  /**< Most tiles of a chunk, at least 1. */
};

/**
 * Limits that hold for every split of a call: FLASH_MAX_CHUNKS chunks, and all tokens in one of
 * them. The prefix and the tree may each end in a tile that is not full.
 *
 * @param call the call; its limits are read
 * @return the limits
 */
struct flash_bound_limits flash_bound_limits_of(const struct ref_attention *call);

/**
 * Bounds |flash - exact| of every element of o and lse of some query rows. Rows that are empty get
 * 0; rows that are NaN get 0 (their outputs are NaN on both sides). The bound holds where the sums
 * of absolute terms of the scores, times max(1, scale log2 e), are below 2^127.
 *
 * @param call      the call, host pointers; outputs are not read
 * @param limits    of the split of the cache
 * @param rows      [row_count] query rows, or NULL for rows 0 to row_count - 1
 * @param row_count how many
 * @param o_bound   [row_count,H,L] output
 * @param lse_bound [row_count,H] output
 * @return REF_OK or REF_OUT_OF_MEMORY
 */
int32_t attention_bound_flash_f64(const struct ref_attention *call,
                                  const struct flash_bound_limits *limits, const int64_t *rows,
                                  int64_t row_count, double *o_bound, double *lse_bound);

#endif
