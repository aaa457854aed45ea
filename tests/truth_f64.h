// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The truth: verify attention in float64, by the simplest code that does it. It shares no code
 * with ref/ but the struct of a call and the reading of an element: requests, masks and slots are
 * decoded here a second time, from the spec (spec/mla_attention.md, tree_and_mask.md,
 * paged_rows.md).
 */
#ifndef TESTS_TRUTH_F64_H
#define TESTS_TRUTH_F64_H

#include "attention.h"

/** A request, decoded. */
struct truth_request {
    uint32_t status;        /**< enum ref_request_status bits that a run must set. */
    int32_t active;         /**< 1: it has rows to compute. */
    int64_t first_row;      /**< Query row of node 0. */
    int64_t nodes;          /**< Q. */
    int64_t prefix;         /**< N. */
    int64_t tokens;         /**< Columns of `visible`: N + Q, or N with MASK_NONE. */
    int64_t *slots;         /**< [tokens] slot of each token: prefix, then nodes. */
    unsigned char *visible; /**< [nodes][tokens] 1 where a node sees a token. */
    unsigned char *broken;  /**< [nodes] 1: a malformed chain of parents; the row is empty. */
};

/**
 * Decodes a request.
 *
 * @param a       the call
 * @param b       request
 * @param request filled; truth_request_free releases it
 */
void truth_request_decode(const struct ref_attention *a, int32_t b, struct truth_request *request);

/** Releases a request. @param request a decoded request */
void truth_request_free(struct truth_request *request);

/**
 * Attention of some query rows.
 *
 * @param a         the call, host pointers; outputs are not touched
 * @param rows      [row_count] query rows, or NULL for rows 0 to row_count - 1
 * @param row_count how many
 * @param o         [row_count,H,L]
 * @param lse       [row_count,H], base 2 if the call says so
 */
void attention_truth_f64(const struct ref_attention *a, const int64_t *rows, int64_t row_count,
                         double *o, double *lse);

/**
 * What a run must OR into device_status.
 *
 * @param a      the call
 * @param status [B]
 */
void attention_truth_status(const struct ref_attention *a, uint32_t *status);

#endif
