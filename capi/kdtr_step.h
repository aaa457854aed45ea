/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The step around verify attention, on the host and for one request at a time: draft trees and
 * acceptance (spec/draft_tree.md). Same rules as kdtr.h.
 */
#ifndef KDTR_STEP_H
#define KDTR_STEP_H

#include "kdtr.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What was wrong with marginals that were read; bits of kdtr_draft_tree.status. */
typedef enum kdtr_draft_status {
    KDTR_DRAFT_NOT_FINITE = 1, /**< A NaN or +inf; it counts as -inf. */
    KDTR_DRAFT_POSITIVE = 2,   /**< A log-probability above 0; it counts as 0. */
    KDTR_DRAFT_TOKEN = 4,      /**< A negative token; its entry is left out. */
    KDTR_DRAFT_ORDER = 8,      /**< An entry above one of lower rank; it is left out. */
    KDTR_DRAFT_DUPLICATE = 16  /**< A token that a lower rank has too; it is left out. */
} kdtr_draft_status;

/** What was wrong with the links that a walk read; bits of kdtr_accept_result.status. */
typedef enum kdtr_accept_status {
    KDTR_ACCEPT_LINK = 1 /**< A link to no node, or a list of siblings that does not end. */
} kdtr_accept_status;

/** What a draft tree is built from. D is num_positions, K is num_ranks. */
typedef struct kdtr_draft_args {
    uint32_t struct_size;        /**< sizeof(kdtr_draft_args). */
    int32_t num_positions;       /**< D, 0 to 1,024. */
    int32_t num_ranks;           /**< K, 0 to 1,048,576. */
    int32_t budget;              /**< Most nodes without the root, 0 to 65,535. */
    int32_t depth_limit;         /**< Most depth of a node, at least 0; above D it means D. */
    uint32_t reserved0;          /**< 0 */
    const float *logp;           /**< [D,K] log-probabilities; NULL where D or K is 0. */
    const int64_t *draft_tokens; /**< [D,K] their tokens; NULL where D or K is 0. */
    int64_t stride;              /**< Elements from row to row of both, at least K. */
    int64_t root_token;          /**< Last committed token. */
    int64_t prefix_len;          /**< Committed tokens before it; for positions. */
    uint64_t reserved[2];        /**< 0 */
} kdtr_draft_args;

/** A draft tree. The arrays are the caller's, of budget + 1 elements. */
typedef struct kdtr_draft_tree {
    uint32_t struct_size;      /**< sizeof(kdtr_draft_tree), set by the caller. */
    int32_t num_nodes;         /**< Output: nodes, the root included. */
    uint32_t status;           /**< Output: kdtr_draft_status bits. */
    uint32_t reserved0;        /**< 0 */
    int64_t *tokens;           /**< Token of each node. */
    int32_t *parents;          /**< Parent of each node; -1 for the root. */
    int32_t *depth;            /**< Depth of each node; 0 for the root. */
    int32_t *rank;             /**< Rank of each node in its row; -1 for the root. */
    float *score;              /**< Score of each node (eq-draft-score). */
    int32_t *first_child;      /**< First child or -1; or NULL, then next_sibling is NULL too. */
    int32_t *next_sibling;     /**< Next sibling or -1; or NULL. */
    int64_t *positions;        /**< prefix_len + depth; or NULL. */
    uint32_t *mask_words;      /**< [budget + 1,mask_stride_words] packed mask; or NULL. */
    int64_t mask_stride_words; /**< Words a row, at least ceil((budget + 1)/32). */
    uint64_t reserved[2];      /**< 0 */
} kdtr_draft_tree;

/** What acceptance reads. */
typedef struct kdtr_accept_args {
    uint32_t struct_size;        /**< sizeof(kdtr_accept_args). */
    int32_t num_nodes;           /**< Q; 0 is an inactive request, whose arrays may be NULL. */
    int32_t path_size;           /**< S: most nodes of a path, the root included; at least 1. */
    int32_t first_row;           /**< Added to the numbers in accept_index, at least 0. */
    const int64_t *tokens;       /**< [Q] drafted tokens; the root's is not read. */
    const int32_t *first_child;  /**< [Q] -1: none. */
    const int32_t *next_sibling; /**< [Q] -1: none. */
    const int64_t *target_ids;   /**< [Q] the target model's token after each node. */
    int64_t vocab_size;          /**< Ids are 0 to this - 1; others match nothing. */
    uint64_t reserved[2];        /**< 0 */
} kdtr_accept_args;

/** What was accepted. The arrays are the caller's; every element is written. */
typedef struct kdtr_accept_result {
    uint32_t struct_size;  /**< sizeof(kdtr_accept_result), set by the caller. */
    int32_t accept_num;    /**< Output: tokens without root and bonus; -1: inactive. */
    int32_t last_node;     /**< Output: number of the path's last node, or -1. */
    uint32_t status;       /**< Output: kdtr_accept_status bits. */
    int64_t bonus;         /**< Output: target id after the path, or -1. */
    int32_t *accept_index; /**< [S] the path, root first; then -1. */
    int64_t *emitted;      /**< [S] accepted tokens, then the bonus token; then -1. */
    uint64_t reserved[2];  /**< 0 */
} kdtr_accept_result;

/**
 * Workspace of kdtr_draft_tree_build_host. It grows with every argument.
 * @param budget        most nodes without the root
 * @param num_positions D
 * @param num_ranks     K
 * @return bytes; 0 for arguments out of range
 */
KDTR_API size_t kdtr_draft_tree_host_bytes(int32_t budget, int32_t num_positions,
                                           int32_t num_ranks);
/**
 * Builds the draft tree of one request: the best nodes under a budget, best first.
 * @param args            marginals and limits
 * @param workspace       memory of any content, 8-byte aligned
 * @param workspace_bytes at least kdtr_draft_tree_host_bytes
 * @param tree            filled; not written on failure
 * @param error           filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, STRUCT_SIZE, RESERVED_NOT_ZERO, UNSUPPORTED (sizes beyond the
 *         largest), MISALIGNED, WORKSPACE or FP_ENVIRONMENT
 */
KDTR_API int32_t kdtr_draft_tree_build_host(const kdtr_draft_args *args, void *workspace,
                                            size_t workspace_bytes, kdtr_draft_tree *tree,
                                            kdtr_error *error);
/**
 * Walks one request's tree from the root along the target's tokens (eq-accept).
 * @param args   tree and target ids
 * @param result filled; not written on failure
 * @param error  filled on failure, or NULL
 * @return OK, INVALID_ARGUMENT, STRUCT_SIZE or RESERVED_NOT_ZERO
 */
KDTR_API int32_t kdtr_tree_accept_host(const kdtr_accept_args *args, kdtr_accept_result *result,
                                       kdtr_error *error);

#ifdef __cplusplus
}
#endif

#endif
