// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Tree basics (spec/tree_and_mask.md).
 */
#include "tree.h"

#include <string.h>

#include "random.h"

int32_t ref_tree_check(const int32_t *parents, int32_t num_nodes, struct ref_error *error) {
    for (int32_t i = 0; i < num_nodes; i++) {
        if (i == 0 ? parents[0] != -1 : parents[i] < 0 || parents[i] >= i) {
            return ref_fail(error, REF_BAD_TREE, "parents",
                            i == 0 ? "the root must have parent -1, node %d has %d"
                                   : "node %d has parent %d, which is not a node before it",
                            i, parents[i]);
        }
    }
    return REF_OK;
}

void ref_tree_depth(const int32_t *parents, int32_t num_nodes, int32_t *depth) {
    for (int32_t i = 0; i < num_nodes; i++) {
        depth[i] = parents[i] < 0 ? 0 : depth[parents[i]] + 1;
    }
}

void ref_tree_packed_mask(const int32_t *parents, int32_t num_nodes, int64_t stride_words,
                          uint32_t *mask_words) {
    for (int32_t i = 0; i < num_nodes; i++) {
        uint32_t *row = mask_words + i * stride_words;
        /* A parent stands before its child, so its row is finished. */
        if (parents[i] < 0) {
            memset(row, 0, (size_t)stride_words * sizeof *row);
        } else {
            memcpy(row, mask_words + parents[i] * stride_words, (size_t)stride_words * sizeof *row);
        }
        row[i / 32] |= 1u << (i % 32);
    }
}

void ref_tree_random(uint64_t seed, int32_t num_nodes, int32_t window, int32_t *parents) {
    parents[0] = -1;
    for (int32_t i = 1; i < num_nodes; i++) {
        int32_t reach = window < i ? window : i;
        uint64_t draw = ref_random(seed, (uint64_t)i) >> 32;
        parents[i] = i - 1 - (int32_t)((draw * (uint64_t)reach) >> 32);
    }
}
