// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Result files planted in a temporary folder: a pair that passes, of which a test changes one
 * thing.
 */
#ifndef TESTS_PLANTED_RESULTS_H
#define TESTS_PLANTED_RESULTS_H

#include "gate_results.h"

#define PLANTED_MOST 256 /**< Rows of a file. */

/** A hash of sources that planted files carry. */
#define PLANTED_SOURCES "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/** One row; what it does not need is 0. */
struct planted_row {
    const char *op;             /**< "verify", "served" or "accuracy". */
    const char *implementation; /**< Name. */
    const char *mask;           /**< Name. */
    const char *set;            /**< Name; NULL for "table". */
    struct bench_point point;   /**< Shapes. */
    double median;              /**< us */
    double spread;              /**< p75 - p25, us. */
    double error;               /**< Relative. */
    double workspace;           /**< Bytes; 0 leaves the field out. */
    int32_t seed;               /**< Of accuracy. */
    int32_t budget;             /**< Of a draft tree. */
    int32_t samples;            /**< 0 for 25. */
    int32_t left_out;           /**< 1: not written. */
};

/** A file. */
struct planted_file {
    const char *gpu;                       /**< Of its environment. */
    const char *date;                      /**< The same. */
    const char *sources;                   /**< The same. */
    struct planted_row rows[PLANTED_MOST]; /**< [count] */
    int32_t count;                         /**< Rows. */
};

/**
 * A passing file of `kdtr bench`: every median 1 % below its limit, the accepted one above it.
 *
 * @param file   filled
 * @param limits of the points
 * @param count  of limits
 */
void planted_bench(struct planted_file *file, const struct bench_limit *limits, int32_t count);

/**
 * A passing file of the peers, accuracy included.
 *
 * @param file   filled
 * @param limits of the points
 * @param count  of limits
 */
void planted_peers(struct planted_file *file, const struct bench_limit *limits, int32_t count);

/** Adds rows of the sweeps. @param file of `kdtr bench` */
void planted_sweeps(struct planted_file *file);

/** Adds rows of a served model. @param file of the peers */
void planted_served(struct planted_file *file);

/**
 * Finds a row to change; there must be one.
 *
 * @param file           where
 * @param implementation its name
 * @param point          its point
 * @param seed           of an accuracy row, or 0
 * @return the row
 */
struct planted_row *planted_row(struct planted_file *file, const char *implementation,
                                struct bench_point point, int32_t seed);

/**
 * Writes a file into the folder.
 *
 * @param file what to write
 * @param name its name
 */
void planted_write(const struct planted_file *file, const char *name);

/**
 * Writes a file anywhere.
 *
 * @param file what to write
 * @param path where
 */
void planted_write_to(const struct planted_file *file, const char *path);

/**
 * Writes a text into the folder.
 *
 * @param text what to write
 * @param name of the file
 */
void planted_text(const char *text, const char *name);

/** Path of a file in the folder. @param name of the file @return valid until the next call */
const char *planted_path(const char *name);

/** The folder. @return its path */
const char *planted_folder(void);

/** Makes the folder: a setup of Check that is not repeated for each test. */
void planted_make_folder(void);

/** Empties the folder: a setup of Check for each test. */
void planted_empty_folder(void);

/** Removes the folder: the teardown of planted_make_folder. */
void planted_remove_folder(void);

#endif
