// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Building the bundle of a named case from its description (spec/bundle_format.md, "Named cases").
 */
#ifndef REF_CASE_BUILDER_H
#define REF_CASE_BUILDER_H

#include "bundle.h"

/** Most requests of a named case. */
#define REF_CASE_MAX_BATCH 8

/** Description of a named case. Zero is the default of every field from `window` on. */
struct ref_case {
    const char *name;                       /**< Case name. */
    const char *summary;                    /**< What it is for, one line. */
    int32_t batch;                          /**< Requests. */
    int32_t prefix_len[REF_CASE_MAX_BATCH]; /**< N_b. */
    int32_t num_nodes[REF_CASE_MAX_BATCH];  /**< Q_b; 0 is an inactive request. */
    int32_t num_heads;                      /**< H. */
    int32_t latent_dim;                     /**< L. */
    int32_t rope_dim;                       /**< P. */
    int32_t mask_mode;                      /**< enum ref_mask_mode. */
    int32_t kv_dtype;                       /**< REF_F32 or REF_BF16. */
    int32_t window;                         /**< ref_tree_random's window; 0 is 6. */
    int32_t q_bf16;                         /**< 1: bfloat16 queries. */
    int32_t page_size;                      /**< 0: CSR. Otherwise a row table. */
    int32_t wide;                           /**< 1: int64 lengths and slots. */
    int32_t two_pools;                      /**< 1: kv_latent and kv_rope. */
    int32_t tree_list;                      /**< 1: tree_slots of its own. */
    int32_t spare_rows;                     /**< Query rows that no request owns. */
    int32_t any_mask;        /**< PACKED: 1 random bits, not a tree; 2: request 0 sees nothing. */
    int32_t draft_positions; /**< Step problem: L, above 0; the trees are draft trees. */
    int32_t draft_ranks;     /**< Step problem: K. */
    int32_t vocab_size;      /**< Step problem: tokens are 0 to this - 1. */
};

/**
 * Builds the bundle file of a case.
 * @param description the case
 * @param file        set to malloc'ed bytes, released with free; NULL on failure
 * @param bytes       set to their number
 * @param error       filled on failure, or NULL
 * @return REF_OK, REF_OUT_OF_MEMORY, or REF_INVALID_ARGUMENT or REF_UNSUPPORTED: a draft that does
 *         not give the tree
 */
int32_t ref_case_build(const struct ref_case *description, void **file, size_t *bytes,
                       struct ref_error *error);

#endif
