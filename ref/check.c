// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The check of everything that a run trusts.
 */
#include "problem.h"
#include "rows.h"
#include "tree.h"

/** One list entry against a limit; `field` names the list. */
static int32_t check_slot(const struct ref_attention *a, const struct ref_extents *extents,
                          const struct ref_row *row, const int32_t *node, int64_t v,
                          struct ref_error *error) {
    int64_t slot = ref_visible_slot(a, row, node, v);
    if (slot < 0 || slot >= extents->num_slots) {
        const char *field = v >= row->prefix_len && a->tree_slots != NULL ? "tree_slots"
                            : a->addressing == REF_ADDRESSING_CSR         ? "slots"
                                                                          : "row_table";
        return ref_fail(error, REF_BAD_SLOT, field,
                        "request %d, token %lld: slot %lld is outside the pool of %lld",
                        row->request, (long long)v, (long long)slot, (long long)extents->num_slots);
    }
    return REF_OK;
}

/** The tokens of a request must lie within the lists before a slot is read. */
static int32_t check_lists(const struct ref_attention *a, const struct ref_extents *extents,
                           const struct ref_row *row, struct ref_error *error) {
    int64_t tokens = row->prefix_len;
    if (a->tree_slots == NULL && a->mask_mode != REF_MASK_NONE) {
        tokens += row->num_nodes;
    }
    if (a->addressing == REF_ADDRESSING_TABLE) {
        int64_t table_row = a->table_rows != NULL ? a->table_rows[row->request] : row->request;
        if (table_row < 0 || (extents->table_rows >= 0 && table_row >= extents->table_rows)) {
            const char *field = a->table_rows != NULL ? "table_rows" : "row_table";
            return ref_fail(error, REF_BAD_INDPTR, field, "request %d: the table has no row %lld",
                            row->request, (long long)table_row);
        }
        int64_t pages = (tokens + a->page_size - 1) / a->page_size;
        if (pages > a->row_table_stride) {
            return ref_fail(error, REF_BAD_LENGTH, "prefix_len",
                            "request %d: %lld tokens do not fit a table row of %lld pages",
                            row->request, (long long)tokens, (long long)a->row_table_stride);
        }
    }
    return REF_OK;
}

/** indptr from 0 on, in order, within the list: also for requests without nodes. */
static int32_t check_indptr(const struct ref_attention *a, const struct ref_extents *extents,
                            struct ref_error *error) {
    int64_t previous = 0;
    for (int32_t b = 0; a->addressing == REF_ADDRESSING_CSR && b <= a->batch; b++) {
        int64_t start = ref_load_index(a->indptr, a->length_dtype, b);
        if (start < previous || (b == 0 && start != 0) ||
            (extents->slot_count >= 0 && start > extents->slot_count)) {
            return ref_fail(error, REF_BAD_INDPTR, "indptr",
                            "entry %d is %lld: it must start at 0, never fall and end within %lld",
                            b, (long long)start, (long long)extents->slot_count);
        }
        previous = start;
    }
    previous = 0;
    for (int32_t b = 0; b <= a->batch; b++) {
        int64_t start = a->node_indptr[b];
        if (start < previous || (b == 0 && start != 0) || start > a->row_capacity) {
            return ref_fail(error, REF_BAD_INDPTR, "node_indptr",
                            "entry %d is %lld: it must start at 0, never fall and end within %lld",
                            b, (long long)start, (long long)a->row_capacity);
        }
        previous = start;
    }
    return REF_OK;
}

/** Lengths, parents and slots of one active request. */
static int32_t check_request(const struct ref_attention *a, const struct ref_extents *extents,
                             int32_t request, struct ref_error *error) {
    struct ref_row row = {request, 0, 0, 0, 0};
    uint32_t bits = ref_request_bounds(a, request, &row);
    if ((bits & REF_REQUEST_NODES) != 0) {
        return ref_fail(error, REF_BAD_LENGTH, "node_indptr", "request %d has %d nodes, at most %d",
                        request, row.num_nodes, a->max_nodes);
    }
    if ((bits & REF_REQUEST_PREFIX) != 0) {
        return ref_fail(error, REF_BAD_LENGTH,
                        a->addressing == REF_ADDRESSING_CSR ? "indptr" : "prefix_len",
                        "request %d has a prefix of %lld, not 0 to %lld", request,
                        (long long)row.prefix_len, (long long)a->max_prefix_len);
    }
    int32_t status = row.num_nodes == 0 ? REF_OK : check_lists(a, extents, &row, error);
    if (status == REF_OK && row.num_nodes > 0 && a->parents != NULL) {
        status = ref_tree_check(a->parents + row.first_row, row.num_nodes, error);
    }
    int64_t prefix = row.num_nodes == 0 ? 0 : row.prefix_len;
    for (int64_t v = 0; status == REF_OK && v < prefix; v++) {
        status = check_slot(a, extents, &row, NULL, v, error);
    }
    int32_t nodes = a->mask_mode == REF_MASK_NONE ? 0 : row.num_nodes;
    for (int32_t node = 0; status == REF_OK && node < nodes; node++) {
        status = check_slot(a, extents, &row, &node, row.prefix_len, error);
    }
    return status;
}

int32_t ref_check_call(const struct ref_attention *call, const struct ref_extents *extents,
                       struct ref_error *error) {
    int32_t status = check_indptr(call, extents, error);
    for (int32_t b = 0; status == REF_OK && b < call->batch; b++) {
        status = check_request(call, extents, b, error);
    }
    return status;
}
