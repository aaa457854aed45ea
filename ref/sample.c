// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Drawing tokens (spec/draft_tree.md, "Drawing a token").
 */
#include "sample.h"

#include "exp_log.h"

int64_t ref_sample_greedy(const float *logits, int64_t vocab_size) {
    int64_t best = -1;
    float largest = ref_f32_from_bits(0xff800000u);
    for (int64_t v = 0; v < vocab_size; v++) {
        if (logits[v] != logits[v]) {
            return -1;
        }
        if (logits[v] > largest) {
            largest = logits[v];
            best = v;
        }
    }
    return best;
}

void ref_sample_softmax(const float *logits, int64_t vocab_size, float temperature,
                        float *weights) {
    int64_t best = ref_sample_greedy(logits, vocab_size);
    float largest = best < 0 ? 0.0f : logits[best];
    int usable = best >= 0 && largest - largest == 0.0f && temperature > 0.0f &&
                 temperature - temperature == 0.0f;
    for (int64_t v = 0; v < vocab_size; v++) {
        weights[v] = usable ? ref_exp_f32((logits[v] - largest) / temperature)
                            : ref_f32_from_bits(0x7fc00000u);
    }
}

int64_t ref_sample_token(const float *weights, int64_t vocab_size, uint64_t bits) {
    float largest = 0.0f;
    uint64_t total = 0;
    if (vocab_size < 1 || vocab_size > REF_SAMPLE_MAX_VOCAB) {
        return -1;
    }
    for (int64_t v = 0; v < vocab_size; v++) {
        if (!(weights[v] >= 0.0f) || weights[v] - weights[v] != 0.0f) {
            return -1;
        }
        largest = weights[v] > largest ? weights[v] : largest;
    }
    if (largest == 0.0f) {
        return -1;
    }
    for (int64_t v = 0; v < vocab_size; v++) {
        total += ref_sample_mass(weights[v], largest);
    }
    uint64_t threshold = ref_multiply_high(bits, total);
    int64_t token = 0;
    for (uint64_t sum = ref_sample_mass(weights[0], largest); sum <= threshold;) {
        sum += ref_sample_mass(weights[++token], largest);
    }
    return token;
}

void ref_sample_nodes(const float *weights, int64_t vocab_size, int32_t num_nodes,
                      const int32_t *depth, int64_t prefix_len, uint64_t seed,
                      int64_t *target_ids) {
    for (int32_t i = 0; i < num_nodes; i++) {
        uint64_t bits = ref_sample_bits(seed, prefix_len + depth[i] + 1, REF_STREAM_TARGET);
        target_ids[i] = ref_sample_token(weights + i * vocab_size, vocab_size, bits);
    }
}
