// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Building draft trees for tests, with guards around every array, and checking what comes out.
 */
#ifndef TESTS_DRAFT_CHECKS_H
#define TESTS_DRAFT_CHECKS_H

#include "tree_oracle.h"

/** A tree that owns its arrays. */
struct draft_built {
    struct ref_draft_tree tree; /**< The tree. */
    void *memory;               /**< All arrays, guards between them. */
    size_t bytes;               /**< Their size. */
    int32_t budget;             /**< Nodes without the root that there is room for. */
};

/** Which builder. */
enum draft_builder {
    DRAFT_HEAP,  /**< ref_draft_tree_heap. */
    DRAFT_LEVELS /**< ref_draft_tree_levels. */
};

/**
 * Builds a tree in exactly as much memory as is promised to be enough; fails the test if the
 * builder fails or a guard has changed.
 * @param builder     enum draft_builder
 * @param m           marginals
 * @param budget      nodes without the root
 * @param depth_limit most depth
 * @param out         output, to be freed
 */
void draft_build(int builder, const struct ref_draft_marginals *m, int32_t budget,
                 int32_t depth_limit, struct draft_built *out);

/** Frees a tree. @param built from draft_build */
void draft_free(struct draft_built *built);

/**
 * Fails the test unless a tree is one: parents before children, depths, scores, tokens, the order,
 * and no sibling without those of lower rank.
 * @param m           marginals
 * @param budget      nodes without the root
 * @param depth_limit most depth
 * @param tree        tree
 */
void draft_check_invariants(const struct ref_draft_marginals *m, int32_t budget,
                            int32_t depth_limit, const struct ref_draft_tree *tree);

/**
 * Fails the test unless two trees are equal, bit by bit.
 * @param a    tree
 * @param b    tree
 * @param name of the case
 */
void draft_check_equal(const struct ref_draft_tree *a, const struct ref_draft_tree *b,
                       const char *name);

#endif
