// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What libkdtr_bench exports: `kdtr bench` is this function, which the tool loads when it is asked
 * for. The product libraries hold nothing of it; it measures them through their public ABI.
 */
#ifndef BENCH_KDTR_BENCH_H
#define BENCH_KDTR_BENCH_H

#include "kdtr.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Measures verify attention on the first CUDA device, prints what it finds, and writes a result
 * file (bench/README.md). Nothing is written before the last row is done. An error is one line on
 * standard error.
 *
 * @param argc number of arguments
 * @param argv the arguments after `kdtr bench`
 * @return exit code: 0; 1 if a row failed; 2 for bad usage, or where there is no device, or the
 *         ceilings could not be measured or the file not be written
 */
KDTR_API int kdtr_bench_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
