// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Trees of the rows that are measured.
 */
#ifndef BENCH_GPU_TREE_H
#define BENCH_GPU_TREE_H

#include "gpu_points.h"

/** Positions of a draft: blocks of 8 with the root. */
#define BENCH_DRAFT_POSITIONS 7
/** Tokens to draw from. */
#define BENCH_DRAFT_VOCABULARY 163840

/**
 * A tree whose nodes have any earlier node as parent.
 *
 * @param seed    stream of numbers
 * @param first   number within the stream of node 0's
 * @param nodes   Q, at least 1
 * @param parents [Q] filled
 * @param mask    [Q, ceil(Q / 32)] words of the packed mask, filled
 */
void bench_random_tree(uint64_t seed, uint64_t first, int32_t nodes, int32_t *parents,
                       uint32_t *mask);

/**
 * The draft tree of seeded marginals, by kdtr_draft_tree_build_host.
 *
 * @param seed    of the marginals
 * @param budget  nodes without the root, at least 1
 * @param parents [budget + 1] filled
 * @param mask    [budget + 1, ceil((budget + 1) / 32)] filled
 * @param error   filled on failure, also where the tree has fewer nodes
 * @return kdtr_status
 */
int32_t bench_draft_tree(uint64_t seed, int32_t budget, int32_t *parents, uint32_t *mask,
                         kdtr_error *error);

/**
 * The tree of a request of a row: a draft tree where the row has a budget, else a random one.
 *
 * @param row     the row
 * @param seed    of two streams, this and the next one but one
 * @param request number of the request
 * @param parents [Q] filled
 * @param mask    [Q, ceil(Q / 32)] filled
 * @param error   filled on failure
 * @return kdtr_status
 */
int32_t bench_make_tree(const struct bench_row *row, uint64_t seed, int64_t request,
                        int32_t *parents, uint32_t *mask, kdtr_error *error);

#endif
