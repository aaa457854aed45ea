// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What both builders of draft trees share: checking the arguments, the candidates of each depth,
 * and carving a workspace. Not for other callers.
 */
#ifndef REF_DRAFT_ROWS_H
#define REF_DRAFT_ROWS_H

#include "draft_tree.h"

/** Candidates of every depth (eq-draft-candidate), in rank order. Row d belongs to depth d + 1. */
struct draft_rows {
    float *value;       /**< [depths, width] log-probabilities: finite, at most 0, not ascending. */
    int32_t *rank;      /**< [depths, width] rank of each in its row of the marginals. */
    int32_t *count;     /**< [depths] candidates of each depth. */
    int32_t depths;     /**< Rows: depths that a node can have. */
    int32_t width;      /**< Elements of a row: most candidates that can be of use. */
    int32_t *table;     /**< [table_size] hash table of tokens, for one row. */
    int32_t table_size; /**< A power of two, more than K. */
};

/** A workspace that is handed out piece by piece; with a base of NULL it only counts. */
struct draft_arena {
    char *base;    /**< Start, or NULL. */
    uint64_t used; /**< Bytes handed out, a multiple of 8. */
};

/**
 * Takes the next piece.
 * @param arena where from
 * @param count elements
 * @param size  bytes of an element
 * @return its address, aligned to 8 bytes, or NULL if the arena only counts
 */
void *draft_take(struct draft_arena *arena, uint64_t count, uint64_t size);

/**
 * Takes what the rows need.
 * @param arena         where from
 * @param budget        nodes without the root
 * @param num_positions L, or less by the depth limit
 * @param num_ranks     K
 * @param rows          output: sizes and addresses
 */
void draft_take_rows(struct draft_arena *arena, int32_t budget, int32_t num_positions,
                     int32_t num_ranks, struct draft_rows *rows);

/**
 * Whether sizes are within what a builder takes.
 * @param budget        nodes without the root
 * @param num_positions L
 * @param num_ranks     K
 * @return 1 if they are
 */
int draft_sizes_fit(int32_t budget, int32_t num_positions, int32_t num_ranks);

/**
 * Checks what a builder is called with, but the size of its workspace.
 * @param marginals   marginals
 * @param budget      nodes without the root
 * @param depth_limit most depth
 * @param workspace   workspace
 * @param tree        output
 * @param error       filled on failure, or NULL
 * @return a status code
 */
int32_t draft_check(const struct ref_draft_marginals *marginals, int32_t budget,
                    int32_t depth_limit, const void *workspace, const struct ref_draft_tree *tree,
                    struct ref_error *error);

/**
 * Finds the candidates of every depth.
 * @param marginals marginals
 * @param rows      addresses and sizes; filled
 * @return enum ref_draft_status, ORed
 */
uint32_t draft_fill_rows(const struct ref_draft_marginals *marginals, struct draft_rows *rows);

/**
 * Writes the root and, for nodes whose parent, depth and candidate are known, token and rank.
 * @param marginals  marginals
 * @param rows       candidates
 * @param root_token token of the root
 * @param tree       tree whose ranks are places in a row of candidates; they become ranks of the
 *                   marginals
 */
void draft_finish(const struct ref_draft_marginals *marginals, const struct draft_rows *rows,
                  int64_t root_token, struct ref_draft_tree *tree);

#endif
