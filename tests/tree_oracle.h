// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Oracles of draft trees and acceptance (spec/draft_tree.md), as slow and as close to the
 * definitions as possible, and the marginals that their tests use.
 */
#ifndef TESTS_TREE_ORACLE_H
#define TESTS_TREE_ORACLE_H

#include "draft_tree.h"

/** Most depth of a node in these tests. */
#define ORACLE_MAX_DEPTH 15
/** Most nodes that brute force enumerates. */
#define ORACLE_MAX_NODES 20000

/** A node as its rank tuple. */
struct oracle_node {
    double score_f64;                /**< Sum in float64. */
    float score;                     /**< Sum in float32, left to right. */
    int32_t depth;                   /**< Elements of the tuple. */
    int32_t rank[ORACLE_MAX_DEPTH];  /**< Ranks in the rows of the marginals. */
    int32_t place[ORACLE_MAX_DEPTH]; /**< The same among the candidates of each depth. */
};

/** Candidates of one depth, by definition (eq-draft-candidate). */
struct oracle_row {
    int32_t rank[1024]; /**< Ranks. */
    float value[1024];  /**< Log-probabilities. */
    int32_t count;      /**< Candidates. */
    uint32_t status;    /**< Bits of what was read. */
};

/** Marginals that own their arrays. */
struct oracle_marginals {
    struct ref_draft_marginals m; /**< What the builders take. */
    float *logp;                  /**< malloc'ed. */
    int64_t *tokens;              /**< malloc'ed. */
};

/** Kinds of marginals. */
enum oracle_kind {
    ORACLE_REALISTIC, /**< ref_draft_marginals_make. */
    ORACLE_UNIFORM,   /**< Sorted uniform numbers. */
    ORACLE_QUANTISED, /**< Few distinct values: many equal scores. */
    ORACLE_EQUAL,     /**< One value for each position. */
    ORACLE_ABSORBED,  /**< Tiny differences that a later, large value rounds away. */
    ORACLE_OVERFLOW,  /**< Sums that overflow to -inf. */
    ORACLE_HOSTILE,   /**< NaN, infinities, duplicates, positive values, rows out of order. */
    ORACLE_KINDS      /**< Number of kinds. */
};

/**
 * Makes marginals; fails the test if memory is short.
 * @param kind      enum oracle_kind
 * @param seed      any value
 * @param positions L
 * @param ranks     K
 * @param pad       elements between rows, poisoned
 * @param out       output, to be freed
 */
void oracle_marginals_make(int kind, uint64_t seed, int32_t positions, int32_t ranks, int32_t pad,
                           struct oracle_marginals *out);

/** Frees marginals. @param marginals from oracle_marginals_make */
void oracle_marginals_free(struct oracle_marginals *marginals);

/**
 * Candidates of a row, each entry compared with all before it.
 * @param m      marginals
 * @param row    row, below L
 * @param budget nodes without the root: reading ends after as many candidates
 * @param out    output
 */
void oracle_row_read(const struct ref_draft_marginals *m, int32_t row, int32_t budget,
                     struct oracle_row *out);

/**
 * All nodes of at most `depth_limit` ranks, sorted by float32 score and rank tuple, cut at the
 * budget.
 * @param m           marginals with few nodes
 * @param budget      nodes without the root
 * @param depth_limit most depth
 * @param nodes       [ORACLE_MAX_NODES] output
 * @param status      output: enum ref_draft_status
 * @return nodes without the root
 */
int32_t oracle_brute_force(const struct ref_draft_marginals *m, int32_t budget, int32_t depth_limit,
                           struct oracle_node *nodes, uint32_t *status);

/**
 * The same best first in float64, without a heap: the best of all successors is searched.
 * @param m      marginals
 * @param budget nodes without the root
 * @param nodes  [2 * budget + 3] output; the node after the last one is the first left out
 * @param more   output: whether there is a node that was left out
 * @return nodes without the root
 */
int32_t oracle_best_first_f64(const struct ref_draft_marginals *m, int32_t budget,
                              struct oracle_node *nodes, int *more);

/** Lexicographic order; a prefix comes first. @param a node @param b node @return <0, 0, >0 */
int oracle_compare_ranks(const struct oracle_node *a, const struct oracle_node *b);

/**
 * Rank tuple of a node of a tree.
 * @param tree tree
 * @param node number, not 0
 * @param out  output
 */
void oracle_node_of(const struct ref_draft_tree *tree, int32_t node, struct oracle_node *out);

/**
 * Acceptance by parents: the path's next node is the child with the target's token that has the
 * least priority.
 * @param parents    [num_nodes]
 * @param priority   [num_nodes] order of siblings
 * @param tokens     [num_nodes]
 * @param target_ids [num_nodes]
 * @param vocab_size ids from 0 to this - 1 match
 * @param num_nodes  at least 1
 * @param path_size  S
 * @param path       [S] output; then -1
 * @return nodes of the path without the root
 */
int32_t oracle_accept(const int32_t *parents, const int32_t *priority, const int64_t *tokens,
                      const int64_t *target_ids, int64_t vocab_size, int32_t num_nodes,
                      int32_t path_size, int32_t *path);

#endif
