// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Seeded marginals of a draft (spec/draft_tree.md, "Seeded marginals"), for named cases, benchmarks
 * and tests: they decay as those of real drafts do, and have the same bits on every machine.
 */
#ifndef REF_DRAFT_MARGINALS_H
#define REF_DRAFT_MARGINALS_H

#include <stdint.h>

#include "status.h"

/**
 * Makes the marginals of one request.
 * @param seed          any value
 * @param num_positions L, at least 0
 * @param num_ranks     K, 0 to vocab_size
 * @param vocab_size    tokens are 0 to this - 1; at most 2^31 - 1
 * @param logp          [L, K] output: log-probabilities, at most 0 and not ascending in a row
 * @param tokens        [L, K] output: distinct within a row
 * @param error         filled on failure, or NULL
 * @return REF_OK or REF_INVALID_ARGUMENT
 */
int32_t ref_draft_marginals_make(uint64_t seed, int32_t num_positions, int32_t num_ranks,
                                 int64_t vocab_size, float *logp, int64_t *tokens,
                                 struct ref_error *error);

#endif
