// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The step part of a named case (spec/bundle_format.md, "The step problem"): marginals, the draft
 * tree that they give, and target ids. For ref/case_builder.c.
 */
#ifndef REF_CASE_STEP_H
#define REF_CASE_STEP_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

/** Arrays of one request, the caller's. Q is num_nodes, L num_positions, K num_ranks. */
struct case_step {
    int32_t num_nodes;     /**< Nodes that the tree must have, the root included. */
    int32_t num_positions; /**< Positions of the draft. */
    int32_t num_ranks;     /**< Ranks of a position. */
    int64_t vocab_size;    /**< Tokens are 0 to this - 1. */
    float *logp;           /**< [L,K] output. */
    int64_t *draft_tokens; /**< [L,K] output. */
    int64_t *root_token;   /**< Output. */
    int64_t *node_tokens;  /**< [Q] output: tokens of the tree. */
    int32_t *parents;      /**< [Q] output: the tree. */
    int64_t *target_ids;   /**< [Q] output: the target's token after each node. */
};

/**
 * Makes one request: the tree of budget Q - 1.
 * @param seed  seed of the request; streams seed to seed + 2 are used
 * @param step  sizes and arrays
 * @param error filled on failure, or NULL
 * @return REF_OK, REF_INVALID_ARGUMENT (the marginals give fewer nodes, or the sizes are bad),
 *         REF_UNSUPPORTED or REF_OUT_OF_MEMORY
 */
int32_t case_step_make(uint64_t seed, const struct case_step *step, struct ref_error *error);

#endif
