// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-9, acceptance: published vectors, 10,000 random trees against a walk by parents, links
 * that are no tree, and every element of every output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accept.h"
#include "check_main.h"
#include "random.h"
#include "tree.h"
#include "tree_links.h"
#include "tree_oracle.h"

/** Most nodes of these tests. */
#define MOST_NODES 80
/** Most nodes of a path of these tests. */
#define MOST_PATH 24

/** Outputs with room behind them that must stay as it is. */
struct walk {
    struct ref_accept_result result;
    int32_t accept_index[MOST_PATH + 1];
    int64_t emitted[MOST_PATH + 1];
};

/** Runs the walk on poisoned outputs. */
static void run_walk(const struct ref_accept_request *request, struct walk *walk) {
    memset(walk, 0x5a, sizeof *walk);
    walk->result.accept_index = walk->accept_index;
    walk->result.emitted = walk->emitted;
    ck_assert_int_eq(ref_accept_walk(request, &walk->result, NULL), REF_OK);
    ck_assert_int_eq(walk->accept_index[request->path_size], 0x5a5a5a5a);
    ck_assert_int_eq(walk->emitted[request->path_size], 0x5a5a5a5a5a5a5a5a);
}

START_TEST(published_eagle_vector) {
    /* SGLang, sgl-kernel/tests/speculative/test_eagle_utils.py. The second request's siblings are
       linked in descending order. At temperature 0 the sampled vectors of
       test_speculative_sampling.py are the same. */
    static const int64_t tokens[2][6] = {{0, 1, 2, 3, 4, 5}, {7, 8, 9, 10, 11, 12}};
    static const int32_t next_token[2][6] = {{1, 2, -1, 4, 5, -1}, {4, 2, 3, -1, 5, -1}};
    static const int32_t next_sibling[2][6] = {{-1, 3, -1, -1, -1, -1}, {-1, -1, -1, -1, 1, -1}};
    static const int64_t target[2][6] = {{3, 18, 18, 4, 5, 18}, {11, 18, 18, 18, 12, 18}};
    static const int32_t accept_index[2][4] = {{0, 3, 4, 5}, {6, 10, 11, -1}};
    static const int64_t predicts[12] = {3, -1, -1, 4, 5, 18, 11, -1, -1, -1, 12, 18};
    static const int32_t accept_num[2] = {3, 2};
    int64_t written[12];
    memset(written, 0xff, sizeof written);
    for (int32_t b = 0; b < 2; b++) {
        const struct ref_accept_request request = {
            tokens[b], next_token[b], next_sibling[b], target[b], 32, 6, 4, 6 * b};
        struct walk walk;
        run_walk(&request, &walk);
        ck_assert_mem_eq(walk.accept_index, accept_index[b], sizeof accept_index[b]);
        ck_assert_int_eq(walk.result.accept_num, accept_num[b]);
        ck_assert_int_eq(walk.result.bonus, 18);
        ck_assert_uint_eq(walk.result.status, 0);
        for (int32_t j = 0; j <= walk.result.accept_num; j++) {
            written[walk.accept_index[j]] = walk.emitted[j];
        }
    }
    ck_assert_mem_eq(written, predicts, sizeof predicts);
}
END_TEST

/** A published tree by parents, or chain, and what is emitted. */
struct accept_vector {
    int32_t nodes;
    int32_t path_size;
    int32_t parents[5];
    int64_t tokens[5];
    int64_t target[5];
    int64_t emitted[5];
    int32_t accept_index[5];
    int32_t accept_num;
};

START_TEST(published_walks) {
    static const struct accept_vector vectors[] = {
        /* SGLang pull 29587, test of dflash_tree */
        {4, 4, {-1, 0, 0, 1}, {0, 10, 20, 30}, {10, 30, 0, 7}, {10, 30, 7, -1}, {0, 1, 3, -1}, 2},
        {2, 4, {-1, 0}, {0, 10}, {999, 0}, {999, -1, -1, -1}, {0, -1, -1, -1}, 0},
        /* vLLM, test_rejection_sampler.py, greedy: chains */
        {4, 4, {-1, 0, 1, 2}, {0, 1, 2, 3}, {1, 5, 3, 4}, {1, 5, -1, -1}, {0, 1, -1, -1}, 1},
        {3, 3, {-1, 0, 1}, {0, 1, 2}, {1, 2, 5}, {1, 2, 5}, {0, 1, 2}, 2},
        {2, 3, {-1, 0}, {0, 3}, {3, 4}, {3, 4, -1}, {0, 1, -1}, 1},
        {1, 1, {-1}, {0}, {5}, {5}, {0}, 0},
        /* a path of at most two nodes on a chain that would be accepted as a whole */
        {4, 2, {-1, 0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1, 2}, {0, 1}, 1},
        {4, 1, {-1, 0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3, 4}, {1}, {0}, 0},
        /* the first of two equal siblings; only the second one has the next token below it */
        {5,
         4,
         {-1, 0, 0, 2, 1},
         {0, 9, 9, 8, 7},
         {9, 8, 8, 1, 1},
         {9, 8, -1, -1},
         {0, 1, -1, -1},
         1},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct accept_vector *v = &vectors[i];
        int32_t first_child[5];
        int32_t next_sibling[5];
        struct walk walk;
        ref_tree_links(v->parents, v->nodes, first_child, next_sibling);
        const struct ref_accept_request request = {v->tokens, first_child, next_sibling, v->target,
                                                   1000,      v->nodes,    v->path_size, 0};
        run_walk(&request, &walk);
        size_t n = (size_t)v->path_size;
        ck_assert_msg(walk.result.accept_num == v->accept_num, "vector %zu: %d accepted", i,
                      walk.result.accept_num);
        ck_assert_mem_eq(walk.emitted, v->emitted, n * sizeof v->emitted[0]);
        ck_assert_mem_eq(walk.accept_index, v->accept_index, n * sizeof v->accept_index[0]);
        ck_assert_int_eq(walk.result.bonus, v->emitted[v->accept_num]);
        ck_assert_int_eq(walk.result.last_node, v->accept_index[v->accept_num]);
    }
}
END_TEST

/** A random tree whose siblings are linked in order of a random priority. */
struct random_tree {
    int32_t nodes;
    int32_t parents[MOST_NODES];
    int32_t priority[MOST_NODES];
    int32_t first_child[MOST_NODES];
    int32_t next_sibling[MOST_NODES];
    int64_t tokens[MOST_NODES];
    int64_t target[MOST_NODES];
};

/** Links child into the list of its parent, which is kept in ascending priority. */
static void link_child(struct random_tree *tree, int32_t child) {
    int32_t *link = &tree->first_child[tree->parents[child]];
    while (*link >= 0 && tree->priority[*link] < tree->priority[child]) {
        link = &tree->next_sibling[*link];
    }
    tree->next_sibling[child] = *link;
    *link = child;
}

/** Draws a tree; ids are of a vocabulary of 4 and a few out of its range. */
static void draw_tree(uint64_t seed, struct random_tree *tree) {
    tree->nodes = 1 + (int32_t)(ref_random(seed, 0) % MOST_NODES);
    int32_t window = 1 + (int32_t)(ref_random(seed, 1) % (seed % 3 == 0 ? 40 : 5));
    ref_tree_random(seed, tree->nodes, window, tree->parents);
    int shuffled = ref_random(seed, 2) % 2 == 0;
    for (int32_t i = 0; i < tree->nodes; i++) {
        uint64_t draw = ref_random(seed, 100 + (uint64_t)i);
        tree->first_child[i] = -1;
        tree->next_sibling[i] = -1;
        tree->priority[i] = shuffled ? (int32_t)(draw >> 44) * MOST_NODES + i : i;
        tree->tokens[i] = (int64_t)(draw % 5); /* 4 is out of range */
        tree->target[i] = (int64_t)(draw / 8 % 4);
        if (draw / 64 % 16 == 0) {
            static const int64_t outside[] = {-1, 4, 5, INT64_MAX, INT64_MIN, -7};
            tree->target[i] = outside[draw / 1024 % 6];
        }
    }
    for (int32_t i = 1; i < tree->nodes; i++) {
        link_child(tree, i);
        if (ref_random(seed, 200 + (uint64_t)i) % 3 == 0) { /* long paths are wanted too */
            tree->target[tree->parents[i]] = tree->tokens[i];
        }
    }
    if (!shuffled) { /* ascending order is that of ref_tree_links */
        int32_t first_child[MOST_NODES];
        int32_t next_sibling[MOST_NODES];
        ref_tree_links(tree->parents, tree->nodes, first_child, next_sibling);
        size_t bytes = (size_t)tree->nodes * sizeof first_child[0];
        ck_assert_mem_eq(first_child, tree->first_child, bytes);
        ck_assert_mem_eq(next_sibling, tree->next_sibling, bytes);
    }
}

START_TEST(random_trees_equal_the_walk_by_parents) {
    int64_t accepted = 0;
    int64_t cut = 0;
    int32_t longest = 0;
    for (uint64_t round = 0; round < 10000; round++) {
        uint64_t seed = ref_random(test_seed(), round);
        struct random_tree tree;
        struct walk walk;
        int32_t path[MOST_PATH];
        draw_tree(seed, &tree);
        int32_t size = 1 + (int32_t)(ref_random(seed, 3) % MOST_PATH);
        int32_t first_row = (int32_t)(ref_random(seed, 4) % 2000);
        const struct ref_accept_request request = {
            tree.tokens, tree.first_child, tree.next_sibling, tree.target, 4, tree.nodes,
            size,        first_row};
        run_walk(&request, &walk);
        int32_t n = oracle_accept(tree.parents, tree.priority, tree.tokens, tree.target, 4,
                                  tree.nodes, size, path);
        ck_assert_int_eq(walk.result.accept_num, n);
        ck_assert_int_eq(walk.result.last_node, path[n]);
        ck_assert_uint_eq(walk.result.status, 0);
        int64_t bonus = tree.target[path[n]];
        bonus = bonus >= 0 && bonus < 4 ? bonus : -1;
        ck_assert_int_eq(walk.result.bonus, bonus);
        for (int32_t j = 0; j < size; j++) {
            int64_t token = j < n ? tree.tokens[path[j + 1]] : j == n ? bonus : -1;
            if (walk.accept_index[j] != (path[j] < 0 ? -1 : first_row + path[j]) ||
                walk.emitted[j] != token) {
                ck_abort_msg("round %d: element %d of %d", (int)round, j, size);
            }
        }
        accepted += n;
        cut += n + 1 == size;
        longest = n > longest ? n : longest;
    }
    printf("P0-9 walk: 10000 trees, %lld nodes accepted, longest path %d, %lld cut by S\n",
           (long long)accepted, longest, (long long)cut);
    ck_assert(accepted > 5000 && longest > 6 && cut > 100);
}
END_TEST

START_TEST(an_inactive_request_gives_minus_one) {
    const struct ref_accept_request request = {.vocab_size = 9, .path_size = 5, .first_row = 100};
    struct walk walk;
    run_walk(&request, &walk);
    ck_assert(walk.result.accept_num == -1 && walk.result.bonus == -1);
    ck_assert(walk.result.last_node == -1 && walk.result.status == 0);
    for (int32_t j = 0; j < 5; j++) {
        ck_assert(walk.accept_index[j] == -1 && walk.emitted[j] == -1);
    }
}
END_TEST

START_TEST(links_that_are_no_tree_end_the_walk) {
    /* All tokens and targets are equal or all differ: whatever can be followed is followed. */
    static const int32_t links[] = {0, 1, 2, 3, 4, -2, INT32_MAX, INT32_MIN, 7};
    int reported = 0;
    for (uint64_t round = 0; round < 3000; round++) {
        int32_t first_child[4];
        int32_t next_sibling[4];
        int64_t tokens[4];
        int64_t target[4];
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t draw = ref_random(test_seed() + round, i);
            first_child[i] = draw % 4 == 0 ? -1 : links[draw / 4 % 9];
            next_sibling[i] = draw / 64 % 4 == 0 ? -1 : links[draw / 256 % 9];
            tokens[i] = 1;
            target[i] = round % 3 == 0 ? 0 : round % 3 == 1 ? 1 : (int64_t)(draw >> 63);
        }
        const struct ref_accept_request request = {
            tokens, first_child, next_sibling, target, 2, 4, 9, 0};
        struct walk walk;
        run_walk(&request, &walk);
        ck_assert(walk.result.accept_num >= 0 && walk.result.accept_num < 4);
        reported += walk.result.status == REF_ACCEPT_LINK;
    }
    ck_assert_int_gt(reported, 1000);
    /* A circle through all nodes: three links can be real, the fourth is not. */
    const int32_t circle[4] = {1, 2, 3, 1};
    const int32_t none[4] = {-1, -1, -1, -1};
    const int64_t same[4] = {1, 1, 1, 1};
    const struct ref_accept_request request = {same, circle, none, same, 2, 4, 9, 0};
    struct walk walk;
    run_walk(&request, &walk);
    ck_assert(walk.result.accept_num == 3 && walk.result.status == REF_ACCEPT_LINK);
}
END_TEST

START_TEST(arguments_are_refused) {
    static const int32_t ints[1] = {-1};
    static const int64_t ids[1] = {0};
    const struct ref_accept_request good = {ids, ints, ints, ids, 2, 1, 1, 0};
    struct ref_error error = {0};
    int32_t accept_index[1];
    int64_t emitted[1];
    struct ref_accept_result result = {accept_index, emitted, 55, 55, 55, 55};
    struct ref_accept_request bad[7] = {good, good, good, good, good, good, good};
    bad[0].path_size = 0;
    bad[1].num_nodes = -1;
    bad[2].vocab_size = -1;
    bad[3].tokens = NULL;
    bad[4].first_child = NULL;
    bad[5].next_sibling = NULL;
    bad[6].target_ids = NULL;
    static const char *const fields[3] = {"path_size", "num_nodes", "vocab_size"};
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(ref_accept_walk(&bad[i], &result, &error), REF_INVALID_ARGUMENT);
        ck_assert_str_eq(error.field, i < 3 ? fields[i] : "");
        ck_assert(result.bonus == 55 && result.accept_num == 55);
    }
    ck_assert_int_eq(ref_accept_walk(NULL, &result, NULL), REF_INVALID_ARGUMENT);
    ck_assert_int_eq(ref_accept_walk(&good, NULL, NULL), REF_INVALID_ARGUMENT);
    result.emitted = NULL;
    ck_assert_int_eq(ref_accept_walk(&good, &result, NULL), REF_INVALID_ARGUMENT);
    result.emitted = emitted;
    result.accept_index = NULL;
    ck_assert_int_eq(ref_accept_walk(&good, &result, NULL), REF_INVALID_ARGUMENT);
}
END_TEST

/** @return the suite */
static Suite *gate_p0_9_accept_suite(void) {
    Suite *suite = suite_create("P0-9 acceptance");
    TCase *walk = test_tcase(suite, "P0-9", "P0-9 acceptance");
    tcase_add_test(walk, published_eagle_vector);
    tcase_add_test(walk, published_walks);
    tcase_add_test(walk, random_trees_equal_the_walk_by_parents);
    tcase_add_test(walk, an_inactive_request_gives_minus_one);
    tcase_add_test(walk, links_that_are_no_tree_end_the_walk);
    tcase_add_test(walk, arguments_are_refused);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_9_accept_suite};
    return check_main(makers, 1);
}
