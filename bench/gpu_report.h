// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What bench_gpu prints and writes.
 */
#ifndef BENCH_GPU_REPORT_H
#define BENCH_GPU_REPORT_H

#include "gpu_case.h"

/**
 * Prints facts about device and build, and starts the result file.
 *
 * @param device  the device
 * @param kit     file of lines "name value", or NULL
 * @param samples as bench_time's
 * @param json    result file, or NULL
 */
void bench_report_environment(const struct bench_device *device, const char *kit, int32_t samples,
                              FILE *json);

/**
 * Prints the ceilings.
 *
 * @param ceilings what was measured
 * @param json     result file, or NULL
 */
void bench_report_ceilings(const struct bench_ceilings *ceilings, FILE *json);

/** Prints the heading of the table. */
void bench_report_heading(void);

/**
 * Prints a row of the table.
 *
 * @param row      what was measured
 * @param result   what it gave
 * @param floor_us its floor; 0 if unknown
 * @param limit    its limit, or NULL
 * @param failure  why it failed, or NULL
 */
void bench_report_row(const struct bench_row *row, const struct bench_result *result,
                      double floor_us, const struct bench_limit *limit, const char *failure);

/**
 * Writes a row into the result file.
 *
 * @param row      what was measured, without failure
 * @param result   what it gave
 * @param floor_us its floor; 0 if unknown
 * @param first    whether it is the first
 * @param json     result file
 */
void bench_write_row(const struct bench_row *row, const struct bench_result *result,
                     double floor_us, int first, FILE *json);

#endif
