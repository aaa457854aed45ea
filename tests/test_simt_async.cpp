// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulator's twins of mbarriers, bulk copies and named barriers: right kernels run in every
 * order, and data is not there before it may be.
 */
#include "device.cuh"
#include "ptx.cuh"

#include <math.h>

#include "simt_check.h"

/** Seeds that the tests run with. */
enum { NUM_SEEDS = 24 };

/** A ring of stages: one warp copies, the others add up, as a pipelined kernel does. */
enum { STAGES = 3, TILE = 256, CONSUMERS = 96 };

/** The first warp copies rows of TILE floats, three warps add them up.
 * @param poll 1: test in a loop, 0: wait @param rows of in @param in [rows, TILE]
 * @param out [gridDim, CONSUMERS] @param stale counts what was read too early */
static __global__ void ring_kernel(int poll, int rows, const float *in, float *out,
                                   unsigned *stale) {
    KDTR_DYNAMIC_SHARED(float, ring);
    KDTR_SHARED_ARRAY(uint64_t, full, STAGES);
    KDTR_SHARED_ARRAY(uint64_t, empty, STAGES);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            ptx_mbarrier_init(&full[i], 1);
            ptx_mbarrier_init(&empty[i], CONSUMERS);
        }
        ptx_fence_async();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int row = 0; row < rows; row++) {
            int stage = row % STAGES;
            ptx_mbarrier_wait(&empty[stage], ~(unsigned)(row / STAGES) & 1);
            ptx_mbarrier_expect(&full[stage], TILE * 4);
            for (int half = 0; half < 2; half++) {
                ptx_bulk_load(ring + stage * TILE + half * TILE / 2,
                              in + row * TILE + half * TILE / 2, TILE * 2, &full[stage]);
            }
        }
    }
    if (threadIdx.x >= 32) {
        float sum = 0;
        unsigned i = threadIdx.x - 32;
        for (int row = 0; row < rows; row++) {
            int stage = row % STAGES;
            unsigned parity = (unsigned)(row / STAGES) & 1;
            while (poll && !ptx_mbarrier_test(&full[stage], parity)) {
                atomicAdd(stale, 1U);
            }
            ptx_mbarrier_wait(&full[stage], parity);
            for (unsigned k = i; k < TILE; k += CONSUMERS) {
                sum += ring[stage * TILE + k];
            }
            ptx_mbarrier_arrive(&empty[stage]);
        }
        ptx_named_barrier(1, CONSUMERS);
        out[blockIdx.x * CONSUMERS + i] = sum;
    }
}

START_TEST(test_ring) {
    enum { ROWS = 17 };
    __align__(16) static float in[ROWS * TILE];
    for (int i = 0; i < ROWS * TILE; i++) {
        in[i] = (float)(i % 113);
    }
    unsigned polled = 0;
    for (int poll = 0; poll < 2; poll++) {
        for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
            float out[2 * CONSUMERS];
            simt_set_seed(seed);
            CHECK_LAUNCH(ring_kernel, 2, 32 + CONSUMERS, STAGES * TILE * 4, nullptr, poll, ROWS, in,
                         out, &polled);
            for (int i = 0; i < 2 * CONSUMERS; i++) {
                float sum = 0;
                for (int row = 0; row < ROWS; row++) {
                    for (int k = i % CONSUMERS; k < TILE; k += CONSUMERS) {
                        sum += in[row * TILE + k];
                    }
                }
                ck_assert_float_eq(out[i], sum);
            }
        }
    }
    ck_assert_uint_gt(polled, 0);
}
END_TEST

/** What a thread sees of a copy at several moments: before the phase can be complete it must be
 * NaN, although one of two copies may have landed. @param in [64] @param seen [4] */
static __global__ void visibility_kernel(const float *in, float *seen) {
    KDTR_DYNAMIC_SHARED(float, tile);
    KDTR_SHARED_ARRAY(uint64_t, barrier, 1);
    tile[0] = 1.0F; // of old, and gone when the copy starts
    ptx_mbarrier_init(barrier, 2);
    ptx_fence_async();
    ptx_mbarrier_expect(barrier, 128);
    ptx_bulk_load(tile, in, 64, barrier);
    seen[0] = tile[0];
    for (int i = 0; i < 300; i++) {
        ck_assert(!ptx_mbarrier_test(barrier, 0)); // an arrival is missing, time passes
    }
    seen[1] = tile[0];
    ptx_mbarrier_arrive(barrier);
    seen[2] = tile[0]; // 64 bytes are missing
    ptx_bulk_load(tile + 16, in + 16, 64, barrier);
    ptx_mbarrier_wait(barrier, 0);
    seen[3] = tile[0] + tile[31];
    seen[4] = ptx_mbarrier_test(barrier, 1) ? 1.0F : 0.0F; // the next phase has begun
    seen[5] = tile[32];
}

START_TEST(test_visibility) {
    __align__(16) float in[64];
    for (int i = 0; i < 64; i++) {
        in[i] = (float)(i + 1);
    }
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        float seen[6];
        simt_set_seed(seed);
        CHECK_LAUNCH(visibility_kernel, 3, 1, 256, nullptr, in, seen);
        ck_assert(isnan(seen[0]) && isnan(seen[1]) && isnan(seen[2]));
        ck_assert_float_eq(seen[3], 1.0F + 32.0F);
        ck_assert_float_eq(seen[4], 0.0F);
        ck_assert(isnan(seen[5])); // behind the copies
    }
}
END_TEST

/** A wait that was forgotten. @param wait 1: not forgotten @param in [32] @param out [32] */
static __global__ void forgotten_kernel(int wait, const float *in, float *out) {
    KDTR_DYNAMIC_SHARED(float, tile);
    KDTR_SHARED_ARRAY(uint64_t, barrier, 1);
    if (threadIdx.x == 0) {
        ptx_mbarrier_init(barrier, 1);
        ptx_fence_async();
        ptx_mbarrier_expect(barrier, 128);
        ptx_bulk_load(tile, in, 128, barrier);
    }
    __syncthreads();
    if (wait) {
        ptx_mbarrier_wait(barrier, 0);
    }
    out[threadIdx.x] = tile[threadIdx.x];
    ptx_mbarrier_wait(barrier, 0);
}

START_TEST(test_forgotten) {
    __align__(16) float in[32] = {0};
    int stale = 0;
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        float out[32];
        simt_set_seed(seed);
        CHECK_LAUNCH(forgotten_kernel, 1, 32, 128, nullptr, 1, in, out);
        ck_assert_float_eq(out[31], 0.0F);
        CHECK_LAUNCH(forgotten_kernel, 1, 32, 128, nullptr, 0, in, out);
        stale += isnan(out[31]) != 0;
        ck_assert(seed != 0 || isnan(out[31])); // with seed 0 a copy is as late as it can be
    }
    ck_assert_int_gt(stale, NUM_SEEDS / 4);
    ck_assert_int_lt(stale, NUM_SEEDS); // and early with some
}
END_TEST

/** Phases of a barrier that half the block arrives at and all wait for. @param out [blockDim] */
static __global__ void phase_kernel(unsigned *out) {
    KDTR_SHARED_ARRAY(uint64_t, barrier, 1);
    KDTR_SHARED_ARRAY(unsigned, cell, 64);
    if (threadIdx.x == 0) {
        ptx_mbarrier_init(barrier, 64);
    }
    __syncthreads();
    unsigned sum = 0;
    for (unsigned round = 0; round < 9; round++) {
        if (threadIdx.x < 64) {
            cell[threadIdx.x] = round + threadIdx.x;
            ptx_mbarrier_arrive(barrier);
        }
        ptx_mbarrier_wait(barrier, round & 1);
        sum += cell[threadIdx.x % 64 ^ 63];
        ptx_named_barrier(15, blockDim.x);
    }
    out[threadIdx.x] = sum;
}

START_TEST(test_phases) {
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        for (unsigned threads = 64; threads <= 1024; threads *= 4) {
            unsigned out[1024];
            simt_set_seed(seed);
            CHECK_LAUNCH(phase_kernel, 2, threads, 0, nullptr, out);
            for (unsigned i = 0; i < threads; i++) {
                ck_assert_uint_eq(out[i], 36 + 9 * (i % 64 ^ 63));
            }
        }
    }
}
END_TEST

/** Pairs of warps that meet at barriers of their own, at their own pace. @param out [blockDim] */
static __global__ void named_kernel(unsigned *out) {
    KDTR_SHARED_ARRAY(unsigned, cell, 384);
    unsigned pair = threadIdx.x / 64;
    unsigned value = threadIdx.x;
    for (unsigned round = 0; round <= pair; round++) {
        cell[threadIdx.x] = value;
        ptx_named_barrier(1 + pair, 64);
        value = cell[threadIdx.x ^ 32] + 1;
        if (threadIdx.x % 64 < 32) { // two places in the source, one barrier
            ptx_named_barrier(7 + pair, 64);
        } else {
            ptx_named_barrier(7 + pair, 64);
        }
    }
    out[threadIdx.x] = value;
}

/** In odd rounds one thread votes, at a barrier of three warps. @param out [96] bit r: result */
static __global__ void vote_kernel(unsigned *out) {
    unsigned votes = 0;
    for (unsigned round = 0; round < 32; round++) {
        bool any = ptx_named_barrier_or(2, 96, round % 2 != 0 && threadIdx.x == 3 * round);
        votes |= (unsigned)any << round;
    }
    out[threadIdx.x] = votes;
}

START_TEST(test_named_or) {
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        unsigned out[96];
        simt_set_seed(seed);
        CHECK_LAUNCH(vote_kernel, 1, 96, 0, nullptr, out);
        for (unsigned i = 0; i < 96; i++) {
            ck_assert_uint_eq(out[i], 0xaaaaaaaaU);
        }
    }
}
END_TEST

/** All warps of a group of four take other numbers of registers: nothing that shows.
 * @param out [256] */
static __global__ void registers_kernel(unsigned *out) {
    if (threadIdx.x < 128) {
        ptx_more_registers<232>();
    } else {
        ptx_fewer_registers<24>();
    }
    out[threadIdx.x] = threadIdx.x;
}

START_TEST(test_registers) {
    unsigned out[256];
    CHECK_LAUNCH(registers_kernel, 1, 256, 0, nullptr, out);
    for (unsigned i = 0; i < 256; i++) {
        ck_assert_uint_eq(out[i], i);
    }
}
END_TEST

START_TEST(test_named) {
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        unsigned out[384];
        simt_set_seed(seed);
        CHECK_LAUNCH(named_kernel, 2, 384, 0, nullptr, out);
        for (unsigned i = 0; i < 384; i++) {
            unsigned rounds = i / 64 + 1;
            ck_assert_uint_eq(out[i], (rounds % 2 == 1 ? i ^ 32 : i) + rounds);
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt_async");
    tcase_add_test(check_case(suite, "simt-ring"), test_ring);
    tcase_add_test(check_case(suite, "simt-visibility"), test_visibility);
    tcase_add_test(check_case(suite, "simt-forgotten"), test_forgotten);
    tcase_add_test(check_case(suite, "simt-phases"), test_phases);
    tcase_add_test(check_case(suite, "simt-named"), test_named);
    tcase_add_test(check_case(suite, "simt-named-or"), test_named_or);
    tcase_add_test(check_case(suite, "simt-registers"), test_registers);
    return check_run(suite);
}
