// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Acceptance (spec/draft_tree.md, "The walk"): which path of a tree the target model confirms.
 * Target ids that are the most probable tokens give greedy decoding; ids that were drawn
 * (ref/sample.h) give sampled decoding.
 */
#ifndef REF_ACCEPT_H
#define REF_ACCEPT_H

#include <stdint.h>

#include "status.h"

/** What was wrong with the links that a walk read; bits of ref_accept_result.status. */
enum ref_accept_status {
    REF_ACCEPT_LINK = 1 /**< A link to no node, or a list of siblings that does not end. */
};

/** One request. Node numbers are local to it. */
struct ref_accept_request {
    const int64_t *tokens;       /**< [num_nodes] drafted tokens; the root's is not read. */
    const int32_t *first_child;  /**< [num_nodes] -1: none. */
    const int32_t *next_sibling; /**< [num_nodes] -1: none. */
    const int64_t *target_ids;   /**< [num_nodes] the target model's token after each node. */
    int64_t vocab_size;          /**< Ids are 0 to this - 1; others match nothing. */
    int32_t num_nodes;           /**< Q_b; 0 is an inactive request. */
    int32_t path_size;           /**< S: most nodes of a path, the root included; at least 1. */
    int32_t first_row;           /**< Added to the numbers in accept_index; 0 keeps them local. */
};

/** What was accepted. The arrays are the caller's; every element is written. */
struct ref_accept_result {
    int32_t *accept_index; /**< [S] the path, root first; then -1. */
    int64_t *emitted;      /**< [S] accepted tokens, then the bonus token; then -1. */
    int64_t bonus;         /**< Target id after the last node of the path, or -1. */
    int32_t accept_num;    /**< Accepted tokens without root and bonus; -1: inactive. */
    int32_t last_node;     /**< Local number of the path's last node, or -1. */
    uint32_t status;       /**< enum ref_accept_status, ORed. */
};

/**
 * Walks from the root along target ids (eq-accept).
 * @param request the request; its arrays may be NULL if it is inactive
 * @param result  output; not written on failure
 * @param error   filled on failure, or NULL
 * @return REF_OK or REF_INVALID_ARGUMENT (a NULL pointer, a negative size, S below 1)
 */
int32_t ref_accept_walk(const struct ref_accept_request *request, struct ref_accept_result *result,
                        struct ref_error *error);

#endif
