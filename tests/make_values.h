// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The record that describes a test problem and the values it holds. A value depends on the seed
 * and its logical place only (request, token, column), never on the layout, so that two layouts of
 * one record must give the same bits.
 */
#ifndef TESTS_MAKE_VALUES_H
#define TESTS_MAKE_VALUES_H

#include <stdint.h>

/** Largest batch of a record. */
#define TEST_MAX_BATCH 64

/** What is special about the values of a problem. */
enum test_kind {
    TEST_BENIGN = 0,     /**< Scores that spread by several units. */
    TEST_HUGE_SCORE,     /**< One cache row is 64 times as long as the others. */
    TEST_EQUAL_SCORES,   /**< All scores of a row are equal; the values are not. */
    TEST_BEYOND_80,      /**< Scores far beyond +-80, where exp without a maximum overflows. */
    TEST_CANCELLATION,   /**< Values of +-1000 that nearly cancel in the output. */
    TEST_DENORMAL,       /**< Latent rows of denormal numbers. */
    TEST_POISONED_NODES, /**< NaN and infinities in the rows of some nodes. */
    TEST_VISIBLE_NAN,    /**< A NaN in the prefix of request 0. */
    TEST_VISIBLE_INF,    /**< +inf in a prefix row: scores of both signs over the heads. */
    TEST_NEGATIVE_INF,   /**< Every other prefix row has score -inf and a latent element -inf. */
    TEST_ALL_MINUS_INF,  /**< Every score of request 0 is -inf. */
    TEST_KIND_COUNT      /**< Number of kinds. */
};

/** Which bits a PACKED mask has. */
enum test_pattern {
    TEST_PATTERN_TREE = 0, /**< Those of the tree. */
    TEST_PATTERN_RANDOM    /**< Half of all, not only trees; every third row sees no node. */
};

/** Parameters of a problem. Zero is the default where one is named. */
struct test_case {
    const char *name;               /**< For messages. */
    uint64_t seed;                  /**< Of values, slots and trees; 0 = the run's seed. */
    int32_t batch;                  /**< B; 0 = 1. */
    int64_t prefix[TEST_MAX_BATCH]; /**< N of each request; -1 in a table: an invalid length. */
    int32_t nodes[TEST_MAX_BATCH];  /**< Q of each request. */
    int32_t heads;                  /**< H; 0 = 2. */
    int32_t latent_dim;             /**< L; 0 = 40: one full group of 32 and a tail. */
    int32_t rope_dim;               /**< P; 0 = 9, -1 = none. */
    int32_t mask_mode;              /**< enum ref_mask_mode. */
    int32_t pattern;                /**< PACKED: enum test_pattern. */
    int32_t window;                 /**< A parent is among so many nodes before; 0 = 4. */
    int32_t kind;                   /**< enum test_kind. */
    int32_t bf16_q;                 /**< 1: bfloat16 queries. */
    int32_t bf16_kv;                /**< 1: bfloat16 cache. */
    int32_t bf16_o;                 /**< 1: bfloat16 output. */
    int32_t page_size;              /**< 0: CSR; otherwise a row table with this page size. */
    int32_t own_tree_list;          /**< 1: tree_slots. */
    int32_t one_pool;               /**< 1: latent and rope in one row. */
    int32_t one_query;              /**< 1: q_latent and q_rope in one tensor. */
    int32_t wide_lengths;           /**< 1: int64 indptr and prefix_len. */
    int32_t wide_slots;             /**< 1: int64 slots. */
    int32_t table_rows;             /**< 1: requests use other rows of the table than their own. */
    int32_t lse_base2;              /**< 1: lse in base 2. */
    int32_t heads_outer;            /**< 1: q and o are [H,R,.] in memory. */
    int32_t padding;                /**< Extra elements in every stride. */
    int32_t lead_rows;              /**< Query rows that nobody owns, before all others. */
    int32_t spare_rows;             /**< Query rows that nobody owns, after all others. */
    int32_t limit_nodes;            /**< max_nodes; 0 = the largest Q. */
    int64_t limit_prefix;           /**< max_prefix_len; 0 = the largest N. */
    int32_t expected_batch;         /**< Of the plan; 0 = 1. */
    int32_t no_optional;            /**< 1: lse and device_status are NULL. */
    int32_t first_request;          /**< Values of request b are those of b + first_request. */
};

/**
 * Hash of a seed and up to three numbers: the one random source of the tests.
 *
 * @param seed   seed
 * @param stream what is drawn
 * @param x      first number
 * @param y      second number
 * @return 64 well mixed bits
 */
uint64_t test_hash(uint64_t seed, uint64_t stream, uint64_t x, uint64_t y);

/**
 * An element of the concatenated query [latent, rope].
 *
 * @param c       record, defaults filled in
 * @param request request
 * @param node    node
 * @param head    head
 * @param k       column, 0 to L + P - 1
 * @return value before rounding to the query's type
 */
float test_query_value(const struct test_case *c, int32_t request, int32_t node, int32_t head,
                       int32_t k);

/**
 * An element of the concatenated cache row [latent, rope].
 *
 * @param c       record, defaults filled in
 * @param request request
 * @param token   token: the prefix, then the nodes
 * @param k       column, 0 to L + P - 1
 * @return value before rounding to the cache's type
 */
float test_cache_value(const struct test_case *c, int32_t request, int64_t token, int32_t k);

/**
 * Whether the row of a node is poisoned in a problem of TEST_POISONED_NODES.
 *
 * @param node node
 * @return 1 if so
 */
int test_node_is_poisoned(int64_t node);

/**
 * Factor of the scores, so that they spread as the kind asks.
 *
 * @param c record, defaults filled in
 * @return scale
 */
float test_scale(const struct test_case *c);

#endif
