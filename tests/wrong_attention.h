// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * An attention that is right, or wrong in one chosen way. The harness must reject every wrong way
 * (gate P0-7). Sums are in double, so that only what was planted is wrong.
 */
#ifndef TESTS_WRONG_ATTENTION_H
#define TESTS_WRONG_ATTENTION_H

#include "attention.h"

/** What is wrong. */
enum wrong_bug {
    WRONG_NOTHING = 0,         /**< Right. */
    WRONG_IGNORES_MASK,        /**< Every node sees every node. */
    WRONG_IGNORES_TREE,        /**< No node sees a node. */
    WRONG_DROPS_LAST_TOKEN,    /**< The prefix ends one token early. */
    WRONG_READS_PAST_PREFIX,   /**< One row more: the neighbour of the last in the pool. */
    WRONG_WRITES_NAN,          /**< One element of the output is NaN. */
    WRONG_UNWRITTEN,           /**< One element of the output is not written. */
    WRONG_ROW_ORDER,           /**< A node sees all nodes of smaller number: causal. */
    WRONG_EMPTY_LSE,           /**< The lse of an empty row is +inf. */
    WRONG_READS_POISON,        /**< Masked rows have weight 0 but are multiplied: 0 * NaN. */
    WRONG_ZERO_TIMES_INF,      /**< The same for a visible row whose score is -inf. */
    WRONG_SCALE,               /**< 1 / sqrt(576) in place of the scale that was given. */
    WRONG_DROPS_LAST_SPLIT,    /**< The last block of 256 tokens, where there are more than one. */
    WRONG_FORGETS_ROPE,        /**< Scores from the latent part alone. */
    WRONG_SWAPS_HEADS,         /**< Heads 0 and 1, 2 and 3, ... have each other's queries. */
    WRONG_PARENT_ROW,          /**< A node's own cache row is its parent's. */
    WRONG_MASK_BIT_ORDER,      /**< Most significant bit first. */
    WRONG_FIRST_MASK_WORD,     /**< Nodes from 32 on are seen by nobody. */
    WRONG_TILE_EDGE,           /**< Node 32, 64, ... sees the node before it. */
    WRONG_LSE_BASE,            /**< Base 2 for natural and the reverse. */
    WRONG_LSE_WITHOUT_MAX,     /**< lse = log(sum), the maximum forgotten. */
    WRONG_EMPTY_ROW_NAN,       /**< An empty row is 0 / 0. */
    WRONG_SKIPS_EMPTY_ROWS,    /**< Rows that nobody owns are not written. */
    WRONG_UNNORMALISED,        /**< The last row of a request is not divided by its sum. */
    WRONG_NO_MAXIMUM,          /**< exp(s) without the maximum taken off. */
    WRONG_NAN_IS_MASKED,       /**< A NaN score counts as -inf. */
    WRONG_IGNORES_SLOTS,       /**< Token t is in slot t. */
    WRONG_IGNORES_PAGE_OFFSET, /**< Token t is in the first slot of its page. */
    WRONG_REQUEST,             /**< Every request has the prefix of request 0. */
    WRONG_OVER_LIMIT_RUNS,     /**< A request beyond the limits is computed. */
    WRONG_NO_STATUS,           /**< device_status stays as it is. */
    WRONG_SETS_STATUS,         /**< device_status is written, not ORed into. */
    WRONG_IGNORES_STRIDES,     /**< Output rows are stored without gaps. */
    WRONG_WRITES_PAST_END,     /**< One element after the last. */
    WRONG_WRITES_INPUT,        /**< Sorts its mess into an input: q_latent[0] = 0. */
    WRONG_TRUNCATES,           /**< bfloat16 output is cut off, not rounded. */
    WRONG_BF16_WEIGHTS,        /**< Weights rounded to bfloat16: fine for flash, not for float32. */
    WRONG_FLUSHES_DENORMALS,   /**< Denormal values are 0. */
    WRONG_COUNT                /**< Number of bugs, the right one included. */
};

/**
 * The bug's name.
 *
 * @param bug enum wrong_bug
 * @return what is wrong, in words
 */
const char *wrong_bug_name(int32_t bug);

/**
 * Attention of a whole call with one planted bug.
 *
 * @param call host pointers
 * @param bug  enum wrong_bug
 */
void attention_wrong_f32(const struct ref_attention *call, int32_t bug);

#endif
