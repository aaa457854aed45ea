// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Draft trees and acceptance of the C ABI: results against ref/, and every bad argument.
 */
#include <fenv.h>
#include <string.h>

#include "accept.h"
#include "capi_fixture.h"
#include "case_step.h"
#include "check_main.h"
#include "draft_marginals.h"
#include "draft_tree.h"
#include "kdtr_step.h"
#include "tree.h"
#include "tree_links.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /**< Entries of an array. */
#define POSITIONS 5                                     /**< D of the test's drafts. */
#define RANKS 40                                        /**< K. */
#define MOST 65                                         /**< Nodes of the largest tree. */
#define WORDS 3                                         /**< Words of a mask row. */

/** Memory of a call, all of it poisoned by reset. */
struct outputs {
    int64_t tokens[MOST];
    int64_t positions[MOST];
    int64_t emitted[MOST];
    int32_t parents[MOST];
    int32_t depth[MOST];
    int32_t rank[MOST];
    int32_t first_child[MOST];
    int32_t next_sibling[MOST];
    int32_t accept_index[MOST];
    float score[MOST];
    uint32_t mask_words[MOST * WORDS];
};

static struct {
    float logp[POSITIONS * RANKS];
    int64_t draft_tokens[POSITIONS * RANKS];
    _Alignas(8) unsigned char workspace[65536];
    struct outputs o;
    struct outputs expected;
    kdtr_draft_args args;
    kdtr_draft_tree tree;
    kdtr_accept_args accept;
    kdtr_accept_result result;
} w;

/** Good arguments of both functions; the walk's tree is what the builder writes. */
static void reset(int32_t budget) {
    capi_fill(&w.o, sizeof w.o);
    w.args = (kdtr_draft_args){.struct_size = sizeof w.args,
                               .num_positions = POSITIONS,
                               .num_ranks = RANKS,
                               .budget = budget,
                               .depth_limit = POSITIONS,
                               .logp = w.logp,
                               .draft_tokens = w.draft_tokens,
                               .stride = RANKS,
                               .root_token = 17,
                               .prefix_len = 1000};
    w.tree = (kdtr_draft_tree){.struct_size = sizeof w.tree,
                               .num_nodes = -7,
                               .tokens = w.o.tokens,
                               .parents = w.o.parents,
                               .depth = w.o.depth,
                               .rank = w.o.rank,
                               .score = w.o.score,
                               .first_child = w.o.first_child,
                               .next_sibling = w.o.next_sibling,
                               .positions = w.o.positions,
                               .mask_words = w.o.mask_words,
                               .mask_stride_words = WORDS};
    w.result = (kdtr_accept_result){.struct_size = sizeof w.result,
                                    .accept_num = -7,
                                    .accept_index = w.o.accept_index,
                                    .emitted = w.o.emitted};
}

static int32_t build(kdtr_error *error) {
    return kdtr_draft_tree_build_host(&w.args, w.workspace, sizeof w.workspace, &w.tree, error);
}

static void make_marginals(uint64_t seed) {
    ck_assert_int_eq(
        ref_draft_marginals_make(seed, POSITIONS, RANKS, 5000, w.logp, w.draft_tokens, NULL),
        REF_OK);
}

/** The same by ref/, poisoned alike, into w.expected. */
static int32_t build_expected(int32_t budget, uint32_t *status) {
    const struct ref_draft_marginals marginals = {w.logp, w.draft_tokens, RANKS, POSITIONS, RANKS};
    struct outputs *e = &w.expected;
    capi_fill(e, sizeof *e);
    struct ref_draft_tree tree = {.tokens = e->tokens,
                                  .parents = e->parents,
                                  .depth = e->depth,
                                  .rank = e->rank,
                                  .score = e->score};
    ck_assert_int_eq(ref_draft_tree_heap(&marginals, 17, budget, POSITIONS, w.workspace,
                                         sizeof w.workspace, &tree, NULL),
                     REF_OK);
    ref_tree_links(e->parents, tree.num_nodes, e->first_child, e->next_sibling);
    ref_tree_positions(1000, e->depth, tree.num_nodes, e->positions);
    ref_tree_packed_mask(e->parents, tree.num_nodes, WORDS, e->mask_words);
    *status = tree.status;
    return tree.num_nodes;
}

START_TEST(trees_are_those_of_the_reference) {
    static const int32_t budgets[] = {0, 1, 7, 31, 32, 64};
    for (size_t i = 0; i < COUNT(budgets); i++) {
        make_marginals(test_seed() + i);
        w.logp[3] = i % 2 == 0 ? w.logp[3] : 1.0f; /* sets status bits */
        reset(budgets[i]);
        uint32_t status = 0;
        int32_t nodes = build_expected(budgets[i], &status);
        ck_assert_int_eq(build(NULL), KDTR_OK);
        ck_assert_int_eq(w.tree.num_nodes, nodes);
        ck_assert_uint_eq(w.tree.status, status);
        ck_assert(memcmp(&w.o, &w.expected, sizeof w.o) == 0);
        size_t bytes = kdtr_draft_tree_host_bytes(budgets[i], POSITIONS, RANKS);
        ck_assert_uint_eq(bytes, ref_draft_heap_bytes(budgets[i], POSITIONS, RANKS));
        w.tree.first_child = w.tree.next_sibling = NULL; /* what may be left out */
        w.tree.positions = NULL;
        w.tree.mask_words = NULL;
        ck_assert_int_eq(kdtr_draft_tree_build_host(&w.args, w.workspace, bytes, &w.tree, NULL),
                         KDTR_OK);
        ck_assert_int_eq(w.tree.num_nodes, nodes);
    }
    ck_assert_uint_eq(kdtr_draft_tree_host_bytes(-1, 1, 1), 0);
    ck_assert_uint_eq(kdtr_draft_tree_host_bytes(65536, 1, 1), 0);
}
END_TEST

/** Builds a tree and arguments of a walk over it. */
static void prepare_walk(int64_t *target_ids) {
    make_marginals(test_seed());
    reset(40);
    ck_assert_int_eq(build(NULL), KDTR_OK);
    for (int32_t i = 0; i < w.tree.num_nodes; i++) {
        int32_t child = w.o.first_child[i];
        target_ids[i] = child >= 0 ? w.o.tokens[child] : 4999;
    }
    w.accept = (kdtr_accept_args){.struct_size = sizeof w.accept,
                                  .num_nodes = w.tree.num_nodes,
                                  .path_size = POSITIONS + 1,
                                  .first_row = 100,
                                  .tokens = w.o.tokens,
                                  .first_child = w.o.first_child,
                                  .next_sibling = w.o.next_sibling,
                                  .target_ids = target_ids,
                                  .vocab_size = 5000};
}

START_TEST(walks_are_those_of_the_reference) {
    int64_t target_ids[MOST];
    prepare_walk(target_ids);
    static const int32_t nodes[] = {MOST, 1, 0};
    for (size_t i = 0; i < COUNT(nodes); i++) {
        w.accept.num_nodes = nodes[i] < MOST ? nodes[i] : w.tree.num_nodes;
        struct ref_accept_request request = {
            w.o.tokens, w.o.first_child,    w.o.next_sibling, target_ids,
            5000,       w.accept.num_nodes, POSITIONS + 1,    100};
        struct ref_accept_result expected = {.accept_index = w.expected.accept_index,
                                             .emitted = w.expected.emitted};
        ck_assert_int_eq(ref_accept_walk(&request, &expected, NULL), REF_OK);
        ck_assert_int_eq(kdtr_tree_accept_host(&w.accept, &w.result, NULL), KDTR_OK);
        ck_assert_int_eq(w.result.accept_num, expected.accept_num);
        ck_assert_int_eq(w.result.last_node, expected.last_node);
        ck_assert_uint_eq(w.result.status, expected.status);
        ck_assert(w.result.bonus == expected.bonus);
        for (int32_t k = 0; k < POSITIONS + 1; k++) {
            ck_assert_int_eq(w.o.accept_index[k], w.expected.accept_index[k]);
            ck_assert(w.o.emitted[k] == w.expected.emitted[k]);
        }
        ck_assert(i > 0 || w.result.accept_num > 0);
    }
}
END_TEST

#define ARGS(member, value, field, code) CAPI_SET(kdtr_draft_args, member, value, field, code)
#define TREE(member, value, field, code) CAPI_SET(kdtr_draft_tree, member, value, field, code)
#define WALK(member, value, field, code) CAPI_SET(kdtr_accept_args, member, value, field, code)
#define PATH(member, value, field, code) CAPI_SET(kdtr_accept_result, member, value, field, code)

/** A field of a call that is bad, and the argument of ref/ that its error may name. */
static const struct capi_mutation bad_args[] = {
    ARGS(struct_size, 0, "struct_size", KDTR_STRUCT_SIZE),
    ARGS(struct_size, 88, "struct_size", KDTR_STRUCT_SIZE),
    ARGS(reserved0, 1, "reserved", KDTR_RESERVED_NOT_ZERO),
    ARGS(reserved[1], 1, "reserved", KDTR_RESERVED_NOT_ZERO),
    ARGS(prefix_len, -1, "prefix_len", KDTR_INVALID_ARGUMENT),
    ARGS(prefix_len, INT64_MAX, "prefix_len", KDTR_INVALID_ARGUMENT),
    ARGS(budget, 96, "mask_stride_words", KDTR_INVALID_ARGUMENT),
    ARGS(budget, -1, NULL, KDTR_INVALID_ARGUMENT),
    ARGS(num_positions, -1, NULL, KDTR_INVALID_ARGUMENT),
    ARGS(num_positions, 1025, NULL, KDTR_UNSUPPORTED),
    ARGS(num_ranks, -1, NULL, KDTR_INVALID_ARGUMENT),
    ARGS(depth_limit, -1, NULL, KDTR_INVALID_ARGUMENT),
    ARGS(logp, 0, NULL, KDTR_INVALID_ARGUMENT),
    ARGS(draft_tokens, 0, NULL, KDTR_INVALID_ARGUMENT),
    ARGS(stride, RANKS - 1, "stride", KDTR_INVALID_ARGUMENT),
};
static const struct capi_mutation bad_trees[] = {
    TREE(struct_size, 0, "struct_size", KDTR_STRUCT_SIZE),
    TREE(reserved0, 1, "reserved", KDTR_RESERVED_NOT_ZERO),
    TREE(reserved[0], 1, "reserved", KDTR_RESERVED_NOT_ZERO),
    TREE(tokens, 0, "tokens", KDTR_INVALID_ARGUMENT),
    TREE(parents, 0, "parents", KDTR_INVALID_ARGUMENT),
    TREE(depth, 0, "depth", KDTR_INVALID_ARGUMENT),
    TREE(rank, 0, "rank", KDTR_INVALID_ARGUMENT),
    TREE(score, 0, "score", KDTR_INVALID_ARGUMENT),
    TREE(first_child, 0, "first_child", KDTR_INVALID_ARGUMENT),
    TREE(next_sibling, 0, "next_sibling", KDTR_INVALID_ARGUMENT),
    TREE(mask_stride_words, 0, "mask_stride_words", KDTR_INVALID_ARGUMENT),
};
static const struct capi_mutation bad_walks[] = {
    WALK(struct_size, 0, "struct_size", KDTR_STRUCT_SIZE),
    WALK(reserved[0], 1, "reserved", KDTR_RESERVED_NOT_ZERO),
    WALK(num_nodes, -1, NULL, KDTR_INVALID_ARGUMENT),
    WALK(path_size, 0, NULL, KDTR_INVALID_ARGUMENT),
    WALK(first_row, -1, "first_row", KDTR_INVALID_ARGUMENT),
    WALK(first_row, INT32_MAX, "first_row", KDTR_INVALID_ARGUMENT),
    WALK(tokens, 0, NULL, KDTR_INVALID_ARGUMENT),
    WALK(first_child, 0, NULL, KDTR_INVALID_ARGUMENT),
    WALK(next_sibling, 0, NULL, KDTR_INVALID_ARGUMENT),
    WALK(target_ids, 0, NULL, KDTR_INVALID_ARGUMENT),
};
static const struct capi_mutation bad_paths[] = {
    PATH(struct_size, 0, "struct_size", KDTR_STRUCT_SIZE),
    PATH(reserved[1], 1, "reserved", KDTR_RESERVED_NOT_ZERO),
    PATH(accept_index, 0, NULL, KDTR_INVALID_ARGUMENT),
    PATH(emitted, 0, NULL, KDTR_INVALID_ARGUMENT),
};

/** Makes one bad call; where ref/ finds the fault, its own name for the argument stands. */
static void refuse(const struct capi_mutation *m, void *target, int walk) {
    capi_mutate(target, m);
    kdtr_error error = {0};
    int32_t status = walk ? kdtr_tree_accept_host(&w.accept, &w.result, &error) : build(&error);
    capi_refused(m->what, status, &error, m->code, m->field != NULL ? m->field : error.field);
    ck_assert_int_eq(walk ? w.result.accept_num : w.tree.num_nodes, -7);
}

START_TEST(bad_drafts_are_refused) {
    make_marginals(1);
    for (size_t i = 0; i < COUNT(bad_args) + COUNT(bad_trees); i++) {
        int tree = i >= COUNT(bad_args);
        reset(40);
        refuse(tree ? &bad_trees[i - COUNT(bad_args)] : &bad_args[i],
               tree ? (void *)&w.tree : (void *)&w.args, 0);
        ck_assert_msg(capi_untouched(&w.o, sizeof w.o), "mutation %zu wrote", i);
    }
    reset(40);
    kdtr_error error = {0};
    size_t bytes = kdtr_draft_tree_host_bytes(40, POSITIONS, RANKS);
    int32_t status = kdtr_draft_tree_build_host(NULL, w.workspace, bytes, &w.tree, &error);
    capi_refused("no args", status, &error, KDTR_INVALID_ARGUMENT, "args");
    status = kdtr_draft_tree_build_host(&w.args, w.workspace, bytes, NULL, &error);
    capi_refused("no tree", status, &error, KDTR_INVALID_ARGUMENT, "tree");
    status = kdtr_draft_tree_build_host(&w.args, w.workspace, bytes - 1, &w.tree, &error);
    capi_refused("workspace", status, &error, KDTR_WORKSPACE, error.field);
    status = kdtr_draft_tree_build_host(&w.args, w.workspace + 4, bytes, &w.tree, &error);
    capi_refused("alignment", status, &error, KDTR_MISALIGNED, error.field);
    status = kdtr_draft_tree_build_host(&w.args, NULL, bytes, &w.tree, &error);
    capi_refused("no workspace", status, &error, KDTR_INVALID_ARGUMENT, error.field);
    ck_assert(capi_untouched(&w.o, sizeof w.o));
}
END_TEST

START_TEST(bad_walks_are_refused) {
    int64_t target_ids[MOST];
    for (size_t i = 0; i < COUNT(bad_walks) + COUNT(bad_paths); i++) {
        int path = i >= COUNT(bad_walks);
        prepare_walk(target_ids);
        refuse(path ? &bad_paths[i - COUNT(bad_walks)] : &bad_walks[i],
               path ? (void *)&w.result : (void *)&w.accept, 1);
        ck_assert(capi_untouched(w.o.accept_index, sizeof w.o.accept_index));
        ck_assert(capi_untouched(w.o.emitted, sizeof w.o.emitted));
    }
    kdtr_error error = {0};
    int32_t status = kdtr_tree_accept_host(NULL, &w.result, &error);
    capi_refused("no args", status, &error, KDTR_INVALID_ARGUMENT, "args");
    status = kdtr_tree_accept_host(&w.accept, NULL, &error);
    capi_refused("no result", status, &error, KDTR_INVALID_ARGUMENT, "result");
}
END_TEST

START_TEST(rounding_modes_are_refused) {
    make_marginals(1);
    reset(40);
    kdtr_error error = {0};
    ck_assert_int_eq(fesetround(FE_UPWARD), 0);
    int32_t status = build(&error);
    fesetround(FE_TONEAREST);
    capi_refused("rounding up", status, &error, KDTR_FP_ENVIRONMENT, "");
    ck_assert(capi_untouched(&w.o, sizeof w.o));
}
END_TEST

/** Makes the step of a named case with the arrays of this file. */
static int32_t make_case(int32_t num_nodes, int64_t vocab_size, int64_t *target_ids) {
    int64_t root_token;
    const struct case_step step = {num_nodes,   POSITIONS,      RANKS,       vocab_size,
                                   w.logp,      w.draft_tokens, &root_token, w.o.tokens,
                                   w.o.parents, target_ids};
    struct ref_error error = {0};
    int32_t status = case_step_make(test_seed(), &step, &error);
    ck_assert_int_eq(error.code, status);
    return status;
}

START_TEST(cases_of_bad_sizes_are_refused) {
    int64_t target_ids[MOST];
    ck_assert_int_eq(make_case(MOST, 5000, target_ids), REF_OK);
    ck_assert_int_eq(make_case(1, 5000, target_ids), REF_OK);
    ck_assert_int_eq(make_case(0, 5000, target_ids), REF_UNSUPPORTED);
    ck_assert_int_eq(make_case(65537, 5000, target_ids), REF_UNSUPPORTED);
    ck_assert_int_eq(make_case(MOST, RANKS - 1, target_ids), REF_INVALID_ARGUMENT);
    int64_t root_token; /* one rank at one position gives two nodes, not three */
    const struct case_step narrow = {
        3, 1, 1, 50, w.logp, w.draft_tokens, &root_token, w.o.tokens, w.o.parents, target_ids};
    ck_assert_int_eq(case_step_make(1, &narrow, NULL), REF_INVALID_ARGUMENT);
}
END_TEST

static Suite *step_suite(void) {
    Suite *suite = suite_create("step");
    TCase *good = test_tcase(suite, "P0-9", "P0-9 step functions against the reference");
    tcase_add_test(good, trees_are_those_of_the_reference);
    tcase_add_test(good, walks_are_those_of_the_reference);
    TCase *bad = test_tcase(suite, "P0-9", "P0-9 step functions refuse bad arguments");
    tcase_add_test(bad, bad_drafts_are_refused);
    tcase_add_test(bad, bad_walks_are_refused);
    tcase_add_test(bad, rounding_modes_are_refused);
    tcase_add_test(bad, cases_of_bad_sizes_are_refused);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {step_suite};
    return check_main(makers, 1);
}
