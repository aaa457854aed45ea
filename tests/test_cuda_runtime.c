// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The emulated CUDA runtime API, used from C as host code uses it: what works and what is refused.
 */
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "simt_check.h"
#include "simt_runtime.h"

START_TEST(test_device) {
    struct cudaDeviceProp properties;
    int value = -1;
    ck_assert_int_eq(cudaGetDeviceCount(&value), cudaSuccess);
    ck_assert_int_eq(value, 1);
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
    ck_assert_int_eq(cudaGetDevice(&value), cudaSuccess);
    ck_assert_int_eq(value, 0);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    ck_assert_str_eq(properties.name, "kdtr SIMT emulator");
    ck_assert_int_eq(properties.major * 10 + properties.minor, 120);
    ck_assert_uint_eq(properties.sharedMemPerBlockOptin, 101376);
    ck_assert_uint_eq(properties.sharedMemPerMultiprocessor, 102400);
    ck_assert_int_eq(properties.multiProcessorCount, 188);
    simt_set_sm_count(5);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    ck_assert_int_eq(properties.multiProcessorCount, 5);
    simt_set_sm_count(188);
    ck_assert_int_eq(cudaDriverGetVersion(&value), cudaSuccess);
    ck_assert_int_ge(value, 12080);
    ck_assert_int_eq(cudaRuntimeGetVersion(&value), cudaSuccess);
    ck_assert_int_ge(value, 12080);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
}
END_TEST

START_TEST(test_attribute) {
    static const struct {
        enum cudaDeviceAttr attribute;
        int value;
    } cases[] = {
        {cudaDevAttrMaxThreadsPerBlock, 1024},
        {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
        {cudaDevAttrTotalConstantMemory, 65536},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrMultiProcessorCount, 188},
        {cudaDevAttrL2CacheSize, 134217728},
        {cudaDevAttrComputeCapabilityMajor, 12},
        {cudaDevAttrComputeCapabilityMinor, 0},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 102400},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, 101376},
        {cudaDevAttrReservedSharedMemoryPerBlock, 1024},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int value = -1;
        ck_assert_int_eq(cudaDeviceGetAttribute(&value, cases[i].attribute, 0), cudaSuccess);
        ck_assert_int_eq(value, cases[i].value);
    }
}
END_TEST

START_TEST(test_memory) {
    static const char pattern[100] = "not all zero";
    char back[100];
    char *a = NULL;
    char *b = NULL;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ck_assert_int_eq(cudaMalloc((void **)&a, 100), cudaSuccess);
    ck_assert_int_eq(cudaMalloc((void **)&b, 1), cudaSuccess);
    ck_assert_uint_eq((uintptr_t)a % 256, 0);
    ck_assert_uint_eq((uintptr_t)b % 256, 0);
    ck_assert_int_eq((unsigned char)(a[0] & a[99]), 0xff); // NaN at first
    ck_assert_uint_eq(simt_live_bytes(), 101);
    ck_assert_int_eq(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    ck_assert_uint_eq(total_bytes - free_bytes, 101);
    ck_assert_int_eq(cudaMemcpy(a, pattern, 100, cudaMemcpyHostToDevice), cudaSuccess);
    ck_assert_int_eq(cudaMemcpyAsync(b, a + 3, 1, cudaMemcpyDeviceToDevice, NULL), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(back, a, 100, cudaMemcpyDeviceToHost), cudaSuccess);
    ck_assert_mem_eq(back, pattern, 100);
    ck_assert_int_eq(*b, pattern[3]);
    ck_assert_int_eq(cudaMemset(a + 10, 7, 90), cudaSuccess);
    ck_assert_int_eq(cudaMemsetAsync(a, 9, 1, NULL), cudaSuccess);
    ck_assert(a[0] == 9 && a[9] == pattern[9] && a[10] == 7 && a[99] == 7);
    ck_assert_int_eq(cudaMemcpy(back, a, 100, cudaMemcpyDefault), cudaSuccess);
    ck_assert_int_eq(back[0], 9);
    ck_assert_int_eq(cudaFree(a), cudaSuccess);
    ck_assert_int_eq(cudaFree(b), cudaSuccess);
    ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
    ck_assert_uint_eq(simt_live_bytes(), 0);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
}
END_TEST

START_TEST(test_memory_refused) {
    char host[16] = {0};
    char *a = NULL;
    ck_assert_int_eq(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMalloc((void **)&a, SIZE_MAX), cudaErrorMemoryAllocation);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(cudaMalloc((void **)&a, 0), cudaSuccess);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(cudaMalloc((void **)&a, 16), cudaSuccess);
    ck_assert_int_eq(cudaMemcpy(a, host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(a - 1, host, 2, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(host, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(host, host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(a, host, 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(NULL, host, 4, cudaMemcpyDefault), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(a, host, 4, (enum cudaMemcpyKind)5), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault), cudaSuccess);
    ck_assert_int_eq(cudaMemset(a + 8, 0, 9), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemset(host, 0, 1), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemset(NULL, 0, 1), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemset(NULL, 0, 0), cudaSuccess);
    ck_assert_int_eq(cudaMemGetInfo(NULL, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFree(host), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFree(a + 1), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFree(a), cudaSuccess);
}
END_TEST

START_TEST(test_malloc_failure) {
    void *memory[3] = {NULL, NULL, NULL};
    simt_fail_malloc_after(2);
    ck_assert_int_eq(cudaMalloc(&memory[0], 8), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&memory[1], 8), cudaSuccess);
    ck_assert_int_eq(cudaMalloc(&memory[2], 8), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMalloc(&memory[2], 8), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
    simt_fail_malloc_after(-1);
    ck_assert_int_eq(cudaMalloc(&memory[2], 8), cudaSuccess);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(cudaFree(memory[i]), cudaSuccess);
    }
}
END_TEST

START_TEST(test_stream_event) {
    cudaStream_t stream = NULL;
    cudaEvent_t start = NULL;
    cudaEvent_t end = NULL;
    float milliseconds = -1;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(cudaStreamIsCapturing(stream, &status), cudaSuccess);
    ck_assert_int_eq(status, cudaStreamCaptureStatusNone);
    ck_assert_int_eq(cudaEventCreate(&start), cudaSuccess);
    ck_assert_int_eq(cudaEventCreate(&end), cudaSuccess);
    ck_assert_int_eq(cudaEventRecord(start, stream), cudaSuccess);
    ck_assert_int_eq(cudaEventElapsedTime(&milliseconds, start, end),
                     cudaErrorInvalidResourceHandle); // end is not recorded yet
    ck_assert_int_eq(cudaEventRecord(end, NULL), cudaSuccess);
    ck_assert_int_eq(cudaEventSynchronize(end), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(NULL), cudaSuccess);
    ck_assert_int_eq(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
    ck_assert(milliseconds >= 0 && milliseconds < 60e3F);
    ck_assert_int_eq(cudaEventDestroy(start), cudaSuccess);
    ck_assert_int_eq(cudaEventDestroy(end), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
}
END_TEST

START_TEST(test_handles_refused) {
    int not_a_stream[16] = {0};
    cudaStream_t stream = (cudaStream_t)(void *)not_a_stream;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    float milliseconds = 0;
    cudaError_t bad = cudaErrorInvalidResourceHandle;
    ck_assert_int_eq(cudaStreamCreate(NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaStreamDestroy(NULL), bad);
    ck_assert_int_eq(cudaStreamDestroy(stream), bad);
    ck_assert_int_eq(cudaStreamSynchronize(stream), bad);
    ck_assert_int_eq(cudaStreamIsCapturing(stream, &status), bad);
    ck_assert_int_eq(cudaStreamIsCapturing(NULL, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpyAsync(NULL, NULL, 0, cudaMemcpyDefault, stream), bad);
    ck_assert_int_eq(cudaMemsetAsync(NULL, 0, 0, stream), bad);
    ck_assert_int_eq(cudaEventCreate(NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaEventRecord(NULL, NULL), bad);
    ck_assert_int_eq(cudaEventSynchronize(NULL), bad);
    ck_assert_int_eq(cudaEventDestroy(NULL), bad);
    ck_assert_int_eq(cudaEventElapsedTime(NULL, NULL, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaEventElapsedTime(&milliseconds, NULL, NULL), bad);
}
END_TEST

START_TEST(test_device_refused) {
    struct cudaDeviceProp properties;
    int value = 0;
    ck_assert_int_eq(cudaSetDevice(1), cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaSetDevice(-1), cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaGetDevice(NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 1), cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1),
                     cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)7, 0),
                     cudaErrorInvalidValue);
    ck_assert_int_eq(cudaDriverGetVersion(NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaRuntimeGetVersion(NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(test_function) {
    static const char kernel = 0; // any address will do: nothing is launched
    struct cudaFuncAttributes attributes;
    enum cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    enum cudaFuncAttribute carveout = cudaFuncAttributePreferredSharedMemoryCarveout;
    ck_assert_int_eq(cudaFuncGetAttributes(&attributes, &kernel), cudaSuccess);
    ck_assert_int_eq(attributes.maxDynamicSharedSizeBytes, 49152);
    ck_assert_int_eq(cudaFuncSetAttribute(&kernel, most, 90000), cudaSuccess);
    ck_assert_int_eq(cudaFuncSetAttribute(&kernel, carveout, 100), cudaSuccess);
    ck_assert_int_eq(cudaFuncGetAttributes(&attributes, &kernel), cudaSuccess);
    ck_assert_int_eq(attributes.maxDynamicSharedSizeBytes, 90000);
    ck_assert_int_eq(attributes.maxThreadsPerBlock, 1024);
    ck_assert_int_eq(cudaFuncSetAttribute(NULL, most, 1), cudaErrorInvalidDeviceFunction);
    ck_assert_int_eq(cudaFuncSetAttribute(&kernel, (enum cudaFuncAttribute)3, 1),
                     cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFuncGetAttributes(NULL, &kernel), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaFuncGetAttributes(&attributes, NULL), cudaErrorInvalidDeviceFunction);
}
END_TEST

START_TEST(test_no_device) {
    static const char kernel = 0;
    struct cudaDeviceProp properties;
    struct cudaFuncAttributes attributes;
    size_t bytes = 0;
    int value = 7;
    void *memory = NULL;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    simt_set_device_count(0);
    ck_assert_int_eq(cudaGetDeviceCount(&value), cudaErrorNoDevice);
    ck_assert_int_eq(value, 0);
    ck_assert_int_eq(cudaSetDevice(0), cudaErrorNoDevice);
    ck_assert_int_eq(cudaGetDevice(&value), cudaErrorNoDevice);
    ck_assert_int_eq(cudaGetDeviceProperties(&properties, 0), cudaErrorNoDevice);
    ck_assert_int_eq(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0), cudaErrorNoDevice);
    ck_assert_int_eq(cudaMalloc(&memory, 4), cudaErrorNoDevice);
    ck_assert_int_eq(cudaMemGetInfo(&bytes, &bytes), cudaErrorNoDevice);
    ck_assert_int_eq(cudaStreamCreate(&stream), cudaErrorNoDevice);
    ck_assert_int_eq(cudaEventCreate(&event), cudaErrorNoDevice);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorNoDevice);
    ck_assert_int_eq(cudaFuncGetAttributes(&attributes, &kernel), cudaErrorNoDevice);
    ck_assert_int_eq(
        cudaFuncSetAttribute(&kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 1),
        cudaErrorNoDevice);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorNoDevice);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorNoDevice);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(cudaDriverGetVersion(&value), cudaSuccess);
    simt_set_device_count(1);
    ck_assert_str_eq(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice");
    ck_assert_ptr_nonnull(strstr(cudaGetErrorString(cudaErrorNoDevice), "no CUDA"));
    ck_assert_str_eq(cudaGetErrorName((cudaError_t)12345), "cudaErrorUnknown");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cuda_runtime");
    tcase_add_test(check_case(suite, "simt-device"), test_device);
    tcase_add_test(check_case(suite, "simt-attribute"), test_attribute);
    tcase_add_test(check_case(suite, "simt-memory"), test_memory);
    tcase_add_test(check_case(suite, "simt-memory-refused"), test_memory_refused);
    tcase_add_test(check_case(suite, "simt-malloc-failure"), test_malloc_failure);
    tcase_add_test(check_case(suite, "simt-stream-event"), test_stream_event);
    tcase_add_test(check_case(suite, "simt-handles-refused"), test_handles_refused);
    tcase_add_test(check_case(suite, "simt-device-refused"), test_device_refused);
    tcase_add_test(check_case(suite, "simt-function"), test_function);
    tcase_add_test(check_case(suite, "simt-no-device-api"), test_no_device);
    return check_run(suite);
}
