// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Values of test problems, counter based: no state, no order of drawing.
 */
#include "make_values.h"

#include <math.h>

/** Streams of test_hash used here. */
enum { STREAM_QUERY = 1, STREAM_CACHE = 2 };

/** Finaliser of splitmix64: a bijection that mixes all bits. */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t test_hash(uint64_t seed, uint64_t stream, uint64_t x, uint64_t y) {
    uint64_t h = mix(seed + 0x9e3779b97f4a7c15u * (stream + 1));
    h = mix(h + 0x9e3779b97f4a7c15u * (x + 1));
    return mix(h + 0x9e3779b97f4a7c15u * (y + 1));
}

/** Nearly normal, variance 1: the sum of four uniform numbers of 16 bits. */
static float normal(uint64_t h) {
    int64_t sum = (int64_t)(h & 0xffffu) + (int64_t)(h >> 16 & 0xffffu) +
                  (int64_t)(h >> 32 & 0xffffu) + (int64_t)(h >> 48);
    /* Each has variance 2^32 / 12, so four of them need a factor sqrt(3) / 2^16. */
    return (float)(sum - 2 * 65535) * (0x1.bb67aep+0f / 65536.0f);
}

float test_query_value(const struct test_case *c, int32_t request, int32_t node, int32_t head,
                       int32_t k) {
    uint64_t place = ((uint64_t)request + (uint64_t)c->first_request) << 32 | (uint32_t)node;
    float x = normal(test_hash(c->seed, STREAM_QUERY, place, (uint64_t)head << 32 | (uint32_t)k));
    int latent = k < c->latent_dim;
    switch (c->kind) {
    case TEST_EQUAL_SCORES: /* only columns in which all cache rows are equal */
        return latent ? (k == 0 ? 1.0f : 0.0f) : 0.5f;
    case TEST_CANCELLATION: /* the cancelling half of the columns has no part in the scores */
        return latent && k >= c->latent_dim / 2 ? 0.0f : x;
    case TEST_NEGATIVE_INF:
    case TEST_ALL_MINUS_INF: /* positive where the cache holds -inf */
        return k == c->latent_dim - 1 ? fabsf(x) + 0.5f : x;
    default:
        return x;
    }
}

int test_node_is_poisoned(int64_t node) {
    return node % 8 == 3 || node % 8 == 5 || node % 8 == 6;
}

/** Rows of nodes that other nodes must not notice: NaN, -inf in one column, +inf in one. */
static float poisoned_node(const struct test_case *c, int64_t node, int32_t k, float x) {
    switch (node % 8) {
    case 3:
        return NAN;
    case 5:
        return k == 0 ? -INFINITY : x;
    case 6:
        return k == c->latent_dim / 2 ? INFINITY : x;
    default:
        return x;
    }
}

float test_cache_value(const struct test_case *c, int32_t request, int64_t token, int32_t k) {
    int64_t prefix = c->prefix[request] < 0 ? 0 : c->prefix[request];
    uint64_t place = ((uint64_t)request + (uint64_t)c->first_request) << 40 | (uint64_t)token;
    float x = normal(test_hash(c->seed, STREAM_CACHE, place, (uint64_t)k));
    int latent = k < c->latent_dim;
    int last_latent = k == c->latent_dim - 1;
    switch (c->kind) {
    case TEST_HUGE_SCORE:
        return token == prefix / 2 ? x * 64.0f : x;
    case TEST_EQUAL_SCORES:
        return latent ? (k == 0 ? 1.5f : x) : 0.75f;
    case TEST_CANCELLATION:
        return latent && k >= c->latent_dim / 2 ? (token % 2 ? -1000.0f - x : 1000.0f + x) : x;
    case TEST_DENORMAL:
        /* Column 0 is the least denormal: its mean may round to -0, which is stored as +0. */
        return latent ? (k == 0 ? -0x1p-149f : k == 1 ? -0x1p-133f : x * 0x1p-130f) : x;
    case TEST_POISONED_NODES:
        return token >= prefix ? poisoned_node(c, token - prefix, k, x) : x;
    case TEST_VISIBLE_NAN:
        return request == 0 && token == prefix / 3 && last_latent ? NAN : x;
    case TEST_VISIBLE_INF:
        return token == prefix / 3 && last_latent ? INFINITY : x;
    case TEST_NEGATIVE_INF:
        return token < prefix && token % 2 == 1 && last_latent ? -INFINITY : x;
    case TEST_ALL_MINUS_INF:
        return request == 0 && last_latent ? -INFINITY : x;
    default:
        return x;
    }
}

float test_scale(const struct test_case *c) {
    /* A dot product of normal numbers has variance L + P. Scores with deviation 3 make weights
       far from flat; with deviation 60 most scores are beyond +-80 somewhere in a row. */
    int rope = c->rope_dim < 0 ? 0 : c->rope_dim;
    int columns = c->kind == TEST_DENORMAL ? rope + 1 : c->latent_dim + rope;
    return (c->kind == TEST_BEYOND_80 ? 60.0f : 3.0f) / sqrtf((float)columns);
}
