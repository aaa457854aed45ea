// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Intrinsics of the emulator that need no other thread, and atomics.
 */
#include "simt.h"

#include <math.h>

#include "simt_check.h"

/** Every atomic, by all threads. @param u [3] @param n [3] @param f [1] @param wide [1] */
static __global__ void atomic_kernel(unsigned *u, int *n, float *f, unsigned long long *wide) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&u[0], i);
    atomicMax(&u[1], i * 2654435761U);
    atomicOr(&u[2], 1U << (i % 31));
    atomicAdd(&n[0], -(int)i);
    atomicMax(&n[1], -(int)i - 3);
    atomicOr(&n[2], 1 << (i % 29));
    atomicAdd(f, 0.25F);
    atomicAdd(wide, 1ULL << 33);
    __threadfence();
}

START_TEST(test_atomic) {
    unsigned u[3] = {0, 0, 0};
    int n[3] = {0, -1000, 0};
    float f = 0;
    unsigned long long wide = 0;
    unsigned largest = 0;
    for (unsigned i = 0; i < 400; i++) {
        largest = max(largest, i * 2654435761U);
    }
    simt_set_seed(9);
    CHECK_LAUNCH(atomic_kernel, 4, 100, 0, nullptr, u, n, &f, &wide);
    ck_assert_uint_eq(u[0], 400 * 399 / 2);
    ck_assert_uint_eq(u[1], largest);
    ck_assert_uint_eq(u[2], 0x7fffffffU);
    ck_assert_int_eq(n[0], -400 * 399 / 2);
    ck_assert_int_eq(n[1], -3);
    ck_assert_int_eq(n[2], 0x1fffffff);
    ck_assert_float_eq(f, 100.0F);
    ck_assert(wide == 400ULL << 33);
    ck_assert_uint_eq(atomicAdd(&u[0], 1U), 400 * 399 / 2);
}
END_TEST

START_TEST(test_math) {
    // 1 + 2^-12 squared needs one bit more than a float has: a fused sum would show it.
    volatile float a = 1.0F + 0x1p-12F;
    ck_assert_float_eq(__fadd_rn(__fmul_rn(a, a), -(1.0F + 0x1p-11F)), 0.0F);
    ck_assert_float_eq(__fmaf_rn(a, a, -(1.0F + 0x1p-11F)), 0x1p-24F);
    ck_assert_float_eq(__fsub_rn(a, 1.0F), 0x1p-12F);
    ck_assert_float_eq(__fdiv_rn(1.0F, 3.0F), 0x1.555556p-2F);
    ck_assert_float_eq(__fsqrt_rn(2.0F), 0x1.6a09e6p+0F);
    ck_assert_uint_eq(__float_as_uint(-2.0F), 0xc0000000U);
    ck_assert_int_eq(__float_as_int(1.0F), 0x3f800000);
    ck_assert_float_eq(__uint_as_float(0x40400000U), 3.0F);
    ck_assert_float_eq(__int_as_float(0x3f000000), 0.5F);
    ck_assert_int_eq(__popc(0xf0f0U), 8);
    ck_assert_int_eq(__popcll(~0ULL), 64);
    ck_assert_int_eq(__clz(0), 32);
    ck_assert_int_eq(__clz(-1), 0);
    ck_assert_int_eq(__clz(1), 31);
    ck_assert_int_eq(__ffs(0), 0);
    ck_assert_int_eq(__ffs(8), 4);
    ck_assert_uint_eq(__brev(0x00000013U), 0xc8000000U);
    ck_assert_int_eq(min(-1, 2), -1);
    ck_assert_uint_eq(max(1U, ~0U), ~0U);
    ck_assert_float_eq(max(NAN, 1.0F), 1.0F);
    ck_assert_float_eq(min(2.0F, NAN), 2.0F);
    ck_assert_float_eq(max(1.0F, NAN), 1.0F);
    ck_assert_float_eq(min(NAN, 2.0F), 2.0F);
    ck_assert(max(1L, -5L) == 1 && min(1LL, -5LL) == -5 && min(1UL, 2UL) == 1);
    ck_assert(max(1.5, 2.5) == 2.5 && min(1.5, 2.5) == 1.5 && max(3UL, 2UL) == 3);
    ck_assert(max(7LL, 2LL) == 7 && min(1L, 2L) == 1);
    int word = 17;
    ck_assert_int_eq(__ldg(&word), 17);
    ck_assert_int_eq(warpSize, 32);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt_math");
    tcase_add_test(check_case(suite, "simt-atomic"), test_atomic);
    tcase_add_test(check_case(suite, "simt-math"), test_math);
    return check_run(suite);
}
