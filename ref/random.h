// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Counter-based random numbers of the named cases, specified to the bit (spec/bundle_format.md,
 * "Random numbers"): no state, no libm.
 */
#ifndef REF_RANDOM_H
#define REF_RANDOM_H

#include "bf16.h"

/**
 * 64 random bits: the finaliser of SplitMix64 over seed and counter.
 *
 * @param seed    stream
 * @param counter number within the stream
 * @return 64 bits
 */
REF_INLINE uint64_t ref_random(uint64_t seed, uint64_t counter) {
    uint64_t z = seed * 0xd1342543de82ef95u + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/**
 * A bell-shaped value: the sum of four 16-bit uniforms, centred; mean 0, standard deviation about
 * 0.577, a multiple of 2^-16 within (-2, 2). Exact in float32.
 *
 * @param seed    stream
 * @param counter number within the stream
 * @return the value
 */
REF_INLINE float ref_random_normal(uint64_t seed, uint64_t counter) {
    uint64_t z = ref_random(seed, counter);
    int32_t sum = (int32_t)(z & 0xffff) + (int32_t)((z >> 16) & 0xffff) +
                  (int32_t)((z >> 32) & 0xffff) + (int32_t)(z >> 48);
    return (float)(sum - 131070) * 0x1p-16f;
}

#endif
