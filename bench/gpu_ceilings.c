// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Ceilings of the device, measured as the points are: cold L2, events, medians.
 */
#include <stdlib.h>

#include "gpu_device.h"
#include "measure.h"
#include "random.h"

#ifdef BENCH_SMALL
static const int64_t gather_rows[BENCH_GATHER_SIZES] = {4, 8, 16, 32};
/** Rows of the pool. */
#define POOL_ROWS 64
#else
static const int64_t gather_rows[BENCH_GATHER_SIZES] = {4096, 32768, 200000, 1000000};
/** Rows of the pool: twice the most that are gathered. */
#define POOL_ROWS 2000000
#endif
/** Products a warp and accumulator: about a millisecond. */
#define MMA_ITERATIONS 8192
/** Operations of one product. */
#define MMA_OPERATIONS (2.0 * 16 * 8 * 16)

/** What the actions need. */
struct ceiling {
    const struct bench_device *device;
    char *pool;
    int32_t *slots;      /* NULL for consecutive rows */
    int32_t *host_slots; /* to make them */
    int64_t rows;
};

static int32_t nothing(void *state, cudaStream_t stream, kdtr_error *error) {
    (void)state;
    (void)stream;
    (void)error;
    return KDTR_OK;
}

static int32_t empty(void *state, cudaStream_t stream, kdtr_error *error) {
    (void)state;
    return bench_cuda(measure_empty(stream), "empty", error);
}

static int32_t copy(void *state, cudaStream_t stream, kdtr_error *error) {
    const struct ceiling *c = state;
    size_t bytes = (size_t)c->rows * MEASURE_ROW_BYTES;
    return bench_cuda(measure_copy(c->pool + bytes, c->pool, bytes, stream), "copy", error);
}

static int32_t gather(void *state, cudaStream_t stream, kdtr_error *error) {
    const struct ceiling *c = state;
    return bench_cuda(measure_gather(c->pool, c->slots, c->rows, c->device->sink, stream), "gather",
                      error);
}

static int32_t multiply(void *state, cudaStream_t stream, kdtr_error *error) {
    const struct ceiling *c = state;
    return bench_cuda(measure_mma(c->device->sm_count, MMA_ITERATIONS, c->device->sink, stream),
                      "mma", error);
}

void bench_permute(int32_t *slots, int64_t count, uint64_t seed) {
    for (int64_t i = 0; i < count; i++) {
        int64_t j = (int64_t)(ref_random(seed, (uint64_t)i) % (uint64_t)(i + 1));
        slots[i] = slots[j];
        slots[j] = (int32_t)i;
    }
}

/** Pool on the device, memory for slots on both sides. */
static int32_t prepare(struct ceiling *c, int32_t **slots, kdtr_error *error) {
    size_t bytes = POOL_ROWS * sizeof(int32_t);
    c->host_slots = malloc(bytes);
    cudaError_t cause = c->host_slots == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
    cause = cause != cudaSuccess ? cause : cudaMalloc((void **)slots, bytes);
    cause = cause != cudaSuccess
                ? cause
                : cudaMalloc((void **)&c->pool, (size_t)POOL_ROWS * MEASURE_ROW_BYTES);
    cause = cause != cudaSuccess ? cause
                                 : measure_fill(c->pool, POOL_ROWS, BENCH_ROW_ELEMENTS,
                                                BENCH_ROW_ELEMENTS, 1, c->device->stream);
    return bench_cuda(cause, "ceilings", error);
}

/** Slots of `rows` rows in a pool of twice as many, as the points have them. */
static int32_t permute(const struct ceiling *c, int32_t *slots, kdtr_error *error) {
    bench_permute(c->host_slots, 2 * c->rows, (uint64_t)c->rows);
    return bench_cuda(
        cudaMemcpy(slots, c->host_slots, (size_t)c->rows * sizeof *slots, cudaMemcpyHostToDevice),
        "permutation", error);
}

/** GB/s or so: a thousandth of `amount` a microsecond. */
static int32_t rate(struct ceiling *c, bench_action *action, double amount, int32_t samples,
                    double *result, kdtr_error *error) {
    struct bench_summary summary;
    int32_t status = bench_time(c->device, action, c, samples, &summary, error);
    *result = status == KDTR_OK && summary.median > 0.0 ? amount / summary.median * 1e-3 : 0.0;
    return status;
}

/** Everything that the pool is needed for. */
static int32_t measure_memory(struct ceiling *c, int32_t *slots, int32_t samples,
                              struct bench_ceilings *ceilings, kdtr_error *error) {
    c->rows = POOL_ROWS / 2;
    double bytes = (double)c->rows * MEASURE_ROW_BYTES;
    int32_t status = rate(c, copy, 2.0 * bytes, samples, &ceilings->copy_gbps, error);
    status =
        status != KDTR_OK ? status : rate(c, gather, bytes, samples, &ceilings->read_gbps, error);
    for (int32_t i = 0; status == KDTR_OK && i < BENCH_GATHER_SIZES; i++) {
        c->rows = gather_rows[i];
        bytes = (double)c->rows * MEASURE_ROW_BYTES;
        ceilings->gather_rows[i] = (double)c->rows;
        status = permute(c, slots, error);
        c->slots = slots;
        status = status != KDTR_OK
                     ? status
                     : rate(c, gather, bytes, samples, &ceilings->gather_random_gbps[i], error);
        c->slots = NULL;
        status = status != KDTR_OK
                     ? status
                     : rate(c, gather, bytes, samples, &ceilings->gather_contiguous_gbps[i], error);
    }
    return status;
}

int32_t bench_measure_ceilings(const struct bench_device *device, int32_t samples,
                               struct bench_ceilings *ceilings, kdtr_error *error) {
    struct ceiling c = {device, NULL, NULL, NULL, 0};
    struct bench_summary summary = {0.0, 0.0, 0.0, 0};
    int32_t *slots = NULL;
    int32_t status = bench_time(device, nothing, NULL, samples, &summary, error);
    ceilings->event_us = summary.median;
    status = status != KDTR_OK ? status : bench_time(device, empty, NULL, samples, &summary, error);
    ceilings->empty_us = summary.median;
    status = status != KDTR_OK ? status : prepare(&c, &slots, error);
    status = status != KDTR_OK ? status : measure_memory(&c, slots, samples, ceilings, error);
#ifndef BENCH_SMALL
    double operations = (double)device->sm_count * MEASURE_MMA_WARPS * MEASURE_MMA_ACCUMULATORS *
                        MMA_ITERATIONS * MMA_OPERATIONS;
    status = status != KDTR_OK
                 ? status
                 : rate(&c, multiply, operations * 1e-3, samples, &ceilings->mma_tflops, error);
#else
    (void)multiply; /* takes too long on the emulator */
#endif
    cudaFree(c.pool);
    cudaFree(slots);
    free(c.host_slots);
    return status;
}
