// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Every detector of the emulator fires on a kernel that is wrong on purpose, and the emulator is as
 * good as new afterwards.
 */
#include "simt.h"

#include <math.h>
#include <stdio.h>

#include "simt_check.h"

enum { FULL = -1 }; // all lanes, as a mask

/** A right kernel, run after each wrong one. @param out [blockDim] */
static __global__ void right_kernel(int *out) {
    KDTR_SHARED_ARRAY(int, cell, 128);
    cell[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = __shfl_xor_sync((unsigned)FULL, cell[threadIdx.x ^ 32], 1);
}

/** Runs right_kernel() and checks its result. */
static void check_reuse(void) {
    int out[128];
    CHECK_LAUNCH(right_kernel, 1, 128, 0, nullptr, out);
    ck_assert_int_eq(simt_last_report()->code, SIMT_OK);
    for (int i = 0; i < 128; i++) {
        ck_assert_int_eq(out[i], i ^ 33);
    }
}

/** Barriers go wrong in several ways. @param how which */
static __global__ void barrier_kernel(int how) {
    if (how == 0 && threadIdx.x >= 64) {
        return; // exits while the others wait
    }
    if (how == 1 && threadIdx.x == 7) {
        __syncthreads(); // waits elsewhere, so that the count alone would be right
        return;
    }
    if (how == 2 && threadIdx.x < 32) {
        __shfl_sync((unsigned)FULL, 1, 0); // right, but then one lane alone in the next
        if (threadIdx.x == 31) {
            __syncwarp();
        }
    }
    if (how == 3 && blockIdx.x == 2 && threadIdx.x == 9) {
        return;
    }
    if (how == 4 && threadIdx.x == 0) {
        return;
    }
    __syncthreads();
}

START_TEST(test_barrier) {
    CHECK_FAILS(SIMT_BARRIER_DIVERGENCE, "has exited", barrier_kernel, 1, 96, 0, nullptr, 0);
    CHECK_FAILS(SIMT_BARRIER_DIVERGENCE, "wait at", barrier_kernel, 1, 96, 0, nullptr, 1);
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "waits at", barrier_kernel, 1, 96, 0, nullptr, 2);
    CHECK_FAILS(SIMT_BARRIER_DIVERGENCE, "thread 9", barrier_kernel, 4, 64, 0, nullptr, 3);
    CHECK_FAILS(SIMT_BARRIER_DIVERGENCE, "thread 0", barrier_kernel, 1, 64, 0, nullptr, 4);
    check_report(KDTR_LAUNCH(barrier_kernel, 4, 64, 0, nullptr, 3), SIMT_BARRIER_DIVERGENCE, "9");
    ck_assert_uint_eq(simt_last_report()->block.x, 2);
}
END_TEST

/** Warp collectives go wrong in several ways. @param how which */
static __global__ void collective_kernel(int how) {
    unsigned lane = threadIdx.x % 32;
    if (how == 0 && lane == 5) {
        return; // a lane of the mask has exited
    }
    if (how == 1 && lane == 5) {
        __ballot_sync(1U << 5, 1);         // right
        __shfl_sync((unsigned)FULL, 1, 0); // another line
    }
    if (how == 2) {
        __shfl_sync(lane == 3 ? 0x0000ffffU : (unsigned)FULL, 1, 0); // another mask
    }
    if (how == 3) {
        __shfl_sync(1U, 1, 0); // a mask without the caller
    }
    if (how == 4 && lane < 16) {
        __shfl_sync(0x0000ffffU, 1, 20); // from a lane outside the mask
    }
    if (how == 5) {
        __shfl_xor_sync((unsigned)FULL, 1, 1, 24); // no power of two
    }
    if (how == 6 && lane < 16) {
        __shfl_xor_sync(0x0000ffffU, 1.0, 16); // 64 bits
    }
    __syncwarp((unsigned)FULL);
}

START_TEST(test_collective) {
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "lane 5, which has exited", collective_kernel, 1, 64, 0,
                nullptr, 0);
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "wait in", collective_kernel, 1, 64, 0, nullptr, 1);
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "waits for lane", collective_kernel, 1, 64, 0, nullptr, 2);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "not in its own mask", collective_kernel, 1, 64, 0, nullptr, 3);
    CHECK_FAILS(SIMT_INACTIVE_LANE, "reads lane 20", collective_kernel, 1, 64, 0, nullptr, 4);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "width 24", collective_kernel, 1, 64, 0, nullptr, 5);
    CHECK_FAILS(SIMT_INACTIVE_LANE, "reads lane 16", collective_kernel, 1, 64, 0, nullptr, 6);
    // A block of 40 threads: lanes 8 to 31 of its second warp do not exist.
    CHECK_FAILS(SIMT_WARP_DIVERGENCE, "lane 8, which does not exist", collective_kernel, 1, 40, 0,
                nullptr, 7);
}
END_TEST

/** Reads what only the others of the block write. @param sync whether it waits first
 * @param out [blockDim] */
static __global__ void race_kernel(int sync, float *out) {
    KDTR_SHARED_ARRAY(float, cell, 64);
    cell[threadIdx.x] = (float)threadIdx.x;
    if (sync) {
        __syncthreads();
    }
    out[threadIdx.x] = cell[63 - threadIdx.x];
}

/** All threads write one word, none wait. @param out the word */
static __global__ void last_kernel(unsigned *out) {
    *out = threadIdx.x;
}

START_TEST(test_race) {
    float natural[64];
    float other[64];
    simt_set_seed(0);
    CHECK_LAUNCH(race_kernel, 1, 64, 0, nullptr, 0, natural);
    ck_assert(isnan(natural[0])); // not written yet
    ck_assert_float_eq(natural[63], 0.0F);
    int differ = 0;
    unsigned winners = 0;
    for (uint64_t seed = 1; seed < 9; seed++) {
        unsigned last = 0;
        simt_set_seed(seed);
        CHECK_LAUNCH(race_kernel, 1, 64, 0, nullptr, 0, other);
        differ += memcmp(natural, other, sizeof(other)) != 0;
        CHECK_LAUNCH(race_kernel, 1, 64, 0, nullptr, 1, other);
        ck_assert_float_eq(other[0], 63.0F);
        CHECK_LAUNCH(last_kernel, 1, 32, 0, nullptr, &last);
        winners |= 1U << last;
    }
    ck_assert_int_eq(differ, 8);
    ck_assert_int_ge(__popc(winners), 3);
}
END_TEST

/** Writes one byte beside the dynamic shared memory. @param offset where */
static __global__ void overrun_kernel(int offset) {
    KDTR_DYNAMIC_SHARED(char, bytes);
    if (threadIdx.x == 3) {
        bytes[offset] = 1;
    }
}

/** Writes beside a static array, past the type's bounds. @param offset where */
static __global__ void overrun_static_kernel(int offset) {
    KDTR_SHARED_ARRAY(char, bytes, 11);
    char *first = bytes;
    first[offset] = 1;
}

/** AddressSanitizer's exit status where a test waits for its verdict: no other failure has it. */
enum { ASAN_STATUS = 99 };

#if SIMT_ASAN
/** Options of AddressSanitizer, whose library must find it. @return the options */
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "exitcode=99";
}
#endif

START_TEST(test_overrun) {
    // The fences report it; AddressSanitizer, if there, sees it first and ends the process.
#if SIMT_ASAN
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
#endif
    if (_i == 0) {
        CHECK_FAILS(SIMT_SHARED_OVERRUN, "dynamic of 101", overrun_kernel, 2, 32, 101, nullptr,
                    101);
    } else if (_i == 1) {
        CHECK_FAILS(SIMT_SHARED_OVERRUN, "dynamic of 8", overrun_kernel, 2, 32, 8, nullptr, -1);
    } else {
        CHECK_FAILS(SIMT_SHARED_OVERRUN, "bytes of 11", overrun_static_kernel, 1, 1, 0, nullptr,
                    15);
    }
}
END_TEST

/** Vector access at any address. @param pointer address @param store whether it writes */
static __global__ void vector_kernel(char *pointer, int store) {
    if (store) {
        KDTR_STORE16(pointer, make_uint4(1, 2, 3, 4));
    }
    uint4 value = KDTR_LOAD16(pointer);
    simt_check_aligned(pointer, 8);
    float2 half = simt_load_aligned<float2>(pointer + 8);
    simt_store_aligned(pointer, make_int4((int)value.x, (int)__float_as_uint(half.x), 0, 0));
}

START_TEST(test_alignment) {
    __align__(16) char bytes[48];
    CHECK_FAILS(SIMT_MISALIGNED, "16 bytes", vector_kernel, 1, 1, 0, nullptr, bytes + 8, 0);
    CHECK_FAILS(SIMT_MISALIGNED, "16 bytes", vector_kernel, 1, 1, 0, nullptr, bytes + 1, 1);
    CHECK_LAUNCH(vector_kernel, 1, 1, 0, nullptr, bytes + 16, 1);
    int4 value = simt_load_aligned<int4>(bytes + 16);
    ck_assert(value.x == 1 && value.y == 3 && value.z == 0 && value.w == 0);
}
END_TEST

/** Calls itself. @param depth how often @return something that needs every frame */
static __device__ __attribute__((noinline)) int recurse(int depth) {
    volatile char frame[1000];
    frame[depth % 1000] = (char)depth;
    int below = depth > 0 ? recurse(depth - 1) : 0;
    return below + frame[depth % 1000];
}

/** Uses much stack in one thread. @param depth of the recursion @param out result */
static __global__ void stack_kernel(int depth, int *out) {
    __syncthreads();
    if (threadIdx.x == 17) {
        *out = recurse(depth);
    }
    __syncthreads();
}

START_TEST(test_stack) {
    int out = 0;
    CHECK_FAILS(SIMT_STACK_OVERFLOW, "stack of", stack_kernel, 1, 32, 0, nullptr, 1000, &out);
    KDTR_LAUNCH(stack_kernel, 1, 32, 0, nullptr, 1000, &out);
    ck_assert_uint_eq(simt_last_report()->thread.x, 17);
    CHECK_LAUNCH(stack_kernel, 1, 32, 0, nullptr, 20, &out);
    ck_assert_int_eq(out, 210);
}
END_TEST

/** Does nothing. */
static __global__ void empty_kernel(void) {}

/** Uses 40,000 bytes of static shared memory. */
static __global__ void static_kernel(void) {
    KDTR_SHARED_ARRAY(char, bytes, 40000);
    bytes[threadIdx.x] = 0;
}

/** Checks that a launch was refused. @param error returned @param expected error */
static void check_refused(cudaError_t error, cudaError_t expected) {
    ck_assert_int_eq(error, expected);
    ck_assert_int_eq(simt_last_report()->code, SIMT_BAD_LAUNCH);
    ck_assert_str_ne(simt_last_report()->text, "");
}

START_TEST(test_configuration) {
    static const dim3 bad_grids[] = {dim3(0),        dim3(1, 0),     dim3(1, 1, 0),
                                     dim3(1U << 31), dim3(1, 65536), dim3(1, 1, 65536)};
    static const dim3 bad_blocks[] = {dim3(0),       dim3(1, 0),     dim3(1, 1, 0), dim3(1025),
                                      dim3(1, 1025), dim3(1, 1, 65), dim3(32, 33),  dim3(~0U, ~0U)};
    for (unsigned i = 0; i < sizeof(bad_grids) / sizeof(bad_grids[0]); i++) {
        check_refused(KDTR_LAUNCH(empty_kernel, bad_grids[i], 1, 0, nullptr),
                      cudaErrorInvalidConfiguration);
    }
    for (unsigned i = 0; i < sizeof(bad_blocks) / sizeof(bad_blocks[0]); i++) {
        check_refused(KDTR_LAUNCH(empty_kernel, 1, bad_blocks[i], 0, nullptr),
                      cudaErrorInvalidConfiguration);
    }
    void (*none)(void) = nullptr;
    check_refused(KDTR_LAUNCH(none, 1, 1, 0, nullptr), cudaErrorInvalidDeviceFunction);
    CHECK_LAUNCH(empty_kernel, dim3(2, 2, 2), dim3(4, 4, 64), 0, nullptr);
    check_reuse();
}
END_TEST

START_TEST(test_shared_limit) {
    cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    CHECK_LAUNCH(empty_kernel, 1, 1, 49152, nullptr);
    check_refused(KDTR_LAUNCH(empty_kernel, 1, 1, 49153, nullptr), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFuncSetAttribute(empty_kernel, most, 101376), cudaSuccess);
    CHECK_LAUNCH(empty_kernel, 1, 1, 101376, nullptr);
    check_refused(KDTR_LAUNCH(empty_kernel, 1, 1, 101377, nullptr), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFuncSetAttribute(empty_kernel, most, 101377), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFuncSetAttribute(empty_kernel, most, -1), cudaErrorInvalidValue);

    // Static shared memory counts too: 49,152 - 40,000 bytes are left without opting in.
    CHECK_LAUNCH(static_kernel, 1, 1, 9152, nullptr);
    check_report(KDTR_LAUNCH(static_kernel, 1, 1, 9153, nullptr), SIMT_SHARED_LIMIT, "40000");
    ck_assert_int_eq(cudaFuncSetAttribute(static_kernel, most, 101376), cudaSuccess);
    CHECK_LAUNCH(static_kernel, 1, 1, 61376, nullptr);
    check_report(KDTR_LAUNCH(static_kernel, 1, 1, 61377, nullptr), SIMT_SHARED_LIMIT, "40000");
    cudaFuncAttributes attributes;
    ck_assert_int_eq(cudaFuncGetAttributes(&attributes, static_kernel), cudaSuccess);
    ck_assert_uint_eq(attributes.sharedSizeBytes, 40000);
    ck_assert_int_eq(attributes.maxDynamicSharedSizeBytes, 101376);
    check_reuse();
}
END_TEST

START_TEST(test_no_device) {
    simt_set_device_count(0);
    check_refused(KDTR_LAUNCH(empty_kernel, 1, 1, 0, nullptr), cudaErrorNoDevice);
    simt_set_device_count(1);
    check_reuse();
}
END_TEST

/** Launches from inside a kernel. @param error what that returns */
static __global__ void nested_kernel(cudaError_t *error) {
    *error = KDTR_LAUNCH(empty_kernel, 1, 1, 0, nullptr);
}

START_TEST(test_nested) {
    cudaError_t error = cudaSuccess;
    CHECK_LAUNCH(nested_kernel, 1, 1, 0, nullptr, &error);
    ck_assert_int_eq(error, cudaErrorNotSupported);
    ck_assert_int_eq(simt_last_report()->code, SIMT_OK);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt_detect");
    tcase_add_test(check_case(suite, "simt-divergent-barrier"), test_barrier);
    tcase_add_test(check_case(suite, "simt-divergent-collective"), test_collective);
    tcase_add_test(check_case(suite, "simt-race"), test_race);
#if SIMT_ASAN
    tcase_add_loop_exit_test(check_case(suite, "simt-overrun"), test_overrun, ASAN_STATUS, 0, 3);
#else
    tcase_add_loop_test(check_case(suite, "simt-overrun"), test_overrun, 0, 3);
#endif
    tcase_add_test(check_case(suite, "simt-alignment"), test_alignment);
    tcase_add_test(check_case(suite, "simt-stack"), test_stack);
    tcase_add_test(check_case(suite, "simt-configuration"), test_configuration);
    tcase_add_test(check_case(suite, "simt-shared-limit"), test_shared_limit);
    tcase_add_test(check_case(suite, "simt-no-device"), test_no_device);
    tcase_add_test(check_case(suite, "simt-nested"), test_nested);
    return check_run(suite);
}
