// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulator's twins of ldmatrix, mma, ex2 and cvt do what plain loops do, fast enough, and
 * refuse what is wrong.
 */
#include "device.cuh"
#include "ptx.cuh"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "simt_check.h"

/** Seeds that the tests run with. */
enum { NUM_SEEDS = 6 };

/** A value for the test of mma. @param i place @return small, both signs, with zeros */
static float sample(uint32_t i) {
    return (float)((int)(i * 2654435761U >> 24) % 33 - 16) * 0.125F;
}

/** As bf16. @param value exact in bf16 @return its bits */
static uint16_t bf16_bits(float value) {
    return (uint16_t)(__float_as_uint(value) >> 16);
}

/** Every thread loads its row and writes out what it got. @param trans which form
 * @param in [32, 8] rows @param out [32, 4] */
static __global__ void ldmatrix_kernel(int trans, const uint16_t *in, uint32_t *out) {
    KDTR_DYNAMIC_SHARED(uint16_t, rows);
    unsigned lane = threadIdx.x;
    for (unsigned i = 0; i < 8; i++) {
        rows[lane * 24 + i] = in[lane * 8 + i];
    }
    __syncwarp();
    uint32_t r[4];
    if (trans) {
        ptx_ldmatrix_trans(r, rows + lane * 24);
    } else {
        ptx_ldmatrix(r, rows + lane * 24);
    }
    for (unsigned i = 0; i < 4; i++) {
        out[lane * 4 + i] = r[i];
    }
}

START_TEST(test_ldmatrix) {
    uint16_t in[32 * 8];
    for (unsigned i = 0; i < 32 * 8; i++) {
        in[i] = (uint16_t)(i * 40503U);
    }
    for (int trans = 0; trans < 2; trans++) {
        for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
            uint32_t out[32 * 4];
            simt_set_seed(seed);
            CHECK_LAUNCH(ldmatrix_kernel, 1, 32, 32 * 48, nullptr, trans, in, out);
            for (int lane = 0; lane < 32; lane++) {
                for (int i = 0; i < 4; i++) {
                    // Elements (row, column) and (row, column + 1) of matrix i, or swapped.
                    int row = lane / 4;
                    int column = lane % 4 * 2;
                    const uint16_t *matrix = in + i * 64;
                    uint32_t low = matrix[trans ? column * 8 + row : row * 8 + column];
                    uint32_t high = matrix[trans ? (column + 1) * 8 + row : row * 8 + column + 1];
                    ck_assert_uint_eq(out[lane * 4 + i], low | high << 16);
                }
            }
        }
    }
}
END_TEST

/** Fragments of a warp as the PTX ISA lays them out, one mma a warp.
 * @param a [16, 16] @param b [16, 8] @param c [warps, 16, 8] in and out */
static __global__ void mma_kernel(const uint16_t *a, const uint16_t *b, float *c) {
    unsigned lane = threadIdx.x % 32;
    unsigned group = lane / 4;
    unsigned pair = lane % 4 * 2;
    float *tile = c + threadIdx.x / 32 * 128;
    uint32_t fa[4];
    uint32_t fb[2];
    float fc[4];
    for (unsigned i = 0; i < 4; i++) {
        unsigned row = group + i % 2 * 8;
        unsigned column = pair + i / 2 * 8;
        fa[i] = a[row * 16 + column] | (uint32_t)a[row * 16 + column + 1] << 16;
        fc[i] = tile[(group + i / 2 * 8) * 8 + pair + i % 2];
    }
    for (unsigned i = 0; i < 2; i++) {
        unsigned k = pair + i * 8;
        fb[i] = b[k * 8 + group] | (uint32_t)b[(k + 1) * 8 + group] << 16;
    }
    ptx_mma(fc, fa, fb[0], fb[1]);
    for (unsigned i = 0; i < 4; i++) {
        tile[(group + i / 2 * 8) * 8 + pair + i % 2] = fc[i];
    }
}

START_TEST(test_mma) {
    enum { WARPS = 3 };
    uint16_t a[16 * 16];
    uint16_t b[16 * 8];
    for (uint32_t i = 0; i < 16 * 16; i++) {
        a[i] = bf16_bits(sample(i));
    }
    for (uint32_t i = 0; i < 16 * 8; i++) {
        b[i] = bf16_bits(sample(i + 1000));
    }
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        float c[WARPS * 128];
        for (uint32_t i = 0; i < WARPS * 128; i++) {
            c[i] = sample(i + 5000);
        }
        simt_set_seed(seed);
        CHECK_LAUNCH(mma_kernel, 1, WARPS * 32, 0, nullptr, a, b, c);
        for (uint32_t i = 0; i < WARPS * 128; i++) {
            float sum = sample(i + 5000); // every partial sum is exact: the order does not matter
            for (uint32_t k = 0; k < 16; k++) {
                sum += sample(i % 128 / 8 * 16 + k) * sample(k * 8 + i % 8 + 1000);
            }
            ck_assert_float_eq(c[i], sum);
        }
    }
}
END_TEST

START_TEST(test_mma_special) {
    // A NaN and an infinity in a meet zeros in b: they reach exactly their rows.
    uint16_t a[16 * 16] = {0};
    uint16_t b[16 * 8] = {0};
    float c[128] = {0};
    a[3 * 16 + 9] = 0x7fc0;
    a[12 * 16 + 15] = 0x7f80;
    b[5 * 8 + 2] = 0x7fc0; // and a NaN in b meets zeros in a: its column
    simt_set_seed(0);
    CHECK_LAUNCH(mma_kernel, 1, 32, 0, nullptr, a, b, c);
    for (int i = 0; i < 128; i++) {
        bool nan = i / 8 == 3 || i / 8 == 12 || i % 8 == 2;
        ck_assert_int_eq(isnan(c[i]), nan);
        ck_assert(nan || c[i] == 0.0F);
    }
}
END_TEST

/** Lanes by number in the block. @param lanes [blockDim.z, .y, .x] */
static __global__ void lane_kernel(int32_t *lanes) {
    uint32_t number = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    lanes[number] = ptx_lane();
}

START_TEST(test_lane) {
    int32_t lanes[60];
    CHECK_LAUNCH(lane_kernel, 1, dim3(5, 4, 3), 0, nullptr, lanes);
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(lanes[i], i % 32);
    }
}
END_TEST

/** Element functions. @param count of values @param in values @param exp2 gets 2^x
 * @param pack gets bf16 pairs (x, -x) */
static __global__ void element_kernel(int count, const float *in, float *exp2, uint32_t *pack) {
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) {
        exp2[i] = ptx_exp2(in[i]);
        pack[i] = ptx_pack_bf16(in[i], -in[i]);
    }
}

/** The nearest bf16 by looking at both neighbours. @param x no NaN @return bits */
static uint32_t nearest_bf16(float x) {
    uint32_t low = __float_as_uint(x) >> 16;
    double down = __uint_as_float(low << 16);
    uint32_t next = (low + 1) << 16;
    // Above the largest bf16 the next one counts as if exponents went on.
    double up = (next & 0x7f800000U) == 0x7f800000U ? ldexp(copysign(1.0, x), 128)
                                                    : (double)__uint_as_float(next);
    double below = fabs(x - down);
    double above = fabs(up - x);
    return isinf(x) || below < above || (below == above && low % 2 == 0) ? low : low + 1;
}

START_TEST(test_elements) {
    enum { N = 20000, SPECIAL = 16 };
    static float in[N];
    static float exp2[N];
    static uint32_t pack[N];
    const float special[SPECIAL] = {
        0.0F,         -0.0F,   INFINITY, -INFINITY, NAN,     __uint_as_float(1),
        -FLT_MIN / 2, 1.0F,    -126.0F,  -126.5F,   -149.0F, 127.99999F,
        128.0F,       FLT_MAX, -FLT_MAX, -1e30F};
    for (uint32_t i = 0; i < N; i++) {
        uint32_t random = i * 2654435761U;
        if (i < SPECIAL) {
            in[i] = special[i];
        } else if (i % 3 == 0) {
            in[i] = __uint_as_float((random & 0xff7f0000U) | 0x8000U); // ties of the rounding
        } else if (i % 3 == 1) {
            in[i] = (float)((int)(random >> 8) - (1 << 23)) * 0x1p-16F;
        } else {
            in[i] = __uint_as_float(random & 0xff7fffffU);
        }
    }
    CHECK_LAUNCH(element_kernel, 1, 64, 0, nullptr, N, in, exp2, pack);
    for (int i = 0; i < N; i++) {
        double exact = ::exp2((double)in[i]);
        if (isnan(in[i])) {
            ck_assert(isnan(exp2[i]));
            ck_assert_uint_eq(pack[i], 0x7fff7fffU);
            continue;
        }
        ck_assert_uint_eq(pack[i], nearest_bf16(in[i]) | nearest_bf16(-in[i]) << 16);
        if (exact >= ldexp(1.0, 128)) {
            ck_assert(isinf(exp2[i]) && exp2[i] > 0);
        } else if (exact < ldexp(1.0, -126)) {
            ck_assert_uint_eq(__float_as_uint(exp2[i]), 0);
        } else {
            double ulp = ldexp(1.0, ilogb(exact) - 23);
            ck_assert(fabs(exp2[i] - exact) <= 2 * ulp);
        }
    }
    ck_assert(exp2[0] == 1.0F && exp2[1] == 1.0F && exp2[5] == 1.0F && exp2[6] == 1.0F);
    ck_assert(exp2[7] == 2.0F && exp2[8] == FLT_MIN);
}
END_TEST

/** Many mma by each warp. @param count of each warp @param out [blockDim] */
static __global__ void many_kernel(int count, float *out) {
    float c[4] = {0, 0, 0, 0};
    const uint32_t one = 0x3f803f80U;
    const uint32_t a[4] = {one, one, one, one};
    ptx_grid_wait();
    for (int i = 0; i < count; i++) {
        ptx_mma(c, a, one, one);
    }
    ptx_launch_dependents();
    out[threadIdx.x] = c[0] + c[1] + c[2] + c[3];
}

START_TEST(test_many) {
    enum { COUNT = 500 };
    for (uint64_t seed = 0; seed < 3; seed++) {
        float out[1024];
        struct timespec begin;
        struct timespec end;
        simt_set_seed(seed);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        cudaError_t error = KDTR_LAUNCH_DEPENDENT(many_kernel, 1, 384, 0, nullptr, COUNT, out);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        ck_assert_int_eq(error, cudaSuccess);
        for (int i = 0; i < 384; i++) {
            ck_assert_float_eq(out[i], 4 * 16.0F * COUNT);
        }
        double seconds = (double)(end.tv_sec - begin.tv_sec) +
                         (double)(end.tv_nsec - begin.tv_nsec) / 1000000000.0;
        printf("seed %d: 12 x %d mma in %.1f ms, %.2f GFLOP/s\n", (int)seed, COUNT,
               seconds * 1000.0, 12.0 * COUNT * 4096 / seconds / 1000000000.0);
        // A hundred times what the plain build needs: only a collapse is an error.
        ck_assert_double_le(seconds, 1.0);
        CHECK_LAUNCH(many_kernel, 2, 1024, 0, nullptr, 3, out);
        ck_assert_float_eq(out[1023], 4 * 16.0F * 3);
    }
}
END_TEST

/** Tensor instructions go wrong. @param how which */
static __global__ void tensor_kernel(int how) {
    KDTR_DYNAMIC_SHARED(char, shared);
    uint32_t r[4];
    float c[4] = {0, 0, 0, 0};
    __align__(16) char local[16] = {0};
    unsigned lane = threadIdx.x;
    if (how == 0) {
        ptx_ldmatrix(r, shared + lane * 16 + (lane == 9 ? 8 : 0));
    } else if (how == 1) {
        ptx_ldmatrix_trans(r, lane == 9 ? local : shared);
    } else if (how == 2) {
        ptx_ldmatrix(r, shared + (lane == 9 ? 528 : 512));
    } else if (how == 3 && lane != 9) {
        ptx_mma(c, (const uint32_t *)(const void *)c, 0, 0);
    } else if (how == 4 && lane < 16) {
        ptx_ldmatrix(r, shared);
    } else if (how == 4) {
        ptx_ldmatrix_trans(r, shared);
    }
}

/** Runs a right kernel and checks its result. */
static void check_reuse(void) {
    uint16_t a[16 * 16] = {0};
    uint16_t b[16 * 8] = {0};
    float c[128] = {0};
    a[15 * 16 + 15] = bf16_bits(2.0F);
    b[15 * 8 + 7] = bf16_bits(3.0F);
    CHECK_LAUNCH(mma_kernel, 1, 32, 0, nullptr, a, b, c);
    ck_assert(c[127] == 6.0F && c[126] == 0.0F);
}

START_TEST(test_wrong) {
    CHECK_FAILS(SIMT_MISALIGNED, "ldmatrix", tensor_kernel, 1, 32, 528, nullptr, 0);
    CHECK_FAILS(SIMT_NOT_SHARED, "ldmatrix.trans", tensor_kernel, 1, 32, 528, nullptr, 1);
    CHECK_FAILS(SIMT_NOT_SHARED, "ldmatrix", tensor_kernel, 1, 32, 528, nullptr, 2);
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "lane 9, which has exited", tensor_kernel, 1, 32, 528,
                nullptr, 3);
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "wait in", tensor_kernel, 1, 32, 528, nullptr, 4);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt_tensor");
    tcase_add_test(check_case(suite, "simt-ldmatrix"), test_ldmatrix);
    tcase_add_test(check_case(suite, "simt-mma"), test_mma);
    tcase_add_test(check_case(suite, "simt-mma-special"), test_mma_special);
    tcase_add_test(check_case(suite, "simt-elements"), test_elements);
    tcase_add_test(check_case(suite, "simt-lane"), test_lane);
    tcase_add_test(check_case(suite, "simt-many"), test_many);
    tcase_add_test(check_case(suite, "simt-bad-tensor"), test_wrong);
    return check_run(suite);
}
