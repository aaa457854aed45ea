// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * How the flash kernel cuts a row of `kdtr bench`, by kernels/flash_schedule.h.
 */
#ifndef BENCH_GPU_SCHEDULE_H
#define BENCH_GPU_SCHEDULE_H

#include "gpu_points.h"

/** The cut of a row, whose requests are all alike. */
struct bench_schedule {
    int32_t row_tiles;       /**< Of all requests. */
    int32_t parts;           /**< Of a row tile. */
    int32_t chunks;          /**< Of a request. */
    int64_t items;           /**< Row tiles times parts and chunks, or, in exact mode, runs. */
    int64_t waves;           /**< Launches of the main kernel. */
    int64_t workspace_bytes; /**< Of the plan. */
};

/**
 * Computes the schedule of a row's plan.
 *
 * @param row      the row, taken as the flash kernel's
 * @param sm_count multiprocessors of the device
 * @param schedule filled; all zero where the plan would be refused
 */
void bench_schedule_row(const struct bench_row *row, int32_t sm_count,
                        struct bench_schedule *schedule);

#endif
