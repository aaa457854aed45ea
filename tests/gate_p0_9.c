// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-9, draft trees: both builders against brute force, against each other and against
 * float64; rows that break their contract; published vectors.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "check_main.h"
#include "draft_checks.h"
#include "draft_marginals.h"
#include "random.h"
#include "tree.h"
#include "tree_links.h"

/** No limit of depth. */
#define NO_LIMIT INT32_MAX

/** Compares both builders with brute force on one instance. */
static void compare_with_brute_force(const struct ref_draft_marginals *m, int32_t budget,
                                     int32_t depth_limit, const char *name) {
    struct oracle_node *nodes = malloc(ORACLE_MAX_NODES * sizeof *nodes);
    uint32_t status;
    ck_assert(nodes != NULL);
    int32_t count = oracle_brute_force(m, budget, depth_limit, nodes, &status);
    for (int builder = DRAFT_HEAP; builder <= DRAFT_LEVELS; builder++) {
        struct draft_built built;
        draft_build(builder, m, budget, depth_limit, &built);
        ck_assert_msg(built.tree.num_nodes == count + 1, "%s, builder %d: %d nodes, not %d", name,
                      builder, built.tree.num_nodes, count + 1);
        ck_assert_msg(built.tree.status == status, "%s, builder %d: status %u, not %u", name,
                      builder, built.tree.status, status);
        for (int32_t i = 0; i < count; i++) {
            struct oracle_node node;
            oracle_node_of(&built.tree, i + 1, &node);
            if (oracle_compare_ranks(&node, &nodes[i]) != 0 || node.score != nodes[i].score) {
                ck_abort_msg("%s, builder %d: node %d of %d differs", name, builder, i + 1, count);
            }
        }
        draft_check_invariants(m, budget, depth_limit, &built.tree);
        draft_free(&built);
    }
    free(nodes);
}

START_TEST(small_trees_equal_brute_force) {
    int rounds = test_scale_is_small() ? 1000 : 7000;
    int64_t nodes = 0;
    for (int round = 0; round < rounds; round++) {
        uint64_t seed = ref_random(test_seed(), (uint64_t)round);
        char name[80];
        struct oracle_marginals marginals;
        int kind = round % ORACLE_KINDS;
        int32_t positions = (int32_t)(ref_random(seed, 1) % 5);
        int32_t ranks = (int32_t)(ref_random(seed, 2) % (positions < 4 ? 7 : 5));
        int32_t budget = (int32_t)(ref_random(seed, 3) % 40);
        int32_t limit = ref_random(seed, 4) % 3 > 0 ? NO_LIMIT : (int32_t)(seed % 5);
        snprintf(name, sizeof name, "round %d: kind %d, L %d, K %d, budget %d, limit %d", round,
                 kind, positions, ranks, budget, limit);
        oracle_marginals_make(kind, seed, positions, ranks, round % 3, &marginals);
        compare_with_brute_force(&marginals.m, budget, limit, name);
        nodes += budget;
        oracle_marginals_free(&marginals);
    }
    printf("P0-9 brute force: %d instances, %lld nodes asked for\n", rounds, (long long)nodes);
}
END_TEST

START_TEST(all_small_shapes_equal_brute_force) {
    /* 1 to 4 candidates at each of 4 depths, all budgets up to 14: levels of just the budget's
       size, one less and one more are among them. */
    static float logp[4][4];
    static int64_t tokens[4][4];
    const struct ref_draft_marginals m = {logp[0], tokens[0], 4, 4, 4};
    for (int shape = 0; shape < 256; shape++) {
        for (int i = 0; i < 16; i++) {
            int width = 1 + (shape >> (2 * (i / 4))) % 4;
            float step = (float)(1 + ref_random(test_seed(), (uint64_t)(shape * 16 + i)) % 4);
            logp[i / 4][i % 4] = i % 4 >= width ? -INFINITY
                                 : i % 4 == 0   ? 0.0f
                                                : logp[i / 4][i % 4 - 1] - 0.5f * (step - 1.0f);
            tokens[i / 4][i % 4] = i;
        }
        for (int32_t budget = 0; budget <= 14; budget++) {
            char name[40];
            snprintf(name, sizeof name, "shape %d, budget %d", shape, budget);
            compare_with_brute_force(&m, budget, NO_LIMIT, name);
        }
    }
}
END_TEST

/** Budgets and positions that every comparison of large trees goes through. */
static const int32_t budgets[] = {0, 1, 7, 16, 64, 256, 1024};
static const int32_t position_counts[] = {1, 7, 15};

/** K: 1, 2, 5, half the budget, the budget, more than the budget. */
static int32_t rank_count(int which, int32_t budget) {
    const int32_t counts[] = {1, 2, 5, budget / 2, budget, budget + 3};
    return counts[which];
}

START_TEST(heap_equals_levels) {
    int trees = 0;
    int rounds = test_scale_is_small() ? 1 : 5;
    for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
        for (int n = 0; n < 3 * 6 * ORACLE_KINDS * rounds; n++) {
            int32_t positions = position_counts[n % 3];
            int32_t ranks = rank_count(n / 3 % 6, budgets[b]);
            int kind = n / 18 % ORACLE_KINDS;
            struct oracle_marginals marginals;
            struct draft_built heap;
            struct draft_built levels;
            char name[80];
            snprintf(name, sizeof name, "kind %d, L %d, K %d, budget %d", kind, positions, ranks,
                     budgets[b]);
            oracle_marginals_make(kind, test_seed() + (uint64_t)n, positions, ranks, 0, &marginals);
            draft_build(DRAFT_HEAP, &marginals.m, budgets[b], NO_LIMIT, &heap);
            draft_build(DRAFT_LEVELS, &marginals.m, budgets[b], NO_LIMIT, &levels);
            draft_check_equal(&heap.tree, &levels.tree, name);
            draft_check_invariants(&marginals.m, budgets[b], NO_LIMIT, &heap.tree);
            draft_free(&heap);
            draft_free(&levels);
            oracle_marginals_free(&marginals);
            trees++;
        }
    }
    printf("P0-9 heap and levels: %d trees, 0 differing nodes\n", trees);
}
END_TEST

static int by_ranks(const void *a, const void *b) {
    return oracle_compare_ranks(a, b);
}

/** Nodes of one float64 set that the other set lacks; all must be within a tie of the boundary. */
static int32_t compare_sets(const struct oracle_node *a, const struct oracle_node *b, int32_t count,
                            double boundary, double tie) {
    int32_t missing = 0;
    for (int32_t i = 0; i < count; i++) {
        if (bsearch(&a[i], b, (size_t)count, sizeof *b, by_ranks) == NULL) {
            ck_assert(fabs(a[i].score_f64 - boundary) <= tie);
            missing++;
        }
    }
    return missing;
}

/** Float64 score of a node of a float32 tree. */
static void score_in_f64(const struct ref_draft_marginals *m, struct oracle_node *node) {
    node->score_f64 = 0.0;
    for (int32_t d = 0; d < node->depth; d++) {
        node->score_f64 += (double)m->logp[d * m->stride + node->rank[d]];
    }
}

/** Compares the heap's set with float64's. Returns 1 if they differ, which only a tie may do. */
static int compare_with_f64(const struct ref_draft_marginals *m, int32_t budget) {
    struct draft_built built;
    int more = 0;
    size_t room = 2 * (size_t)budget + 3;
    struct oracle_node *wide = malloc(room * sizeof *wide);
    struct oracle_node *narrow = malloc(room * sizeof *narrow);
    ck_assert(wide != NULL && narrow != NULL);
    int32_t count = oracle_best_first_f64(m, budget, wide, &more);
    draft_build(DRAFT_HEAP, m, budget, NO_LIMIT, &built);
    ck_assert_int_eq(built.tree.num_nodes, count + 1);
    for (int32_t i = 0; i < count; i++) {
        oracle_node_of(&built.tree, i + 1, &narrow[i]);
        score_in_f64(m, &narrow[i]);
    }
    double last_in = count > 0 ? wide[count - 1].score_f64 : 0.0;
    double gap = more ? last_in - wide[count].score_f64 : INFINITY;
    double tie = TEST_DRAFT_TIE(m->num_positions, last_in);
    qsort(wide, (size_t)count, sizeof *wide, by_ranks);
    qsort(narrow, (size_t)count, sizeof *narrow, by_ranks);
    int32_t missing = compare_sets(wide, narrow, count, last_in, tie);
    ck_assert_int_eq(compare_sets(narrow, wide, count, last_in, tie), missing);
    ck_assert_msg(missing == 0 || gap < tie, "L %d, K %d, budget %d: %d nodes differ, no tie",
                  m->num_positions, m->num_ranks, budget, missing);
    draft_free(&built);
    free(wide);
    free(narrow);
    return missing > 0;
}

START_TEST(sets_equal_float64_but_for_ties) {
    static const int kinds[] = {ORACLE_REALISTIC, ORACLE_UNIFORM, ORACLE_QUANTISED,
                                ORACLE_ABSORBED};
    int trees = 0;
    int ties[ORACLE_KINDS] = {0};
    int rounds = test_scale_is_small() ? 1 : 4;
    for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++) {
        for (int n = 0; n < 3 * 6 * 4 * rounds; n++) {
            struct oracle_marginals marginals;
            int kind = kinds[n / 18 % 4];
            oracle_marginals_make(kind, test_seed() + 77 + (uint64_t)n, position_counts[n % 3],
                                  rank_count(n / 3 % 6, budgets[b]), 0, &marginals);
            int tie = compare_with_f64(&marginals.m, budgets[b]);
            /* Sums of quarters and of one value are exact: there the sets are equal. */
            ck_assert(!tie || (kind != ORACLE_QUANTISED && marginals.m.num_positions > 1));
            oracle_marginals_free(&marginals);
            ties[kind] += tie;
            trees++;
        }
    }
    printf("P0-9 float64: %d trees; other nodes at a tie: %d realistic, %d uniform, %d made so\n",
           trees, ties[ORACLE_REALISTIC], ties[ORACLE_UNIFORM], ties[ORACLE_ABSORBED]);
    /* Ties are rare but where they are made: they are no excuse for every tree. */
    ck_assert_int_le(ties[ORACLE_REALISTIC] + ties[ORACLE_UNIFORM], trees / 40);
    ck_assert_int_gt(ties[ORACLE_ABSORBED], 0);
}
END_TEST

START_TEST(a_rounded_tie_takes_the_lower_rank_tuple) {
    /* (0,1) is below (1,0) to (5,0); behind a third rank of -16 all sums are equal. In level order
       (0,1) is the seventh node, its sixth child the 42nd pair: more than the budget. It is in the
       tree all the same, because its rank tuple is the smaller one. */
    float logp[3][6] = {{0}, {0, -0x1p-20f}, {-16, -16, -16, -16, -16, -16}};
    static const int64_t tokens[3][6] = {
        {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}};
    for (int k = 0; k < 6; k++) {
        logp[0][k] = -0x1p-26f * (float)k;
        logp[1][k] = k < 2 ? logp[1][k] : -INFINITY;
    }
    const struct ref_draft_marginals m = {logp[0], tokens[0], 6, 3, 6};
    compare_with_brute_force(&m, 32, NO_LIMIT, "rounded tie");
    for (int builder = DRAFT_HEAP; builder <= DRAFT_LEVELS; builder++) {
        struct draft_built built;
        int found = 0;
        draft_build(builder, &m, 32, NO_LIMIT, &built);
        for (int32_t i = 1; i < built.tree.num_nodes; i++) {
            static const struct oracle_node wanted = {.depth = 3, .rank = {0, 1, 5}};
            struct oracle_node node;
            oracle_node_of(&built.tree, i, &node);
            found += oracle_compare_ranks(&node, &wanted) == 0;
        }
        ck_assert_int_eq(found, 1);
        draft_free(&built);
    }
}
END_TEST

/** One row, what it gives: tokens of the root's children, and status. */
struct row_case {
    float logp[5];
    int64_t tokens[5];
    int64_t children[6]; /* ends with -1 */
    uint32_t status;
};

START_TEST(rows_that_break_their_contract) {
    static const struct row_case rows[] = {
        {{-1, -2, -3, -4, -5}, {9, 8, 7, 6, 5}, {9, 8, 7, 6, 5, -1}, 0},
        {{-1, -2, -INFINITY, -INFINITY, -INFINITY}, {9, 8, 7, 6, 5}, {9, 8, -1}, 0},
        {{-INFINITY, -2, -3, -3, -5}, {9, 8, 7, 6, 5}, {8, 7, 6, 5, -1}, 0},
        {{-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY}, {9, 8, 7, 6, 5}, {-1}, 0},
        {{NAN, -2, -3, -4, -5}, {9, 8, 7, 6, 5}, {8, 7, 6, 5, -1}, 1},
        {{-1, -2, NAN, -4, INFINITY}, {9, 8, 7, 6, 5}, {9, 8, 6, -1}, 1},
        {{INFINITY, NAN, INFINITY, NAN, NAN}, {9, 8, 7, 6, 5}, {-1}, 1},
        {{0.5f, 0.25f, 0.75f, -4, -5}, {9, 8, 7, 6, 5}, {9, 8, 7, 6, 5, -1}, 2},
        {{-1, -2, -3, -4, -5}, {-1, 8, -7, 6, 5}, {8, 6, 5, -1}, 4},
        {{-2, -1, -3, -2.5f, -3}, {9, 8, 7, 6, 5}, {9, 7, 5, -1}, 8},
        {{-1, -2, -3, -4, -5}, {9, 9, 7, 9, 7}, {9, 7, -1}, 16},
        {{-1, NAN, -3, -4, -5}, {9, 9, 9, 6, 6}, {9, 6, -1}, 17}, /* 6 follows its first one */
        {{NAN, -2, -3, -4, -5}, {9, 9, 7, 6, 5}, {9, 7, 6, 5, -1}, 1},
        {{-1, -2, -0.5f, -4, -0.25f}, {9, 9, 8, 8, 6}, {9, -1}, 24},
        {{-1, -3, -2, -4, -5}, {9, 9, 8, 7, 6}, {9, 7, 6, -1}, 24},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct ref_draft_marginals m = {rows[i].logp, rows[i].tokens, 5, 1, 5};
        for (int builder = DRAFT_HEAP; builder <= DRAFT_LEVELS; builder++) {
            struct draft_built built;
            int32_t n = 0;
            draft_build(builder, &m, 7, NO_LIMIT, &built);
            for (; rows[i].children[n] >= 0; n++) {
                ck_assert_msg(n + 1 < built.tree.num_nodes &&
                                  built.tree.tokens[n + 1] == rows[i].children[n],
                              "row %zu: child %d", i, n);
            }
            ck_assert_msg(built.tree.num_nodes == n + 1, "row %zu: %d nodes", i,
                          built.tree.num_nodes);
            ck_assert_msg(built.tree.status == rows[i].status, "row %zu: status %u", i,
                          built.tree.status);
            draft_free(&built);
        }
    }
}
END_TEST

START_TEST(limits_and_what_is_not_read) {
    /* Behind a depth without candidates, behind the depth limit and behind the budget's number of
       candidates nothing is read. */
    static const float logp[3][3] = {{-1, -2, NAN}, {-INFINITY, -INFINITY, NAN}, {NAN, NAN, NAN}};
    static const int64_t tokens[3][3] = {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}};
    static const struct {
        int32_t positions, ranks, budget, limit, nodes;
        uint32_t status;
    } cases[] = {
        {3, 3, 9, NO_LIMIT, 3, 1}, {3, 2, 9, NO_LIMIT, 3, 0}, {3, 3, 2, NO_LIMIT, 3, 1},
        {1, 3, 2, NO_LIMIT, 3, 0}, {3, 3, 2, 1, 3, 0},        {3, 3, 9, 0, 1, 0},
        {3, 3, 0, NO_LIMIT, 1, 0}, {3, 3, 1, NO_LIMIT, 2, 0}, {0, 3, 9, NO_LIMIT, 1, 0},
        {3, 0, 9, NO_LIMIT, 1, 0}, {1, 3, 3, NO_LIMIT, 3, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ref_draft_marginals m = {logp[0], tokens[0], 3, cases[i].positions, cases[i].ranks};
        if (m.num_positions == 0 || m.num_ranks == 0) {
            m.logp = NULL;
            m.tokens = NULL;
        }
        for (int builder = DRAFT_HEAP; builder <= DRAFT_LEVELS; builder++) {
            struct draft_built built;
            draft_build(builder, &m, cases[i].budget, cases[i].limit, &built);
            ck_assert_msg(built.tree.num_nodes == cases[i].nodes, "case %zu: %d nodes", i,
                          built.tree.num_nodes);
            ck_assert_msg(built.tree.status == cases[i].status, "case %zu: status %u", i,
                          built.tree.status);
            draft_free(&built);
        }
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p0_9_suite(void) {
    Suite *suite = suite_create("P0-9 draft trees");
    TCase *trees = test_tcase(suite, "P0-9", "P0-9 draft trees");
    tcase_add_test(trees, small_trees_equal_brute_force);
    tcase_add_test(trees, all_small_shapes_equal_brute_force);
    tcase_add_test(trees, heap_equals_levels);
    tcase_add_test(trees, sets_equal_float64_but_for_ties);
    tcase_add_test(trees, a_rounded_tie_takes_the_lower_rank_tuple);
    tcase_add_test(trees, rows_that_break_their_contract);
    tcase_add_test(trees, limits_and_what_is_not_read);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_9_suite};
    return check_main(makers, 1);
}
