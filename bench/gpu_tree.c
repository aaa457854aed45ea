// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Random trees, and those of the library's own builder.
 */
#include "gpu_tree.h"

#include <stdlib.h>

#include "draft_marginals.h"
#include "kdtr_step.h"
#include "random.h"

void bench_random_tree(uint64_t seed, uint64_t first, int32_t nodes, int32_t *parents,
                       uint32_t *mask) {
    int64_t words = (nodes + 31) / 32;
    for (int64_t i = 0; i < nodes; i++) {
        uint64_t number = ref_random(seed, first + (uint64_t)i);
        parents[i] = i == 0 ? -1 : (int32_t)(number % (uint64_t)i);
        for (int64_t w = 0; w < words; w++) {
            mask[i * words + w] = i == 0 ? 0 : mask[parents[i] * words + w];
        }
        mask[i * words + i / 32] |= 1u << (i % 32);
    }
}

/** Memory of one draft. */
struct draft {
    float *logp;         /* [L,K] */
    int64_t *ranked;     /* [L,K] */
    int64_t *tokens;     /* of the nodes */
    int32_t *depth_rank; /* depths, then ranks */
    float *score;
    void *workspace;
    size_t workspace_bytes;
};

static int32_t fail(kdtr_error *error, int32_t code, const char *text) {
    error->code = code;
    snprintf(error->text, sizeof error->text, "%s", text);
    return code;
}

/** Builds, with memory that is there. */
static int32_t build(const struct draft *d, uint64_t seed, int32_t budget, int32_t *parents,
                     uint32_t *mask, kdtr_error *error) {
    struct ref_error cause = {0};
    kdtr_draft_args args = {.struct_size = sizeof args};
    kdtr_draft_tree tree = {.struct_size = sizeof tree};
    /* As many ranks as nodes: the best tree may be a star. */
    if (ref_draft_marginals_make(seed, BENCH_DRAFT_POSITIONS, budget, BENCH_DRAFT_VOCABULARY,
                                 d->logp, d->ranked, &cause) != REF_OK) {
        return fail(error, KDTR_INVALID_ARGUMENT, cause.text);
    }
    args.num_positions = args.depth_limit = BENCH_DRAFT_POSITIONS;
    args.num_ranks = args.budget = budget;
    args.logp = d->logp;
    args.draft_tokens = d->ranked;
    args.stride = budget;
    tree.tokens = d->tokens;
    tree.parents = parents;
    tree.depth = d->depth_rank;
    tree.rank = d->depth_rank + budget + 1;
    tree.score = d->score;
    tree.mask_words = mask;
    tree.mask_stride_words = (budget + 1 + 31) / 32;
    int32_t status =
        kdtr_draft_tree_build_host(&args, d->workspace, d->workspace_bytes, &tree, error);
    if (status == KDTR_OK && (tree.num_nodes != budget + 1 || tree.status != 0)) {
        return fail(error, KDTR_DEVICE_ERROR, "the draft tree is not what was asked for");
    }
    return status;
}

int32_t bench_draft_tree(uint64_t seed, int32_t budget, int32_t *parents, uint32_t *mask,
                         kdtr_error *error) {
    size_t nodes = (size_t)budget + 1;
    size_t ranked = (size_t)budget * BENCH_DRAFT_POSITIONS;
    struct draft d = {0};
    d.workspace_bytes = kdtr_draft_tree_host_bytes(budget, BENCH_DRAFT_POSITIONS, budget);
    d.logp = malloc(ranked * sizeof *d.logp);
    d.ranked = malloc(ranked * sizeof *d.ranked);
    d.tokens = malloc(nodes * sizeof *d.tokens);
    d.depth_rank = malloc(2 * nodes * sizeof *d.depth_rank);
    d.score = malloc(nodes * sizeof *d.score);
    d.workspace = malloc(d.workspace_bytes + 1);
    int32_t status = d.logp == NULL || d.ranked == NULL || d.tokens == NULL ||
                             d.depth_rank == NULL || d.score == NULL || d.workspace == NULL
                         ? fail(error, KDTR_OUT_OF_MEMORY, "no memory for the draft tree")
                         : build(&d, seed, budget, parents, mask, error);
    free(d.logp);
    free(d.ranked);
    free(d.tokens);
    free(d.depth_rank);
    free(d.score);
    free(d.workspace);
    return status;
}

int32_t bench_make_tree(const struct bench_row *row, uint64_t seed, int64_t request,
                        int32_t *parents, uint32_t *mask, kdtr_error *error) {
    if (row->budget > 0) {
        return bench_draft_tree(seed + 2 + ((uint64_t)request << 40), row->budget, parents, mask,
                                error);
    }
    bench_random_tree(seed, (uint64_t)(request * row->point.nodes), row->point.nodes, parents,
                      mask);
    return KDTR_OK;
}
