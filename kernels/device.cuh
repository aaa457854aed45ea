// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What every kernel source includes first: the CUDA runtime, or its emulation on the host.
 *
 * Under nvcc the launch is `<<<>>>`; elsewhere the same sources compile against tests/simt.
 */
#ifndef KERNELS_DEVICE_CUH
#define KERNELS_DEVICE_CUH

#ifdef __CUDACC__
#include <cuda_runtime.h>

/** Launches a kernel and gives the cudaError_t of the launch. */
#define KDTR_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    (kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__), cudaGetLastError())
/** An array that the threads of a block share. */
#define KDTR_SHARED_ARRAY(type, name, count) __shared__ type name[count]
/** The block's dynamic shared memory. */
#define KDTR_DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
#else
#include "simt.h"
#endif

/** Qualifier of a function of ref/ that host and device share. */
#define REF_INLINE static __host__ __device__ __forceinline__

#endif
