// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Acceptance (spec/draft_tree.md, "The walk").
 */
#include "accept.h"

#include <stddef.h>

/** Checks what the walk is called with. */
static int32_t check(const struct ref_accept_request *r, const struct ref_accept_result *result,
                     struct ref_error *error) {
    if (r == NULL || result == NULL || result->accept_index == NULL || result->emitted == NULL) {
        return ref_fail(error, REF_INVALID_ARGUMENT, "", "request, result or its array is NULL");
    }
    if (r->num_nodes < 0 || r->vocab_size < 0 || r->path_size < 1) {
        const char *field = r->num_nodes < 0    ? "num_nodes"
                            : r->vocab_size < 0 ? "vocab_size"
                                                : "path_size";
        return ref_fail(error, REF_INVALID_ARGUMENT, field, "%s is too small", field);
    }
    if (r->num_nodes > 0 && (r->tokens == NULL || r->first_child == NULL ||
                             r->next_sibling == NULL || r->target_ids == NULL)) {
        return ref_fail(error, REF_INVALID_ARGUMENT, "", "an array of an active request is NULL");
    }
    return REF_OK;
}

/** Target id after a node, or -1 if it is no token. */
static int64_t target_of(const struct ref_accept_request *request, int32_t node) {
    int64_t id = request->target_ids[node];
    return id >= 0 && id < request->vocab_size ? id : -1;
}

/**
 * First child in link order that has the target's token, or -1. Links of a tree name each node
 * once: `links` counts those followed since the root, and ends a walk in a circle.
 */
static int32_t matching_child(const struct ref_accept_request *request, int32_t node,
                              int32_t *links, uint32_t *status) {
    int64_t target = target_of(request, node);
    int32_t child = request->first_child[node];
    while (child != -1) {
        if (child < 1 || child >= request->num_nodes || ++*links >= request->num_nodes) {
            *status |= REF_ACCEPT_LINK;
            return -1;
        }
        if (target >= 0 && request->tokens[child] == target) {
            return child;
        }
        child = request->next_sibling[child];
    }
    return -1;
}

int32_t ref_accept_walk(const struct ref_accept_request *request, struct ref_accept_result *result,
                        struct ref_error *error) {
    int32_t status = check(request, result, error);
    if (status != REF_OK) {
        return status;
    }
    for (int32_t i = 0; i < request->path_size; i++) {
        result->accept_index[i] = -1;
        result->emitted[i] = -1;
    }
    result->accept_num = -1;
    result->last_node = -1;
    result->bonus = -1;
    result->status = 0;
    if (request->num_nodes == 0) {
        return REF_OK;
    }
    int32_t links = 0;
    int32_t last = 0;
    int32_t accepted = 0;
    result->accept_index[0] = request->first_row;
    while (accepted + 1 < request->path_size) {
        int32_t child = matching_child(request, last, &links, &result->status);
        if (child < 0) {
            break;
        }
        last = child;
        result->emitted[accepted] = request->tokens[child];
        result->accept_index[++accepted] = request->first_row + child;
    }
    result->accept_num = accepted;
    result->last_node = last;
    result->bonus = target_of(request, last);
    result->emitted[accepted] = result->bonus;
    return REF_OK;
}
