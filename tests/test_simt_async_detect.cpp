// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Every detector of asynchronous work fires on a kernel that is wrong on purpose.
 */
#include "device.cuh"
#include "ptx.cuh"

#include <math.h>
#include <stdio.h>

#include "simt_check.h"

/** AddressSanitizer's exit status where a test waits for its verdict: no other failure has it. */
enum { ASAN_STATUS = 99 };

#if SIMT_ASAN
/** Options of AddressSanitizer, whose library must find it. @return the options */
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "exitcode=99";
}
#endif

/** A right kernel, run after each wrong one. @param in [32] @param out [32] */
static __global__ void right_kernel(const float *in, float *out) {
    KDTR_SHARED_ARRAY(uint64_t, barrier, 1);
    KDTR_DYNAMIC_SHARED(float, tile);
    if (threadIdx.x == 0) {
        ptx_mbarrier_init(barrier, 1);
        ptx_fence_async();
        ptx_mbarrier_expect(barrier, 128);
        ptx_bulk_load(tile, in, 128, barrier);
    }
    ptx_named_barrier(3, 32);
    ptx_mbarrier_wait(barrier, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}

/** Runs right_kernel() and checks its result. */
static void check_reuse(void) {
    __align__(16) float in[32];
    float out[32];
    for (int i = 0; i < 32; i++) {
        in[i] = (float)i;
    }
    CHECK_LAUNCH(right_kernel, 1, 32, 128, nullptr, in, out);
    ck_assert_int_eq(simt_last_report()->code, SIMT_OK);
    ck_assert_mem_eq(in, out, sizeof(in));
}

/** What can be wrong with an mbarrier. */
enum barrier_fault {
    NOT_INITIALISED, /**< a wait without initialisation */
    OTHER_ADDRESS,   /**< an arrival beside the object */
    OVERWRITTEN,     /**< plain data over the object */
    TWICE,           /**< initialised again */
    ARRIVALS,        /**< more arrivals than its count, while bytes are missing */
    NO_ARRIVALS,     /**< a count of 0 */
    NOT_SHARED,      /**< an object in a local variable */
    MISALIGNED,      /**< an object at a multiple of 4 */
    BYTES,           /**< more bytes than it can count */
    PARITY           /**< a parity of 2 */
};

/** Barrier objects go wrong. @param how which */
static __global__ void barrier_kernel(int how) {
    KDTR_SHARED_ARRAY(uint64_t, object, 4);
    uint64_t local = 0;
    if (threadIdx.x != 0) {
        return;
    }
    uint64_t *made = how == NOT_SHARED   ? &local
                     : how == MISALIGNED ? (uint64_t *)(void *)((char *)object + 4)
                                         : object;
    if (how != NOT_INITIALISED) {
        ptx_mbarrier_init(made, how == NO_ARRIVALS ? 0 : 1);
    }
    if (how == OVERWRITTEN) {
        memset(object, 0x11, 3);
    }
    if (how == TWICE) {
        ptx_mbarrier_init(object, 1);
    }
    ptx_mbarrier_expect(object + (how == OTHER_ADDRESS), how == BYTES ? 1U << 20 : 16);
    if (how == ARRIVALS) {
        ptx_mbarrier_arrive(object);
    }
    ptx_mbarrier_test(object, how == PARITY ? 2 : 1);
}

START_TEST(test_barrier) {
    CHECK_FAILS(SIMT_BAD_BARRIER, "not initialised", barrier_kernel, 1, 32, 0, nullptr,
                NOT_INITIALISED);
    CHECK_FAILS(SIMT_BAD_BARRIER, "arrival at", barrier_kernel, 1, 32, 0, nullptr, OTHER_ADDRESS);
    CHECK_FAILS(SIMT_BAD_BARRIER, "was overwritten", barrier_kernel, 1, 32, 0, nullptr,
                OVERWRITTEN);
    CHECK_FAILS(SIMT_BAD_BARRIER, "initialisation at", barrier_kernel, 1, 32, 0, nullptr, TWICE);
    CHECK_FAILS(SIMT_BAD_BARRIER, "all its 1 arrivals", barrier_kernel, 1, 32, 0, nullptr,
                ARRIVALS);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "0 arrivals", barrier_kernel, 1, 32, 0, nullptr, NO_ARRIVALS);
    CHECK_FAILS(SIMT_NOT_SHARED, "barrier", barrier_kernel, 1, 32, 0, nullptr, NOT_SHARED);
    CHECK_FAILS(SIMT_MISALIGNED, "barrier", barrier_kernel, 1, 32, 0, nullptr, MISALIGNED);
    CHECK_FAILS(SIMT_BAD_BARRIER, "1048576 bytes", barrier_kernel, 1, 32, 0, nullptr, BYTES);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "parity 2", barrier_kernel, 1, 32, 0, nullptr, PARITY);
}
END_TEST

/** What can be waited for in vain. */
enum wait_fault {
    FEW_ARRIVALS, /**< one thread of the count does not come */
    POLLED,       /**< the same, and the others test in a loop */
    NO_EXPECT,    /**< a copy's bytes without expectation */
    FEW_BYTES,    /**< fewer bytes than expected */
    SYNCED,       /**< the others wait in __syncwarp() for the one that waits in vain */
    BLOCK         /**< the same in __syncthreads() */
};

/** Waits that nothing ends. @param how which @param in [32] */
static __global__ void wait_kernel(int how, const float *in) {
    KDTR_SHARED_ARRAY(uint64_t, barrier, 1);
    KDTR_DYNAMIC_SHARED(float, tile);
    bool copies = how == NO_EXPECT || how == FEW_BYTES;
    if (threadIdx.x == 0) {
        ptx_mbarrier_init(barrier, copies ? 1 : blockDim.x);
        ptx_fence_async();
    }
    __syncthreads();
    if (copies && threadIdx.x == 0) {
        ptx_bulk_load(tile, in, 64, barrier);
        if (how == NO_EXPECT) {
            ptx_mbarrier_wait(barrier, 1); // time passes: the copy may land
            ptx_mbarrier_arrive(barrier);
            ptx_mbarrier_wait(barrier, 0); // over at once if the copy has not landed
            ptx_mbarrier_arrive(barrier);
            ptx_mbarrier_wait(barrier, 1);
        } else {
            ptx_mbarrier_expect(barrier, 128);
        }
    }
    if (!copies && threadIdx.x != 5) {
        ptx_mbarrier_arrive(barrier);
    }
    if (how == SYNCED && threadIdx.x != 2) {
        __syncwarp();
    } else if (how == BLOCK && threadIdx.x != 2) {
        __syncthreads();
    } else if (how == POLLED) {
        while (!ptx_mbarrier_test(barrier, 0)) {
        }
    }
    ptx_mbarrier_wait(barrier, 0);
}

START_TEST(test_wait) {
    __align__(16) static const float in[32] = {0};
    enum simt_code code = SIMT_ENDLESS_WAIT;
    CHECK_FAILS(code, "lacks 1 of 64 arrivals and 0 bytes", wait_kernel, 1, 64, 64, nullptr,
                FEW_ARRIVALS, in);
    CHECK_FAILS(code, "parity 0 of barrier barrier+0", wait_kernel, 1, 64, 64, nullptr, POLLED, in);
    CHECK_FAILS(code, "-64 bytes", wait_kernel, 1, 64, 64, nullptr, NO_EXPECT, in);
    CHECK_FAILS(code, "lacks 0 of 1 arrivals and 64 bytes", wait_kernel, 1, 64, 64, nullptr,
                FEW_BYTES, in);
    CHECK_FAILS(code, "thread 2 waits at", wait_kernel, 1, 32, 64, nullptr, SYNCED, in);
    CHECK_FAILS(code, "thread 2 waits at", wait_kernel, 1, 64, 64, nullptr, BLOCK, in);
}
END_TEST

/** What can be wrong with a bulk copy. */
enum copy_fault {
    COPY_RIGHT,       /**< nothing */
    COPY_TARGET,      /**< target not aligned */
    COPY_SOURCE,      /**< source not aligned */
    COPY_BYTES,       /**< length no multiple of 16 */
    COPY_NOTHING,     /**< length 0 */
    COPY_OUTSIDE,     /**< target ends behind shared memory */
    COPY_LOCAL,       /**< target not shared */
    COPY_SHARED,      /**< source shared */
    COPY_OVERLAP,     /**< two copies to one place */
    COPY_OVERWRITTEN, /**< a store to the target under way */
    COPY_CHANGED,     /**< a store to the source under way */
    COPY_ENDS,        /**< the block ends before */
    COPY_BARRIER,     /**< target covers a barrier */
    COPY_INIT,        /**< a barrier is made in the target */
    COPY_NO_FENCE     /**< the barrier's initialisation is not shown to copies */
};

/** Bulk copies go wrong. @param how which @param in [48] */
static __global__ void copy_kernel(int how, float *in) {
    KDTR_DYNAMIC_SHARED(char, shared); // 128 bytes of tile, then the barrier, then 56 bytes
    __align__(16) char local[16];
    uint64_t *barrier = (uint64_t *)(void *)(shared + 128);
    if (threadIdx.x != 0) {
        return;
    }
    ptx_mbarrier_init(barrier, 1);
    if (how != COPY_NO_FENCE) {
        ptx_fence_async();
    }
    char *target = how == COPY_TARGET    ? shared + 8
                   : how == COPY_OUTSIDE ? shared + 160
                   : how == COPY_LOCAL   ? local
                   : how == COPY_BARRIER ? shared + 96
                                         : shared;
    const char *source = how == COPY_SOURCE   ? (const char *)in + 4
                         : how == COPY_SHARED ? shared + 64
                                              : (const char *)in;
    uint32_t bytes = how == COPY_BYTES     ? 24
                     : how == COPY_NOTHING ? 0
                     : how == COPY_LOCAL   ? 16
                     : how == COPY_SHARED  ? 32
                                           : 64;
    ptx_mbarrier_expect(barrier, how == COPY_OVERLAP ? 128 : bytes);
    ptx_bulk_load(target, source, bytes, barrier);
    if (how == COPY_OVERLAP) {
        ptx_bulk_load(shared + 48, source, 64, barrier);
    }
    if (how == COPY_OVERWRITTEN) {
        shared[63] = 1;
    }
    if (how == COPY_INIT) {
        ptx_mbarrier_init((uint64_t *)(void *)(shared + 8), 1);
    }
    if (how == COPY_CHANGED) {
        in[15] = 3.0F;
    }
    if (how != COPY_ENDS) {
        ptx_mbarrier_wait(barrier, 0);
    }
}

/** Counts reports of a fault that shows with some seeds only: a copy may have landed, or be there,
 * before. @param how fault @param code expected @param text part of the text expected
 * @return number of seeds of 100 that saw it */
static int count_reports(int how, enum simt_code code, const char *text) {
    __align__(16) float in[48];
    int seen = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        memset(in, 0, sizeof(in));
        simt_set_seed(seed);
        cudaError_t error = KDTR_LAUNCH(copy_kernel, 1, 32, 192, nullptr, how, in);
        if (error != cudaSuccess) {
            check_report(error, code, text);
            seen++;
        }
        ck_assert(seed != 0 || seen == 1); // with seed 0 copies take as long as they can
        check_reuse();
    }
    return seen;
}

START_TEST(test_copy) {
    __align__(16) static float in[48];
    CHECK_LAUNCH(copy_kernel, 1, 32, 192, nullptr, COPY_RIGHT, in);
    CHECK_FAILS(SIMT_MISALIGNED, "target", copy_kernel, 1, 32, 192, nullptr, COPY_TARGET, in);
    CHECK_FAILS(SIMT_MISALIGNED, "copy of 64", copy_kernel, 1, 32, 192, nullptr, COPY_SOURCE, in);
    CHECK_FAILS(SIMT_MISALIGNED, "copy of 24", copy_kernel, 1, 32, 192, nullptr, COPY_BYTES, in);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "no bytes", copy_kernel, 1, 32, 192, nullptr, COPY_NOTHING, in);
    CHECK_FAILS(SIMT_NOT_SHARED, "target of 64", copy_kernel, 1, 32, 192, nullptr, COPY_OUTSIDE,
                in);
    CHECK_FAILS(SIMT_NOT_SHARED, "target of 16", copy_kernel, 1, 32, 192, nullptr, COPY_LOCAL, in);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "from shared", copy_kernel, 1, 32, 192, nullptr, COPY_SHARED,
                in);
    CHECK_FAILS(SIMT_BAD_COPY, "over the barrier", copy_kernel, 1, 32, 192, nullptr, COPY_BARRIER,
                in);
    CHECK_FAILS(SIMT_BAD_BARRIER, "no ptx_fence_async", copy_kernel, 1, 32, 192, nullptr,
                COPY_NO_FENCE, in);
    CHECK_FAILS(SIMT_BAD_COPY, "into the target of that", copy_kernel, 1, 32, 192, nullptr,
                COPY_OVERLAP, in);
    ck_assert_int_gt(count_reports(COPY_OVERWRITTEN, SIMT_BAD_COPY, "byte 63 of the target"), 50);
    ck_assert_int_gt(count_reports(COPY_INIT, SIMT_BAD_COPY, "in the target of a bulk"), 50);
    ck_assert_int_gt(count_reports(COPY_CHANGED, SIMT_BAD_COPY, "the source of"), 50);
    CHECK_FAILS(SIMT_BAD_COPY, "the block has ended", copy_kernel, 1, 32, 192, nullptr, COPY_ENDS,
                in);
}
END_TEST

/** Copies from one allocation. @param in source @param bytes length */
static __global__ void range_kernel(const float *in, uint32_t bytes) {
    KDTR_SHARED_ARRAY(uint64_t, barrier, 1);
    KDTR_DYNAMIC_SHARED(float, tile);
    ptx_mbarrier_init(barrier, 1);
    ptx_fence_async();
    ptx_mbarrier_expect(barrier, bytes);
    ptx_bulk_load(tile, in, bytes, barrier);
    ptx_mbarrier_wait(barrier, 0);
}

START_TEST(test_range) {
    // Only AddressSanitizer knows where device memory ends, and it ends the process.
    float *in = nullptr;
    ck_assert_int_eq(cudaMalloc(&in, 128), cudaSuccess);
    CHECK_LAUNCH(range_kernel, 1, 1, 256, nullptr, in, 128);
#if SIMT_ASAN
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
    KDTR_LAUNCH(range_kernel, 1, 1, 256, nullptr, in, 144);
#endif
    ck_assert_int_eq(cudaFree(in), cudaSuccess);
}
END_TEST

/** What can be wrong with a named barrier. */
enum named_fault {
    NAMED_ZERO,    /**< number 0 */
    NAMED_LARGE,   /**< number 16 */
    NAMED_LANES,   /**< a count that is no multiple of 32 */
    NAMED_MANY,    /**< a count larger than the block */
    NAMED_COUNTS,  /**< different counts */
    NAMED_FEW,     /**< a warp that does not come */
    NAMED_PARTIAL, /**< halves of two warps */
    NAMED_OTHER    /**< one warp at another number */
};

/** Named barriers go wrong in a block of 96 threads. @param how which */
static __global__ void named_kernel(int how) {
    unsigned warp = threadIdx.x / 32;
    unsigned number = how == NAMED_ZERO ? 0 : how == NAMED_LARGE ? 16 : 2;
    unsigned threads = how == NAMED_LANES ? 48 : how == NAMED_MANY ? 128 : 96;
    if (how == NAMED_COUNTS && warp == 1) {
        threads = 64;
    }
    if (how == NAMED_FEW && warp == 2) {
        return;
    }
    if (how == NAMED_OTHER && warp == 2) {
        number = 3;
    }
    if (how == NAMED_PARTIAL) {
        if (threadIdx.x % 32 < 16 && warp < 2) {
            ptx_named_barrier(1, 32);
        }
        return;
    }
    ptx_named_barrier(number, threads);
}

START_TEST(test_named) {
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "barrier 0", named_kernel, 1, 96, 0, nullptr, NAMED_ZERO);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "barrier 16", named_kernel, 1, 96, 0, nullptr, NAMED_LARGE);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "48 threads", named_kernel, 1, 96, 0, nullptr, NAMED_LANES);
    CHECK_FAILS(SIMT_BAD_ARGUMENT, "128 threads", named_kernel, 1, 96, 0, nullptr, NAMED_MANY);
    CHECK_FAILS(SIMT_BARRIER_DIVERGENCE, "64 threads at", named_kernel, 1, 96, 0, nullptr,
                NAMED_COUNTS);
    CHECK_FAILS(SIMT_ENDLESS_WAIT, "2, which has 64 of 96", named_kernel, 1, 96, 0, nullptr,
                NAMED_FEW);
    CHECK_FAILS(SIMT_BARRIER_DIVERGENCE, "0000ffff of warp", named_kernel, 1, 96, 0, nullptr,
                NAMED_PARTIAL);
    CHECK_FAILS(SIMT_ENDLESS_WAIT, "of 96 threads", named_kernel, 1, 96, 0, nullptr, NAMED_OTHER);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt_async_detect");
    tcase_add_test(check_case(suite, "simt-bad-barrier"), test_barrier);
    tcase_add_test(check_case(suite, "simt-endless-wait"), test_wait);
    tcase_add_test(check_case(suite, "simt-bad-copy"), test_copy);
#if SIMT_ASAN
    tcase_add_exit_test(check_case(suite, "simt-copy-range"), test_range, ASAN_STATUS);
#else
    tcase_add_test(check_case(suite, "simt-copy-range"), test_range);
#endif
    tcase_add_test(check_case(suite, "simt-bad-named"), test_named);
    return check_run(suite);
}
