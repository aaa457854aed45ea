// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Tree basics (spec/tree_and_mask.md): checking parents, depth, the packed mask, a seeded tree.
 */
#ifndef REF_TREE_H
#define REF_TREE_H

#include <stdint.h>

#include "status.h"

/**
 * Checks one tree: parents[0] = -1 and 0 <= parents[i] < i for the others.
 * @param parents   [num_nodes]
 * @param num_nodes number of nodes
 * @param error     filled on failure, or NULL
 * @return REF_OK or REF_BAD_TREE
 */
int32_t ref_tree_check(const int32_t *parents, int32_t num_nodes, struct ref_error *error);

/**
 * Depth of every node; the root has 0.
 * @param parents   [num_nodes], checked
 * @param num_nodes number of nodes
 * @param depth     [num_nodes] output
 */
void ref_tree_depth(const int32_t *parents, int32_t num_nodes, int32_t *depth);

/**
 * Packed mask: bit j of row i is set if j is i or an ancestor of i. All words are written.
 * @param parents      [num_nodes], checked
 * @param num_nodes    number of nodes
 * @param stride_words words a row, at least ceil(num_nodes / 32)
 * @param mask_words   [num_nodes, stride_words] output
 */
void ref_tree_packed_mask(const int32_t *parents, int32_t num_nodes, int64_t stride_words,
                          uint32_t *mask_words);

/**
 * A seeded random tree: node i hangs below a node drawn among the `window` nodes before it, so that
 * a small window gives deep trees and a large one bushy ones. Not depth-sorted.
 * @param seed      any value
 * @param num_nodes number of nodes, at least 1
 * @param window    1 gives a chain
 * @param parents   [num_nodes] output
 */
void ref_tree_random(uint64_t seed, int32_t num_nodes, int32_t window, int32_t *parents);

#endif
