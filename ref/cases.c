// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The table of named cases.
 */
#include "cases.h"

#include <string.h>

#include "attention.h"
#include "case_builder.h"

// clang-format off
static const struct ref_case cases[] = {
    {"tree-tiny", "6 nodes over 5 tokens, small dimensions, to read by eye", 1, {5}, {6}, 2, 32, 8,
     REF_MASK_PARENTS, REF_F32, .window = 3},
    {"tree-small", "12 nodes over 37 tokens, model dimensions", 1, {37}, {12}, 4, 512, 64,
     REF_MASK_PARENTS, REF_BF16, .window = 6},
    {"tree-4k", "8 nodes, 8 heads, 4,096 tokens: one GPU's share of Kimi K2.6", 1, {4096}, {8}, 8,
     512, 64, REF_MASK_PACKED, REF_BF16, .q_bf16 = 1},
    {"tree-long", "2 nodes over 200,000 tokens", 1, {200000}, {2}, 1, 512, 64, REF_MASK_PARENTS,
     REF_BF16, .q_bf16 = 1, .tree_list = 1},
    {"decode", "plain decode: one node over 300 tokens", 1, {300}, {1}, 8, 512, 64, REF_MASK_CHAIN,
     REF_BF16, .q_bf16 = 1},
    {"chain-16", "a chain of 16 nodes, float32 cache", 1, {250}, {16}, 3, 512, 64, REF_MASK_CHAIN,
     REF_F32, .window = 6},
    {"prefix-only", "mask none: a shard of a longer prefix", 1, {129}, {7}, 2, 512, 64,
     REF_MASK_NONE, REF_BF16, .window = 6},
    {"empty-prefix", "the root is the first token", 1, {0}, {9}, 2, 512, 64, REF_MASK_PARENTS,
     REF_BF16, .window = 6},
    {"mask-any", "random bits instead of a tree", 2, {70, 3}, {40, 33}, 2, 96, 32, REF_MASK_PACKED,
     REF_F32, .any_mask = 1},
    {"masked-first", "a request that sees nothing leads the batch", 3, {0, 33, 1}, {5, 6, 1}, 2,
     512, 64, REF_MASK_PACKED, REF_BF16, .any_mask = 2},
    {"nodes-33", "33 nodes: one more than a mask word", 1, {255}, {33}, 2, 512, 64,
     REF_MASK_PACKED, REF_BF16, .window = 9},
    {"nodes-1025", "1,025 nodes: a budget of 1,024", 1, {31}, {1025}, 1, 128, 64,
     REF_MASK_PARENTS, REF_BF16, .window = 40},
    {"ragged", "very unequal requests, two of them inactive, spare rows", 6,
     {300, 40, 1, 0, 17, 257}, {3, 0, 33, 1, 0, 8}, 3, 512, 64, REF_MASK_PARENTS, REF_BF16,
     .q_bf16 = 1, .wide = 1, .spare_rows = 5},
    {"table-1", "row table with page size 1, as SGLang's", 3, {100, 31, 5}, {8, 8, 8}, 2, 512, 64,
     REF_MASK_PARENTS, REF_BF16, .page_size = 1},
    {"table-64", "block table with page size 64, as vLLM's", 3, {200, 64, 63}, {4, 1, 2}, 2, 512,
     64, REF_MASK_PACKED, REF_BF16, .page_size = 64, .wide = 1},
    {"two-pools", "latent and rope pools of their own, tree slots of their own", 2, {90, 17},
     {6, 10}, 9, 512, 64, REF_MASK_PARENTS, REF_F32, .two_pools = 1, .tree_list = 1},
    {"step-small", "a whole step: a draft tree of budget 11, acceptance", 1, {60}, {12}, 2, 512, 64,
     REF_MASK_PARENTS, REF_BF16, .draft_positions = 5, .draft_ranks = 8, .vocab_size = 32000},
    {"step-kimi", "a whole step: budget 31 from 7 positions, one GPU's share of Kimi K2.6", 1,
     {512}, {32}, 8, 512, 64, REF_MASK_PACKED, REF_BF16, .q_bf16 = 1, .draft_positions = 7,
     .draft_ranks = 16, .vocab_size = 163840},
    {"step-batch", "whole steps of budgets 0, 7 and 20, one request inactive", 4, {33, 70, 9, 5},
     {1, 8, 0, 21}, 2, 512, 64, REF_MASK_PACKED, REF_BF16, .spare_rows = 2, .draft_positions = 4,
     .draft_ranks = 6, .vocab_size = 1000},
};
// clang-format on

int32_t ref_case_count(void) {
    return (int32_t)(sizeof cases / sizeof cases[0]);
}

const char *ref_case_name(int32_t index) {
    return index < 0 || index >= ref_case_count() ? NULL : cases[index].name;
}

const char *ref_case_summary(int32_t index) {
    return index < 0 || index >= ref_case_count() ? NULL : cases[index].summary;
}

int32_t ref_case_generate(const char *name, void **file, size_t *bytes, struct ref_error *error) {
    *file = NULL;
    *bytes = 0;
    for (int32_t i = 0; i < ref_case_count(); i++) {
        if (strcmp(cases[i].name, name) == 0) {
            return ref_case_build(&cases[i], file, bytes, error);
        }
    }
    return ref_fail(error, REF_NOT_FOUND, "name", "there is no case named %s", name);
}
