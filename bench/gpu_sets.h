// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The rows that `kdtr bench` measures: the points of phase 1 and sweeps.
 */
#ifndef BENCH_GPU_SETS_H
#define BENCH_GPU_SETS_H

#include "gpu_points.h"

/**
 * Lists the rows of a selection, set by set.
 *
 * @param selection what is asked for
 * @param rows      BENCH_MAX_ROWS entries
 * @return how many
 */
int32_t bench_list_rows(const struct bench_selection *selection, struct bench_row *rows);

/** What a set is, for a heading. @param set enum bench_set @return e.g. "over the nodes: ..." */
const char *bench_set_title(int32_t set);

#endif
