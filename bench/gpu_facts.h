// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Facts about device and build that a result carries.
 */
#ifndef BENCH_GPU_FACTS_H
#define BENCH_GPU_FACTS_H

#include <stdio.h>

#include "gpu_device.h"

/**
 * Prints the facts, one a line, and writes them as members of a JSON object, which stays open.
 *
 * @param device  the device
 * @param kit     lines "name value" about the build, or NULL; they are read to the end
 * @param samples as bench_time's
 * @param json    where the members go
 */
void bench_report_facts(const struct bench_device *device, FILE *kit, int32_t samples, FILE *json);

#endif
