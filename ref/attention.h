// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * One tree-verify attention call as plain data, and its float32 reference.
 *
 * The reference reads spec/mla_attention.md, tree_and_mask.md, paged_rows.md and numerics.md from
 * top to bottom. The naive kernel takes the same struct by value.
 */
#ifndef REF_ATTENTION_H
#define REF_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "bf16.h"
#include "status.h"

/** Which nodes of a request a node sees besides the prefix (spec/tree_and_mask.md). */
enum ref_mask_mode {
    REF_MASK_NONE = 0,    /**< No node: the prefix only. */
    REF_MASK_CHAIN = 1,   /**< Nodes 0 to i: causal. */
    REF_MASK_PARENTS = 2, /**< Ancestors and itself, from `parents`. */
    REF_MASK_PACKED = 3   /**< Any pattern, from `mask_words`. */
};

/** How a token of a request is turned into a slot of the pool (spec/paged_rows.md). */
enum ref_addressing {
    REF_ADDRESSING_CSR = 0,  /**< indptr + slots. */
    REF_ADDRESSING_TABLE = 1 /**< row_table + prefix_len. */
};

/** Bits of device_status[b]: why a request was treated as inactive. */
enum ref_request_status {
    REF_REQUEST_ROWS = 1,   /**< node_indptr is out of order or beyond row_capacity. */
    REF_REQUEST_NODES = 2,  /**< More nodes than max_nodes. */
    REF_REQUEST_PREFIX = 4, /**< A negative prefix length, or one beyond max_prefix_len. */
    REF_REQUEST_TREE = 8    /**< parents that do not point backwards: that row is empty. */
};

/**
 * A verify call. Strides are in elements. `R` is row_capacity, `B` batch, `H` num_heads,
 * `L` latent_dim, `P` rope_dim.
 */
struct ref_attention {
    int32_t batch;              /**< B >= 1. */
    int32_t num_heads;          /**< H >= 1. */
    int32_t latent_dim;         /**< L >= 1. */
    int32_t rope_dim;           /**< P >= 0. */
    int32_t max_nodes;          /**< Largest number of nodes of a request. */
    int32_t mask_mode;          /**< enum ref_mask_mode. */
    int32_t addressing;         /**< enum ref_addressing. */
    int32_t page_size;          /**< Row table: tokens a page. CSR: 1. */
    int32_t q_dtype;            /**< REF_F32 or REF_BF16. */
    int32_t kv_dtype;           /**< REF_F32 or REF_BF16. */
    int32_t o_dtype;            /**< REF_F32 or REF_BF16. */
    int32_t length_dtype;       /**< indptr and prefix_len: REF_I32 or REF_I64. */
    int32_t slot_dtype;         /**< slots, tree_slots, row_table: REF_I32 or REF_I64. */
    int32_t lse_base2;          /**< 0: natural logarithm; 1: base 2. */
    int64_t row_capacity;       /**< R >= 1: rows of q, o and lse. */
    int64_t max_prefix_len;     /**< Largest prefix of a request. */
    float scale;                /**< Factor of the scores. */
    const void *q_latent;       /**< [R,H,L] absorbed queries. */
    const void *q_rope;         /**< [R,H,P] rope queries. */
    int64_t q_latent_stride[2]; /**< Row and head stride. */
    int64_t q_rope_stride[2];   /**< Row and head stride. */
    const void *kv_latent;      /**< [slots,L] latent rows; also the values. */
    const void *kv_rope;        /**< [slots,P] rope keys. */
    int64_t kv_latent_stride;   /**< Row stride. */
    int64_t kv_rope_stride;     /**< Row stride. */
    const int32_t *node_indptr; /**< [B+1] first query row of each request. */
    const void *indptr;         /**< CSR: [B+1] start of each request in slots. */
    const void *slots;          /**< CSR: prefix slots (then tree slots if tree_slots is NULL). */
    const void *tree_slots;     /**< [R] slot of each query row, or NULL. */
    const void *row_table;      /**< Table: [rows,row_table_stride] slots or page numbers. */
    int64_t row_table_stride;   /**< Table: elements from one row to the next. */
    const int32_t *table_rows;  /**< Table: [B] row of each request, or NULL for row b. */
    const void *prefix_len;     /**< Table: [B] prefix lengths. */
    const int32_t *parents;     /**< PARENTS: [R] parent node, -1 for the root. */
    const uint32_t *mask_words; /**< PACKED: [R,mask_stride_words], bit j%32 of word j/32. */
    int64_t mask_stride_words;  /**< PACKED: words from one row to the next. */
    void *o;                    /**< [R,H,L] output. */
    int64_t o_stride[2];        /**< Row and head stride. */
    float *lse;                 /**< [R,H] contiguous, or NULL. */
    uint32_t *device_status;    /**< [B] enum ref_request_status bits, ORed in, or NULL. */
};

/**
 * Workspace of attention_reference_f32 for one thread.
 *
 * @param a     the call; only its dimensions are read
 * @param bytes set to the number of bytes, a multiple of 64
 * @return REF_OK or REF_SIZE_OVERFLOW
 */
int32_t attention_reference_f32_workspace(const struct ref_attention *a, size_t *bytes);

/**
 * The float32 reference in the canonical order, for query rows row_begin to row_end - 1.
 *
 * Rows are independent: any partition of [0, row_capacity) over threads gives the same bits. The
 * arguments must have been checked (capi does).
 *
 * @param a         the call, host pointers
 * @param row_begin first query row
 * @param row_end   one past the last query row
 * @param workspace attention_reference_f32_workspace() bytes, 64-byte aligned, any content
 */
void attention_reference_f32(const struct ref_attention *a, int64_t row_begin, int64_t row_end,
                             void *workspace);

/**
 * ORs what is wrong with each request into device_status, once a call, before or after the rows.
 *
 * @param a the call, host pointers; does nothing where device_status is NULL
 */
void attention_reference_f32_status(const struct ref_attention *a);

#endif
