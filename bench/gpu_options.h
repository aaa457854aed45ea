// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The command line of `kdtr bench`.
 */
#ifndef BENCH_GPU_OPTIONS_H
#define BENCH_GPU_OPTIONS_H

#include "gpu_points.h"

/** What the command line says. */
struct bench_options {
    struct bench_selection selection; /**< Which rows. */
    const char *json;                 /**< Result file, or NULL. */
    const char *kit;                  /**< Facts about the build, or NULL. */
    const char *limits;               /**< Limits, or NULL. */
    int32_t samples;                  /**< Of each time; 0: as the method says. */
    int64_t seed;                     /**< Of the data. */
    int32_t no_ceilings;              /**< 1: no ceilings, no floors. */
    int32_t wide;                     /**< 1: all columns. */
    int32_t progress;                 /**< 1: a progress bar also where there is no terminal. */
    int32_t quick;                    /**< 1: --quick. */
    int32_t partial;                  /**< 1: not every row of a whole run, or not as it has it. */
};

/**
 * Reads a command line. What is wrong with it is said on standard error.
 *
 * @param argc    number of arguments
 * @param argv    arguments; the options point into them
 * @param options filled
 * @return 0, or 2 for bad usage
 */
int bench_parse_options(int argc, char **argv, struct bench_options *options);

#endif
