// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P0-9, sampled acceptance: the target's distribution after a walk, and the tokens of plain
 * decoding with the same key.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accept.h"
#include "bounds.h"
#include "check_main.h"
#include "draft_checks.h"
#include "exp_log.h"
#include "random.h"
#include "sample.h"
#include "tree_links.h"

/** Vocabulary of the small model. */
#define VOCAB 8
/** Budget of its trees. */
#define BUDGET 14
/** Positions of its drafts. */
#define POSITIONS 4

/**
 * The target model: weights that depend on the two last tokens, one of them zero. Not too far from
 * each other, so that every pair of tokens is drawn often enough to be counted.
 */
static void target_weights(int64_t before, int64_t last, float *weights) {
    float logits[VOCAB];
    uint64_t context = (uint64_t)(before * VOCAB + last);
    for (uint64_t v = 0; v < VOCAB; v++) {
        logits[v] = 0.75f * ref_random_normal(context, v) + (v == context % 5 ? 1.25f : 0.0f);
    }
    logits[context % 7 + 1] = -INFINITY;
    ref_sample_softmax(logits, VOCAB, 1.0f, weights);
}

static const float *sort_by; /* what by_weight compares; tests run one at a time */

static int by_weight(const void *a, const void *b) {
    float x = sort_by[*(const int64_t *)a];
    float y = sort_by[*(const int64_t *)b];
    return (x < y) - (x > y);
}

/** Drafts a tree: marginals of a model that is somewhat like the target's, by its best guess. */
static void draft(int64_t before, int64_t last, struct draft_built *built) {
    static float logp[POSITIONS * VOCAB];
    static int64_t tokens[POSITIONS * VOCAB];
    for (int64_t d = 0; d < POSITIONS; d++) {
        float weights[VOCAB];
        target_weights(before, last, weights);
        for (int64_t v = 0; v < VOCAB; v++) {
            weights[v] += 0.25f; /* the draft thinks that everything is possible */
            tokens[d * VOCAB + v] = v;
        }
        sort_by = weights;
        qsort(tokens + d * VOCAB, VOCAB, sizeof *tokens, by_weight);
        for (int64_t v = 0; v < VOCAB; v++) {
            logp[d * VOCAB + v] = ref_log_f32(weights[tokens[d * VOCAB + v]] * 0.125f);
        }
        before = last;
        last = tokens[d * VOCAB];
    }
    const struct ref_draft_marginals m = {logp, tokens, VOCAB, POSITIONS, VOCAB};
    draft_build(DRAFT_HEAP, &m, BUDGET, POSITIONS, built);
}

/** One step: draft, weights after every node, draw, walk. Returns the number of tokens emitted. */
static int32_t speculative_step(uint64_t seed, int64_t before, int64_t last, int64_t prefix_len,
                                int64_t *emitted) {
    struct draft_built built;
    float weights[(BUDGET + 1) * VOCAB];
    int64_t target_ids[BUDGET + 1];
    int32_t first_child[BUDGET + 1];
    int32_t next_sibling[BUDGET + 1];
    int32_t accept_index[POSITIONS + 1];
    draft(before, last, &built);
    struct ref_draft_tree *tree = &built.tree;
    tree->tokens[0] = last;
    for (int32_t i = 0; i < tree->num_nodes; i++) {
        int64_t token_before = i == 0 ? before : tree->tokens[tree->parents[i]];
        target_weights(token_before, tree->tokens[i], weights + i * VOCAB);
    }
    ref_sample_nodes(weights, VOCAB, tree->num_nodes, tree->depth, prefix_len, seed, target_ids);
    ref_tree_links(tree->parents, tree->num_nodes, first_child, next_sibling);
    const struct ref_accept_request request = {
        tree->tokens, first_child,     next_sibling,  target_ids,
        VOCAB,        tree->num_nodes, POSITIONS + 1, 0};
    struct ref_accept_result result = {.accept_index = accept_index, .emitted = emitted};
    ck_assert_int_eq(ref_accept_walk(&request, &result, NULL), REF_OK);
    draft_free(&built);
    return result.accept_num + 1;
}

/** Tokens of plain decoding, one after the other. */
static void decode(uint64_t seed, int64_t before, int64_t last, int64_t prefix_len, int32_t count,
                   int64_t *tokens) {
    for (int32_t i = 0; i < count; i++) {
        float weights[VOCAB];
        target_weights(before, last, weights);
        uint64_t bits = ref_sample_bits(seed, prefix_len + 1 + i, REF_STREAM_TARGET);
        tokens[i] = ref_sample_token(weights, VOCAB, bits);
        before = last;
        last = tokens[i];
    }
}

/** Tokens of speculative decoding: steps until there are enough. Returns the number of steps. */
static int32_t decode_by_trees(uint64_t seed, int64_t before, int64_t last, int64_t prefix_len,
                               int32_t count, int64_t *tokens) {
    int32_t steps = 0;
    for (int32_t n = 0; n < count; steps++) {
        int64_t emitted[POSITIONS + 1];
        int32_t got = speculative_step(seed, before, last, prefix_len + n, emitted);
        for (int32_t j = 0; j < got && n < count; j++) {
            tokens[n++] = emitted[j];
            before = last;
            last = emitted[j];
        }
    }
    return steps;
}

START_TEST(tokens_are_those_of_plain_decoding) {
    enum { TOKENS = 200 };
    int64_t steps = 0;
    int64_t total = 0;
    for (uint64_t n = 0; n < 50; n++) {
        int64_t plain[TOKENS];
        int64_t trees[TOKENS];
        uint64_t seed = ref_random(test_seed(), n);
        int64_t prefix = n % 2 == 0 ? (int64_t)n : ((int64_t)1 << 32) - 100;
        decode(seed, 2, 5, prefix, TOKENS, plain);
        steps += decode_by_trees(seed, 2, 5, prefix, TOKENS, trees);
        ck_assert_mem_eq(plain, trees, sizeof plain);
        total += TOKENS;
    }
    printf("P0-9 sampled: %lld tokens equal plain decoding, %.2f a step\n", (long long)total,
           (double)total / (double)steps);
    ck_assert_int_lt(steps * 3, total * 2); /* drafts are accepted: this tests something */
}
END_TEST

/** Chi-square of counts of cells with these probabilities; cells of probability 0 must be empty. */
static double chi_square(const int64_t *counts, const double *probabilities, int cells,
                         int64_t draws, int *dof) {
    double sum = 0.0;
    *dof = -1;
    for (int i = 0; i < cells; i++) {
        double expected = probabilities[i] * (double)draws;
        if (probabilities[i] == 0.0) {
            ck_assert_int_eq(counts[i], 0);
            continue;
        }
        ck_assert(expected >= TEST_CHI_SQUARE_EXPECTED);
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        ++*dof;
    }
    return sum;
}

/** Probabilities of the next token. */
static void probabilities_of(int64_t before, int64_t last, double *probabilities) {
    float weights[VOCAB];
    double sum = 0.0;
    target_weights(before, last, weights);
    for (int v = 0; v < VOCAB; v++) {
        sum += (double)weights[v];
    }
    for (int v = 0; v < VOCAB; v++) {
        probabilities[v] = (double)weights[v] / sum;
    }
}

START_TEST(distribution_is_the_targets) {
    /* The first two tokens of many decodings by trees, each with a seed of its own. */
    int64_t draws = test_scale_is_small() ? 10000 : 100000;
    static int64_t one[VOCAB];
    static int64_t two[VOCAB * VOCAB];
    double first[VOCAB];
    double both[VOCAB * VOCAB];
    probabilities_of(3, 4, first);
    for (int64_t a = 0; a < VOCAB; a++) {
        double second[VOCAB];
        probabilities_of(4, a, second);
        for (int64_t b = 0; b < VOCAB; b++) {
            both[a * VOCAB + b] = first[a] * second[b];
        }
    }
    for (int64_t n = 0; n < draws; n++) {
        int64_t tokens[2];
        decode_by_trees(ref_random(test_seed(), 5000 + (uint64_t)n), 3, 4, 77, 2, tokens);
        one[tokens[0]]++;
        two[tokens[0] * VOCAB + tokens[1]]++;
    }
    int dof_one = 0;
    int dof_two = 0;
    double chi_one = chi_square(one, first, VOCAB, draws, &dof_one);
    double chi_two = chi_square(two, both, VOCAB * VOCAB, draws, &dof_two);
    printf("P0-9 sampled: %lld draws, chi-square %.1f of %d (bound %.1f), pairs %.1f of %d "
           "(bound %.1f)\n",
           (long long)draws, chi_one, dof_one, TEST_CHI_SQUARE(dof_one), chi_two, dof_two,
           TEST_CHI_SQUARE(dof_two));
    ck_assert_int_eq(dof_one, VOCAB - 2);
    ck_assert(chi_one <= TEST_CHI_SQUARE(dof_one));
    ck_assert(chi_two <= TEST_CHI_SQUARE(dof_two));
    /* A distribution that is a little off is noticed: two likely tokens exchanged. */
    double swapped[VOCAB];
    memcpy(swapped, first, sizeof swapped);
    swapped[0] = first[4];
    swapped[4] = first[0];
    ck_assert(chi_square(one, swapped, VOCAB, draws, &dof_one) > TEST_CHI_SQUARE(dof_one));
}
END_TEST

/** @return the suite */
static Suite *gate_p0_9_sample_suite(void) {
    Suite *suite = suite_create("P0-9 sampled acceptance");
    TCase *sample = test_tcase(suite, "P0-9", "P0-9 sampled acceptance");
    tcase_add_test(sample, tokens_are_those_of_plain_decoding);
    tcase_add_test(sample, distribution_is_the_targets);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {gate_p0_9_sample_suite};
    return check_main(makers, 1);
}
