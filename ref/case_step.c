// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The step part of a named case (spec/bundle_format.md, "The step problem").
 */
#include "case_step.h"

#include <stdlib.h>

#include "draft_marginals.h"
#include "draft_tree.h"
#include "random.h"

/** Streams of random numbers, added to the seed of the request. */
enum step_stream { STEP_MARGINALS, STEP_ROOT, STEP_TARGET };

/** A number below `limit` from the upper bits of a random number. */
static int64_t draw_below(uint64_t seed, uint64_t counter, int64_t limit) {
    return (int64_t)((ref_random(seed, counter) >> 32) * (uint64_t)limit >> 32);
}

/** Target ids: the token of a child, if there is one, always at the root and else 5 times in 8. */
static void make_targets(uint64_t seed, const struct case_step *s) {
    for (int32_t i = 0; i < s->num_nodes; i++) {
        uint64_t counter = 2u * (uint64_t)i;
        int32_t children = 0;
        for (int32_t j = i + 1; j < s->num_nodes; j++) {
            children += s->parents[j] == i;
        }
        if (children == 0 || (i > 0 && draw_below(seed, counter, 8) >= 5)) {
            s->target_ids[i] = draw_below(seed, counter + 1, s->vocab_size);
            continue;
        }
        int64_t skip = draw_below(seed, counter + 1, children);
        for (int32_t j = i + 1; skip >= 0; j++) {
            s->target_ids[i] = s->node_tokens[j];
            skip -= s->parents[j] == i;
        }
    }
}

/** Builds the tree; `memory` holds the workspace, then depth, rank and score. */
static int32_t make_tree(const struct case_step *s, char *memory, size_t bytes,
                         struct ref_error *error) {
    const struct ref_draft_marginals marginals = {s->logp, s->draft_tokens, s->num_ranks,
                                                  s->num_positions, s->num_ranks};
    int32_t *depth = (int32_t *)(void *)(memory + bytes);
    struct ref_draft_tree tree = {.tokens = s->node_tokens,
                                  .parents = s->parents,
                                  .depth = depth,
                                  .rank = depth + s->num_nodes,
                                  .score = (float *)(void *)(depth + 2 * (size_t)s->num_nodes)};
    int32_t status = ref_draft_tree_heap(&marginals, *s->root_token, s->num_nodes - 1,
                                         s->num_positions, memory, bytes, &tree, error);
    if (status == REF_OK && tree.num_nodes != s->num_nodes) {
        status = ref_fail(error, REF_INVALID_ARGUMENT, "num_nodes", "%d nodes, not %d",
                          tree.num_nodes, s->num_nodes);
    }
    return status;
}

int32_t case_step_make(uint64_t seed, const struct case_step *step, struct ref_error *error) {
    int32_t status =
        ref_draft_marginals_make(seed + STEP_MARGINALS, step->num_positions, step->num_ranks,
                                 step->vocab_size, step->logp, step->draft_tokens, error);
    size_t bytes = ref_draft_heap_bytes(step->num_nodes - 1, step->num_positions, step->num_ranks);
    if (status != REF_OK || bytes > SIZE_MAX / 2) {
        return status != REF_OK ? status
                                : ref_fail(error, REF_UNSUPPORTED, "", "the tree is too large");
    }
    bytes = (bytes + 7) / 8 * 8;
    char *memory = malloc(bytes + (size_t)step->num_nodes * 3 * sizeof(int32_t));
    if (memory == NULL) {
        return ref_fail(error, REF_OUT_OF_MEMORY, "", "no memory for a draft tree");
    }
    *step->root_token = draw_below(seed + STEP_ROOT, 0, step->vocab_size);
    status = make_tree(step, memory, bytes, error);
    free(memory);
    if (status == REF_OK) {
        make_targets(seed + STEP_TARGET, step);
    }
    return status;
}
