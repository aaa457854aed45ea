// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * One row of `kdtr bench`: its data, its check, its time.
 */
#ifndef BENCH_GPU_CASE_H
#define BENCH_GPU_CASE_H

#include "gpu_device.h"
#include "gpu_schedule.h"
#include "gpu_truth.h"

/** What a row gave. */
struct bench_result {
    struct bench_summary time;      /**< Microseconds. */
    struct bench_error error;       /**< Of the sampled rows. */
    double lse_error;               /**< Largest difference of the log-sum-exp. */
    double check_seconds;           /**< What the truth took on the host. */
    double workspace_bytes;         /**< Of the plan. */
    struct bench_schedule schedule; /**< All zero if it is not the flash kernel's. */
};

/**
 * Makes fresh data, runs once into poisoned memory, checks that, and takes the time.
 *
 * @param device  the device
 * @param row     what to measure
 * @param seed    of the data
 * @param samples as bench_time's
 * @param result  filled as far as it goes
 * @param error   filled on failure, also if the output is wrong
 * @return kdtr_status
 */
int32_t bench_run_row(const struct bench_device *device, const struct bench_row *row, uint64_t seed,
                      int32_t samples, struct bench_result *result, kdtr_error *error);

#endif
