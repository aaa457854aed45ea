// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Building draft trees for tests.
 */
#include "draft_checks.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** The token of every root of these tests. */
#define ROOT_TOKEN 4711
/** What arrays, guards and workspaces are filled with. */
#define FILL 0xa5
/** Bytes of a guard. */
#define GUARD 64

/** Takes an array of budget + 1 elements and the guard behind it. */
static void *take(struct draft_built *built, size_t *used, size_t size) {
    void *array = (char *)built->memory + *used;
    *used += ((size_t)built->budget + 1) * size / 8 * 8 + 8 + GUARD;
    return array;
}

/* Assertions in loops over every byte or node are written out: each of Check's costs a message to
   the runner. */

/** Fails the test if something behind the elements [0, count) of an array was written. */
static void check_rest(const struct draft_built *built, const void *array, size_t size) {
    const unsigned char *bytes = array;
    size_t end = ((size_t)built->budget + 1) * size / 8 * 8 + 8 + GUARD;
    for (size_t i = (size_t)built->tree.num_nodes * size; i < end; i++) {
        if (bytes[i] != FILL) {
            ck_abort_msg("written behind its end: byte %zu of an array", i);
        }
    }
}

void draft_build(int builder, const struct ref_draft_marginals *m, int32_t budget,
                 int32_t depth_limit, struct draft_built *out) {
    size_t used = 0;
    size_t need = builder == DRAFT_HEAP
                      ? ref_draft_heap_bytes(budget, m->num_positions, m->num_ranks)
                      : ref_draft_levels_bytes(budget, m->num_positions, m->num_ranks);
    void *workspace = malloc(need + GUARD);
    struct ref_draft_tree *tree = &out->tree;
    struct ref_error error = {0};
    out->budget = budget;
    out->bytes = ((size_t)budget + 1) * 24 + 5 * (GUARD + 8);
    out->memory = malloc(out->bytes);
    ck_assert(workspace != NULL && out->memory != NULL);
    memset(workspace, FILL, need + GUARD);
    memset(out->memory, FILL, out->bytes);
    tree->tokens = take(out, &used, sizeof *tree->tokens);
    tree->parents = take(out, &used, sizeof *tree->parents);
    tree->depth = take(out, &used, sizeof *tree->depth);
    tree->rank = take(out, &used, sizeof *tree->rank);
    tree->score = take(out, &used, sizeof *tree->score);
    ck_assert(used <= out->bytes);
    int32_t status =
        builder == DRAFT_HEAP
            ? ref_draft_tree_heap(m, ROOT_TOKEN, budget, depth_limit, workspace, need, tree, &error)
            : ref_draft_tree_levels(m, ROOT_TOKEN, budget, depth_limit, workspace, need, tree,
                                    &error);
    ck_assert_msg(status == REF_OK, "%s: %s", error.field, error.text);
    ck_assert(tree->num_nodes >= 1 && tree->num_nodes <= budget + 1);
    check_rest(out, tree->tokens, sizeof *tree->tokens);
    check_rest(out, tree->parents, sizeof *tree->parents);
    check_rest(out, tree->depth, sizeof *tree->depth);
    check_rest(out, tree->rank, sizeof *tree->rank);
    check_rest(out, tree->score, sizeof *tree->score);
    int guarded = 1;
    for (size_t i = need; i < need + GUARD; i++) {
        guarded &= ((unsigned char *)workspace)[i] == FILL;
    }
    ck_assert_msg(guarded, "workspace: written behind its end");
    free(workspace);
}

void draft_free(struct draft_built *built) {
    free(built->memory);
}

void draft_check_invariants(const struct ref_draft_marginals *m, int32_t budget,
                            int32_t depth_limit, const struct ref_draft_tree *tree) {
    ck_assert(tree->num_nodes >= 1 && tree->num_nodes - 1 <= budget);
    ck_assert_int_eq(tree->tokens[0], ROOT_TOKEN);
    ck_assert(tree->parents[0] == -1 && tree->depth[0] == 0 && tree->rank[0] == -1);
    ck_assert(tree->score[0] == 0.0f && !signbit(tree->score[0]));
    struct oracle_node last = {0};
    for (int32_t i = 1; i < tree->num_nodes; i++) {
        int32_t up = tree->parents[i];
        int32_t row = tree->depth[i] - 1;
        int good = up >= 0 && up < i && row == tree->depth[up] && row < m->num_positions &&
                   row < depth_limit && tree->rank[i] >= 0 && tree->rank[i] < m->num_ranks;
        if (!good) {
            ck_abort_msg("node %d: parent %d, depth %d, rank %d", i, up, row + 1, tree->rank[i]);
        }
        int64_t at = row * m->stride + tree->rank[i];
        float sum = tree->score[up] + fminf(0.0f, m->logp[at]);
        struct oracle_node node;
        oracle_node_of(tree, i, &node);
        good = tree->tokens[i] == m->tokens[at] && tree->score[i] == sum && isfinite(sum);
        good &= i == 1 || last.score > node.score ||
                (last.score == node.score && oracle_compare_ranks(&last, &node) < 0);
        if (!good) {
            ck_abort_msg("node %d: token, score or order", i);
        }
        last = node;
    }
}

void draft_check_equal(const struct ref_draft_tree *a, const struct ref_draft_tree *b,
                       const char *name) {
    size_t n = (size_t)a->num_nodes;
    ck_assert_msg(a->num_nodes == b->num_nodes, "%s: %d nodes against %d", name, a->num_nodes,
                  b->num_nodes);
    ck_assert_msg(a->status == b->status, "%s: status %u against %u", name, a->status, b->status);
    ck_assert_msg(memcmp(a->parents, b->parents, n * sizeof *a->parents) == 0, "%s: parents", name);
    ck_assert_msg(memcmp(a->rank, b->rank, n * sizeof *a->rank) == 0, "%s: ranks", name);
    ck_assert_msg(memcmp(a->depth, b->depth, n * sizeof *a->depth) == 0, "%s: depths", name);
    ck_assert_msg(memcmp(a->tokens, b->tokens, n * sizeof *a->tokens) == 0, "%s: tokens", name);
    ck_assert_msg(memcmp(a->score, b->score, n * sizeof *a->score) == 0, "%s: scores", name);
}
