// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Pairwise combinations: one case after another is built around a pair that no case has yet, its
 * other levels those that cover most.
 */
#include "pairs.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "attention.h"
#include "check_main.h"

/** The factors. */
enum {
    NODES,
    PREFIX,
    HEADS,
    BATCH,
    TYPES,
    ADDRESSING,
    POOL,
    MASK,
    OUTPUT,
    KIND,
    EXPECTED,
    FACTORS
};

static_assert((int)FACTORS == (int)PAIRS_FACTORS, "factors");

/** Most levels of a factor. */
#define MOST_LEVELS 12

static const int32_t level_count[FACTORS] = {9, 12, 8, 3, 4, 8, 4, 5, 5, 6, 3};
static const int32_t node_levels[] = {1, 2, 5, 31, 32, 33, 64, 257, 1025};
/* Tiles have 16 keys; 255 to 257 stand around the edges of chunks of one tile each and of 16. */
static const int64_t prefix_levels[] = {0, 1, 15, 16, 17, 63, 65, 255, 257, 4097, 65536, 200000};
static const int32_t head_levels[] = {1, 3, 8, 9, 16, 63, 64, 128};
static const int32_t batch_levels[] = {1, 3, 64};
static const int32_t kind_levels[] = {TEST_BENIGN,       TEST_HUGE_SCORE,     TEST_EQUAL_SCORES,
                                      TEST_CANCELLATION, TEST_POISONED_NODES, TEST_BEYOND_80};
static const int32_t page_levels[] = {0, 0, 1, 16, 32, 64, 128, 1};
static const int32_t expected_levels[] = {0, 3, 64};

/** What has been covered: [factor][level][factor][level], the first factor below the second. */
typedef unsigned char coverage[FACTORS][MOST_LEVELS][FACTORS][MOST_LEVELS];

/** Work of levels; a level below 0 is open and counts as the cheapest. */
static int64_t work_of(const int32_t level[FACTORS]) {
    int64_t nodes = node_levels[level[NODES] < 0 ? 0 : level[NODES]];
    int64_t prefix = prefix_levels[level[PREFIX] < 0 ? 0 : level[PREFIX]];
    return (nodes + prefix) * nodes * head_levels[level[HEADS] < 0 ? 0 : level[HEADS]];
}

/** Pairs of a level with levels that are set and that nothing covers yet. */
static int32_t gain(coverage done, const int32_t level[FACTORS], int32_t factor,
                    int32_t candidate) {
    int32_t pairs = 0;
    for (int32_t f = 0; f < FACTORS; f++) {
        if (f != factor && level[f] >= 0) {
            pairs += f < factor ? !done[f][level[f]][factor][candidate]
                                : !done[factor][candidate][f][level[f]];
        }
    }
    return pairs;
}

/** Sets the levels that are open. */
static void complete(coverage done, uint64_t number, int64_t limit, int32_t level[FACTORS]) {
    for (int32_t f = 0; f < FACTORS; f++) {
        if (level[f] >= 0) {
            continue;
        }
        int32_t best = 0;
        int32_t best_gain = -1;
        int32_t first = (int32_t)(test_hash(7, 1, number, (uint64_t)f) % MOST_LEVELS);
        for (int32_t i = 0; i < level_count[f]; i++) {
            int32_t candidate = (first + i) % level_count[f];
            level[f] = candidate;
            int32_t pairs = work_of(level) <= limit ? gain(done, level, f, candidate) : -1;
            if (pairs > best_gain) {
                best = candidate;
                best_gain = pairs;
            }
        }
        level[f] = best;
    }
}

/** Marks the pairs of a case. Returns how many are new. */
static int32_t mark(coverage done, const int32_t level[FACTORS]) {
    int32_t fresh = 0;
    for (int32_t f = 0; f < FACTORS; f++) {
        for (int32_t g = f + 1; g < FACTORS; g++) {
            fresh += !done[f][level[f]][g][level[g]];
            done[f][level[f]][g][level[g]] = 1;
        }
    }
    return fresh;
}

/** The requests: the one that the levels shape, and others that are very unequal to it. */
static void set_requests(const int32_t level[FACTORS], struct test_case *c) {
    int32_t batch = batch_levels[level[BATCH]];
    int32_t main = batch == 1 ? 0 : batch == 3 ? 1 : 37;
    int64_t prefix = prefix_levels[level[PREFIX]];
    c->batch = batch;
    for (int32_t b = 0; b < batch; b++) {
        uint64_t draw = test_hash(7, 2, (uint64_t)b, (uint64_t)level[PREFIX]);
        c->nodes[b] = b % 5 == 4 ? 0 : 1 + (int32_t)(draw % 3);
        c->prefix[b] = b == 0 ? 0 : b % 11 == 5 ? 300 : (int64_t)(draw / 8 % 40);
    }
    c->nodes[main] = node_levels[level[NODES]];
    c->prefix[main] = prefix;
    c->lead_rows = batch == 3;
    c->spare_rows = batch == 3 ? 2 : 0;
    if (batch == 64 && prefix < 1000) {
        c->limit_prefix = prefix > 300 ? prefix : 300;
        c->prefix[50] = c->limit_prefix + 1; /* inactive */
    }
}

/** The case of levels. */
static void describe(const int32_t level[FACTORS], struct test_case *c, char *name, size_t size) {
    static const char *const pools[] = {"one pool", "one padded", "two pools", "two padded"};
    memset(c, 0, sizeof *c);
    set_requests(level, c);
    c->heads = head_levels[level[HEADS]];
    c->latent_dim = 512;
    c->rope_dim = 64;
    c->bf16_q = c->bf16_kv = 1;
    c->wide_lengths = level[TYPES] / 2;
    c->wide_slots = level[TYPES] % 2;
    c->page_size = page_levels[level[ADDRESSING]];
    c->own_tree_list = level[ADDRESSING] == 1 || level[ADDRESSING] == 5;
    c->table_rows = level[ADDRESSING] == 7;
    c->one_pool = level[POOL] < 2;
    c->one_query = level[POOL] % 2;
    c->padding = level[POOL] % 2 * 8;
    c->mask_mode = level[MASK] < 4 ? level[MASK] : REF_MASK_PACKED;
    c->pattern = level[MASK] == 4 ? TEST_PATTERN_RANDOM : TEST_PATTERN_TREE;
    c->window = 7;
    c->bf16_o = level[OUTPUT] == 1 || level[OUTPUT] == 3;
    c->lse_base2 = level[OUTPUT] == 2;
    c->heads_outer = level[OUTPUT] == 3;
    c->no_optional = level[OUTPUT] == 4;
    c->kind = kind_levels[level[KIND]];
    c->expected_batch = expected_levels[level[EXPECTED]];
    snprintf(name, size, "Q %d N %lld H %d B %d addr %d %s mask %d out %d kind %d types %d x %d",
             node_levels[level[NODES]], (long long)prefix_levels[level[PREFIX]], c->heads, c->batch,
             level[ADDRESSING], pools[level[POOL]], level[MASK], level[OUTPUT], c->kind,
             level[TYPES], c->expected_batch);
    c->name = name;
}

/** Adds a case for a pair if it is not covered and not too much work. */
static void add(coverage done, const int32_t pair[4], int64_t limit, struct pairs_list *list) {
    int32_t level[FACTORS];
    memset(level, 0xff, sizeof level);
    level[pair[0]] = pair[1];
    level[pair[2]] = pair[3];
    if (done[pair[0]][pair[1]][pair[2]][pair[3]] || work_of(level) > limit ||
        list->count == PAIRS_MOST) {
        return;
    }
    complete(done, (uint64_t)list->count, limit, level);
    list->covered += mark(done, level);
    list->work[list->count] = work_of(level);
    memcpy(list->levels[list->count], level, sizeof level);
    describe(level, &list->cases[list->count], list->names[list->count], sizeof list->names[0]);
    list->count++;
}

void pairs_make(int64_t low, int64_t high, struct pairs_list *list) {
    static coverage done;
    memset(done, 0, sizeof done);
    list->count = list->pairs = list->covered = 0;
    for (int64_t limit = low;; limit = high) {
        int32_t pairs = 0;
        int32_t pair[4];
        for (pair[0] = 0; pair[0] < FACTORS; pair[0]++) {
            for (pair[2] = pair[0] + 1; pair[2] < FACTORS; pair[2]++) {
                for (pair[1] = level_count[pair[0]] - 1; pair[1] >= 0; pair[1]--) {
                    for (pair[3] = level_count[pair[2]] - 1; pair[3] >= 0; pair[3]--, pairs++) {
                        add(done, pair, limit, list);
                    }
                }
            }
        }
        list->pairs = pairs;
        if (limit >= high) {
            return;
        }
    }
}

int32_t pairs_covered(const struct pairs_list *list, int32_t first, int32_t step) {
    static coverage done;
    int32_t pairs = 0;
    memset(done, 0, sizeof done);
    for (int32_t i = first; i < list->count; i += step) {
        pairs += mark(done, list->levels[i]);
    }
    return pairs;
}
