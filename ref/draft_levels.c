// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The draft tree level by level (spec/draft_tree.md, "Level by level"). Every level is kept in
 * lexicographic order of its rank tuples, so that a stable sort by score gives the order of the
 * tree. Scores are at most 0: the bits of a score without the sign, its key, ascend as it falls.
 */
#include "bf16.h"
#include "draft_rows.h"
#include "draft_tree.h"

#include <string.h>

/** The key of the least finite score; that of -inf is one more. */
#define LAST_KEY 0x7f7fffffu

/** What the builder keeps. Node 0 is the root; level d + 1 follows level d. */
struct levels {
    struct draft_rows rows;
    float *score;     /* [nodes] */
    uint32_t *key;    /* [nodes] */
    int32_t *parent;  /* [nodes] */
    int32_t *place;   /* [nodes] in the row of candidates */
    int32_t *before;  /* [nodes] preorder number */
    int32_t *cursor;  /* [nodes] size of the subtree, then the next child's preorder number */
    int32_t *sorted;  /* [nodes] nodes in order */
    int32_t *scratch; /* [nodes] of the sort; new numbers */
    uint32_t *scores; /* [budget (1 + log2 budget)] keys of the candidate pairs of a level */
    int32_t budget;
};

/** Sorts nodes by key, stably: four passes of 8 bits. */
static void sort_by_key(const uint32_t *key, int32_t *nodes, int32_t *scratch, int32_t count) {
    for (int shift = 0; shift < 32; shift += 8) {
        int32_t start[257] = {0};
        for (int32_t i = 0; i < count; i++) {
            start[((key[nodes[i]] >> shift) & 255u) + 1]++;
        }
        for (int bin = 0; bin < 256; bin++) {
            start[bin + 1] += start[bin];
        }
        for (int32_t i = 0; i < count; i++) {
            scratch[start[(key[nodes[i]] >> shift) & 255u]++] = nodes[i];
        }
        memcpy(nodes, scratch, (size_t)count * sizeof *nodes);
    }
}

/** The key with exactly `before` keys, in ascending order, ahead of it: a radix selection. */
static uint32_t select_key(const uint32_t *keys, int32_t count, int32_t before) {
    uint32_t found = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int32_t bins[256] = {0};
        for (int32_t i = 0; i < count; i++) {
            if ((uint64_t)keys[i] >> (shift + 8) == (uint64_t)found >> (shift + 8)) {
                bins[(keys[i] >> shift) & 255u]++;
            }
        }
        uint32_t bin = 0;
        while (before >= bins[bin]) {
            before -= bins[bin++];
        }
        found |= bin << shift;
    }
    return found;
}

/** Key of a child; that of -inf if the sum overflows. */
static uint32_t child_key(const struct levels *levels, int32_t parent, float value) {
    return ref_bits_from_f32(levels->score[parent] + value) & 0x7fffffffu;
}

/**
 * The key of the last pair of a level that can be in the tree, and how many pairs with just that
 * key can (eq-draft-pairs, eq-draft-threshold).
 */
static uint32_t threshold(struct levels *levels, const float *value, int32_t width, int32_t first,
                          int32_t end, int32_t *ties) {
    int32_t count = 0;
    for (int32_t i = 0; i < end - first; i++) {
        levels->sorted[i] = first + i;
    }
    sort_by_key(levels->key, levels->sorted, levels->scratch, end - first);
    for (int32_t i = 0; i < end - first; i++) {
        int32_t most = levels->budget / (i + 1);
        for (int32_t j = 0; j < width && j < most; j++) {
            levels->scores[count++] = child_key(levels, levels->sorted[i], value[j]);
        }
    }
    uint32_t last = LAST_KEY;
    if (count > levels->budget) {
        last = select_key(levels->scores, count, levels->budget - 1);
        last = last < LAST_KEY ? last : LAST_KEY;
    }
    *ties = levels->budget;
    for (int32_t i = 0; i < count; i++) {
        *ties -= levels->scores[i] < last;
    }
    return last;
}

/** Appends the level below [first, end), in lexicographic order. Returns its end. */
static int32_t next_level(struct levels *levels, int32_t row, int32_t first, int32_t end) {
    const float *value = levels->rows.value + (int64_t)row * levels->rows.width;
    int32_t width = levels->rows.count[row];
    int32_t ties = 0;
    int32_t node = end;
    uint32_t last = threshold(levels, value, width, first, end, &ties);
    for (int32_t parent = first; parent < end; parent++) {
        for (int32_t j = 0; j < width; j++) {
            uint32_t key = child_key(levels, parent, value[j]);
            if (key > last || (key == last && ties == 0)) {
                break;
            }
            ties -= key == last;
            levels->score[node] = levels->score[parent] + value[j];
            levels->key[node] = key;
            levels->parent[node] = parent;
            levels->place[node] = j;
            node++;
        }
    }
    return node;
}

/** Puts all nodes but the root into the order of the tree (eq-draft-order). */
static void order_nodes(struct levels *levels, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        levels->cursor[i] = 1;
    }
    for (int32_t i = count - 1; i > 0; i--) {
        levels->cursor[levels->parent[i]] += levels->cursor[i];
    }
    levels->before[0] = 0;
    levels->cursor[0] = 1;
    for (int32_t i = 1; i < count; i++) { /* siblings stand in rank order */
        int32_t size = levels->cursor[i];
        levels->before[i] = levels->cursor[levels->parent[i]];
        levels->cursor[levels->parent[i]] += size;
        levels->cursor[i] = levels->before[i] + 1;
        levels->sorted[levels->before[i] - 1] = i;
    }
    sort_by_key(levels->key, levels->sorted, levels->scratch, count - 1);
}

/** Takes the pieces of the workspace. */
static void take_levels(struct draft_arena *arena, int32_t budget, int32_t num_positions,
                        int32_t num_ranks, struct levels *levels) {
    uint64_t log = 1;
    draft_take_rows(arena, budget, num_positions, num_ranks, &levels->rows);
    uint64_t nodes = (uint64_t)levels->rows.depths * (uint64_t)budget + 1;
    while (budget >> log != 0) {
        log++;
    }
    levels->budget = budget;
    levels->score = draft_take(arena, nodes, sizeof *levels->score);
    levels->key = draft_take(arena, nodes, sizeof *levels->key);
    levels->parent = draft_take(arena, nodes, sizeof *levels->parent);
    levels->place = draft_take(arena, nodes, sizeof *levels->place);
    levels->before = draft_take(arena, nodes, sizeof *levels->before);
    levels->cursor = draft_take(arena, nodes, sizeof *levels->cursor);
    levels->sorted = draft_take(arena, nodes, sizeof *levels->sorted);
    levels->scratch = draft_take(arena, nodes, sizeof *levels->scratch);
    levels->scores = draft_take(arena, (uint64_t)budget * (1 + log), sizeof *levels->scores);
}

size_t ref_draft_levels_bytes(int32_t budget, int32_t num_positions, int32_t num_ranks) {
    struct draft_arena arena = {0};
    struct levels levels;
    if (!draft_sizes_fit(budget, num_positions, num_ranks)) {
        return SIZE_MAX;
    }
    take_levels(&arena, budget, num_positions, num_ranks, &levels);
    return arena.used < SIZE_MAX ? (size_t)arena.used : SIZE_MAX;
}

/** Writes the first nodes in order, and the root before them. */
static void emit(const struct levels *levels, int32_t count, struct ref_draft_tree *tree) {
    tree->num_nodes = 1 + (count - 1 < levels->budget ? count - 1 : levels->budget);
    levels->scratch[0] = 0;
    tree->parents[0] = -1;
    tree->depth[0] = 0;
    tree->rank[0] = -1;
    tree->score[0] = 0.0f;
    for (int32_t i = 1; i < tree->num_nodes; i++) { /* a parent stands before its children */
        int32_t node = levels->sorted[i - 1];
        levels->scratch[node] = i;
        tree->parents[i] = levels->scratch[levels->parent[node]];
        tree->depth[i] = tree->depth[tree->parents[i]] + 1;
        tree->rank[i] = levels->place[node];
        tree->score[i] = levels->score[node];
    }
}

int32_t ref_draft_tree_levels(const struct ref_draft_marginals *marginals, int64_t root_token,
                              int32_t budget, int32_t depth_limit, void *workspace,
                              size_t workspace_bytes, struct ref_draft_tree *tree,
                              struct ref_error *error) {
    int32_t status = draft_check(marginals, budget, depth_limit, workspace, tree, error);
    if (status != REF_OK) {
        return status;
    }
    int32_t positions = marginals->num_positions;
    if (workspace_bytes < ref_draft_levels_bytes(budget, positions, marginals->num_ranks)) {
        return ref_fail(error, REF_WORKSPACE, "workspace_bytes", "the workspace is too small");
    }
    struct draft_arena arena = {.base = workspace};
    struct levels levels;
    positions = positions < depth_limit ? positions : depth_limit;
    take_levels(&arena, budget, positions, marginals->num_ranks, &levels);
    tree->status = draft_fill_rows(marginals, &levels.rows);
    levels.score[0] = 0.0f;
    levels.key[0] = 0;
    levels.parent[0] = -1;
    int32_t first = 0;
    int32_t end = 1;
    for (int32_t row = 0; row < levels.rows.depths && first < end; row++) {
        int32_t next = next_level(&levels, row, first, end);
        first = end;
        end = next;
    }
    order_nodes(&levels, end);
    emit(&levels, end, tree);
    draft_finish(marginals, &levels.rows, root_token, tree);
    return REF_OK;
}
