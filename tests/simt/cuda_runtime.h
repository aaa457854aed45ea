// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The part of the CUDA runtime API that kdtr's host code uses, on the emulated device.
 *
 * Names, types and values are CUDA's, so that `#include <cuda_runtime.h>` means this file when
 * tests/simt is on the include path. Everything runs at once: streams and events only record.
 * Memory "on the device" is host memory with exact bounds; it starts as NaN (bytes 0xFF).
 * What a function does is documented by CUDA; the comments here say what differs.
 */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SIMT_DEFAULT(value) = value /**< a default argument, which only C++ has */
extern "C" {
#else
#define SIMT_DEFAULT(value) /**< a default argument, which only C++ has */
#endif

/** Declares a CUDA vector type of 2 members and its make function. */
#define SIMT_VECTOR2(name, type, alignment)           \
    struct __attribute__((aligned(alignment))) name { \
        type x, y;                                    \
    };                                                \
    typedef struct name name;                         \
    static inline name make_##name(type x, type y) {  \
        name vector;                                  \
        vector.x = x;                                 \
        vector.y = y;                                 \
        return vector;                                \
    }

/** Declares a CUDA vector type of 4 members and its make function. */
#define SIMT_VECTOR4(name, type, alignment)                          \
    struct __attribute__((aligned(alignment))) name {                \
        type x, y, z, w;                                             \
    };                                                               \
    typedef struct name name;                                        \
    static inline name make_##name(type x, type y, type z, type w) { \
        name vector;                                                 \
        vector.x = x;                                                \
        vector.y = y;                                                \
        vector.z = z;                                                \
        vector.w = w;                                                \
        return vector;                                               \
    }

SIMT_VECTOR2(float2, float, 8)
SIMT_VECTOR2(int2, int, 8)
SIMT_VECTOR2(uint2, unsigned int, 8)
SIMT_VECTOR4(float4, float, 16)
SIMT_VECTOR4(int4, int, 16)
SIMT_VECTOR4(uint4, unsigned int, 16)

/** Three unsigned numbers: the type of threadIdx and blockIdx. */
struct uint3 {
    unsigned int x; /**< fastest */
    unsigned int y; /**< middle */
    unsigned int z; /**< slowest */
};
typedef struct uint3 uint3; /**< as in C++ */

/** Extent of a grid or block; in C++ missing members are 1. */
struct dim3 {
    unsigned int x; /**< fastest */
    unsigned int y; /**< middle */
    unsigned int z; /**< slowest */
#ifdef __cplusplus
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
        : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
#endif
};
typedef struct dim3 dim3; /**< as in C++ */

/** Result of every call; the values are CUDA's. */
typedef enum cudaError {
    cudaSuccess = 0,                       /**< no error */
    cudaErrorInvalidValue = 1,             /**< an argument is out of range */
    cudaErrorMemoryAllocation = 2,         /**< out of memory, or an injected failure */
    cudaErrorInvalidConfiguration = 9,     /**< impossible grid or block */
    cudaErrorInvalidDeviceFunction = 98,   /**< null kernel, or as below */
    cudaErrorNoDevice = 100,               /**< simt_set_device_count(0) is in force */
    cudaErrorInvalidDevice = 101,          /**< device number out of range */
    cudaErrorNoKernelImageForDevice = 209, /**< simt_fail_functions() is in force */
    cudaErrorInvalidResourceHandle = 400,  /**< null or unknown stream or event */
    cudaErrorLaunchFailure = 719,          /**< a detector stopped the launch: simt_last_report() */
    cudaErrorNotSupported = 801,           /**< not emulated */
    cudaErrorUnknown = 999                 /**< never returned */
} cudaError_t;

/** Direction of a copy. */
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,     /**< neither side is checked */
    cudaMemcpyHostToDevice = 1,   /**< the destination must be device memory */
    cudaMemcpyDeviceToHost = 2,   /**< the source must be device memory */
    cudaMemcpyDeviceToDevice = 3, /**< both must be device memory */
    cudaMemcpyDefault = 4         /**< as the pointers say */
};

/** Device attributes that can be asked for; the values are CUDA's. */
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,                /**< 1,024 */
    cudaDevAttrMaxSharedMemoryPerBlock = 8,           /**< 49,152 bytes, without opting in */
    cudaDevAttrTotalConstantMemory = 9,               /**< 65,536 bytes */
    cudaDevAttrWarpSize = 10,                         /**< 32 */
    cudaDevAttrMultiProcessorCount = 16,              /**< 188, see simt_set_sm_count() */
    cudaDevAttrL2CacheSize = 38,                      /**< 128 MiB */
    cudaDevAttrComputeCapabilityMajor = 75,           /**< 12 */
    cudaDevAttrComputeCapabilityMinor = 76,           /**< 0 */
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, /**< 102,400 bytes */
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,     /**< 101,376 bytes */
    cudaDevAttrReservedSharedMemoryPerBlock = 111     /**< 1,024 bytes */
};

/** What cudaGetDeviceProperties() reports, as far as it is emulated. */
struct cudaDeviceProp {
    char name[256];                    /**< "kdtr SIMT emulator" */
    size_t totalGlobalMem;             /**< bytes; allocations together cannot exceed it */
    size_t sharedMemPerBlock;          /**< bytes without opting in */
    int warpSize;                      /**< lanes */
    int maxThreadsPerBlock;            /**< threads */
    int major;                         /**< compute capability */
    int minor;                         /**< compute capability */
    int multiProcessorCount;           /**< SMs; see simt_set_sm_count() */
    int l2CacheSize;                   /**< bytes */
    size_t sharedMemPerMultiprocessor; /**< bytes */
    size_t sharedMemPerBlockOptin;     /**< bytes, static and dynamic together */
    size_t reservedSharedMemPerBlock;  /**< bytes */
};

/** Function attributes that can be set. */
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,   /**< needed above 48 KiB, as on hardware */
    cudaFuncAttributePreferredSharedMemoryCarveout = 9 /**< accepted, without effect */
};

/** What is known of a kernel. A compiler's numbers (registers, spills) are 0 here. */
struct cudaFuncAttributes {
    size_t sharedSizeBytes;        /**< static shared bytes, known once the kernel has run */
    size_t constSizeBytes;         /**< 0 */
    size_t localSizeBytes;         /**< 0 */
    int maxThreadsPerBlock;        /**< 1,024 */
    int numRegs;                   /**< 0 */
    int ptxVersion;                /**< 120 */
    int binaryVersion;             /**< 120 */
    int cacheModeCA;               /**< 0 */
    int maxDynamicSharedSizeBytes; /**< as set */
    int preferredShmemCarveout;    /**< -1 */
};

/** Whether a stream is being captured: here never. */
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,       /**< not capturing */
    cudaStreamCaptureStatusActive = 1,     /**< never reported */
    cudaStreamCaptureStatusInvalidated = 2 /**< never reported */
};

struct CUstream_st;
struct CUevent_st;
typedef struct CUstream_st *cudaStream_t; /**< NULL is the default stream */
typedef struct CUevent_st *cudaEvent_t;   /**< an event */

/** @name Errors: each host thread has its own last error */
/**@{*/
const char *cudaGetErrorName(cudaError_t error);   /**< e.g. "cudaErrorNoDevice" */
const char *cudaGetErrorString(cudaError_t error); /**< a short sentence */
cudaError_t cudaGetLastError(void);                /**< returns and clears */
cudaError_t cudaPeekAtLastError(void);             /**< returns only */
/**@}*/

/** @name Device */
/**@{*/
/** Number of devices; cudaErrorNoDevice, and 0, if there is none. */
cudaError_t cudaGetDeviceCount(int *count);
/** Current device of this host thread. */
cudaError_t cudaGetDevice(int *device);
/** Changes the current device of this host thread. */
cudaError_t cudaSetDevice(int device);
/** Everything in struct cudaDeviceProp. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
/** One of enum cudaDeviceAttr. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
/** The emulator has no address: cudaErrorNotSupported. */
cudaError_t cudaDeviceGetPCIBusId(char *bus, int size, int device);
/** All work is done already. */
cudaError_t cudaDeviceSynchronize(void);
/** 12080; works without a device. */
cudaError_t cudaDriverGetVersion(int *version);
/** 12080; works without a device. */
cudaError_t cudaRuntimeGetVersion(int *version);
/** Free and total bytes of the device. */
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
/**@}*/

/** @name Memory: ranges that start or end outside one allocation are cudaErrorInvalidValue */
/**@{*/
/** Allocates; 256-byte aligned, filled with 0xFF. */
cudaError_t cudaMalloc(void **pointer, size_t bytes);
/** Frees; NULL is allowed, anything else must be cudaMalloc's. */
cudaError_t cudaFree(void *pointer);
/** Copies; the sides that the kind puts on the device must lie there. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
/** Copies at once. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream SIMT_DEFAULT(NULL));
/** Fills device memory. */
cudaError_t cudaMemset(void *to, int value, size_t bytes);
/** Fills device memory at once. */
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes,
                            cudaStream_t stream SIMT_DEFAULT(NULL));
/**@}*/

/** @name Streams and events */
/**@{*/
/** Makes a stream, to be destroyed. */
cudaError_t cudaStreamCreate(cudaStream_t *stream);
/** Destroys a stream; NULL is refused. */
cudaError_t cudaStreamDestroy(cudaStream_t stream);
/** All work is done already. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
/** Always cudaStreamCaptureStatusNone. */
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
/** Makes an event, to be destroyed. */
cudaError_t cudaEventCreate(cudaEvent_t *event);
/** Destroys an event. */
cudaError_t cudaEventDestroy(cudaEvent_t event);
/** Takes the time of a monotonic clock. */
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream SIMT_DEFAULT(NULL));
/** All work is done already. */
cudaError_t cudaEventSynchronize(cudaEvent_t event);
/** Host time between two recorded events. */
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
/**@}*/

/** @name Functions (kernels) */
/**@{*/
/** Opts in to more dynamic shared memory. */
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
/** What is known of a kernel. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
/**@}*/

#ifdef __cplusplus
} // extern "C"

/**
 * As the C function, for a pointer to any type.
 * @param pointer gets the memory
 * @param bytes   length
 * @return as the C function
 */
template <class T> static inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    void *memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, bytes);
    *pointer = static_cast<T *>(memory);
    return error;
}

/**
 * As the C function, for a kernel of any type.
 * @param kernel    the kernel
 * @param attribute which attribute
 * @param value     new value
 * @return as the C function
 */
template <class T>
static inline cudaError_t cudaFuncSetAttribute(T *kernel, cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

/**
 * As the C function, for a kernel of any type.
 * @param attributes filled
 * @param kernel     the kernel
 * @return as the C function
 */
template <class T>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, T *kernel) {
    return cudaFuncGetAttributes(attributes, (const void *)kernel);
}
#endif

#endif
