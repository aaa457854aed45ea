// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Rows, requests, visible nodes and slots (spec/tree_and_mask.md, spec/paged_rows.md), shared by
 * the reference, its bounds, the naive kernel and the flash kernel.
 */
#ifndef REF_ROWS_H
#define REF_ROWS_H

#include "attention.h"

/** What a query row belongs to. */
struct ref_row {
    int32_t request;    /**< Owner, or -1: the row is empty. */
    int32_t node;       /**< Node number within the request. */
    int32_t num_nodes;  /**< Q_b. */
    int64_t first_row;  /**< Query row of node 0. */
    int64_t prefix_len; /**< N_b. */
};

/**
 * Bounds of a request and what is wrong with it.
 *
 * @param a       the call
 * @param request its number
 * @param row     first_row, num_nodes and prefix_len are set where the result lets them be
 * @return 0, or enum ref_request_status bits: the request is inactive
 */
REF_INLINE uint32_t ref_request_bounds(const struct ref_attention *a, int32_t request,
                                       struct ref_row *row) {
    int64_t begin = a->node_indptr[request];
    int64_t end = a->node_indptr[request + 1];
    int64_t prefix_len;
    if (a->addressing == REF_ADDRESSING_CSR) {
        int64_t start = ref_load_index(a->indptr, a->length_dtype, request);
        int64_t stop = ref_load_index(a->indptr, a->length_dtype, request + 1);
        prefix_len = start < 0 || stop < start ? -1 : stop - start;
    } else {
        prefix_len = ref_load_index(a->prefix_len, a->length_dtype, request);
    }
    if (begin < 0 || end < begin || end > a->row_capacity) {
        return REF_REQUEST_ROWS;
    }
    row->first_row = begin;
    row->num_nodes = (int32_t)(end - begin);
    row->prefix_len = prefix_len;
    /* With no list of their own, the tree's slots come last in this one. */
    if (a->addressing == REF_ADDRESSING_CSR && prefix_len >= 0 && a->tree_slots == NULL &&
        a->mask_mode != REF_MASK_NONE) {
        row->prefix_len -= row->num_nodes;
    }
    uint32_t status = row->num_nodes > a->max_nodes ? REF_REQUEST_NODES : 0;
    if (row->prefix_len < 0 || row->prefix_len > a->max_prefix_len) {
        status |= REF_REQUEST_PREFIX;
    }
    /* An inactive slot of a fixed-size batch has no nodes; its lengths mean nothing. */
    return row->num_nodes == 0 ? 0 : status;
}

/**
 * All status bits of a request: its bounds, and where these are good its parents.
 *
 * @param a       the call
 * @param request its number
 * @return enum ref_request_status bits
 */
REF_INLINE uint32_t ref_request_status(const struct ref_attention *a, int32_t request) {
    struct ref_row row = {request, 0, 0, 0, 0};
    uint32_t bits = ref_request_bounds(a, request, &row);
    for (int32_t i = 0; bits == 0 && a->mask_mode == REF_MASK_PARENTS && i < row.num_nodes; i++) {
        int32_t parent = a->parents[row.first_row + i];
        if (i == 0 ? parent != -1 : parent < 0 || parent >= i) {
            bits = REF_REQUEST_TREE;
        }
    }
    return bits;
}

/**
 * Finds the owner of a query row: the lowest well-formed request whose rows hold it.
 *
 * @param a     the call
 * @param index query row, 0 to row_capacity - 1
 * @return the row; request is -1 if nobody owns it or its request is inactive
 */
REF_INLINE struct ref_row ref_find_row(const struct ref_attention *a, int64_t index) {
    struct ref_row row = {-1, 0, 0, 0, 0};
    for (int32_t b = 0; b < a->batch; b++) {
        uint32_t status = ref_request_bounds(a, b, &row);
        if ((status & REF_REQUEST_ROWS) == 0 && index >= row.first_row &&
            index < row.first_row + row.num_nodes) {
            row.request = status == 0 ? b : -1;
            row.node = (int32_t)(index - row.first_row);
            return row;
        }
    }
    row.request = -1;
    return row;
}

/**
 * Lists the nodes that a node sees, ascending (eq-visible).
 *
 * @param a     the call
 * @param row   an owned row
 * @param nodes at least num_nodes entries to fill
 * @return how many; -1 if the parents do not point backwards
 */
REF_INLINE int32_t ref_visible_nodes(const struct ref_attention *a, const struct ref_row *row,
                                     int32_t *nodes) {
    int32_t count = 0;
    if (a->mask_mode == REF_MASK_CHAIN) {
        for (int32_t j = 0; j <= row->node; j++) {
            nodes[count++] = j;
        }
    } else if (a->mask_mode == REF_MASK_PARENTS) {
        const int32_t *parents = a->parents + row->first_row;
        int32_t j = row->node;
        for (; j > 0; j = parents[j]) {
            if (parents[j] < 0 || parents[j] >= j) {
                return -1;
            }
            nodes[count++] = j;
        }
        if (parents[0] != -1) {
            return -1;
        }
        nodes[count++] = 0;
        for (int32_t low = 0, high = count - 1; low < high; low++, high--) {
            int32_t swap = nodes[low];
            nodes[low] = nodes[high];
            nodes[high] = swap;
        }
    } else if (a->mask_mode == REF_MASK_PACKED) {
        const uint32_t *words = a->mask_words + (row->first_row + row->node) * a->mask_stride_words;
        for (int32_t j = 0; j < row->num_nodes; j++) {
            if ((words[j / 32] >> (j % 32)) & 1u) {
                nodes[count++] = j;
            }
        }
    }
    return count;
}

/**
 * Slot of a token (eq-slot-csr, eq-slot-table).
 *
 * @param a     the call
 * @param row   an owned row
 * @param nodes its visible nodes
 * @param v     number among the visible tokens: prefix first, then `nodes`
 * @return slot of the pool; -1 for a page number that no pool can have
 */
REF_INLINE int64_t ref_visible_slot(const struct ref_attention *a, const struct ref_row *row,
                                    const int32_t *nodes, int64_t v) {
    int64_t token = v;
    if (v >= row->prefix_len) {
        int32_t node = nodes[v - row->prefix_len];
        if (a->tree_slots != NULL) {
            return ref_load_index(a->tree_slots, a->slot_dtype, row->first_row + node);
        }
        token = row->prefix_len + node;
    }
    if (a->addressing == REF_ADDRESSING_CSR) {
        int64_t first = ref_load_index(a->indptr, a->length_dtype, row->request);
        return ref_load_index(a->slots, a->slot_dtype, first + token);
    }
    int64_t table_row = a->table_rows != NULL ? a->table_rows[row->request] : row->request;
    int64_t page = ref_load_index(a->row_table, a->slot_dtype,
                                  table_row * a->row_table_stride + token / a->page_size);
    if (page < 0 || page > INT64_MAX / 256) {
        return -1; /* a page number that no pool has must not overflow into one that it has */
    }
    return page * a->page_size + token % a->page_size;
}

/**
 * An element of the concatenated query [latent, rope] of a row and head.
 *
 * @param a    the call
 * @param row  query row
 * @param head head
 * @param k    0 to latent_dim + rope_dim - 1
 * @return its value
 */
REF_INLINE float ref_query_element(const struct ref_attention *a, int64_t row, int32_t head,
                                   int32_t k) {
    return k < a->latent_dim
               ? ref_load_f32(a->q_latent, a->q_dtype,
                              row * a->q_latent_stride[0] + head * a->q_latent_stride[1] + k)
               : ref_load_f32(a->q_rope, a->q_dtype,
                              row * a->q_rope_stride[0] + head * a->q_rope_stride[1] +
                                  (k - a->latent_dim));
}

/**
 * An element of the concatenated cache row [latent, rope] of a slot.
 *
 * @param a    the call
 * @param slot slot of the pool
 * @param k    0 to latent_dim + rope_dim - 1
 * @return its value
 */
REF_INLINE float ref_cache_element(const struct ref_attention *a, int64_t slot, int32_t k) {
    return k < a->latent_dim
               ? ref_load_f32(a->kv_latent, a->kv_dtype, slot * a->kv_latent_stride + k)
               : ref_load_f32(a->kv_rope, a->kv_dtype,
                              slot * a->kv_rope_stride + (k - a->latent_dim));
}

/**
 * Index of an output element.
 *
 * @param a    the call
 * @param row  query row
 * @param head head
 * @param d    latent column
 * @return element number in o
 */
REF_INLINE int64_t ref_output_index(const struct ref_attention *a, int64_t row, int32_t head,
                                    int32_t d) {
    return row * a->o_stride[0] + head * a->o_stride[1] + d;
}

/**
 * An element of o before it is stored.
 *
 * @param lse        log-sum-exp of the row and head: NaN and -inf mark special rows
 * @param total      weighted sum
 * @param weight_sum sum of the weights
 * @return total / weight_sum, NaN where lse is NaN, 0 where the row is empty
 */
REF_INLINE float ref_output_value(float lse, float total, float weight_sum) {
    if (lse != lse) {
        return lse;
    }
    return ref_bits_from_f32(lse) == 0xff800000u ? 0.0f : total / weight_sum;
}

/**
 * The stored log-sum-exp: natural, or base 2 by one rounded product (spec/numerics.md).
 *
 * @param a   the call
 * @param lse natural logarithm
 * @return what is stored
 */
REF_INLINE float ref_stored_lse(const struct ref_attention *a, float lse) {
    return ref_canonical_f32(a->lse_base2 ? lse * 0x1.715476p+0f : lse);
}

#endif
