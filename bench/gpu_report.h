// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Tables and rows of the result file of `kdtr bench`.
 */
#ifndef BENCH_GPU_REPORT_H
#define BENCH_GPU_REPORT_H

#include "gpu_case.h"

/**
 * Prints the ceilings and writes them as a JSON object.
 *
 * @param ceilings what was measured
 * @param json     where to
 */
void bench_report_ceilings(const struct bench_ceilings *ceilings, FILE *json);

/** Prints the heading of a set. @param set enum bench_set @param wide 1: all columns */
void bench_report_heading(int32_t set, int32_t wide);

/**
 * Prints a row of the table.
 *
 * @param row      what was measured
 * @param result   what it gave
 * @param floor_us its floor; 0 if unknown
 * @param limit    its limit, or NULL
 * @param wide     1: all columns
 * @param failure  why it failed, or NULL
 */
void bench_report_row(const struct bench_row *row, const struct bench_result *result,
                      double floor_us, const struct bench_limit *limit, int32_t wide,
                      const char *failure);

/**
 * Writes a row into the result file.
 *
 * @param row      what was measured, without failure
 * @param result   what it gave
 * @param floor_us its floor; 0 if unknown
 * @param first    whether it is the first
 * @param json     where to
 */
void bench_write_row(const struct bench_row *row, const struct bench_result *result,
                     double floor_us, int first, FILE *json);

#endif
