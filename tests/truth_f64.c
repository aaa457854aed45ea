// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The float64 truth. Nothing here is clever, on purpose.
 */
#include "truth_f64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "make_problem.h"

/** Element of an integer list. */
static int64_t list_at(const void *list, int32_t dtype, int64_t i) {
    if (dtype == REF_I64) {
        return ((const int64_t *)list)[i];
    }
    return ((const int32_t *)list)[i];
}

/** Element of a float32 or bfloat16 array. */
static double element_at(const void *array, int32_t dtype, int64_t i) {
    if (dtype == REF_F32) {
        return (double)((const float *)array)[i];
    }
    uint32_t bits = (uint32_t)((const uint16_t *)array)[i] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

/** N of a request, negative if the lists are out of order. */
static int64_t prefix_of(const struct ref_attention *a, int32_t b, int64_t nodes) {
    if (a->addressing == REF_ADDRESSING_TABLE) {
        return list_at(a->prefix_len, a->length_dtype, b);
    }
    int64_t begin = list_at(a->indptr, a->length_dtype, b);
    int64_t end = list_at(a->indptr, a->length_dtype, b + 1);
    int tree_in_list = a->tree_slots == NULL && a->mask_mode != REF_MASK_NONE;
    if (begin < 0) {
        return -1;
    }
    return end - begin - (tree_in_list ? nodes : 0);
}

/** Slot of entry t of a request's main list. */
static int64_t main_list_slot(const struct ref_attention *a, int32_t b, int64_t t) {
    if (a->addressing == REF_ADDRESSING_CSR) {
        return list_at(a->slots, a->slot_dtype, list_at(a->indptr, a->length_dtype, b) + t);
    }
    int64_t row = a->table_rows == NULL ? b : a->table_rows[b];
    int64_t page =
        list_at(a->row_table, a->slot_dtype, row * a->row_table_stride + t / a->page_size);
    return page * a->page_size + t % a->page_size;
}

/** Marks the ancestors of node i, itself included. Returns 0 for a malformed chain. */
static int mark_path(const int32_t *parents, int64_t i, unsigned char *sees_node) {
    sees_node[i] = 1;
    while (i != 0) {
        if (parents[i] < 0 || parents[i] >= i) {
            return 0;
        }
        i = parents[i];
        sees_node[i] = 1;
    }
    return parents[0] == -1;
}

/** Fills the row of the visibility matrix that belongs to node i. */
static void decode_node(const struct ref_attention *a, struct truth_request *q, int64_t i) {
    unsigned char *row = q->visible + i * q->tokens;
    unsigned char *sees_node = row + q->prefix;
    memset(row, 1, (size_t)q->prefix);
    for (int64_t j = 0; j < q->nodes && a->mask_mode == REF_MASK_CHAIN; j++) {
        sees_node[j] = j <= i;
    }
    for (int64_t j = 0; j < q->nodes && a->mask_mode == REF_MASK_PACKED; j++) {
        const uint32_t *words = a->mask_words + (q->first_row + i) * a->mask_stride_words;
        sees_node[j] = words[j / 32] >> (j % 32) & 1;
    }
    if (a->mask_mode == REF_MASK_PARENTS && !mark_path(a->parents + q->first_row, i, sees_node)) {
        memset(row, 0, (size_t)q->tokens);
        q->broken[i] = 1;
        q->status |= REF_REQUEST_TREE;
    }
}

void truth_request_decode(const struct ref_attention *a, int32_t b, struct truth_request *q) {
    memset(q, 0, sizeof *q);
    int64_t begin = a->node_indptr[b];
    int64_t end = a->node_indptr[b + 1];
    if (begin < 0 || end < begin || end > a->row_capacity) {
        q->status = REF_REQUEST_ROWS;
        return;
    }
    q->first_row = begin;
    q->nodes = end - begin;
    if (q->nodes == 0) {
        return; /* an inactive request: its lengths are not looked at */
    }
    q->prefix = prefix_of(a, b, q->nodes);
    q->status |= q->nodes > a->max_nodes ? REF_REQUEST_NODES : 0;
    q->status |= q->prefix < 0 || q->prefix > a->max_prefix_len ? REF_REQUEST_PREFIX : 0;
    if (q->status != 0) {
        return;
    }
    q->active = 1;
    q->tokens = q->prefix + (a->mask_mode == REF_MASK_NONE ? 0 : q->nodes);
    q->slots = test_calloc((size_t)q->tokens * sizeof *q->slots);
    for (int64_t t = 0; t < q->tokens; t++) {
        q->slots[t] = t >= q->prefix && a->tree_slots != NULL
                          ? list_at(a->tree_slots, a->slot_dtype, begin + t - q->prefix)
                          : main_list_slot(a, b, t);
    }
    q->visible = test_calloc((size_t)(q->nodes * q->tokens));
    q->broken = test_calloc((size_t)q->nodes);
    for (int64_t i = 0; i < q->nodes; i++) {
        decode_node(a, q, i);
    }
}

void truth_request_free(struct truth_request *q) {
    free(q->slots);
    free(q->visible);
    free(q->broken);
    memset(q, 0, sizeof *q);
}

/** scale * (q_latent . c + q_rope . k) of a query row and head with a slot. */
static double score_of(const struct ref_attention *a, int64_t row, int32_t h, int64_t slot) {
    double sum = 0.0;
    for (int32_t k = 0; k < a->latent_dim; k++) {
        sum += element_at(a->q_latent, a->q_dtype,
                          row * a->q_latent_stride[0] + h * a->q_latent_stride[1] + k) *
               element_at(a->kv_latent, a->kv_dtype, slot * a->kv_latent_stride + k);
    }
    for (int32_t k = 0; k < a->rope_dim; k++) {
        sum += element_at(a->q_rope, a->q_dtype,
                          row * a->q_rope_stride[0] + h * a->q_rope_stride[1] + k) *
               element_at(a->kv_rope, a->kv_dtype, slot * a->kv_rope_stride + k);
    }
    return (double)a->scale * sum;
}

/** One row and head: weights, their sum, the weighted mean. Returns lse. */
static double attend(const struct ref_attention *a, const struct truth_request *q, int64_t row,
                     int32_t h, double *o) {
    const unsigned char *visible = q->visible + (row - q->first_row) * q->tokens;
    double *score = test_calloc((size_t)q->tokens * sizeof *score);
    double maximum = -INFINITY;
    int not_a_number = 0;
    for (int64_t t = 0; t < q->tokens; t++) {
        if (visible[t]) {
            score[t] = score_of(a, row, h, q->slots[t]);
            not_a_number |= isnan(score[t]) || score[t] == INFINITY;
            maximum = score[t] > maximum ? score[t] : maximum;
        }
    }
    double sum = 0.0;
    for (int32_t d = 0; d < a->latent_dim; d++) {
        o[d] = not_a_number ? NAN : 0.0;
    }
    for (int64_t t = 0; t < q->tokens && !not_a_number && maximum > -INFINITY; t++) {
        double weight = visible[t] ? exp(score[t] - maximum) : 0.0;
        sum += weight;
        for (int32_t d = 0; d < a->latent_dim && weight > 0.0; d++) {
            o[d] += weight *
                    element_at(a->kv_latent, a->kv_dtype, q->slots[t] * a->kv_latent_stride + d);
        }
    }
    for (int32_t d = 0; d < a->latent_dim && sum > 0.0; d++) {
        o[d] /= sum;
    }
    free(score);
    if (not_a_number) {
        return NAN;
    }
    return maximum > -INFINITY ? maximum + log(sum) : -INFINITY;
}

/** The request that owns a row: the first whose bounds are in order and hold it. */
static int32_t owner_of(const struct ref_attention *a, int64_t row) {
    for (int32_t b = 0; b < a->batch; b++) {
        int64_t begin = a->node_indptr[b];
        int64_t end = a->node_indptr[b + 1];
        if (begin >= 0 && end <= a->row_capacity && row >= begin && row < end) {
            return b;
        }
    }
    return -1;
}

void attention_truth_f64(const struct ref_attention *a, const int64_t *rows, int64_t row_count,
                         double *o, double *lse) {
    struct truth_request q;
    memset(&q, 0, sizeof q);
    int32_t decoded = -1;
    for (int64_t i = 0; i < row_count; i++) {
        int64_t row = rows != NULL ? rows[i] : i;
        int32_t b = owner_of(a, row);
        if (b >= 0 && b != decoded) {
            truth_request_free(&q);
            truth_request_decode(a, b, &q);
            decoded = b;
        }
        for (int32_t h = 0; h < a->num_heads; h++) {
            double *head_o = o + (i * a->num_heads + h) * a->latent_dim;
            double value = -INFINITY;
            if (b >= 0 && q.active) {
                value = attend(a, &q, row, h, head_o);
            } else {
                memset(head_o, 0, (size_t)a->latent_dim * sizeof *head_o);
            }
            lse[i * a->num_heads + h] = a->lse_base2 ? value * TEST_LOG2_E : value;
        }
    }
    truth_request_free(&q);
}

void attention_truth_status(const struct ref_attention *a, uint32_t *status) {
    for (int32_t b = 0; b < a->batch; b++) {
        struct truth_request q;
        truth_request_decode(a, b, &q);
        status[b] = q.status;
        truth_request_free(&q);
    }
}
