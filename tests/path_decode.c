// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Plain decodes of the rows of a verify call.
 */
#include "path_decode.h"

#include <stdlib.h>
#include <string.h>

#include "truth_f64.h"

/** Slots of what each query row sees, one list after the other. */
struct row_lists {
    int64_t *count; /* [R] */
    int64_t **slot; /* [R] lists */
    int64_t total, longest;
    int has_empty;
};

/** Fills the lists. */
static void list_rows(const struct ref_attention *a, struct row_lists *lists) {
    memset(lists, 0, sizeof *lists);
    lists->count = test_calloc((size_t)a->row_capacity * sizeof *lists->count);
    lists->slot = test_calloc((size_t)a->row_capacity * sizeof *lists->slot);
    for (int32_t b = 0; b < a->batch; b++) {
        struct truth_request q;
        truth_request_decode(a, b, &q);
        for (int64_t i = 0; i < q.nodes && q.active; i++) {
            int64_t row = q.first_row + i;
            lists->slot[row] = test_calloc((size_t)q.tokens * sizeof **lists->slot);
            for (int64_t t = 0; t < q.tokens; t++) {
                if (q.visible[i * q.tokens + t]) {
                    lists->slot[row][lists->count[row]++] = q.slots[t];
                }
            }
        }
        truth_request_free(&q);
    }
    for (int64_t row = 0; row < a->row_capacity; row++) {
        int64_t count = lists->count[row];
        lists->total += count;
        lists->longest = count > lists->longest ? count : lists->longest;
        lists->has_empty |= count == 0;
    }
}

/** Releases the lists. */
static void free_lists(struct row_lists *lists, int64_t rows) {
    for (int64_t row = 0; row < rows; row++) {
        free(lists->slot[row]);
    }
    free(lists->slot);
    free(lists->count);
}

/** Writes node_indptr, indptr and slots of the decodes. */
static void make_lists(struct test_problem *decodes, const struct row_lists *lists) {
    struct ref_attention *d = &decodes->call;
    int64_t rows = d->row_capacity;
    int32_t *node_indptr = test_problem_alloc(decodes, rows + 1, sizeof *node_indptr);
    int32_t *indptr = test_problem_alloc(decodes, rows + 1, sizeof *indptr);
    int32_t *slots = test_problem_alloc(decodes, lists->total + 1, sizeof *slots);
    int64_t next = 0;
    node_indptr[0] = 0;
    indptr[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t v = 0; v < lists->count[row]; v++) {
            slots[next++] = (int32_t)lists->slot[row][v];
        }
        node_indptr[row + 1] = (int32_t)(row + 1);
        indptr[row + 1] = (int32_t)next;
    }
    d->node_indptr = node_indptr;
    d->indptr = indptr;
    d->slots = slots;
}

int test_path_decodes(const struct test_problem *problem, int32_t mask_mode,
                      struct test_problem *decodes) {
    struct row_lists lists;
    list_rows(&problem->call, &lists);
    int impossible = mask_mode == REF_MASK_CHAIN && lists.has_empty;
    if (!impossible) {
        *decodes = *problem;
        decodes->borrowed = problem->buffer_count;
        struct ref_attention *d = &decodes->call;
        d->batch = (int32_t)d->row_capacity;
        d->max_nodes = 1;
        d->mask_mode = mask_mode;
        d->addressing = REF_ADDRESSING_CSR;
        d->page_size = 1;
        d->length_dtype = REF_I32;
        d->slot_dtype = REF_I32;
        d->tree_slots = NULL;
        d->row_table = NULL;
        d->table_rows = NULL;
        d->prefix_len = NULL;
        d->parents = NULL;
        d->mask_words = NULL;
        d->max_prefix_len = lists.longest;
        make_lists(decodes, &lists);
    }
    free_lists(&lists, problem->call.row_capacity);
    return impossible;
}
