// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Draft trees and acceptance on the host, as functions of the ABI.
 */
#include "accept.h"
#include "backend.h"
#include "draft_tree.h"
#include "error.h"
#include "fp_environment.h"
#include "kdtr_step.h"
#include "tree.h"
#include "tree_links.h"

static int32_t fail_null(kdtr_error *error, const char *field) {
    return capi_fail(error, KDTR_INVALID_ARGUMENT, field, "it is NULL");
}

/** Checks a struct's size and that its reserved fields are 0. */
static int32_t check_struct(uint32_t size, size_t expected, uint32_t reserved0,
                            const uint64_t reserved[2], kdtr_error *error) {
    if (size != expected) {
        return capi_fail(error, KDTR_STRUCT_SIZE, "struct_size", "%u, not %zu", size, expected);
    }
    if ((reserved0 | reserved[0] | reserved[1]) != 0) {
        return capi_fail(error, KDTR_RESERVED_NOT_ZERO, "reserved", "it is not 0");
    }
    return KDTR_OK;
}

size_t kdtr_draft_tree_host_bytes(int32_t budget, int32_t num_positions, int32_t num_ranks) {
    size_t bytes = ref_draft_heap_bytes(budget, num_positions, num_ranks);
    return bytes == SIZE_MAX ? 0 : bytes;
}

/** The stride, the arrays that a tree must have, and the optional encodings. */
static int32_t check_tree(const kdtr_draft_args *args, const kdtr_draft_tree *tree,
                          kdtr_error *error) {
    if (args->stride < args->num_ranks) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "stride", "%lld elements for %d ranks",
                         (long long)args->stride, args->num_ranks);
    }
    const struct {
        const void *pointer;
        const char *name;
    } needed[] = {{tree->tokens, "tokens"},
                  {tree->parents, "parents"},
                  {tree->depth, "depth"},
                  {tree->rank, "rank"},
                  {tree->score, "score"}};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (needed[i].pointer == NULL) {
            return fail_null(error, needed[i].name);
        }
    }
    if ((tree->first_child == NULL) != (tree->next_sibling == NULL)) {
        return fail_null(error, tree->first_child == NULL ? "first_child" : "next_sibling");
    }
    if (tree->mask_words != NULL && tree->mask_stride_words < ((int64_t)args->budget + 32) / 32) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "mask_stride_words", "%lld words a row",
                         (long long)tree->mask_stride_words);
    }
    if (tree->positions != NULL && (args->prefix_len < 0 || args->prefix_len > INT64_MAX - 65536)) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "prefix_len", "%lld tokens",
                         (long long)args->prefix_len);
    }
    return KDTR_OK;
}

int32_t kdtr_draft_tree_build_host(const kdtr_draft_args *args, void *workspace,
                                   size_t workspace_bytes, kdtr_draft_tree *tree,
                                   kdtr_error *error) {
    if (args == NULL || tree == NULL) {
        return fail_null(error, args == NULL ? "args" : "tree");
    }
    int32_t status =
        check_struct(args->struct_size, sizeof *args, args->reserved0, args->reserved, error);
    if (status == KDTR_OK) {
        status =
            check_struct(tree->struct_size, sizeof *tree, tree->reserved0, tree->reserved, error);
    }
    status = status != KDTR_OK ? status : check_tree(args, tree, error);
    status = status != KDTR_OK ? status : capi_check_fp_environment(error);
    if (status != KDTR_OK) {
        return status;
    }
    const struct ref_draft_marginals marginals = {args->logp, args->draft_tokens, args->stride,
                                                  args->num_positions, args->num_ranks};
    struct ref_draft_tree built = {.tokens = tree->tokens,
                                   .parents = tree->parents,
                                   .depth = tree->depth,
                                   .rank = tree->rank,
                                   .score = tree->score};
    struct ref_error cause;
    if (ref_draft_tree_heap(&marginals, args->root_token, args->budget, args->depth_limit,
                            workspace, workspace_bytes, &built, &cause) != REF_OK) {
        return capi_fail_from_ref(error, &cause);
    }
    tree->num_nodes = built.num_nodes;
    tree->status = built.status;
    if (tree->first_child != NULL) {
        ref_tree_links(tree->parents, tree->num_nodes, tree->first_child, tree->next_sibling);
    }
    if (tree->positions != NULL) {
        ref_tree_positions(args->prefix_len, tree->depth, tree->num_nodes, tree->positions);
    }
    if (tree->mask_words != NULL) {
        ref_tree_packed_mask(tree->parents, tree->num_nodes, tree->mask_stride_words,
                             tree->mask_words);
    }
    return KDTR_OK;
}

int32_t kdtr_tree_accept_host(const kdtr_accept_args *args, kdtr_accept_result *result,
                              kdtr_error *error) {
    if (args == NULL || result == NULL) {
        return fail_null(error, args == NULL ? "args" : "result");
    }
    int32_t status = check_struct(args->struct_size, sizeof *args, 0, args->reserved, error);
    if (status == KDTR_OK) {
        status = check_struct(result->struct_size, sizeof *result, 0, result->reserved, error);
    }
    if (status != KDTR_OK) {
        return status;
    }
    if (args->first_row < 0 || args->num_nodes > INT32_MAX - args->first_row) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "first_row", "%d", args->first_row);
    }
    const struct ref_accept_request request = {
        .tokens = args->tokens,
        .first_child = args->first_child,
        .next_sibling = args->next_sibling,
        .target_ids = args->target_ids,
        .vocab_size = args->vocab_size,
        .num_nodes = args->num_nodes,
        .path_size = args->path_size,
        .first_row = args->first_row,
    };
    struct ref_accept_result walked = {.accept_index = result->accept_index,
                                       .emitted = result->emitted};
    struct ref_error cause;
    if (ref_accept_walk(&request, &walked, &cause) != REF_OK) {
        return capi_fail_from_ref(error, &cause);
    }
    result->accept_num = walked.accept_num;
    result->last_node = walked.last_node;
    result->status = walked.status;
    result->bonus = walked.bonus;
    return KDTR_OK;
}
