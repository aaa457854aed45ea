// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The draft tree by a heap (spec/draft_tree.md, "The heap"). The heap holds, for every emitted
 * node, its next sibling and its first child, each once: whatever comes next is among them.
 */
#include "draft_tree.h"

#include "draft_rows.h"

/** A node that is not emitted yet. */
struct heap_item {
    float score;    /* eq-draft-score */
    int32_t parent; /* emitted node */
    int32_t place;  /* in the row of candidates */
};

/** A binary heap; the first item in order is items[0]. */
struct heap {
    struct heap_item *items;
    int32_t count;
    const struct ref_draft_tree *tree;
};

/** Whether a stands before b in the order of the tree (eq-draft-order). They are different. */
static int precedes(const struct ref_draft_tree *tree, const struct heap_item *a,
                    const struct heap_item *b) {
    if (a->score != b->score) {
        return a->score > b->score;
    }
    int32_t parent_a = a->parent;
    int32_t parent_b = b->parent;
    int32_t place_a = a->place;
    int32_t place_b = b->place;
    int32_t excess = tree->depth[parent_a] - tree->depth[parent_b];
    for (int32_t i = 0; i < excess; i++) {
        place_a = tree->rank[parent_a];
        parent_a = tree->parents[parent_a];
    }
    for (int32_t i = 0; i > excess; i--) {
        place_b = tree->rank[parent_b];
        parent_b = tree->parents[parent_b];
    }
    if (parent_a == parent_b && place_a == place_b) {
        return excess < 0; /* a prefix stands before its extensions */
    }
    while (parent_a != parent_b) {
        place_a = tree->rank[parent_a];
        place_b = tree->rank[parent_b];
        parent_a = tree->parents[parent_a];
        parent_b = tree->parents[parent_b];
    }
    return place_a < place_b;
}

/** Adds an item. */
static void push(struct heap *heap, struct heap_item item) {
    int32_t at = heap->count++;
    while (at > 0) {
        int32_t up = (at - 1) / 2;
        if (!precedes(heap->tree, &item, &heap->items[up])) {
            break;
        }
        heap->items[at] = heap->items[up];
        at = up;
    }
    heap->items[at] = item;
}

/** Removes the first item in order. */
static struct heap_item pop(struct heap *heap) {
    struct heap_item first = heap->items[0];
    struct heap_item last = heap->items[--heap->count];
    int32_t at = 0;
    for (;;) {
        int32_t down = 2 * at + 1;
        if (down >= heap->count) {
            break;
        }
        if (down + 1 < heap->count &&
            precedes(heap->tree, &heap->items[down + 1], &heap->items[down])) {
            down++;
        }
        if (!precedes(heap->tree, &heap->items[down], &last)) {
            break;
        }
        heap->items[at] = heap->items[down];
        at = down;
    }
    heap->items[at] = last;
    return first;
}

/** Adds the child of an emitted node from a place in the row of candidates, if there is one. */
static void push_child(struct heap *heap, const struct draft_rows *rows, int32_t parent,
                       int32_t place) {
    int32_t row = heap->tree->depth[parent];
    if (row >= rows->depths || place >= rows->count[row]) {
        return;
    }
    struct heap_item item = {.parent = parent, .place = place};
    item.score = heap->tree->score[parent] + rows->value[(int64_t)row * rows->width + place];
    if (item.score - item.score == 0.0f) { /* not -inf: the sum can overflow */
        push(heap, item);
    }
}

/** Takes the pieces of the workspace. */
static struct heap_item *take_heap(struct draft_arena *arena, int32_t budget, int32_t num_positions,
                                   int32_t num_ranks, struct draft_rows *rows) {
    draft_take_rows(arena, budget, num_positions, num_ranks, rows);
    return draft_take(arena, (uint64_t)budget + 2, sizeof(struct heap_item));
}

size_t ref_draft_heap_bytes(int32_t budget, int32_t num_positions, int32_t num_ranks) {
    struct draft_arena arena = {0};
    struct draft_rows rows;
    if (!draft_sizes_fit(budget, num_positions, num_ranks)) {
        return SIZE_MAX;
    }
    (void)take_heap(&arena, budget, num_positions, num_ranks, &rows);
    return arena.used < SIZE_MAX ? (size_t)arena.used : SIZE_MAX;
}

int32_t ref_draft_tree_heap(const struct ref_draft_marginals *marginals, int64_t root_token,
                            int32_t budget, int32_t depth_limit, void *workspace,
                            size_t workspace_bytes, struct ref_draft_tree *tree,
                            struct ref_error *error) {
    int32_t status = draft_check(marginals, budget, depth_limit, workspace, tree, error);
    if (status != REF_OK) {
        return status;
    }
    int32_t positions = marginals->num_positions;
    if (workspace_bytes < ref_draft_heap_bytes(budget, positions, marginals->num_ranks)) {
        return ref_fail(error, REF_WORKSPACE, "workspace_bytes", "the workspace is too small");
    }
    struct draft_arena arena = {.base = workspace};
    struct draft_rows rows;
    struct heap heap = {.tree = tree};
    positions = positions < depth_limit ? positions : depth_limit;
    heap.items = take_heap(&arena, budget, positions, marginals->num_ranks, &rows);
    tree->status = draft_fill_rows(marginals, &rows);
    tree->parents[0] = -1;
    tree->depth[0] = 0;
    tree->rank[0] = -1;
    tree->score[0] = 0.0f;
    tree->num_nodes = 1;
    push_child(&heap, &rows, 0, 0);
    while (tree->num_nodes <= budget && heap.count > 0) {
        struct heap_item item = pop(&heap);
        int32_t node = tree->num_nodes++;
        tree->parents[node] = item.parent;
        tree->depth[node] = tree->depth[item.parent] + 1;
        tree->rank[node] = item.place;
        tree->score[node] = item.score;
        push_child(&heap, &rows, item.parent, item.place + 1);
        push_child(&heap, &rows, node, 0);
    }
    draft_finish(marginals, &rows, root_token, tree);
    return REF_OK;
}
