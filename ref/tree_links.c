// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Trees in the encodings of acceptance (spec/draft_tree.md, "Encodings").
 */
#include "tree_links.h"

void ref_tree_links(const int32_t *parents, int32_t num_nodes, int32_t *first_child,
                    int32_t *next_sibling) {
    for (int32_t i = 0; i < num_nodes; i++) {
        first_child[i] = -1;
        next_sibling[i] = -1;
    }
    for (int32_t i = num_nodes - 1; i > 0; i--) { /* the last one linked comes first */
        next_sibling[i] = first_child[parents[i]];
        first_child[parents[i]] = i;
    }
}

void ref_tree_positions(int64_t prefix_len, const int32_t *depth, int32_t num_nodes,
                        int64_t *positions) {
    for (int32_t i = 0; i < num_nodes; i++) {
        positions[i] = prefix_len + depth[i];
    }
}
