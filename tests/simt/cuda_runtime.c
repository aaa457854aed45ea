// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulated device's host API: errors, device, streams, events.
 */
#define _POSIX_C_SOURCE 200809L // clock_gettime
#include "cuda_runtime.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simt_runtime.h"

/** What a live stream and a live event hold in their first word. */
enum { STREAM_TAG = 0x53545245, EVENT_TAG = 0x4556454e };

/** A stream: work runs at once, so it only has to be recognised. */
struct CUstream_st {
    int tag; /**< STREAM_TAG while it lives */
};

/** An event. */
struct CUevent_st {
    int tag;              /**< EVENT_TAG while it lives */
    bool recorded;        /**< whether time is set */
    struct timespec time; /**< when it was recorded */
};

static int device_count = 1;                 /**< devices that there are */
static int sm_count = 188;                   /**< SMs that they report */
static _Thread_local cudaError_t last_error; /**< for cudaGetLastError() */
static _Thread_local int current_device;     /**< of this host thread */

void simt_set_device_count(int count) {
    device_count = count;
}

/** A program that knows nothing of the emulator can be left without a device. */
__attribute__((constructor)) static void count_by_environment(void) {
    device_count = getenv("SIMT_NO_DEVICE") == NULL;
}

void simt_set_sm_count(int count) {
    sm_count = count;
}

cudaError_t simt_device_error(void) {
    return device_count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

bool simt_stream_valid(cudaStream_t stream) {
    return stream == NULL || stream->tag == STREAM_TAG;
}

cudaError_t simt_remember(cudaError_t error) {
    if (error != cudaSuccess) {
        last_error = error;
    }
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return last_error;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/** Names and texts of the errors. */
static const struct {
    cudaError_t error;
    const char *name;
    const char *text;
} error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid grid or block"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "the emulator stopped the kernel"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "not supported by the emulator"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image for the device"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

/** Index of an error in error_texts. @param error any value @return the last one if unknown */
static size_t find_text(cudaError_t error) {
    size_t last = sizeof(error_texts) / sizeof(error_texts[0]) - 1;
    size_t i = 0;
    while (i < last && error_texts[i].error != error) {
        i++;
    }
    return i;
}

const char *cudaGetErrorName(cudaError_t error) {
    return error_texts[find_text(error)].name;
}

const char *cudaGetErrorString(cudaError_t error) {
    return error_texts[find_text(error)].text;
}

cudaError_t simt_check(bool valid, cudaError_t error) {
    if (simt_device_error() != cudaSuccess) {
        return simt_remember(simt_device_error());
    }
    return simt_remember(valid ? cudaSuccess : error);
}

cudaError_t cudaGetDeviceCount(int *count) {
    if (count == NULL) {
        return simt_remember(cudaErrorInvalidValue);
    }
    *count = device_count;
    return simt_check(true, cudaSuccess);
}

cudaError_t cudaGetDevice(int *device) {
    cudaError_t error = simt_check(device != NULL, cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        *device = current_device;
    }
    return error;
}

cudaError_t cudaSetDevice(int device) {
    cudaError_t error = simt_check(device >= 0 && device < device_count, cudaErrorInvalidDevice);
    if (error == cudaSuccess) {
        current_device = device;
    }
    return error;
}

/** A device attribute. @param attribute which @return its value, or -1 if it is not emulated */
static int attribute_value(enum cudaDeviceAttr attribute) {
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
        return SIMT_MAX_THREADS;
    case cudaDevAttrMaxSharedMemoryPerBlock:
        return 49152;
    case cudaDevAttrTotalConstantMemory:
        return 65536;
    case cudaDevAttrWarpSize:
        return SIMT_LANES;
    case cudaDevAttrMultiProcessorCount:
        return sm_count;
    case cudaDevAttrL2CacheSize:
        return 128 << 20;
    case cudaDevAttrComputeCapabilityMajor:
        return 12;
    case cudaDevAttrComputeCapabilityMinor:
        return 0;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return 102400;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return 101376;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        return 1024;
    default:
        return -1;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    bool valid = value != NULL && attribute_value(attribute) >= 0;
    cudaError_t error = simt_check(valid, cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        error = simt_check(device >= 0 && device < device_count, cudaErrorInvalidDevice);
    }
    if (error == cudaSuccess) {
        *value = attribute_value(attribute);
    }
    return error;
}

cudaError_t cudaDeviceGetPCIBusId(char *bus, int size, int device) {
    (void)bus;
    (void)size;
    (void)device;
    return simt_remember(cudaErrorNotSupported);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    cudaError_t error = simt_check(properties != NULL, cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        error = simt_check(device >= 0 && device < device_count, cudaErrorInvalidDevice);
    }
    if (error != cudaSuccess) {
        return error;
    }
    memset(properties, 0, sizeof(*properties));
    strcpy(properties->name, "kdtr SIMT emulator");
    properties->totalGlobalMem = SIMT_TOTAL_BYTES;
    properties->sharedMemPerBlock = 49152;
    properties->warpSize = SIMT_LANES;
    properties->maxThreadsPerBlock = SIMT_MAX_THREADS;
    properties->major = 12;
    properties->minor = 0;
    properties->multiProcessorCount = sm_count;
    properties->l2CacheSize = 128 << 20;
    properties->sharedMemPerMultiprocessor = 102400;
    properties->sharedMemPerBlockOptin = 101376;
    properties->reservedSharedMemPerBlock = 1024;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    return simt_check(true, cudaSuccess);
}

/** The version of both driver and runtime. @param version output @return cudaSuccess unless NULL */
static cudaError_t get_version(int *version) {
    if (version == NULL) {
        return simt_remember(cudaErrorInvalidValue);
    }
    *version = 12080;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    return get_version(version);
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    return get_version(version);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    cudaError_t error = simt_check(stream != NULL, cudaErrorInvalidValue);
    if (error != cudaSuccess) {
        return error;
    }
    *stream = (cudaStream_t)malloc(sizeof(**stream));
    if (*stream == NULL) {
        return simt_remember(cudaErrorMemoryAllocation);
    }
    (*stream)->tag = STREAM_TAG;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    bool valid = stream != NULL && simt_stream_valid(stream);
    cudaError_t error = simt_check(valid, cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess) {
        stream->tag = 0;
        free(stream);
    }
    return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return simt_check(simt_stream_valid(stream), cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    cudaError_t error = simt_check(simt_stream_valid(stream), cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess) {
        error = simt_check(status != NULL, cudaErrorInvalidValue);
    }
    if (error == cudaSuccess) {
        *status = cudaStreamCaptureStatusNone;
    }
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    cudaError_t error = simt_check(event != NULL, cudaErrorInvalidValue);
    if (error != cudaSuccess) {
        return error;
    }
    *event = (cudaEvent_t)calloc(1, sizeof(**event));
    if (*event == NULL) {
        return simt_remember(cudaErrorMemoryAllocation);
    }
    (*event)->tag = EVENT_TAG;
    return cudaSuccess;
}

/** Whether an event can be used. @param event any @return true if it lives */
static bool event_valid(cudaEvent_t event) {
    return event != NULL && event->tag == EVENT_TAG;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    cudaError_t error = simt_check(event_valid(event), cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess) {
        event->tag = 0;
        free(event);
    }
    return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    bool valid = event_valid(event) && simt_stream_valid(stream);
    cudaError_t error = simt_check(valid, cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess) {
        clock_gettime(CLOCK_MONOTONIC, &event->time);
        event->recorded = true;
    }
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return simt_check(event_valid(event), cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    cudaError_t error = simt_check(milliseconds != NULL, cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        bool valid = event_valid(start) && event_valid(end) && start->recorded && end->recorded;
        error = simt_check(valid, cudaErrorInvalidResourceHandle);
    }
    if (error == cudaSuccess) {
        double seconds = (double)(end->time.tv_sec - start->time.tv_sec);
        double nanoseconds = (double)(end->time.tv_nsec - start->time.tv_nsec);
        *milliseconds = (float)((seconds * 1000000000.0 + nanoseconds) / 1000000.0);
    }
    return error;
}
