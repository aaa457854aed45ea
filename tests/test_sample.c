// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Drawing tokens (ref/sample.h, gate P0-9): the generator's published vectors, the inverse of the
 * cumulative distribution at its edges, exact masses.
 */
#include "sample.h"

#include <math.h>
#include <string.h>

#include "check_main.h"
#include "exp_log.h"
#include "random.h"

START_TEST(philox_known_answers) {
    /* Random123, tests/kat_vectors: philox4x32, 10 rounds (Salmon and others, SC11). */
    static const uint32_t vectors[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t bits[4];
        ref_philox(vectors[i], vectors[i] + 4, bits);
        ck_assert_mem_eq(bits, vectors[i] + 6, sizeof bits);
    }
}
END_TEST

START_TEST(bits_follow_from_seed_position_and_stream) {
    ck_assert_uint_eq(ref_sample_bits(0, 0, 0), 0xe169c58d6627e8d5u);
    uint32_t bits[4];
    const uint32_t counter[4] = {0x89abcdef, 0x01234567, 7, 0};
    const uint32_t key[2] = {0x76543210, 0xfedcba98};
    ref_philox(counter, key, bits);
    ck_assert_uint_eq(ref_sample_bits(0xfedcba9876543210u, 0x0123456789abcdef, 7),
                      (uint64_t)bits[1] << 32 | bits[0]);
    /* Each of the three matters, its upper half too. */
    const uint64_t all[] = {ref_sample_bits(1, 2, 3),
                            ref_sample_bits(2, 2, 3),
                            ref_sample_bits(1, 3, 3),
                            ref_sample_bits(1, 2, 4),
                            ref_sample_bits(1 + (1ll << 32), 2, 3),
                            ref_sample_bits(1, 2 + (1ll << 32), 3)};
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < i; j++) {
            ck_assert_uint_ne(all[i], all[j]);
        }
    }
}
END_TEST

/** A distribution, 64 bits and the token that they draw. */
struct draw_vector {
    float weights[4];
    uint64_t bits;
    int64_t token;
};

START_TEST(intervals_are_half_open) {
    static const struct draw_vector vectors[] = {
        /* u = bits 2^-64; SGLang pull 35798 has the first five as coins */
        {{0, 1, 0, 0}, 0, 1},
        {{0, 0.25f, 0, 0.75f}, 1ull << 62, 3},
        {{0, 0.25f, 0.75f, 0}, 0, 1},
        {{0, 1, 0, 0}, ~0ull << 40, 1},
        {{0, 0.25f, 0, 0.75f}, (1ull << 62) - 1, 1},
        {{0, 1, 0, 0}, ~0ull, 1},
        {{0.25f, 0.5f, 0.25f, 0}, (1ull << 62) - 1, 0},
        {{0.25f, 0.5f, 0.25f, 0}, 1ull << 62, 1},
        {{0.25f, 0.5f, 0.25f, 0}, (3ull << 62) - 1, 1},
        {{0.25f, 0.5f, 0.25f, 0}, 3ull << 62, 2},
        {{0.25f, 0.5f, 0.25f, 0}, ~0ull, 2},
        {{0x1p-149f, 0x1p-148f, 0x1p-149f, -0.0f}, (1ull << 62) - 1, 0}, /* denormals */
        {{0x1p-149f, 0x1p-148f, 0x1p-149f, -0.0f}, 1ull << 62, 1},
        {{0x1p126f, 0x1p127f, 0x1p126f, 0}, 3ull << 62, 2},
        {{1, 0x1p-43f, 0, 0}, ~0ull, 1},        /* the least mass */
        {{1, 0x1.fffffep-44f, 0, 0}, ~0ull, 0}, /* less: none */
        {{0x1.fffffep+0f, 0x1p-44f, 0, 0}, ~0ull, 0},
        {{0, 0, 0, 0}, 5, -1},
        {{1, NAN, 0, 0}, 0, -1},
        {{1, -0x1p-149f, 0, 0}, 0, -1},
        {{1, INFINITY, 0, 0}, 0, -1},
        {{1, 0, 0, -INFINITY}, 0, -1},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        int64_t token = ref_sample_token(vectors[i].weights, 4, vectors[i].bits);
        ck_assert_msg(token == vectors[i].token, "vector %zu: %lld", i, (long long)token);
    }
    ck_assert_int_eq(ref_sample_token(vectors[0].weights, 0, 0), -1);
    ck_assert_int_eq(ref_sample_token(vectors[0].weights, REF_SAMPLE_MAX_VOCAB + 1, 0), -1);
}
END_TEST

/** A weight with any exponent, denormals included. */
static float any_weight(uint64_t seed, uint64_t counter) {
    return ref_f32_from_bits((uint32_t)(ref_random(seed, counter) >> 33) % 0x7f800000u);
}

__extension__ typedef unsigned __int128 wide; /* exact products */

START_TEST(masses_and_products_are_exact) {
    for (uint64_t i = 0; i < 200000; i++) {
        float a = any_weight(test_seed(), 2 * i);
        float b = any_weight(test_seed(), 2 * i + 1);
        if (i % 2 == 0) { /* near each other */
            b = a * (0x1p-24f * (float)(ref_random(i, 0) >> 40));
        }
        float largest = a > b ? a : b;
        float weight = a > b ? b : a;
        int good = 1;
        if (largest > 0.0f) {
            /* 24 bits times a power of two: exact in float64. */
            double mass = floor(ldexp((double)weight, 43 - ilogb((double)largest)));
            good &= ref_sample_mass(weight, largest) == (uint64_t)mass;
            good &= ref_sample_mass(largest, largest) >> 43 == 1;
        }
        uint64_t x = ref_random(i, 1) >> (i % 64);
        uint64_t y = ref_random(i, 2) >> (i / 64 % 64);
        good &= ref_multiply_high(x, y) == (uint64_t)((wide)x * y >> 64);
        if (!good) {
            ck_abort_msg("round %llu: %a of %a", (unsigned long long)i, (double)weight,
                         (double)largest);
        }
    }
    ck_assert_uint_eq(ref_multiply_high(~0ull, ~0ull), ~0ull - 1);
}
END_TEST

START_TEST(draws_do_not_depend_on_scale_or_padding) {
    for (uint64_t i = 0; i < 2000; i++) {
        float weights[40] = {0};
        float scaled[40] = {0};
        uint64_t sum = 0;
        uint64_t bits = ref_sample_bits(test_seed(), (int64_t)i, 9);
        for (uint64_t v = 0; v < 30; v++) {
            weights[v] = (float)(ref_random(i, v) % 1000 * (ref_random(i, v + 99) % 3));
            scaled[v] = weights[v] * 0x1p-140f;
            sum += (uint64_t)weights[v];
        }
        int64_t token = ref_sample_token(weights, 30, bits);
        ck_assert(token >= 0 && weights[token] > 0.0f);
        ck_assert_int_eq(ref_sample_token(scaled, 30, bits), token);
        ck_assert_int_eq(ref_sample_token(weights, 40, bits), token);
        /* Integers have exact masses: before <= u sum < before + weight, u = bits 2^-64. */
        uint64_t before = 0;
        for (int64_t v = 0; v < token; v++) {
            before += (uint64_t)weights[v];
        }
        ck_assert((wide)before << 64 <= (wide)bits * sum);
        ck_assert((wide)bits * sum < (wide)(before + (uint64_t)weights[token]) << 64);
    }
}
END_TEST

START_TEST(softmax_and_greedy) {
    const float logits[5] = {1.0f, 3.0f, -INFINITY, 3.0f, -200.0f};
    float weights[5];
    ref_sample_softmax(logits, 5, 2.0f, weights);
    ck_assert(weights[1] == 1.0f && weights[3] == 1.0f && weights[2] == 0.0f);
    ck_assert(weights[0] == ref_exp_f32(-1.0f) && weights[4] == 0.0f);
    ck_assert_int_eq(ref_sample_greedy(logits, 5), 1);
    ck_assert_int_eq(ref_sample_greedy(logits, 0), -1);
    const float bad[4][2] = {{NAN, 1}, {1, NAN}, {-INFINITY, -INFINITY}, {INFINITY, 1}};
    for (int i = 0; i < 4; i++) {
        ref_sample_softmax(bad[i], 2, 1.0f, weights);
        ck_assert(isnan(weights[0]) && isnan(weights[1]));
        ck_assert_int_eq(ref_sample_token(weights, 2, 0), -1);
        ck_assert_int_eq(ref_sample_greedy(bad[i], 2), i < 3 ? -1 : 0);
    }
    const float temperatures[4] = {0.0f, -1.0f, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        ref_sample_softmax(logits, 5, temperatures[i], weights);
        ck_assert(isnan(weights[0]));
    }
}
END_TEST

static Suite *sample_suite(void) {
    Suite *suite = suite_create("drawing tokens");
    TCase *sample = test_tcase(suite, "P0-9", "P0-9 drawing tokens");
    tcase_add_test(sample, philox_known_answers);
    tcase_add_test(sample, bits_follow_from_seed_position_and_stream);
    tcase_add_test(sample, intervals_are_half_open);
    tcase_add_test(sample, masses_and_products_are_exact);
    tcase_add_test(sample, draws_do_not_depend_on_scale_or_padding);
    tcase_add_test(sample, softmax_and_greedy);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {sample_suite};
    return check_main(makers, 1);
}
