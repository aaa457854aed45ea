// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What both builders of draft trees share (spec/draft_tree.md, "Candidates").
 */
#include "draft_rows.h"

#include <string.h>

#include "bf16.h"

/** Bits of +inf. Bits without the sign above this are NaN. */
#define INFINITY_BITS 0x7f800000u

void *draft_take(struct draft_arena *arena, uint64_t count, uint64_t size) {
    void *piece = arena->base == NULL ? NULL : arena->base + arena->used;
    arena->used += (count * size + 7) / 8 * 8;
    return piece;
}

int draft_sizes_fit(int32_t budget, int32_t num_positions, int32_t num_ranks) {
    return budget >= 0 && budget <= REF_DRAFT_MAX_BUDGET && num_positions >= 0 &&
           num_positions <= REF_DRAFT_MAX_POSITIONS && num_ranks >= 0 &&
           num_ranks <= REF_DRAFT_MAX_RANKS;
}

void draft_take_rows(struct draft_arena *arena, int32_t budget, int32_t num_positions,
                     int32_t num_ranks, struct draft_rows *rows) {
    /* A node of depth d has d - 1 ancestors in the budget, one of place r its r siblings. */
    rows->width = num_ranks < budget ? num_ranks : budget;
    rows->depths = num_positions < budget ? num_positions : budget;
    rows->depths = rows->width > 0 ? rows->depths : 0;
    rows->table_size = 2;
    while (rows->table_size < 2 * num_ranks) {
        rows->table_size *= 2;
    }
    uint64_t elements = (uint64_t)rows->depths * (uint64_t)rows->width;
    rows->value = draft_take(arena, elements, sizeof *rows->value);
    rows->rank = draft_take(arena, elements, sizeof *rows->rank);
    rows->count = draft_take(arena, (uint64_t)rows->depths, sizeof *rows->count);
    rows->table = draft_take(arena, (uint64_t)rows->table_size, sizeof *rows->table);
}

int32_t draft_check(const struct ref_draft_marginals *marginals, int32_t budget,
                    int32_t depth_limit, const void *workspace, const struct ref_draft_tree *tree,
                    struct ref_error *error) {
    const char *field = NULL;
    if (marginals == NULL || tree == NULL || workspace == NULL) {
        field = marginals == NULL ? "marginals" : tree == NULL ? "tree" : "workspace";
        return ref_fail(error, REF_INVALID_ARGUMENT, field, "%s is NULL", field);
    }
    const struct ref_draft_marginals *m = marginals;
    if (budget < 0 || depth_limit < 0 || m->num_positions < 0 || m->num_ranks < 0) {
        field = budget < 0             ? "budget"
                : depth_limit < 0      ? "depth_limit"
                : m->num_positions < 0 ? "num_positions"
                                       : "num_ranks";
        return ref_fail(error, REF_INVALID_ARGUMENT, field, "%s is negative", field);
    }
    if (!draft_sizes_fit(budget, m->num_positions, m->num_ranks)) {
        field = budget > REF_DRAFT_MAX_BUDGET                ? "budget"
                : m->num_positions > REF_DRAFT_MAX_POSITIONS ? "num_positions"
                                                             : "num_ranks";
        return ref_fail(error, REF_UNSUPPORTED, field, "%s is above the largest one", field);
    }
    if (m->num_positions > 0 && m->num_ranks > 0 && (m->logp == NULL || m->tokens == NULL)) {
        field = m->logp == NULL ? "logp" : "tokens";
        return ref_fail(error, REF_INVALID_ARGUMENT, field, "%s is NULL", field);
    }
    if (tree->tokens == NULL || tree->parents == NULL || tree->depth == NULL ||
        tree->rank == NULL || tree->score == NULL) {
        return ref_fail(error, REF_INVALID_ARGUMENT, "tree", "an array of the tree is NULL");
    }
    if ((uintptr_t)workspace % 8 != 0) {
        return ref_fail(error, REF_MISALIGNED, "workspace", "the alignment is not 8 bytes");
    }
    return REF_OK;
}

/** Puts a token into the table, which holds ranks + 1. Returns 1 if it was there already. */
static int seen_before(struct draft_rows *rows, const int64_t *tokens, int32_t rank) {
    uint32_t mask = (uint32_t)rows->table_size - 1;
    uint32_t place = (uint32_t)(((uint64_t)tokens[rank] * 0x9e3779b97f4a7c15u) >> 32) & mask;
    while (rows->table[place] != 0) {
        if (tokens[rows->table[place] - 1] == tokens[rank]) {
            return 1;
        }
        place = (place + 1) & mask;
    }
    rows->table[place] = rank + 1;
    return 0;
}

/** Candidates of one row; returns status bits. */
static uint32_t fill_row(const float *logp, const int64_t *tokens, int32_t num_ranks, int32_t depth,
                         struct draft_rows *rows) {
    float *value = rows->value + (int64_t)depth * rows->width;
    int32_t *rank = rows->rank + (int64_t)depth * rows->width;
    int32_t count = 0;
    uint32_t status = 0;
    float least = 0.0f;
    memset(rows->table, 0, (size_t)rows->table_size * sizeof *rows->table);
    for (int32_t r = 0; r < num_ranks && count < rows->width; r++) {
        float v = logp[r];
        uint32_t bits = ref_bits_from_f32(v);
        if ((bits & 0x7fffffffu) >= INFINITY_BITS) {
            status |= bits == (INFINITY_BITS | 0x80000000u) ? 0u : (uint32_t)REF_DRAFT_NOT_FINITE;
            continue;
        }
        if (tokens[r] < 0) {
            status |= REF_DRAFT_TOKEN;
            continue;
        }
        if (v > 0.0f) {
            status |= REF_DRAFT_POSITIVE;
            v = 0.0f;
        }
        int ascends = v > least;
        int twice = seen_before(rows, tokens, r);
        status |= ascends ? (uint32_t)REF_DRAFT_ORDER : 0u;
        status |= twice ? (uint32_t)REF_DRAFT_DUPLICATE : 0u;
        least = ascends ? least : v;
        if (!ascends && !twice) {
            value[count] = v;
            rank[count++] = r;
        }
    }
    rows->count[depth] = count;
    return status;
}

uint32_t draft_fill_rows(const struct ref_draft_marginals *marginals, struct draft_rows *rows) {
    uint32_t status = 0;
    for (int32_t d = 0; d < rows->depths; d++) {
        rows->count[d] = 0;
    }
    for (int32_t d = 0; d < rows->depths && (d == 0 || rows->count[d - 1] > 0); d++) {
        status |=
            fill_row(marginals->logp + d * marginals->stride,
                     marginals->tokens + d * marginals->stride, marginals->num_ranks, d, rows);
    }
    return status;
}

void draft_finish(const struct ref_draft_marginals *marginals, const struct draft_rows *rows,
                  int64_t root_token, struct ref_draft_tree *tree) {
    tree->tokens[0] = root_token;
    for (int32_t i = 1; i < tree->num_nodes; i++) {
        int32_t row = tree->depth[i] - 1;
        tree->rank[i] = rows->rank[(int64_t)row * rows->width + tree->rank[i]];
        tree->tokens[i] = marginals->tokens[row * marginals->stride + tree->rank[i]];
    }
}
