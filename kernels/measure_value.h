// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The values that benchmarks fill memory with: the same on host and device, so that a check needs
 * no copy of the memory.
 */
#ifndef KERNELS_MEASURE_VALUE_H
#define KERNELS_MEASURE_VALUE_H

#include "random.h"

/**
 * A bfloat16 of about a normal distribution, mean 0 and standard deviation 1.
 *
 * @param seed    stream
 * @param counter number within the stream
 * @return its encoding
 */
REF_INLINE uint16_t measure_value(uint64_t seed, uint64_t counter) {
    return ref_bf16_from_f32(ref_random_normal(seed, counter) * 1.7320508f);
}

#endif
