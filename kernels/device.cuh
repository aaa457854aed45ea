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
/**
 * As KDTR_LAUNCH, for a kernel that may start before the one before it in the stream has ended: up
 * to its ptx_grid_wait() it must not touch what that one writes.
 */
#define KDTR_LAUNCH_DEPENDENT(kernel, grid, block, shared_bytes, stream, ...) \
    device_launch_dependent(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
/** An array that the threads of a block share. */
#define KDTR_SHARED_ARRAY(type, name, count) __shared__ type name[count]
/** The block's dynamic shared memory, 128-byte aligned. */
#define KDTR_DYNAMIC_SHARED(type, name) extern __shared__ __align__(128) type name[]

/** KDTR_LAUNCH_DEPENDENT as a function, which converts the arguments to the kernel's types. */
template <class... P, class... A>
static inline cudaError_t device_launch_dependent(void (*kernel)(P...), dim3 grid, dim3 block,
                                                  size_t shared_bytes, cudaStream_t stream,
                                                  A... values) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.dynamicSmemBytes = shared_bytes;
    launch.stream = stream;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, kernel, static_cast<P>(values)...);
}
#else
#include "simt.h"
#endif

/** Qualifier of a function of ref/ that host and device share. */
#define REF_INLINE static __host__ __device__ __forceinline__

#endif
