// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the fuzz target does with the draft of a step problem (gate P0-9): both builders give the
 * same tree through whatever the marginals hold, and no links lead a walk astray.
 */
#include <string.h>

#include "accept.h"
#include "draft_tree.h"
#include "fuzz_bundle.h"
#include "kdtr_step.h"
#include "tree.h"

/** A property that must hold. */
#define MUST(condition)       \
    do {                      \
        if (!(condition)) {   \
            __builtin_trap(); \
        }                     \
    } while (0)

#define MAX_NODES 64     /**< Nodes of a tree that is built. */
#define MAX_POSITIONS 16 /**< Positions of a draft that is read. */
#define MAX_RANKS 64     /**< Ranks. */
#define MAX_REQUESTS 4   /**< Requests that are looked at. */
#define WORDS 2          /**< Words of a mask row. */

/** The tensors of a step problem that the step reads. */
struct draft {
    const struct ref_tensor *logp;
    const struct ref_tensor *tokens;
    const struct ref_tensor *roots;
    const struct ref_tensor *budgets;
    const struct ref_tensor *targets;
    const struct ref_tensor *vocab_size;
};

/** A tree by either builder. */
struct built {
    int64_t tokens[MAX_NODES];
    int32_t parents[MAX_NODES];
    int32_t depth[MAX_NODES];
    int32_t rank[MAX_NODES];
    float score[MAX_NODES];
};

static struct built heap;
static struct built levels;
static int32_t first_child[MAX_NODES];
static int32_t next_sibling[MAX_NODES];
static uint32_t mask_words[MAX_NODES * WORDS];
static int32_t path[MAX_NODES];
static int64_t emitted[MAX_NODES];
static _Alignas(8) unsigned char workspace[1 << 20];

/** Whether the bundle has a draft of a size that is looked at. */
static int find_draft(const struct ref_bundle *bundle, struct draft *d) {
    d->logp = ref_bundle_find(bundle, "draft_logp");
    d->tokens = ref_bundle_find(bundle, "draft_tokens");
    d->roots = ref_bundle_find(bundle, "root_tokens");
    d->budgets = ref_bundle_find(bundle, "budget");
    d->targets = ref_bundle_find(bundle, "target_ids");
    d->vocab_size = ref_bundle_find(bundle, "vocab_size");
    if (d->logp == NULL || d->tokens == NULL || d->roots == NULL || d->budgets == NULL ||
        d->targets == NULL || d->vocab_size == NULL) {
        return 0;
    }
    const int64_t *shape = d->logp->shape;
    return d->logp->dtype == REF_F32 && d->tokens->dtype == REF_I64 && d->roots->dtype == REF_I64 &&
           d->budgets->dtype == REF_I32 && d->targets->dtype == REF_I64 &&
           d->vocab_size->dtype == REF_I64 && d->vocab_size->bytes == 8 && d->logp->rank == 3 &&
           shape[1] <= MAX_POSITIONS && shape[2] <= MAX_RANKS &&
           d->tokens->bytes == 2 * d->logp->bytes && d->roots->bytes >= 8 * (uint64_t)shape[0] &&
           d->budgets->bytes >= 4 * (uint64_t)shape[0];
}

/** Builds a request's tree by the ABI, into `heap`, and level by level, which must be the same. */
static int32_t build(const struct draft *d, int64_t request, int32_t budget) {
    int32_t positions = (int32_t)d->logp->shape[1];
    int32_t ranks = (int32_t)d->logp->shape[2];
    int64_t offset = request * positions * ranks;
    const kdtr_draft_args args = {.struct_size = sizeof args,
                                  .num_positions = positions,
                                  .num_ranks = ranks,
                                  .budget = budget,
                                  .depth_limit = positions,
                                  .logp = offset + (const float *)d->logp->data,
                                  .draft_tokens = offset + (const int64_t *)d->tokens->data,
                                  .stride = ranks,
                                  .root_token = ((const int64_t *)d->roots->data)[request]};
    kdtr_draft_tree tree = {.struct_size = sizeof tree,
                            .tokens = heap.tokens,
                            .parents = heap.parents,
                            .depth = heap.depth,
                            .rank = heap.rank,
                            .score = heap.score,
                            .first_child = first_child,
                            .next_sibling = next_sibling,
                            .mask_words = mask_words,
                            .mask_stride_words = WORDS};
    struct ref_draft_tree other = {
        levels.tokens, levels.parents, levels.depth, levels.rank, levels.score, 0, 0};
    const struct ref_draft_marginals marginals = {args.logp, args.draft_tokens, ranks, positions,
                                                  ranks};
    memset(&heap, 0, sizeof heap);
    memset(&levels, 0, sizeof levels);
    MUST(kdtr_draft_tree_build_host(&args, workspace, sizeof workspace, &tree, NULL) == KDTR_OK);
    MUST(ref_draft_tree_levels(&marginals, args.root_token, budget, positions, workspace,
                               sizeof workspace, &other, NULL) == REF_OK);
    MUST(tree.num_nodes == other.num_nodes && tree.status == other.status);
    MUST(tree.num_nodes >= 1 && tree.num_nodes <= budget + 1);
    MUST(memcmp(&heap, &levels, sizeof heap) == 0);
    for (int32_t i = 0; i < tree.num_nodes; i++) {
        MUST(i == 0 ? heap.parents[0] == -1 : heap.parents[i] >= 0 && heap.parents[i] < i);
        MUST(i == 0 || heap.score[i] <= heap.score[i - 1]);
        MUST((mask_words[i * WORDS + i / 32] >> (i % 32) & 1u) == 1u);
    }
    return tree.num_nodes;
}

/** Walks: a path from the root of at most `nodes` nodes, and what it emits. */
static void walk(const kdtr_accept_args *args, int is_tree) {
    kdtr_accept_result result = {
        .struct_size = sizeof result, .accept_index = path, .emitted = emitted};
    MUST(kdtr_tree_accept_host(args, &result, NULL) == KDTR_OK);
    MUST(result.accept_num >= 0 && result.accept_num < args->path_size && path[0] == 0);
    MUST(!is_tree || result.status == 0);
    for (int32_t i = 1; i <= result.accept_num; i++) {
        MUST(path[i] > 0 && path[i] < args->num_nodes);
        MUST(!is_tree || heap.parents[path[i]] == path[i - 1]);
        MUST(emitted[i - 1] == args->tokens[path[i]]);
        MUST(emitted[i - 1] == args->target_ids[path[i - 1]]);
    }
    MUST(result.last_node == path[result.accept_num]);
    int64_t bonus = args->target_ids[result.last_node];
    bonus = bonus >= 0 && bonus < args->vocab_size ? bonus : -1;
    MUST(result.bonus == bonus && emitted[result.accept_num] == bonus);
}

int fuzz_step(const struct ref_bundle *bundle) {
    struct draft d;
    if (!find_draft(bundle, &d)) {
        return 0;
    }
    int64_t vocab_size = *(const int64_t *)d.vocab_size->data;
    int32_t targets = (int32_t)(d.targets->bytes / 8);
    for (int64_t b = 0; b < d.logp->shape[0] && b < MAX_REQUESTS; b++) {
        uint32_t budget = (uint32_t)((const int32_t *)d.budgets->data)[b];
        int32_t nodes = build(&d, b, (int32_t)(budget % MAX_NODES));
        nodes = nodes < targets ? nodes : targets;
        kdtr_accept_args args = {.struct_size = sizeof args,
                                 .num_nodes = nodes,
                                 .path_size = MAX_NODES,
                                 .tokens = heap.tokens,
                                 .first_child = first_child,
                                 .next_sibling = next_sibling,
                                 .target_ids = d.targets->data,
                                 .vocab_size = vocab_size < 0 ? 0 : vocab_size};
        if (nodes == 0) {
            continue;
        }
        for (int32_t i = 0; i < nodes; i++) { /* the tree of the first nodes */
            first_child[i] = first_child[i] < nodes ? first_child[i] : -1;
            next_sibling[i] = next_sibling[i] < nodes ? next_sibling[i] : -1;
        }
        walk(&args, 1);
        args.first_child = d.targets->data; /* any numbers: no tree */
        args.next_sibling = (const int32_t *)d.targets->data + nodes;
        walk(&args, 0);
    }
    return 1;
}
