// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Seeded marginals of a draft (spec/draft_tree.md, "Seeded marginals").
 */
#include "draft_marginals.h"

#include <stddef.h>

#include "exp_log.h"
#include "random.h"

/** A uniform number in [0, 1): a multiple of 2^-24, exact. */
static float uniform(uint64_t seed, uint64_t counter) {
    return (float)(ref_random(seed, counter) >> 40) * 0x1p-24f;
}

/** Greatest common divisor of numbers that are not both 0. */
static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** Distinct tokens: a random start and a random step that has no divisor with the vocabulary. */
static void make_tokens(uint64_t seed, int32_t num_ranks, uint64_t vocab_size, int64_t *tokens) {
    uint64_t token = ref_random(seed, 0) % vocab_size;
    uint64_t step = 1 + ref_random(seed, 1) % vocab_size;
    while (common_divisor(step, vocab_size) != 1) {
        step++;
    }
    for (int32_t k = 0; k < num_ranks; k++) {
        tokens[k] = (int64_t)token;
        token = (token + step) % vocab_size;
    }
}

/** Log-probabilities of one row (eq-zipf), normalised with what lies behind its last rank. */
static void make_row(uint64_t seed, int32_t position, int32_t num_ranks, int64_t vocab_size,
                     float *logp) {
    float flatter = 0.03125f * (float)(position < 16 ? position : 16);
    float slope = 1.25f + (1.75f - flatter) * uniform(seed, 2);
    float value = 0.0f;
    float sum = 0.0f;
    float weight = 0.0f;
    float log_rank = 0.0f;
    for (int32_t k = 0; k < num_ranks; k++) {
        if (k > 0) {
            float log_next = ref_log_f32((float)(k + 1));
            value -= slope * (log_next - log_rank) * (0.5f + uniform(seed, 3 + (uint64_t)k));
            log_rank = log_next;
        }
        weight = ref_exp_f32(value);
        sum += weight;
        logp[k] = value;
    }
    int64_t behind = vocab_size - num_ranks;
    sum += weight * (float)(behind < num_ranks ? behind : num_ranks);
    float log_sum = ref_log_f32(sum);
    for (int32_t k = 0; k < num_ranks; k++) {
        logp[k] -= log_sum;
    }
}

int32_t ref_draft_marginals_make(uint64_t seed, int32_t num_positions, int32_t num_ranks,
                                 int64_t vocab_size, float *logp, int64_t *tokens,
                                 struct ref_error *error) {
    if (num_positions < 0 || num_ranks < 0 || vocab_size < num_ranks || vocab_size > INT32_MAX) {
        return ref_fail(error, REF_INVALID_ARGUMENT, "", "L, K or the vocabulary is out of range");
    }
    if (num_positions == 0 || num_ranks == 0) {
        return REF_OK;
    }
    if (logp == NULL || tokens == NULL) {
        return ref_fail(error, REF_INVALID_ARGUMENT, "", "an output is NULL");
    }
    for (int32_t d = 0; d < num_positions; d++) {
        uint64_t row_seed = ref_random(seed, (uint64_t)d);
        int64_t offset = (int64_t)d * num_ranks;
        make_row(row_seed, d, num_ranks, vocab_size, logp + offset);
        make_tokens(row_seed, num_ranks, (uint64_t)vocab_size, tokens + offset);
    }
    return REF_OK;
}
