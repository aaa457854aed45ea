// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Oracles of draft trees and acceptance.
 */
#include "tree_oracle.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draft_marginals.h"
#include "random.h"

static int descending(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x < y) - (x > y);
}

/** A number below n. */
static int32_t below(uint64_t seed, uint64_t counter, int32_t n) {
    return (int32_t)((ref_random(seed, counter) >> 33) % (uint64_t)n);
}

/** One row of a kind other than the realistic one. */
static void make_row(int kind, uint64_t seed, int32_t row, int32_t ranks, float *logp) {
    uint64_t stream = ref_random(seed, 1000 + (uint64_t)row);
    for (int32_t k = 0; k < ranks; k++) {
        float u = (float)(ref_random(stream, (uint64_t)k) >> 40) * 0x1p-24f;
        logp[k] = kind == ORACLE_UNIFORM     ? -12.0f * u
                  : kind == ORACLE_QUANTISED ? -0.25f * floorf(8.0f * u)
                  : kind == ORACLE_EQUAL     ? -0.5f * (float)(row % 3)
                  : kind == ORACLE_OVERFLOW  ? -0x1p127f * (0.6f + 1.2f * u)
                  : row % 2 == 0             ? -0x1p-26f * u
                                             : -16.0f * ceilf(2.0f * u);
    }
    qsort(logp, (size_t)ranks, sizeof *logp, descending);
}

/** Spoils a row in every way that the contract names. */
static void spoil_row(uint64_t seed, int32_t row, int32_t ranks, float *logp, int64_t *tokens) {
    uint64_t stream = ref_random(seed, 2000 + (uint64_t)row);
    static const float values[] = {NAN, INFINITY, -INFINITY, 0.75f, -0.0f, -3.5f};
    for (int32_t n = 0; n < 1 + ranks / 4; n++) {
        int32_t at = below(stream, (uint64_t)n, ranks);
        switch (below(stream, 100 + (uint64_t)n, 4)) {
        case 0:
            tokens[at] = tokens[below(stream, 200 + (uint64_t)n, ranks)];
            break;
        case 1:
            tokens[at] = -1 - below(stream, 300 + (uint64_t)n, 5);
            break;
        default:
            logp[at] = values[below(stream, 400 + (uint64_t)n, 6)];
        }
    }
}

void oracle_marginals_make(int kind, uint64_t seed, int32_t positions, int32_t ranks, int32_t pad,
                           struct oracle_marginals *out) {
    size_t count = (size_t)positions * (size_t)ranks;
    size_t stride = (size_t)(ranks + pad);
    float *logp = malloc((count + 1) * sizeof *logp);
    int64_t *tokens = malloc((count + 1) * sizeof *tokens);
    out->logp = malloc(((size_t)positions * stride + 1) * sizeof *out->logp);
    out->tokens = malloc(((size_t)positions * stride + 1) * sizeof *out->tokens);
    ck_assert(logp != NULL && tokens != NULL && out->logp != NULL && out->tokens != NULL);
    ck_assert_int_eq(
        ref_draft_marginals_make(seed, positions, ranks, ranks + 900, logp, tokens, NULL), REF_OK);
    for (size_t i = 0; i < (size_t)positions * stride; i++) {
        out->logp[i] = 1.0f; /* would be reported as positive, and as out of order */
        out->tokens[i] = 0;
    }
    for (int32_t d = 0; d < positions && ranks > 0; d++) {
        float *row = logp + (int64_t)d * ranks;
        if (kind != ORACLE_REALISTIC && kind != ORACLE_HOSTILE) {
            make_row(kind, seed, d, ranks, row);
        }
        if (kind == ORACLE_HOSTILE) {
            spoil_row(seed, d, ranks, row, tokens + (int64_t)d * ranks);
        }
        memcpy(out->logp + (size_t)d * stride, row, (size_t)ranks * sizeof *row);
        memcpy(out->tokens + (size_t)d * stride, tokens + (int64_t)d * ranks,
               (size_t)ranks * sizeof *tokens);
    }
    free(logp);
    free(tokens);
    out->m = (struct ref_draft_marginals){.logp = out->logp,
                                          .tokens = out->tokens,
                                          .stride = (int64_t)stride,
                                          .num_positions = positions,
                                          .num_ranks = ranks};
}

void oracle_marginals_free(struct oracle_marginals *marginals) {
    free(marginals->logp);
    free(marginals->tokens);
}

/** Whether an entry counts at all. */
static int is_valid(const struct ref_draft_marginals *m, int32_t row, int32_t rank) {
    return isfinite(m->logp[row * m->stride + rank]) && m->tokens[row * m->stride + rank] >= 0;
}

void oracle_row_read(const struct ref_draft_marginals *m, int32_t row, int32_t budget,
                     struct oracle_row *out) {
    const float *logp = m->logp + row * m->stride;
    const int64_t *tokens = m->tokens + row * m->stride;
    out->count = 0;
    out->status = 0;
    for (int32_t r = 0; r < m->num_ranks && out->count < budget; r++) {
        if (!is_valid(m, row, r)) {
            if (isfinite(logp[r])) {
                out->status |= REF_DRAFT_TOKEN;
            } else if (isnan(logp[r]) || logp[r] > 0.0f) {
                out->status |= REF_DRAFT_NOT_FINITE;
            }
            continue;
        }
        int good = 1;
        for (int32_t k = 0; k < r; k++) {
            if (is_valid(m, row, k) && tokens[k] == tokens[r]) {
                out->status |= REF_DRAFT_DUPLICATE;
                good = 0;
            }
            if (is_valid(m, row, k) && fminf(logp[k], 0.0f) < fminf(logp[r], 0.0f)) {
                out->status |= REF_DRAFT_ORDER;
                good = 0;
            }
        }
        out->status |= logp[r] > 0.0f ? (uint32_t)REF_DRAFT_POSITIVE : 0u;
        if (good) {
            out->rank[out->count] = r;
            out->value[out->count++] = fminf(logp[r], 0.0f);
        }
    }
}

int oracle_compare_ranks(const struct oracle_node *a, const struct oracle_node *b) {
    for (int32_t d = 0; d < a->depth && d < b->depth; d++) {
        if (a->rank[d] != b->rank[d]) {
            return a->rank[d] < b->rank[d] ? -1 : 1;
        }
    }
    return a->depth - b->depth;
}

static int by_score(const void *a, const void *b) {
    const struct oracle_node *x = a;
    const struct oracle_node *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1) : oracle_compare_ranks(x, y);
}

/** Reads the rows that nodes can come from; behind one without candidates there are none. */
static int32_t read_rows(const struct ref_draft_marginals *m, int32_t budget, int32_t depth_limit,
                         struct oracle_row *rows, uint32_t *status) {
    int32_t depths = 0;
    *status = 0;
    while (depths < m->num_positions && depths < depth_limit && depths < budget) {
        oracle_row_read(m, depths, budget, &rows[depths]);
        *status |= rows[depths].status;
        if (rows[depths++].count == 0) {
            break;
        }
    }
    return depths;
}

/** The child of a node from a place among the candidates of its depth. */
static struct oracle_node child_of(const struct oracle_node *node, const struct oracle_row *row,
                                   int32_t place) {
    struct oracle_node child = *node;
    child.rank[child.depth] = row->rank[place];
    child.place[child.depth++] = place;
    child.score += row->value[place];
    child.score_f64 += (double)row->value[place];
    return child;
}

int32_t oracle_brute_force(const struct ref_draft_marginals *m, int32_t budget, int32_t depth_limit,
                           struct oracle_node *nodes, uint32_t *status) {
    struct oracle_row *rows = malloc(ORACLE_MAX_DEPTH * sizeof *rows);
    ck_assert(rows != NULL);
    int32_t depths = read_rows(m, budget, depth_limit, rows, status);
    int32_t count = 1;
    nodes[0] = (struct oracle_node){0};
    for (int32_t i = 0; i < count; i++) { /* breadth first: the children of each node in turn */
        int32_t d = nodes[i].depth;
        for (int32_t j = 0; d < depths && j < rows[d].count; j++) {
            struct oracle_node child = child_of(&nodes[i], &rows[d], j);
            if (isfinite(child.score)) {
                if (count == ORACLE_MAX_NODES) {
                    ck_abort_msg("more nodes than there is room for");
                }
                nodes[count++] = child;
            }
        }
    }
    free(rows);
    memmove(nodes, nodes + 1, (size_t)(count - 1) * sizeof *nodes);
    qsort(nodes, (size_t)(count - 1), sizeof *nodes, by_score);
    return count - 1 < budget ? count - 1 : budget;
}

int32_t oracle_best_first_f64(const struct ref_draft_marginals *m, int32_t budget,
                              struct oracle_node *nodes, int *more) {
    struct oracle_row *rows = malloc(ORACLE_MAX_DEPTH * sizeof *rows);
    uint32_t status;
    ck_assert(rows != NULL);
    int32_t depths = read_rows(m, budget, ORACLE_MAX_DEPTH, rows, &status);
    int32_t emitted = 0;
    int32_t count = 0;
    const struct oracle_node root = {0};
    if (depths > 0 && rows[0].count > 0) {
        nodes[count++] = child_of(&root, &rows[0], 0);
    }
    for (; emitted < count; emitted++) { /* [emitted, count) are the successors so far */
        int32_t best = emitted;
        for (int32_t i = emitted + 1; i < count; i++) {
            if (nodes[i].score_f64 > nodes[best].score_f64 ||
                (nodes[i].score_f64 == nodes[best].score_f64 &&
                 oracle_compare_ranks(&nodes[i], &nodes[best]) < 0)) {
                best = i;
            }
        }
        struct oracle_node node = nodes[best];
        nodes[best] = nodes[emitted];
        nodes[emitted] = node;
        if (emitted == budget) {
            break;
        }
        int32_t last = node.depth - 1;
        struct oracle_node parent = root;
        for (int32_t d = 0; d < last; d++) {
            parent = child_of(&parent, &rows[d], node.place[d]);
        }
        if (node.place[last] + 1 < rows[last].count) {
            nodes[count++] = child_of(&parent, &rows[last], node.place[last] + 1);
        }
        if (node.depth < depths && rows[node.depth].count > 0) {
            nodes[count++] = child_of(&node, &rows[node.depth], 0);
        }
    }
    *more = emitted < count;
    free(rows);
    return emitted;
}

void oracle_node_of(const struct ref_draft_tree *tree, int32_t node, struct oracle_node *out) {
    *out = (struct oracle_node){.depth = tree->depth[node], .score = tree->score[node]};
    if (out->depth <= 0 || out->depth > ORACLE_MAX_DEPTH) {
        ck_abort_msg("node %d has depth %d", node, out->depth);
    }
    for (int32_t d = out->depth; d > 0; d--) {
        out->rank[d - 1] = tree->rank[node];
        node = tree->parents[node];
    }
    if (node != 0) {
        ck_abort_msg("a path does not end at the root");
    }
}

int32_t oracle_accept(const int32_t *parents, const int32_t *priority, const int64_t *tokens,
                      const int64_t *target_ids, int64_t vocab_size, int32_t num_nodes,
                      int32_t path_size, int32_t *path) {
    int32_t node = 0;
    int32_t length = 0;
    for (int32_t i = 0; i < path_size; i++) {
        path[i] = -1;
    }
    path[0] = 0;
    while (length + 1 < path_size) {
        int32_t next = -1;
        int64_t target = target_ids[node];
        for (int32_t i = 1; i < num_nodes; i++) {
            if (parents[i] == node && tokens[i] == target && target >= 0 && target < vocab_size &&
                (next < 0 || priority[i] < priority[next])) {
                next = i;
            }
        }
        if (next < 0) {
            break;
        }
        node = next;
        path[++length] = node;
    }
    return length;
}
