// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Draft trees: published vectors (gate P0-9), links and positions, refused arguments, and the
 * seeded marginals.
 */
#include "draft_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "check_main.h"
#include "draft_checks.h"
#include "draft_marginals.h"
#include "tree.h"
#include "tree_links.h"

/** Builds by both builders and compares tokens and parents behind the root. */
static void check_tree(const struct ref_draft_marginals *m, int32_t budget, int32_t nodes,
                       const int64_t *tokens, const int32_t *parents) {
    for (int builder = DRAFT_HEAP; builder <= DRAFT_LEVELS; builder++) {
        struct draft_built built;
        draft_build(builder, m, budget, INT32_MAX, &built);
        ck_assert_int_eq(built.tree.num_nodes, nodes);
        for (int32_t i = 1; i < nodes && tokens != NULL; i++) {
            ck_assert_int_eq(built.tree.tokens[i], tokens[i]);
            ck_assert_int_eq(built.tree.parents[i], parents[i]);
        }
        draft_free(&built);
    }
}

START_TEST(published_trees) {
    /* SGLang pull 29587, test of dflash_tree. Its budgets include the root, these do not. */
    static const float sure[3] = {-0.1f, -0.1f, -0.1f};
    static const int64_t chain[3] = {10, 20, 30};
    const struct ref_draft_marginals one = {sure, chain, 1, 3, 1};
    check_tree(&one, 3, 4, (const int64_t[]){5, 10, 20, 30}, (const int32_t[]){-1, 0, 1, 2});
    static const float steep[4] = {-0.01f, -5.0f, -0.01f, -5.0f};
    static const int64_t pairs[4] = {1, 2, 3, 4};
    const struct ref_draft_marginals two = {steep, pairs, 2, 2, 2};
    check_tree(&two, 2, 3, (const int64_t[]){0, 1, 3}, (const int32_t[]){-1, 0, 1});
    check_tree(&two, 998, 7, NULL, NULL);
    check_tree(&two, 0, 1, NULL, NULL);
    const struct ref_draft_marginals none = {NULL, NULL, 0, 0, 0};
    check_tree(&none, 7, 1, NULL, NULL);
}
END_TEST

/** A tree with its published links and positions. */
struct link_vector {
    int32_t nodes;
    int64_t prefix_len;
    int32_t parents[8];
    int32_t first_child[8];
    int32_t next_sibling[8];
    int64_t positions[8];
};

START_TEST(published_links_and_positions) {
    /* Self-test of SGLang's build_eagle_tree.py (two requests), and SGLang pull 29587. */
    static const struct link_vector vectors[] = {
        {8,
         5,
         {-1, 0, 0, 1, 2, 3, 4, 5},
         {1, 3, 4, 5, 6, 7, -1, -1},
         {-1, 2, -1, -1, -1, -1, -1, -1},
         {5, 6, 6, 7, 7, 8, 8, 9}},
        {8,
         10,
         {-1, 0, 1, 1, 1, 1, 3, 6},
         {1, 2, -1, 6, -1, -1, 7, -1},
         {-1, -1, 3, 4, 5, -1, -1, -1},
         {10, 11, 12, 12, 12, 12, 13, 14}},
        {4, 7, {-1, 0, 0, 1}, {1, 3, -1, -1}, {-1, 2, -1, -1}, {7, 8, 8, 9}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct link_vector *v = &vectors[i];
        int32_t depth[8];
        int32_t first_child[8];
        int32_t next_sibling[8];
        int64_t positions[8];
        size_t n = (size_t)v->nodes;
        ck_assert_int_eq(ref_tree_check(v->parents, v->nodes, NULL), REF_OK);
        ref_tree_depth(v->parents, v->nodes, depth);
        ref_tree_positions(v->prefix_len, depth, v->nodes, positions);
        ref_tree_links(v->parents, v->nodes, first_child, next_sibling);
        ck_assert_mem_eq(first_child, v->first_child, n * sizeof *first_child);
        ck_assert_mem_eq(next_sibling, v->next_sibling, n * sizeof *next_sibling);
        ck_assert_mem_eq(positions, v->positions, n * sizeof *positions);
    }
}
END_TEST

START_TEST(positions_are_64_bits) {
    static const int32_t depth[3] = {0, 1, 2};
    int64_t positions[3];
    ref_tree_positions(INT32_MAX, depth, 3, positions);
    ck_assert_int_eq(positions[2], (int64_t)INT32_MAX + 2);
}
END_TEST

START_TEST(encodings_of_a_draft_tree_agree) {
    /* The mask of a built tree holds just the ancestors, and its links just the children. */
    struct oracle_marginals marginals;
    struct draft_built built;
    int32_t first_child[129];
    int32_t next_sibling[129];
    int32_t depth[129];
    uint32_t words[129 * 5];
    oracle_marginals_make(ORACLE_REALISTIC, test_seed(), 7, 128, 0, &marginals);
    draft_build(DRAFT_HEAP, &marginals.m, 128, INT32_MAX, &built);
    const struct ref_draft_tree *tree = &built.tree;
    ck_assert_int_eq(tree->num_nodes, 129);
    ck_assert_int_eq(ref_tree_check(tree->parents, 129, NULL), REF_OK);
    ref_tree_depth(tree->parents, 129, depth);
    ck_assert_mem_eq(depth, tree->depth, sizeof depth);
    ref_tree_packed_mask(tree->parents, 129, 5, words);
    ref_tree_links(tree->parents, 129, first_child, next_sibling);
    int32_t linked = 0;
    int32_t ascends = 1;
    for (int32_t i = 0; i < 129; i++) {
        int32_t last = i;
        for (int32_t c = first_child[i]; c >= 0; c = next_sibling[c]) {
            ck_assert(tree->parents[c] == i && c > last);
            ck_assert(words[5 * c + i / 32] >> (i % 32) & 1u);
            last = c;
            linked++;
        }
        int32_t bits = 0;
        for (int32_t j = 0; j < 129; j++) {
            bits += (int32_t)(words[5 * i + j / 32] >> (j % 32) & 1u);
        }
        ck_assert_int_eq(bits, depth[i] + 1);
        ascends &= i == 0 || depth[i] >= depth[i - 1];
    }
    ck_assert_int_eq(linked, 128);
    ck_assert(!ascends); /* nodes are not sorted by depth */
    draft_free(&built);
    oracle_marginals_free(&marginals);
}
END_TEST

/** Calls both builders; both must give this status and name this field. */
static void check_refused(const struct ref_draft_marginals *m, int32_t budget, int32_t limit,
                          char *workspace, size_t bytes, struct ref_draft_tree *tree,
                          int32_t status, const char *field) {
    struct ref_error error = {0};
    ck_assert_int_eq(ref_draft_tree_heap(m, 0, budget, limit, workspace, bytes, tree, &error),
                     status);
    ck_assert_str_eq(error.field, field);
    error = (struct ref_error){0};
    ck_assert_int_eq(ref_draft_tree_levels(m, 0, budget, limit, workspace, bytes, tree, &error),
                     status);
    ck_assert_str_eq(error.field, field);
    ck_assert_int_eq(ref_draft_tree_heap(m, 0, budget, limit, workspace, bytes, tree, NULL),
                     status);
}

START_TEST(arguments_are_refused) {
    static const float logp[4] = {-1, -2, -1, -2};
    static const int64_t tokens[4] = {1, 2, 3, 4};
    const struct ref_draft_marginals m = {logp, tokens, 2, 2, 2};
    int64_t node_tokens[9];
    int32_t ints[3][9];
    float score[9];
    struct ref_draft_tree tree = {node_tokens, ints[0], ints[1], ints[2], score, -5, 99};
    char *memory = aligned_alloc(8, 8192);
    ck_assert(memory != NULL);
    check_refused(NULL, 8, 2, memory, 8192, &tree, REF_INVALID_ARGUMENT, "marginals");
    check_refused(&m, 8, 2, NULL, 8192, &tree, REF_INVALID_ARGUMENT, "workspace");
    check_refused(&m, 8, 2, memory, 8192, NULL, REF_INVALID_ARGUMENT, "tree");
    check_refused(&m, -1, 2, memory, 8192, &tree, REF_INVALID_ARGUMENT, "budget");
    check_refused(&m, 8, -1, memory, 8192, &tree, REF_INVALID_ARGUMENT, "depth_limit");
    check_refused(&m, 8, 2, memory + 4, 8000, &tree, REF_MISALIGNED, "workspace");
    check_refused(&m, 65536, 2, memory, 8192, &tree, REF_UNSUPPORTED, "budget");
    struct ref_draft_marginals bad = m;
    bad.num_positions = -1;
    check_refused(&bad, 8, 2, memory, 8192, &tree, REF_INVALID_ARGUMENT, "num_positions");
    bad.num_positions = REF_DRAFT_MAX_POSITIONS + 1;
    check_refused(&bad, 8, 2, memory, 8192, &tree, REF_UNSUPPORTED, "num_positions");
    bad = m;
    bad.num_ranks = -1;
    check_refused(&bad, 8, 2, memory, 8192, &tree, REF_INVALID_ARGUMENT, "num_ranks");
    bad.num_ranks = REF_DRAFT_MAX_RANKS + 1;
    check_refused(&bad, 8, 2, memory, 8192, &tree, REF_UNSUPPORTED, "num_ranks");
    bad = m;
    bad.logp = NULL;
    check_refused(&bad, 8, 2, memory, 8192, &tree, REF_INVALID_ARGUMENT, "logp");
    bad = m;
    bad.tokens = NULL;
    check_refused(&bad, 8, 2, memory, 8192, &tree, REF_INVALID_ARGUMENT, "tokens");
    size_t heap = ref_draft_heap_bytes(8, 2, 2);
    size_t levels = ref_draft_levels_bytes(8, 2, 2);
    check_refused(&m, 8, 2, memory, (heap < levels ? heap : levels) - 1, &tree, REF_WORKSPACE,
                  "workspace_bytes");
    ck_assert_int_eq(ref_draft_tree_levels(&m, 0, 8, 2, memory, levels - 1, &tree, NULL),
                     REF_WORKSPACE);
    ck_assert(tree.num_nodes == -5 && tree.status == 99);
    struct ref_draft_tree part = tree;
    part.score = NULL;
    check_refused(&m, 8, 2, memory, 8192, &part, REF_INVALID_ARGUMENT, "tree");
    ck_assert(ref_draft_heap_bytes(-1, 2, 2) == SIZE_MAX);
    ck_assert(ref_draft_levels_bytes(8, REF_DRAFT_MAX_POSITIONS + 1, 2) == SIZE_MAX);
    free(memory);
}
END_TEST

START_TEST(seeded_marginals_keep_the_contract) {
    enum { L = 9, K = 200 };
    static float logp[L * K];
    static int64_t tokens[L * K];
    static const int64_t vocabularies[] = {K, K + 1, 997, 163840, INT32_MAX};
    for (size_t n = 0; n < sizeof vocabularies / sizeof vocabularies[0]; n++) {
        ck_assert_int_eq(
            ref_draft_marginals_make(test_seed() + n, L, K, vocabularies[n], logp, tokens, NULL),
            REF_OK);
        for (int32_t d = 0; d < L; d++) {
            double mass = 0.0;
            int good = 1;
            for (int32_t k = 0; k < K; k++) {
                good &= logp[d * K + k] <= (k > 0 ? logp[d * K + k - 1] : 0.0f);
                good &= tokens[d * K + k] >= 0 && tokens[d * K + k] < vocabularies[n];
                mass += exp((double)logp[d * K + k]);
                for (int32_t j = 0; j < k; j++) {
                    good &= tokens[d * K + j] != tokens[d * K + k];
                }
            }
            ck_assert_msg(good, "vocabulary %zu, row %d: order or tokens", n, d);
            ck_assert(mass > 0.5 && mass <= TEST_MARGINAL_MASS(K));
        }
    }
    ck_assert_int_eq(ref_draft_marginals_make(1, -1, 2, 9, logp, tokens, NULL),
                     REF_INVALID_ARGUMENT);
    ck_assert_int_eq(ref_draft_marginals_make(1, 1, 10, 9, logp, tokens, NULL),
                     REF_INVALID_ARGUMENT);
    ck_assert_int_eq(ref_draft_marginals_make(1, 1, 2, 9, NULL, tokens, NULL),
                     REF_INVALID_ARGUMENT);
    ck_assert_int_eq(ref_draft_marginals_make(1, 0, 2, 9, NULL, NULL, NULL), REF_OK);
}
END_TEST

START_TEST(seeded_marginals_have_these_bits) {
    /* FNV-1a of the bits. It changes with the marginals, and then named cases change. */
    enum { L = 7, K = 64 };
    static float logp[L * K];
    static int64_t tokens[L * K];
    uint64_t hash = 0xcbf29ce484222325u;
    ck_assert_int_eq(ref_draft_marginals_make(12345, L, K, 163840, logp, tokens, NULL), REF_OK);
    for (int32_t i = 0; i < L * K; i++) {
        uint32_t bits;
        memcpy(&bits, &logp[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
        hash = (hash ^ (uint64_t)tokens[i]) * 0x100000001b3u;
    }
    ck_assert_msg(hash == 0x9622fb3e1879dbbcu, "the hash is 0x%llx", (unsigned long long)hash);
}
END_TEST

static Suite *draft_tree_suite(void) {
    Suite *suite = suite_create("draft trees");
    TCase *published = test_tcase(suite, "P0-9", "P0-9 published trees");
    tcase_add_test(published, published_trees);
    tcase_add_test(published, published_links_and_positions);
    TCase *rest = tcase_create("draft trees");
    tcase_add_test(rest, positions_are_64_bits);
    tcase_add_test(rest, encodings_of_a_draft_tree_agree);
    tcase_add_test(rest, arguments_are_refused);
    tcase_add_test(rest, seeded_marginals_keep_the_contract);
    tcase_add_test(rest, seeded_marginals_have_these_bits);
    suite_add_tcase(suite, rest);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {draft_tree_suite};
    return check_main(makers, 1);
}
