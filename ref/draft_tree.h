// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Draft trees (spec/draft_tree.md): the best nodes under a budget from the marginals of one
 * request, by a heap and level by level. Both builders give the same nodes in the same order.
 */
#ifndef REF_DRAFT_TREE_H
#define REF_DRAFT_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

/** Largest budget: nodes of a tree without the root. */
#define REF_DRAFT_MAX_BUDGET 65535
/** Largest number of positions of a draft. */
#define REF_DRAFT_MAX_POSITIONS 1024
/** Largest number of ranks of a position. */
#define REF_DRAFT_MAX_RANKS 1048576

/** What was wrong with the marginals that were read; bits of ref_draft_tree.status. */
enum ref_draft_status {
    REF_DRAFT_NOT_FINITE = 1, /**< A NaN or +inf; it counts as -inf. */
    REF_DRAFT_POSITIVE = 2,   /**< A log-probability above 0; it counts as 0. */
    REF_DRAFT_TOKEN = 4,      /**< A negative token; its entry is left out. */
    REF_DRAFT_ORDER = 8,      /**< An entry above one of lower rank; it is left out. */
    REF_DRAFT_DUPLICATE = 16  /**< A token that a lower rank has too; it is left out. */
};

/** What a draft model says about the next tokens of one request. Positions count from 0. */
struct ref_draft_marginals {
    const float *logp;     /**< [L, K] log-probabilities over the whole vocabulary, descending. */
    const int64_t *tokens; /**< [L, K] their tokens, distinct within a row. */
    int64_t stride;        /**< Elements from one row to the next, of both. */
    int32_t num_positions; /**< L. */
    int32_t num_ranks;     /**< K. */
};

/** A tree. The arrays are the caller's, budget + 1 elements each; [0, num_nodes) are written. */
struct ref_draft_tree {
    int64_t *tokens;   /**< Token of each node; the root's is the argument root_token. */
    int32_t *parents;  /**< Parent of each node; -1 for the root. */
    int32_t *depth;    /**< Depth of each node; 0 for the root. */
    int32_t *rank;     /**< Rank of each node in its row of marginals; -1 for the root. */
    float *score;      /**< Score of each node (eq-draft-score); 0 for the root. */
    int32_t num_nodes; /**< Nodes, the root included. */
    uint32_t status;   /**< enum ref_draft_status, ORed. */
};

/**
 * Workspace of ref_draft_tree_heap. It grows with every argument.
 * @param budget        largest budget, 0 to REF_DRAFT_MAX_BUDGET
 * @param num_positions largest L, 0 to REF_DRAFT_MAX_POSITIONS
 * @param num_ranks     largest K, 0 to REF_DRAFT_MAX_RANKS
 * @return bytes, or SIZE_MAX for arguments out of range
 */
size_t ref_draft_heap_bytes(int32_t budget, int32_t num_positions, int32_t num_ranks);

/**
 * Workspace of ref_draft_tree_levels. It grows with every argument.
 * @param budget        largest budget, 0 to REF_DRAFT_MAX_BUDGET
 * @param num_positions largest L, 0 to REF_DRAFT_MAX_POSITIONS
 * @param num_ranks     largest K, 0 to REF_DRAFT_MAX_RANKS
 * @return bytes, or SIZE_MAX for arguments out of range
 */
size_t ref_draft_levels_bytes(int32_t budget, int32_t num_positions, int32_t num_ranks);

/**
 * Builds the tree by a heap: one node after the other, in order.
 * @param marginals       of one request; the arrays may be NULL if L or K is 0
 * @param root_token      token of the root, any value
 * @param budget          most nodes without the root
 * @param depth_limit     most depth of a node, at least 0; above L it means L
 * @param workspace       memory of any content, aligned to 8 bytes
 * @param workspace_bytes its size, at least ref_draft_heap_bytes of these arguments
 * @param tree            output; not written on failure
 * @param error           filled on failure, or NULL
 * @return REF_OK, REF_INVALID_ARGUMENT, REF_UNSUPPORTED (above the largest sizes),
 *         REF_MISALIGNED or REF_WORKSPACE
 */
int32_t ref_draft_tree_heap(const struct ref_draft_marginals *marginals, int64_t root_token,
                            int32_t budget, int32_t depth_limit, void *workspace,
                            size_t workspace_bytes, struct ref_draft_tree *tree,
                            struct ref_error *error);

/**
 * Builds the same tree level by level (eq-draft-level): no step depends on the one before it but
 * the levels, as a device wants it.
 * @param marginals       of one request; the arrays may be NULL if L or K is 0
 * @param root_token      token of the root, any value
 * @param budget          most nodes without the root
 * @param depth_limit     most depth of a node, at least 0; above L it means L
 * @param workspace       memory of any content, aligned to 8 bytes
 * @param workspace_bytes its size, at least ref_draft_levels_bytes of these arguments
 * @param tree            output; not written on failure
 * @param error           filled on failure, or NULL
 * @return REF_OK, REF_INVALID_ARGUMENT, REF_UNSUPPORTED (above the largest sizes),
 *         REF_MISALIGNED or REF_WORKSPACE
 */
int32_t ref_draft_tree_levels(const struct ref_draft_marginals *marginals, int64_t root_token,
                              int32_t budget, int32_t depth_limit, void *workspace,
                              size_t workspace_bytes, struct ref_draft_tree *tree,
                              struct ref_error *error);

#endif
