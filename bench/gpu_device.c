// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Timing on the device.
 */
#include "gpu_device.h"

#include <string.h>

#include "kdtr_cuda.h"
#include "measure.h"

/** A clock, where the runtime does not tell it. */
#define USUAL_KHZ 2000000

int32_t bench_cuda(cudaError_t cause, const char *what, kdtr_error *error) {
    if (cause == cudaSuccess) {
        return KDTR_OK;
    }
    cudaGetLastError();
    error->code = KDTR_DEVICE_ERROR;
    snprintf(error->text, sizeof error->text, "%s: %s", what, cudaGetErrorString(cause));
    return KDTR_DEVICE_ERROR;
}

/** An attribute, or 0 where the runtime does not know it. */
static int32_t attribute(int number) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)number, 0) != cudaSuccess) {
        cudaGetLastError();
        value = 0;
    }
    return value;
}

int32_t bench_device_open(struct bench_device *device, kdtr_error *error) {
    memset(device, 0, sizeof *device);
    int32_t status =
        kdtr_cuda_context_create_flags(0, KDTR_CUDA_CONTEXT_EXACT, &device->context, error);
    if (status != KDTR_OK) {
        return status;
    }
    /* This library's runtime is not that of libkdtr_cuda; both use the device's primary context,
     * so that streams and memory of one are good for the other. */
    cudaError_t cause = cudaSetDevice(0);
    device->sm_count = attribute(cudaDevAttrMultiProcessorCount);
    device->l2_bytes = attribute(cudaDevAttrL2CacheSize);
    device->sm_khz = attribute(13);     /* cudaDevAttrClockRate */
    device->memory_khz = attribute(36); /* cudaDevAttrMemoryClockRate */
    device->capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
                         attribute(cudaDevAttrComputeCapabilityMinor);
    if (cudaDeviceGetPCIBusId(device->bus, sizeof device->bus, 0) != cudaSuccess) {
        cudaGetLastError();
        device->bus[0] = '\0';
    }
    cause = cause != cudaSuccess ? cause : cudaStreamCreate(&device->stream);
    cause = cause != cudaSuccess ? cause : cudaEventCreate(&device->begin);
    cause = cause != cudaSuccess ? cause : cudaEventCreate(&device->end);
    cause = cause != cudaSuccess ? cause : cudaMalloc(&device->flush, BENCH_FLUSH_BYTES);
    cause = cause != cudaSuccess ? cause : cudaMemset(device->flush, 0, BENCH_FLUSH_BYTES);
    cause = cause != cudaSuccess ? cause : cudaMalloc(&device->sink, 16);
    return bench_cuda(cause, "open device", error);
}

void bench_device_close(struct bench_device *device) {
    if (device->context != NULL) {
        cudaFree(device->sink);
        cudaFree(device->flush);
    }
    if (device->end != NULL) {
        cudaEventDestroy(device->end);
    }
    if (device->begin != NULL) {
        cudaEventDestroy(device->begin);
    }
    if (device->stream != NULL) {
        cudaStreamDestroy(device->stream);
    }
    kdtr_context_destroy(device->context);
}

int32_t bench_sample(const struct bench_device *device, bench_action *action, void *state,
                     double *microseconds, kdtr_error *error) {
    float milliseconds = 0.0f;
    int64_t khz = device->sm_khz > 0 ? device->sm_khz : USUAL_KHZ;
    int64_t cycles = khz * BENCH_SPIN_US / 1000;
    cudaError_t cause =
        measure_flush_l2(device->flush, BENCH_FLUSH_BYTES, device->sink, device->stream);
    cause = cause != cudaSuccess ? cause : measure_spin(cycles, device->stream);
    cause = cause != cudaSuccess ? cause : cudaEventRecord(device->begin, device->stream);
    int32_t status = bench_cuda(cause, "flush", error);
    status = status != KDTR_OK ? status : action(state, device->stream, error);
    if (status != KDTR_OK) {
        return status;
    }
    cause = cudaEventRecord(device->end, device->stream);
    cause = cause != cudaSuccess ? cause : cudaEventSynchronize(device->end);
    cause = cause != cudaSuccess ? cause
                                 : cudaEventElapsedTime(&milliseconds, device->begin, device->end);
    *microseconds = 1000.0 * milliseconds;
    return bench_cuda(cause, "sample", error);
}

int32_t bench_time(const struct bench_device *device, bench_action *action, void *state,
                   int32_t samples, struct bench_summary *summary, kdtr_error *error) {
    double us[BENCH_MAX_SAMPLES] = {0};
    int32_t status = KDTR_OK;
    for (int32_t i = 0; status == KDTR_OK && i < BENCH_WARM_UP; i++) {
        status = bench_sample(device, action, state, us, error);
    }
    if (samples == 0) {
        samples = us[0] > BENCH_LONG_US ? BENCH_FEW_SAMPLES : BENCH_SAMPLES;
    }
    for (int32_t i = 0; status == KDTR_OK && i < samples; i++) {
        status = bench_sample(device, action, state, &us[i], error);
    }
    *summary = bench_summarize(us, samples);
    return status;
}
