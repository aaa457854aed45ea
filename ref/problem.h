// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The problem in a bundle, bound to a call, and the check of everything that a run trusts.
 */
#ifndef REF_PROBLEM_H
#define REF_PROBLEM_H

#include "attention.h"
#include "bundle.h"

/** A problem of a bundle. Every pointer points into the bundle's bytes. */
struct ref_problem {
    struct ref_attention call;              /**< o, lse and device_status are NULL. */
    int64_t num_slots;                      /**< Slots of the pool. */
    int64_t slot_count;                     /**< CSR: entries of slots. Table: 0. */
    int64_t table_rows;                     /**< Table: rows of row_table. CSR: 0. */
    int32_t is_module;                      /**< 1: module problem; call.q_latent is NULL. */
    const struct ref_tensor *o;             /**< Expected [R,H,L] (verify problem). */
    const struct ref_tensor *lse;           /**< Expected [R,H] (verify problem). */
    const struct ref_tensor *parents;       /**< [R], or NULL. */
    const struct ref_tensor *q_nope;        /**< Module problem. */
    const struct ref_tensor *kv_b_proj;     /**< Module problem. */
    const struct ref_tensor *module_output; /**< Module problem. */
};

/**
 * Binds a bundle's problem and checks all of it (spec/bundle_format.md, both problems). Strides
 * are contiguous; o_stride is set as for a contiguous [R,H,L]. max_nodes and max_prefix_len are the
 * largest in the bundle, at least 1 and 0.
 * @param bundle  a parsed bundle
 * @param problem filled on success
 * @param error   filled on failure, or NULL
 * @return REF_OK, REF_BUNDLE_MISSING, REF_BUNDLE_DTYPE, REF_BUNDLE_SHAPE, REF_BAD_SCALE or what
 *         ref_check_call returns
 */
int32_t ref_problem_bind(const struct ref_bundle *bundle, struct ref_problem *problem,
                         struct ref_error *error);

/** Lengths of the host arrays of a call, for ref_check_call. -1 where unknown: not checked. */
struct ref_extents {
    int64_t num_slots;  /**< Slots of the pool. */
    int64_t slot_count; /**< CSR: entries of slots. */
    int64_t table_rows; /**< Table: rows of row_table. */
};

/**
 * Verifies what a run trusts: node_indptr from 0 in order within row_capacity, node counts,
 * prefix lengths, indptr, every slot that a run may follow, parents of every request.
 * @param call    the call, host pointers
 * @param extents lengths of its arrays
 * @param error   filled on failure, or NULL
 * @return REF_OK, REF_BAD_INDPTR, REF_BAD_LENGTH, REF_BAD_SLOT or REF_BAD_TREE
 */
int32_t ref_check_call(const struct ref_attention *call, const struct ref_extents *extents,
                       struct ref_error *error);

#endif
