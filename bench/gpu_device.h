// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The device of `kdtr bench`: how something is timed on it, and its ceilings.
 */
#ifndef BENCH_GPU_DEVICE_H
#define BENCH_GPU_DEVICE_H

#include <cuda_runtime.h>

#include "gpu_statistics.h"

/** Samples of a time where no other number is asked for, and of one above BENCH_LONG_US. */
#define BENCH_SAMPLES 25
#define BENCH_FEW_SAMPLES 9
#define BENCH_LONG_US 2000
/** Samples before those that count. */
#define BENCH_WARM_UP 3
/** How long the stream is kept busy while the host enqueues, in microseconds. */
#define BENCH_SPIN_US 350
#ifdef BENCH_SMALL
/** Bytes read to flush L2; the emulator has none. */
#define BENCH_FLUSH_BYTES ((size_t)1 << 12)
#else
/** Bytes read to flush L2: several times the largest one. */
#define BENCH_FLUSH_BYTES ((size_t)256 << 20)
#endif

/** What is held for the whole program. */
struct bench_device {
    kdtr_context *context; /**< Of device 0. */
    cudaStream_t stream;   /**< Everything runs on it. */
    cudaEvent_t begin;     /**< Before what is timed. */
    cudaEvent_t end;       /**< After it. */
    void *flush;           /**< Memory that is read to flush L2. */
    void *sink;            /**< A word that keeps reads alive. */
    int32_t sm_count;      /**< Multiprocessors. */
    int32_t sm_khz;        /**< Their highest clock; 0 if unknown. */
    int32_t memory_khz;    /**< The memory's; 0 if unknown. */
    int32_t l2_bytes;      /**< Size of L2. */
    int32_t capability;    /**< Compute capability, ten times the major number plus the minor. */
    char bus[32];          /**< PCI address, "" if unknown; to ask nvidia-smi, not for a file. */
};

/** Enqueues what is timed. @param state of the caller @param stream stream @param error filled on
 * failure @return kdtr_status */
typedef int32_t bench_action(void *state, cudaStream_t stream, kdtr_error *error);

/**
 * Turns an error of the CUDA runtime into a status.
 *
 * @param cause what the runtime said
 * @param what  where
 * @param error filled unless cause is cudaSuccess
 * @return KDTR_OK or KDTR_DEVICE_ERROR
 */
int32_t bench_cuda(cudaError_t cause, const char *what, kdtr_error *error);

/**
 * Opens device 0.
 *
 * @param device filled; bench_device_close releases it, also after a failure
 * @param error  filled on failure
 * @return kdtr_status
 */
int32_t bench_device_open(struct bench_device *device, kdtr_error *error);

/** Closes a device. @param device its state */
void bench_device_close(struct bench_device *device);

/**
 * One sample: L2 flushed, the stream kept busy while the host enqueues, then events around the
 * action. Waits for the end.
 *
 * @param device       the device
 * @param action       what is timed
 * @param state        its argument
 * @param microseconds set to the time between the events
 * @param error        filled on failure
 * @return kdtr_status
 */
int32_t bench_sample(const struct bench_device *device, bench_action *action, void *state,
                     double *microseconds, kdtr_error *error);

/**
 * Warms up with BENCH_WARM_UP samples and takes others.
 *
 * @param device  the device
 * @param action  what is timed
 * @param state   its argument
 * @param samples how many, at most BENCH_MAX_SAMPLES; 0 for BENCH_SAMPLES, or BENCH_FEW_SAMPLES of
 *                what takes above BENCH_LONG_US
 * @param summary filled
 * @param error   filled on failure
 * @return kdtr_status
 */
int32_t bench_time(const struct bench_device *device, bench_action *action, void *state,
                   int32_t samples, struct bench_summary *summary, kdtr_error *error);

/**
 * Measures the ceilings.
 *
 * @param device   the device
 * @param samples  of each
 * @param ceilings filled
 * @param error    filled on failure
 * @return kdtr_status
 */
int32_t bench_measure_ceilings(const struct bench_device *device, int32_t samples,
                               struct bench_ceilings *ceilings, kdtr_error *error);

/**
 * A random permutation.
 *
 * @param slots filled with 0 to count - 1
 * @param count how many
 * @param seed  of the permutation
 */
void bench_permute(int32_t *slots, int64_t count, uint64_t seed);

#endif
