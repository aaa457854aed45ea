// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulator does what CUDA does: geometry, collectives, shared memory, in any order of threads.
 * What it must refuse is in test_simt_detect.cpp, its host API in test_cuda_runtime.c.
 */
#include "simt.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "simt_check.h"

/** Seeds that the tests run with: the natural order and some others of both scheduling kinds. */
static const uint64_t seeds[] = {0, 1, 2, 3, 4, 5, 77, 1ULL << 63};
enum { NUM_SEEDS = sizeof(seeds) / sizeof(seeds[0]) };

/** Counts the visits of each thread of each block. @param visits [blocks, threads] */
static __global__ void visit_kernel(unsigned *visits) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    atomicAdd(&visits[block * threads + thread], 1U + threadIdx.z);
}

START_TEST(test_geometry) {
    static unsigned visits[4 * 3 * 5 * 7 * 2 * 3];
    for (int s = 0; s < NUM_SEEDS; s++) {
        memset(visits, 0, sizeof(visits));
        simt_set_seed(seeds[s]);
        CHECK_LAUNCH(visit_kernel, dim3(4, 3, 5), dim3(7, 2, 3), 0, nullptr, visits);
        for (unsigned i = 0; i < sizeof(visits) / sizeof(visits[0]); i++) {
            ck_assert_uint_eq(visits[i], 1 + i % 42 / 14);
        }
    }
}
END_TEST

/** The four shuffles. */
enum shuffle_kind { SHFL, SHFL_UP, SHFL_DOWN, SHFL_XOR, NUM_SHUFFLES };

/** One shuffle of the thread numbers. @param kind which @param amount source, delta or lane mask
 * @param width segment @param in [32] @param out [32] */
template <class T>
static __global__ void shuffle_kernel(int kind, int amount, int width, const T *in, T *out) {
    T value = in[threadIdx.x];
    if (kind == SHFL) {
        value = __shfl_sync(0xffffffffU, value, amount + (int)threadIdx.x / 3, width);
    } else if (kind == SHFL_UP) {
        value = __shfl_up_sync(0xffffffffU, value, (unsigned)amount, width);
    } else if (kind == SHFL_DOWN) {
        value = __shfl_down_sync(0xffffffffU, value, (unsigned)amount, width);
    } else {
        value = __shfl_xor_sync(0xffffffffU, value, amount, width);
    }
    out[threadIdx.x] = value;
}

/** The lane a shuffle reads, as CUDA's guide has it. @param kind which @param amount its argument
 * @param width segment @param lane reader @return lane read */
static int source_lane(int kind, int amount, int width, int lane) {
    int first = lane / width * width;
    int source = lane;
    if (kind == SHFL) {
        source = first + (amount + lane / 3) % width;
    } else if (kind == SHFL_UP) {
        source = lane - amount < first ? lane : lane - amount;
    } else if (kind == SHFL_DOWN) {
        source = lane + amount >= first + width ? lane : lane + amount;
    } else {
        source = (lane ^ amount) >= first + width ? lane : lane ^ amount;
    }
    return source;
}

/** Compares all shuffles of a type with source_lane(). @param make the value of a lane */
template <class T> static void check_shuffles(T (*make)(int lane)) {
    T in[32];
    T out[32];
    for (int lane = 0; lane < 32; lane++) {
        in[lane] = make(lane);
    }
    for (int kind = 0; kind < NUM_SHUFFLES; kind++) {
        for (int width = 1; width <= 32; width *= 2) {
            for (int amount = 0; amount < 32; amount++) {
                simt_set_seed((uint64_t)amount);
                CHECK_LAUNCH(shuffle_kernel<T>, 1, 32, 0, nullptr, kind, amount, width, in, out);
                for (int lane = 0; lane < 32; lane++) {
                    T expected = in[source_lane(kind, amount, width, lane)];
                    ck_assert_msg(memcmp(&out[lane], &expected, sizeof(T)) == 0,
                                  "kind %d width %d amount %d lane %d", kind, width, amount, lane);
                }
            }
        }
    }
}

START_TEST(test_shuffle) {
    check_shuffles<int>([](int lane) { return -lane; });
    check_shuffles<unsigned>([](int lane) { return 0xfffffff0U + (unsigned)lane; });
    check_shuffles<float>([](int lane) { return lane == 5 ? NAN : 0.5F * (float)lane; });
    check_shuffles<long long>([](int lane) { return lane * -0x123456789aLL; });
    check_shuffles<unsigned long>([](int lane) { return ~0UL / 31 * (unsigned long)lane; });
    check_shuffles<double>([](int lane) { return 1.0 / (lane + 1); });
}
END_TEST

/** Votes of the lanes that a mask names, and at the same time of the others: neither may disturb
 * the other. @param mask lanes @param bits lane predicates @param out [3, 32] */
static __global__ void vote_kernel(unsigned mask, unsigned bits, unsigned *out) {
    unsigned lane = threadIdx.x;
    unsigned mine = mask >> lane & 1 ? mask : ~mask;
    int predicate = (int)(bits >> lane & 1) * 8; // nonzero, not one
    out[lane] = __ballot_sync(mine, predicate);
    out[32 + lane] = (unsigned)__any_sync(mine, predicate);
    out[64 + lane] = (unsigned)__all_sync(mine, predicate);
    __syncwarp(mine);
}

START_TEST(test_vote) {
    static const unsigned masks[] = {0xffffffffU, 1U, 0x80000000U, 0x0000ffffU, 0x5a5a5a5aU};
    static const unsigned bits[] = {0, 0xffffffffU, 0x80000001U, 0x5a5a5a5aU, 0x00ff00ffU};
    for (unsigned m = 0; m < 5; m++) {
        for (unsigned b = 0; b < 5; b++) {
            unsigned out[96];
            simt_set_seed(m * 5 + b);
            CHECK_LAUNCH(vote_kernel, 1, 32, 0, nullptr, masks[m], bits[b], out);
            for (unsigned lane = 0; lane < 32; lane++) {
                unsigned mine = masks[m] >> lane & 1 ? masks[m] : ~masks[m];
                unsigned ballot = bits[b] & mine;
                ck_assert_uint_eq(out[lane], ballot);
                ck_assert_uint_eq(out[32 + lane], ballot != 0);
                ck_assert_uint_eq(out[64 + lane], ballot == mine);
            }
        }
    }
}
END_TEST

/** Groups of lanes that meet apart: halves in different branches, then pairs, one by one, each
 * lane passing its number to the next: lane i ends with the sum of 0..i. @param out [64] */
static __global__ void subset_kernel(int *out) {
    int lane = (int)threadIdx.x % 32;
    int value = lane;
    if (lane < 16) {
        value = __shfl_xor_sync(0x0000ffffU, value, 15);
    } else {
        value = __shfl_xor_sync(0xffff0000U, value, 1);
        value = __shfl_xor_sync(0xffff0000U, value, 14);
    }
    int sum = lane < 16 ? 15 - value : 47 - value;
    for (int i = 0; i < 31; i++) {
        unsigned pair = 3U << i;
        if (pair >> lane & 1) {
            int below = __shfl_sync(pair, sum, i);
            sum += lane == i + 1 ? below : 0;
        }
    }
    out[threadIdx.x] = sum;
}

START_TEST(test_subset) {
    for (int s = 0; s < NUM_SEEDS; s++) {
        int out[64];
        simt_set_seed(seeds[s]);
        CHECK_LAUNCH(subset_kernel, 1, 64, 0, nullptr, out);
        for (int i = 0; i < 64; i++) {
            ck_assert_int_eq(out[i], i % 32 * (i % 32 + 1) / 2);
        }
    }
}
END_TEST

/** Block votes round after round: in round r the threads below r. @param out [blockDim, 3] */
static __global__ void barrier_kernel(int *out) {
    int sums[3] = {0, 0, 0};
    for (int round = 0; round <= (int)blockDim.x; round++) {
        int predicate = (int)threadIdx.x < round ? -1 : 0;
        sums[0] += __syncthreads_count(predicate);
        sums[1] += __syncthreads_or(predicate) != 0;
        sums[2] += __syncthreads_and(predicate) != 0;
    }
    for (int i = 0; i < 3; i++) {
        out[threadIdx.x * 3 + (unsigned)i] = sums[i];
    }
}

START_TEST(test_barrier) {
    for (int s = 0; s < NUM_SEEDS; s++) {
        for (int threads = 1; threads <= 100; threads += 33) {
            int out[300];
            simt_set_seed(seeds[s]);
            CHECK_LAUNCH(barrier_kernel, 1, (unsigned)threads, 0, nullptr, out);
            for (int i = 0; i < threads; i++) {
                ck_assert_int_eq(out[i * 3], threads * (threads + 1) / 2);
                ck_assert_int_eq(out[i * 3 + 1], threads);
                ck_assert_int_eq(out[i * 3 + 2], 1);
            }
        }
    }
}
END_TEST

/** A shared array of its own in a device function. @param value of this thread
 * @return value of the next thread */
static __device__ float neighbour(float value) {
    KDTR_SHARED_ARRAY(float, cell, 64);
    __syncthreads();
    cell[threadIdx.x] = value;
    __syncthreads();
    return cell[(threadIdx.x + 1) % 64];
}

/** Moves values through two static arrays, the dynamic one and neighbour(). @param clean counts
 * the words that were NaN at the start @param out [gridDim, 64] */
static __global__ void shared_kernel(unsigned *clean, float *out) {
    KDTR_SHARED_ARRAY(float, first, 64);
    KDTR_SHARED_ARRAY(uint4, second, 16);
    KDTR_DYNAMIC_SHARED(float, third);
    static_assert(sizeof(first) == 256 && sizeof(second) == 256, "arrays keep their size");
    unsigned i = threadIdx.x;
    bool nan = isnan(first[i]) && isnan(third[i]) && __float_as_uint(third[i]) == 0xffffffffU;
    atomicAdd(clean, nan && second[i / 4].w == 0xffffffffU ? 1U : 0U);
    __syncthreads();
    first[i] = (float)(blockIdx.x * 64 + i);
    __syncthreads();
    third[63 - i] = first[i ^ 5];
    __syncthreads();
    uint4 four = make_uint4(__float_as_uint(third[i]), 1, 2, 3);
    if (i % 4 == 0) {
        KDTR_STORE16(&second[i / 4], four);
    }
    __syncthreads();
    float value = neighbour(neighbour(third[i]));
    float same = __uint_as_float(KDTR_LOAD16(&second[i / 4]).x);
    out[blockIdx.x * 64 + i] = value + (same == third[i / 4 * 4] ? 0.0F : 1e9F);
}

START_TEST(test_shared) {
    for (int s = 0; s < NUM_SEEDS; s++) {
        float out[5 * 64];
        unsigned clean = 0;
        simt_set_seed(seeds[s]);
        CHECK_LAUNCH(shared_kernel, 5, 64, 64 * sizeof(float), nullptr, &clean, out);
        ck_assert_uint_eq(clean, 5 * 64);
        for (int i = 0; i < 5 * 64; i++) {
            ck_assert_float_eq(out[i], (float)(i / 64 * 64 + ((63 - (i + 2) % 64) ^ 5)));
        }
    }
}
END_TEST

/** Sum over a block: shuffles in the warp, then shared memory. @param in [gridDim, blockDim]
 * @param out [gridDim] */
static __global__ void __launch_bounds__(1024) sum_kernel(const int *in, int *out) {
    KDTR_SHARED_ARRAY(int, partial, 32);
    unsigned lane = threadIdx.x % 32;
    int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffU, value, step);
    }
    if (lane == 0) {
        partial[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = lane < blockDim.x / 32 ? partial[lane] : 0;
        for (unsigned step = 16; step > 0; step /= 2) {
            value += __shfl_down_sync(0xffffffffU, value, step);
        }
        if (lane == 0) {
            out[blockIdx.x] = value;
        }
    }
}

START_TEST(test_scale) {
    static const unsigned shapes[][2] = {{2, 1024}, {2000, 64}}; // blocks, threads
    for (int i = 0; i < 2; i++) {
        unsigned blocks = shapes[i][0];
        unsigned threads = shapes[i][1];
        int *in = (int *)malloc(sizeof(int) * blocks * threads);
        int *out = (int *)malloc(sizeof(int) * blocks);
        for (unsigned k = 0; k < blocks * threads; k++) {
            in[k] = (int)(k * 2654435761U >> 12);
        }
        for (uint64_t seed = 0; seed < 3; seed++) {
            simt_set_seed(seed);
            CHECK_LAUNCH(sum_kernel, blocks, threads, 0, nullptr, in, out);
            for (unsigned b = 0; b < blocks; b++) {
                int sum = 0;
                for (unsigned k = 0; k < threads; k++) {
                    sum += in[b * threads + k];
                }
                ck_assert_int_eq(out[b], sum);
            }
        }
        free(in);
        free(out);
    }
}
END_TEST

/** Writes the order in which threads come by. @param count zero at first @param order [...] */
static __global__ void order_kernel(unsigned *count, unsigned *order) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    order[atomicAdd(count, 1U)] = thread;
    __syncwarp();
    order[atomicAdd(count, 1U)] = thread;
    __syncthreads();
    order[atomicAdd(count, 1U)] = thread;
}

START_TEST(test_order) {
    enum { N = 3 * 3 * 64 };
    unsigned order[NUM_SEEDS][N];
    for (int s = 0; s < NUM_SEEDS; s++) {
        unsigned again[N];
        unsigned count = 0;
        simt_set_seed(seeds[s]);
        CHECK_LAUNCH(order_kernel, 3, 64, 0, nullptr, &count, order[s]);
        count = 0;
        CHECK_LAUNCH(order_kernel, 3, 64, 0, nullptr, &count, again);
        ck_assert_mem_eq(order[s], again, sizeof(again));
        for (int earlier = 0; earlier < s; earlier++) {
            ck_assert_mem_ne(order[s], order[earlier], sizeof(again));
        }
    }
    for (unsigned i = 0; i < 32; i++) {
        ck_assert_uint_eq(order[0][i], i); // seed 0 is the natural order
    }
}
END_TEST

/** A host thread that launches again and again. @param argument int: 1, set to 0 on failure
 * @return NULL */
static void *launch_often(void *argument) {
    int *right = (int *)argument;
    int in[64];
    for (int i = 0; i < 64; i++) {
        in[i] = i;
    }
    for (int i = 0; i < 200; i++) {
        int out = -1;
        cudaError_t error = KDTR_LAUNCH(sum_kernel, 1, 64, 0, nullptr, in, &out);
        *right &= error == cudaSuccess && out == 64 * 63 / 2;
    }
    return NULL;
}

START_TEST(test_host_threads) {
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    int right[THREADS];
    for (int i = 0; i < THREADS; i++) {
        right[i] = 1;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, launch_often, &right[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
        ck_assert_int_eq(right[i], 1);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("simt");
    tcase_add_test(check_case(suite, "simt-geometry"), test_geometry);
    tcase_add_test(check_case(suite, "simt-shuffle"), test_shuffle);
    tcase_add_test(check_case(suite, "simt-vote"), test_vote);
    tcase_add_test(check_case(suite, "simt-subset"), test_subset);
    tcase_add_test(check_case(suite, "simt-barrier"), test_barrier);
    tcase_add_test(check_case(suite, "simt-shared"), test_shared);
    tcase_add_test(check_case(suite, "simt-scale"), test_scale);
    tcase_add_test(check_case(suite, "simt-order"), test_order);
    tcase_add_test(check_case(suite, "simt-host-threads"), test_host_threads);
    return check_run(suite);
}
