// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Trees in the encodings of acceptance (spec/draft_tree.md, "Encodings"): first child and next
 * sibling, and positions. Depth and packed mask are in ref/tree.h.
 */
#ifndef REF_TREE_LINKS_H
#define REF_TREE_LINKS_H

#include <stdint.h>

/**
 * Links of every node; siblings are linked in ascending order of their numbers.
 * @param parents      [num_nodes], checked (ref_tree_check)
 * @param num_nodes    number of nodes
 * @param first_child  [num_nodes] output; -1 where there is none
 * @param next_sibling [num_nodes] output; -1 where there is none
 */
void ref_tree_links(const int32_t *parents, int32_t num_nodes, int32_t *first_child,
                    int32_t *next_sibling);

/**
 * Position of every node (eq-position).
 * @param prefix_len committed tokens of the request
 * @param depth      [num_nodes] from ref_tree_depth
 * @param num_nodes  number of nodes
 * @param positions  [num_nodes] output
 */
void ref_tree_positions(int64_t prefix_len, const int32_t *depth, int32_t num_nodes,
                        int64_t *positions);

#endif
