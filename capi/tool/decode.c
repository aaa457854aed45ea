// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Plain decodes of a problem's nodes: what exact mode promises equal bits with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/** An element of an array of KDTR_I32 or KDTR_I64. */
static int64_t load(const void *array, int32_t dtype, int64_t index) {
    return dtype == KDTR_I64 ? ((const int64_t *)array)[index] : ((const int32_t *)array)[index];
}

/** Whether node i of a request, whose node 0 is row `first`, sees node j. */
static int sees(const kdtr_problem *problem, int64_t first, int64_t i, int64_t j) {
    const kdtr_run_args *a = &problem->args;
    switch (problem->config.mask_mode) {
    case KDTR_MASK_CHAIN:
        return j <= i;
    case KDTR_MASK_PARENTS:
        while (i > j) {
            i = a->parents[first + i];
        }
        return i == j;
    case KDTR_MASK_PACKED:
        return (a->mask_words[(first + i) * a->mask_stride_words + j / 32] >> j % 32 & 1) != 0;
    default:
        return 0;
    }
}

/** Lists what a node sees, and returns how much that is; `slots` may be NULL. */
static int64_t list_node(const kdtr_problem *problem, int32_t request, int64_t i, int64_t *slots) {
    const kdtr_plan_config *c = &problem->config;
    const kdtr_run_args *a = &problem->args;
    int64_t first = a->node_indptr[request];
    int64_t nodes = a->node_indptr[request + 1] - first;
    int64_t begin = load(a->indptr, c->length_dtype, request);
    int64_t own = load(a->indptr, c->length_dtype, request + 1) - begin;
    int32_t lists_tree = a->tree_slots == NULL && c->mask_mode != KDTR_MASK_NONE;
    int64_t prefix = own - (lists_tree ? nodes : 0);
    int64_t count = 0;
    for (int64_t j = 0; j < prefix + nodes; j++) {
        if (j >= prefix && !sees(problem, first, i, j - prefix)) {
            continue;
        }
        if (slots != NULL) {
            slots[count] = j >= prefix && a->tree_slots != NULL
                               ? load(a->tree_slots, c->slot_dtype, first + j - prefix)
                               : load(a->slots, c->slot_dtype, begin + j);
        }
        count++;
    }
    return count;
}

/** Fills the lists of all decodes, whose sizes are known. Returns the longest. */
static int64_t fill(const kdtr_problem *problem, struct tool_decodes *decodes) {
    const int32_t *rows = problem->args.node_indptr;
    int64_t longest = 0;
    int32_t next = 0;
    decodes->indptr[0] = 0;
    decodes->node_indptr[0] = rows[0];
    for (int32_t b = 0; b < problem->config.batch; b++) {
        for (int64_t i = 0; i < rows[b + 1] - rows[b]; i++, next++) {
            int64_t begin = decodes->indptr[next];
            int64_t count = list_node(problem, b, i, decodes->slots + begin);
            longest = count > longest ? count : longest;
            decodes->indptr[next + 1] = begin + count;
            decodes->node_indptr[next + 1] = rows[0] + next + 1;
        }
    }
    return longest;
}

int32_t tool_make_decodes(const kdtr_problem *problem, struct tool_decodes *decodes,
                          kdtr_error *error) {
    const int32_t *rows = problem->args.node_indptr;
    int64_t total = 0;
    memset(decodes, 0, sizeof *decodes);
    if (problem->config.addressing != KDTR_ADDRESSING_CSR) {
        return error->code = KDTR_UNSUPPORTED;
    }
    int32_t batch = rows[problem->config.batch] - rows[0];
    for (int32_t b = 0; b < problem->config.batch; b++) {
        for (int64_t i = 0; i < rows[b + 1] - rows[b]; i++) {
            total += list_node(problem, b, i, NULL);
        }
    }
    decodes->node_indptr = calloc((size_t)batch + 1, sizeof *decodes->node_indptr);
    decodes->indptr = calloc((size_t)batch + 1, sizeof *decodes->indptr);
    decodes->slots = calloc((size_t)total + 1, sizeof *decodes->slots);
    if (decodes->node_indptr == NULL || decodes->indptr == NULL || decodes->slots == NULL) {
        tool_free_decodes(decodes);
        snprintf(error->text, sizeof error->text, "no memory for %d decodes", batch);
        return error->code = KDTR_OUT_OF_MEMORY;
    }
    decodes->problem = *problem;
    kdtr_plan_config *c = &decodes->problem.config;
    c->batch = batch;
    c->max_nodes = 1;
    c->mask_mode = KDTR_MASK_NONE;
    c->length_dtype = c->slot_dtype = KDTR_I64;
    c->max_prefix_len = fill(problem, decodes);
    kdtr_run_args *a = &decodes->problem.args;
    a->node_indptr = decodes->node_indptr;
    a->indptr = decodes->indptr;
    a->slots = decodes->slots;
    a->tree_slots = NULL;
    a->parents = NULL;
    a->mask_words = NULL;
    a->slot_count = total;
    decodes->arrays[0] = (struct tool_array){a->node_indptr, ((size_t)batch + 1) * 4};
    decodes->arrays[1] = (struct tool_array){a->indptr, ((size_t)batch + 1) * 8};
    decodes->arrays[2] = (struct tool_array){a->slots, ((size_t)total + 1) * 8};
    return KDTR_OK;
}

void tool_free_decodes(struct tool_decodes *decodes) {
    free(decodes->node_indptr);
    free(decodes->indptr);
    free(decodes->slots);
    memset(decodes, 0, sizeof *decodes);
}
