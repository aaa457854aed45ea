// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the fuzzer, its mutator and the replay of the corpus share.
 */
#ifndef TESTS_FUZZ_BUNDLE_H
#define TESTS_FUZZ_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "bundle.h"

/** Largest input that is looked at. */
#define FUZZ_MAX_BYTES 16384

/** How far the inputs of a process came. */
struct fuzz_reach {
    unsigned long long inputs; /**< All. */
    unsigned long long parsed; /**< Well-formed bundles. */
    unsigned long long bound;  /**< Bundles with a good problem. */
    unsigned long long run;    /**< Problems small enough to be run. */
    unsigned long long steps;  /**< Drafts that were built and walked. */
};

/** Counts since the start. @return the counts */
const struct fuzz_reach *fuzz_reached(void);

/**
 * Reads one input; a property that does not hold is a trap.
 * @param data input
 * @param size its bytes
 * @return 0
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/**
 * Builds and walks the draft trees of a step problem; a property that does not hold is a trap.
 * @param bundle a well-formed bundle
 * @return 1 if it has a draft small enough
 */
int fuzz_step(const struct ref_bundle *bundle);

/**
 * Makes the checksum fit.
 * @param file  bytes of a file, or of anything
 * @param bytes how many; below 32 nothing is done
 */
void fuzz_seal(uint8_t *file, size_t bytes);

#endif
