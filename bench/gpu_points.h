// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What `kdtr bench` times: points, the rows of a table, and the limits that a point has.
 */
#ifndef BENCH_GPU_POINTS_H
#define BENCH_GPU_POINTS_H

#include <stdint.h>
#include <stdio.h>

#include "kdtr.h"

/** Elements of a cache row, latent and rope. */
#define BENCH_ROW_ELEMENTS 576
/** Elements of the latent part. */
#define BENCH_LATENT 512
/** Most rows of one run. */
#define BENCH_MAX_ROWS 256
/** Most lines of a file of limits. */
#define BENCH_MAX_LIMITS 64

/** Shapes of a problem. */
struct bench_point {
    int32_t batch;  /**< B */
    int32_t heads;  /**< H */
    int32_t nodes;  /**< Q of each request */
    int64_t prefix; /**< N of each request */
};

/** Where a request's slots lie. */
enum bench_layout {
    BENCH_RANDOM = 0,    /**< A permutation of a pool of twice the rows. */
    BENCH_CONTIGUOUS = 1 /**< One after the other. */
};

/** What a row belongs to. The first ones are what a whole run measures, in this order. */
enum bench_set {
    BENCH_TABLE = 0,         /**< The points of phase 1. */
    BENCH_LONG,              /**< A million rows. */
    BENCH_SWEEP_N,           /**< Over the length of the context. */
    BENCH_SWEEP_Q,           /**< Over the nodes. */
    BENCH_SWEEP_H,           /**< Over the heads. */
    BENCH_SWEEP_BUDGET,      /**< Over the budget of a draft tree. */
    BENCH_SETS,              /**< How many these are. */
    BENCH_POINT = BENCH_SETS /**< A point of the command line. */
};

/** One line of the table. */
struct bench_row {
    struct bench_point point; /**< Shapes. */
    int32_t implementation;   /**< kdtr_implementation. */
    int32_t layout;           /**< enum bench_layout. */
    int32_t mask_mode;        /**< KDTR_MASK_PACKED or KDTR_MASK_PARENTS. */
    int32_t stride;           /**< Elements from cache row to cache row. */
    int32_t exact;            /**< 1: exact mode. */
    int32_t set;              /**< enum bench_set. */
    int32_t budget;           /**< Of the draft tree; 0: any earlier node may be a parent. */
};

/** What is asked for on the command line. */
struct bench_selection {
    struct bench_point point; /**< One point; batch 0 for the sets'. */
    int32_t
        implementation; /**< kdtr_implementation; -1 for both modes of flash, and small naive. */
    int32_t layout;     /**< enum bench_layout, or -1 for both. */
    int32_t mask_mode;  /**< kdtr_mask_mode, or -1 for the sets'. */
    int32_t stride;     /**< Elements, or 0 for the sets'. */
    int32_t exact;      /**< 1: flash in exact mode only. */
    uint32_t sets;      /**< Bit 1 << enum bench_set for each; 0 for all. */
};

/** Limits of a point, random slots. */
struct bench_limit {
    struct bench_point point; /**< Shapes. */
    double at_most_us;        /**< What gate P1-6 asks for. */
    double aim_us;            /**< Where the design points. */
    double accepted_us;       /**< At least at_most_us; what P1-6 accepts, loudly, where at_most_us
                                   was not reached. 0: nothing above at_most_us. */
};

/**
 * Reads shapes.
 *
 * @param text  B,H,Q,N
 * @param point filled
 * @return 0, or 1 for anything else than four numbers in range
 */
int bench_parse_point(const char *text, struct bench_point *point);

/**
 * Reads a file of limits: lines B H Q N at_most aim; empty lines and lines from # on are passed
 * over.
 *
 * @param file   text; a line may end with a seventh number, accepted
 * @param limits BENCH_MAX_LIMITS entries
 * @return how many, or -1 if a line is malformed, accepted is below at_most, a point stands twice
 *         or there are too many
 */
int32_t bench_read_limits(FILE *file, struct bench_limit *limits);

/**
 * The limit of a row: not naive, random slots, rows without padding.
 *
 * @param limits what was read
 * @param count  how many
 * @param row    a row
 * @return NULL if it has none
 */
const struct bench_limit *bench_find_limit(const struct bench_limit *limits, int32_t count,
                                           const struct bench_row *row);

/** Name of a row's implementation. @param row the row @return e.g. "flash" or "flash_exact" */
const char *bench_implementation_name(const struct bench_row *row);

/** Name of a layout. @param layout enum bench_layout @return "random" or "contiguous" */
const char *bench_layout_name(int32_t layout);

/** Name of a mask. @param mask_mode kdtr_mask_mode @return e.g. "packed" */
const char *bench_mask_name(int32_t mask_mode);

/** Name of a set. @param set enum bench_set @return e.g. "sweep_n" */
const char *bench_set_name(int32_t set);

#endif
