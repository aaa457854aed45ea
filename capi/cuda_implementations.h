// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The implementations of a CUDA context: a table that plans choose from.
 */
#ifndef CAPI_CUDA_IMPLEMENTATIONS_H
#define CAPI_CUDA_IMPLEMENTATIONS_H

#include <cuda_runtime.h>

#include "backend.h"
#include "flash.h"

/** An implementation. Functions that fill a kdtr_error return its code or KDTR_OK. */
struct cuda_implementation {
    int32_t id;       /**< kdtr_implementation. */
    const char *name; /**< For messages. */
    /** Whether it takes a plan: dimensions, types and limits. */
    int32_t (*supports)(const struct ref_attention *call, kdtr_error *error);
    /** Workspace of a run: REF_OK or REF_SIZE_OVERFLOW. */
    int32_t (*workspace)(const struct ref_attention *call, const struct flash_options *options,
                         size_t *bytes);
    /** Loads its kernels on the current device. */
    cudaError_t (*load)(void);
    /** Whether it takes the pointers and strides of a run. */
    int32_t (*accepts)(const struct ref_attention *call, kdtr_error *error);
    /** Enqueues a run that it accepts. */
    cudaError_t (*run)(const struct ref_attention *call, const struct flash_options *options,
                       void *workspace, cudaStream_t stream);
};

/** Number of implementations. @return the number */
int32_t cuda_implementation_count(void);

/**
 * An implementation of the table.
 *
 * @param index 0 to cuda_implementation_count() - 1, from the most to the least preferred
 * @return the implementation
 */
const struct cuda_implementation *cuda_implementation_at(int32_t index);

/**
 * Finds an implementation by its number.
 *
 * @param id kdtr_implementation
 * @return the implementation, or NULL
 */
const struct cuda_implementation *cuda_implementation_find(int32_t id);

/**
 * Chooses the implementation of a plan. AUTO is the first of the table that takes the plan.
 *
 * @param id     kdtr_implementation that the plan asks for
 * @param loaded bit i: entry i of the table has code for the device
 * @param call   the plan's call
 * @param chosen set on success
 * @param error  filled on failure, or NULL
 * @return KDTR_OK or UNSUPPORTED
 */
int32_t cuda_implementation_choose(int32_t id, uint32_t loaded, const struct ref_attention *call,
                                   const struct cuda_implementation **chosen, kdtr_error *error);

#endif
