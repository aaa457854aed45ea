// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Drawing tokens (spec/draft_tree.md, "Drawing a token"): a counter-based generator keyed by seed,
 * position and stream, and the inverse of the cumulative distribution in integer arithmetic. The
 * same bits on every machine, and for every order of the sums.
 */
#ifndef REF_SAMPLE_H
#define REF_SAMPLE_H

#include "bf16.h"
#include "status.h"

/** Largest vocabulary that can be drawn from: sums of that many masses fit in 64 bits. */
#define REF_SAMPLE_MAX_VOCAB 1048576
/** The largest weight's mass is at least 2 to this power. */
#define REF_SAMPLE_MASS_BITS 43

/** What numbers are drawn for. Streams of equal seed and position share no number. */
enum ref_stream {
    REF_STREAM_TARGET = 0, /**< Tokens of the target model: plain decoding and acceptance. */
    REF_STREAM_DRAFT = 1   /**< Whatever a draft model draws. */
};

/**
 * Philox4x32 with 10 rounds: 128 bits that depend on counter and key only (eq-philox).
 *
 * @param counter [4] counter
 * @param key     [2] key
 * @param bits    [4] output
 */
REF_INLINE void ref_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t bits[4]) {
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c0;
        uint64_t p1 = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    bits[0] = c0;
    bits[1] = c1;
    bits[2] = c2;
    bits[3] = c3;
}

/**
 * The 64 random bits of a token (eq-sample-bits).
 *
 * @param seed     seed of the request
 * @param position absolute position of the token that is drawn
 * @param stream   enum ref_stream, or any other number
 * @return 64 bits
 */
REF_INLINE uint64_t ref_sample_bits(uint64_t seed, int64_t position, uint32_t stream) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)(uint64_t)position, (uint32_t)((uint64_t)position >> 32),
                                 stream, 0};
    uint32_t bits[4];
    ref_philox(counter, key, bits);
    return (uint64_t)bits[1] << 32 | bits[0];
}

/**
 * Mass of a weight (eq-mass): the weight in units of 2^-43 of the largest one's power of two,
 * rounded down.
 *
 * @param weight  at least 0, at most largest
 * @param largest the largest weight: above 0, finite
 * @return an integer below 2^44
 */
REF_INLINE uint64_t ref_sample_mass(float weight, float largest) {
    uint32_t bits = ref_bits_from_f32(weight) & 0x7fffffffu;
    uint32_t top = ref_bits_from_f32(largest) & 0x7fffffffu;
    int32_t exponent = (int32_t)(bits >> 23);
    int32_t top_exponent = (int32_t)(top >> 23);
    uint64_t significand = bits & 0x7fffffu;
    uint32_t top_significand = top & 0x7fffffu;
    if (exponent > 0) {
        significand |= 0x800000u;
    } else {
        exponent = 1; /* denormal: the same unit as the least normal exponent */
    }
    if (top_exponent == 0) { /* the largest is denormal: where its leading bit would stand */
        top_exponent = 1;
        while ((top_significand & 0x800000u) == 0) {
            top_significand <<= 1;
            top_exponent--;
        }
    }
    int32_t shift = REF_SAMPLE_MASS_BITS - 23 + exponent - top_exponent;
    return shift >= 0 ? significand << shift : shift > -24 ? significand >> -shift : 0;
}

/**
 * The upper 64 bits of a product of two 64-bit numbers.
 *
 * @param a factor
 * @param b factor
 * @return floor(a b / 2^64)
 */
REF_INLINE uint64_t ref_multiply_high(uint64_t a, uint64_t b) {
    uint64_t low = (a & 0xffffffffu) * (b & 0xffffffffu);
    uint64_t cross = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
    uint64_t other = (a & 0xffffffffu) * (b >> 32) + (cross & 0xffffffffu);
    return (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
}

/**
 * Weights of a softmax: exp((x - largest) / temperature), the largest being 1. A logit of -inf has
 * weight 0.
 *
 * @param logits      [vocab_size]
 * @param vocab_size  at least 0
 * @param temperature above 0
 * @param weights     [vocab_size] output, may be logits; all NaN if a logit is NaN or +inf, all are
 *                    -inf, or the temperature is not above 0 and finite
 */
void ref_sample_softmax(const float *logits, int64_t vocab_size, float temperature, float *weights);

/**
 * The most probable token.
 *
 * @param logits     [vocab_size] logits or weights
 * @param vocab_size at least 0
 * @return the lowest id of the largest value, or -1 if there is none, one is NaN, or all are -inf
 */
int64_t ref_sample_greedy(const float *logits, int64_t vocab_size);

/**
 * Draws a token: inverse of the cumulative distribution, half-open (eq-sample).
 *
 * @param weights    [vocab_size] at least 0, not necessarily normalised
 * @param vocab_size at most REF_SAMPLE_MAX_VOCAB
 * @param bits       64 random bits
 * @return a token whose weight is not 0, or -1 if a weight is negative, NaN or +inf, all are 0, or
 *         the vocabulary is empty or too large
 */
int64_t ref_sample_token(const float *weights, int64_t vocab_size, uint64_t bits);

/**
 * Draws the target ids of all nodes of a tree, for ref_accept_walk. The key of node i is the
 * position that it predicts, prefix_len + depth[i] + 1: its token is that of plain decoding.
 *
 * @param weights    [num_nodes, vocab_size] the target's weights after each node
 * @param vocab_size at most REF_SAMPLE_MAX_VOCAB
 * @param num_nodes  number of nodes
 * @param depth      [num_nodes] depth of each node
 * @param prefix_len committed tokens without the root
 * @param seed       seed of the request
 * @param target_ids [num_nodes] output
 */
void ref_sample_nodes(const float *weights, int64_t vocab_size, int32_t num_nodes,
                      const int32_t *depth, int64_t prefix_len, uint64_t seed, int64_t *target_ids);

#endif
