// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * CUDA contexts on the emulator: no device, wrong devices, failing allocations, plans that a CUDA
 * context refuses, and the caller's current device.
 */
#include <stdint.h>
#include <string.h>

#include "capi_fixture.h"
#include "check_main.h"
#include "kdtr_bundle.h"
#include "kdtr_cuda.h"
#include "simt/simt_runtime.h"

static kdtr_context *open_context(void) {
    kdtr_context *context = NULL;
    kdtr_error error = {0};
    ck_assert_msg(kdtr_cuda_context_create(0, &context, &error) == KDTR_OK, "%s", error.text);
    return context;
}

START_TEST(no_device_is_said) {
    kdtr_context *context = (kdtr_context *)&context;
    kdtr_error error = {0};
    int32_t count = 7;
    simt_set_device_count(0);
    ck_assert_int_eq(kdtr_cuda_device_count(&count, &error), KDTR_OK);
    ck_assert_int_eq(count, 0);
    ck_assert_int_eq(kdtr_cuda_context_create(0, &context, &error), KDTR_NO_DEVICE);
    ck_assert_ptr_null(context);
    ck_assert_ptr_nonnull(strstr(error.text, "no CUDA device"));
    simt_set_device_count(1);
}
END_TEST

START_TEST(wrong_arguments_are_refused) {
    kdtr_context *context = NULL;
    kdtr_error error = {0};
    ck_assert_int_eq(kdtr_cuda_device_count(NULL, &error), KDTR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "count");
    ck_assert_int_eq(kdtr_cuda_context_create(0, NULL, &error), KDTR_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "context");
    for (int32_t device = -1; device < 3; device += 2) {
        ck_assert_int_eq(kdtr_cuda_context_create(device, &context, &error), KDTR_INVALID_ARGUMENT);
        ck_assert_str_eq(error.field, "device");
    }
}
END_TEST

/** The plan must be refused with this code and field. */
static void refused(kdtr_context *context, const kdtr_plan_config *config, int32_t code,
                    const char *field) {
    kdtr_plan *plan = (kdtr_plan *)&plan;
    kdtr_error error = {0};
    ck_assert_int_eq(kdtr_plan_create(context, config, &plan, &error), code);
    ck_assert_str_eq(error.field, field);
    ck_assert_ptr_null(plan);
}

START_TEST(plans_that_a_cuda_context_refuses) {
    kdtr_context *context = open_context();
    kdtr_plan_config config = capi_small_config();
    config.implementation = KDTR_IMPLEMENTATION_REFERENCE;
    refused(context, &config, KDTR_UNSUPPORTED, "implementation");
    config = capi_small_config();
    config.num_threads = 2;
    refused(context, &config, KDTR_INVALID_ARGUMENT, "num_threads");
    config = capi_small_config();
    config.row_capacity = INT32_MAX;
    refused(context, &config, KDTR_UNSUPPORTED, "row_capacity");
    config = capi_small_config();
    config.row_capacity = INT32_MAX / 1024;
    config.num_heads = 1024;
    config.max_prefix_len = INT32_MAX;
    refused(context, &config, KDTR_SIZE_OVERFLOW, "max_prefix_len");
    kdtr_context_destroy(context);
}
END_TEST

START_TEST(plans_that_the_flash_kernel_refuses) {
    kdtr_context *context = open_context();
    for (int32_t i = 0; i < 8; i++) {
        static const char *const fields[] = {"latent_dim", "rope_dim",     "q_dtype",
                                             "kv_dtype",   "row_capacity", "max_prefix_len",
                                             "max_nodes"};
        kdtr_plan_config config = capi_flash_config();
        config.latent_dim = i == 0 ? 256 : 512;
        config.rope_dim = i == 1 ? 0 : 64;
        config.q_dtype = i == 2 ? KDTR_F32 : KDTR_BF16;
        config.kv_dtype = i == 3 ? KDTR_F32 : KDTR_BF16;
        config.row_capacity = i == 4 ? INT32_MAX / 2 : i < 6 ? 4 : 1024; /* of two heads */
        config.num_heads = i < 6 ? 2 : 1024;
        config.max_nodes = i < 6 ? config.max_nodes : i == 6 ? 1024 : 1023;
        config.max_prefix_len = i < 5 ? 10 : (1 << 24) - 6144 - config.max_nodes + (i == 5);
        config.implementation = KDTR_IMPLEMENTATION_FLASH;
        kdtr_plan *plan = NULL;
        kdtr_error error = {0};
        if (i < 7) {
            refused(context, &config, KDTR_UNSUPPORTED, fields[i]);
            config.implementation = KDTR_IMPLEMENTATION_AUTO; /* then it is naive */
        }
        ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, &error), KDTR_OK);
        kdtr_plan_destroy(plan);
    }
    kdtr_context_destroy(context);
}
END_TEST

/** A run with these arguments must be refused as misaligned. */
static void misaligned(const kdtr_plan *plan, const kdtr_run_args *args, void *workspace,
                       const char *field) {
    kdtr_error error = {0};
    size_t bytes = kdtr_plan_workspace_bytes(plan);
    ck_assert_int_eq(kdtr_run(plan, args, workspace, bytes, NULL, &error), KDTR_MISALIGNED);
    ck_assert_str_eq(error.field, field);
}

START_TEST(runs_that_the_flash_kernel_refuses) {
    kdtr_context *context = open_context();
    kdtr_plan_config config = capi_flash_config(); /* AUTO is flash */
    kdtr_plan *plan = NULL;
    kdtr_error error = {0};
    void *workspace = NULL;
    char *memory = NULL;
    ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_memory_alloc(context, kdtr_plan_workspace_bytes(plan), &workspace, NULL),
                     KDTR_OK);
    ck_assert_int_eq(kdtr_memory_alloc(context, 1 << 20, (void **)&memory, NULL), KDTR_OK);
    kdtr_run_args good = {.struct_size = sizeof good,
                          .q_latent = memory,
                          .q_rope = memory,
                          .q_latent_stride = {1152, 576},
                          .q_rope_stride = {1152, 576},
                          .kv_latent = memory,
                          .kv_rope = memory,
                          .kv_latent_stride = 576,
                          .kv_rope_stride = 576,
                          .node_indptr = (const int32_t *)(const void *)memory,
                          .indptr = memory,
                          .slots = memory,
                          .o = memory,
                          .o_stride = {1024, 512}};
    static const char *const pointers[] = {"q_latent", "q_rope", "kv_latent", "kv_rope"};
    static const char *const strides[] = {"q_latent_stride", "q_rope_stride", "kv_latent_stride",
                                          "kv_rope_stride"};
    for (int32_t i = 0; i < 4; i++) {
        kdtr_run_args args = good;
        const void **places[] = {&args.q_latent, &args.q_rope, &args.kv_latent, &args.kv_rope};
        *places[i] = memory + (i < 2 ? 2 : 8);
        misaligned(plan, &args, workspace, pointers[i]);
        args = good;
        int64_t *rows[] = {&args.q_latent_stride[0], &args.q_rope_stride[0], &args.kv_latent_stride,
                           &args.kv_rope_stride};
        *rows[i] += i < 2 ? 1 : 4;
        misaligned(plan, &args, workspace, strides[i]);
    }
    for (int32_t i = 0; i < 2; i++) {
        kdtr_run_args args = good;
        *(i == 0 ? &args.q_latent_stride[1] : &args.q_rope_stride[1]) += 1;
        args.q_latent_stride[0] = args.q_rope_stride[0] = 2048;
        misaligned(plan, &args, workspace, strides[i]);
    }
    kdtr_memory_free(context, memory);
    kdtr_memory_free(context, workspace);
    kdtr_plan_destroy(plan);
    kdtr_context_destroy(context);
}
END_TEST

/** What a small call reads and writes: a prefix of three, a chain of three, two heads. */
struct small_call {
    uint16_t kv[6][576];     /**< The pool. */
    uint16_t q[2][4 * 1200]; /**< Queries in two layouts. */
    float o[2][4][2][512];   /**< Output of each. */
    int32_t node_indptr[2];  /**< 0, 3 */
    int32_t indptr[2];       /**< 0, 6 */
    int32_t slots[6];        /**< 0 to 5 */
};

/** Where the second layout has its queries: 4 bytes off, with strides of two elements more. */
static const int64_t first_element[] = {0, 2};
static const int64_t head_stride[] = {576, 578};
static const int64_t row_stride[] = {1152, 1158};

static void fill_small_call(struct small_call *s) {
    memset(s, 0, sizeof *s);
    s->node_indptr[1] = 3;
    s->indptr[1] = 6;
    for (int32_t i = 0; i < 6; i++) {
        s->slots[i] = i;
    }
    for (int32_t i = 0; i < 6 * 576; i++) {
        s->kv[i / 576][i % 576] = (uint16_t)(0x3e00 + i * 37 % 256 + i % 3 / 2 * 0x8000);
    }
    for (int32_t i = 0; i < 8 * 576; i++) {
        uint16_t element = (uint16_t)(0x3d00 + i * 53 % 256 + i % 5 / 3 * 0x8000);
        for (int32_t k = 0; k < 2; k++) {
            s->q[k][first_element[k] + i / 1152 * row_stride[k] + i / 576 % 2 * head_stride[k] +
                    i % 576] = element;
        }
    }
}

/** Runs the call in device memory with one of its two layouts of queries. */
static int32_t run_small_call(kdtr_context *context, int32_t implementation, struct small_call *s,
                              int32_t layout, int64_t num_slots, kdtr_error *error) {
    kdtr_plan_config config = capi_flash_config();
    config.implementation = implementation;
    kdtr_plan *plan = NULL;
    void *workspace = NULL;
    ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, NULL), KDTR_OK);
    size_t bytes = kdtr_plan_workspace_bytes(plan);
    ck_assert_int_eq(kdtr_memory_alloc(context, bytes, &workspace, NULL), KDTR_OK);
    uint16_t *q = &s->q[layout][first_element[layout]];
    const kdtr_run_args args = {
        .struct_size = sizeof args,
        .q_latent = q,
        .q_rope = q + 512,
        .q_latent_stride = {row_stride[layout], head_stride[layout]},
        .q_rope_stride = {row_stride[layout], head_stride[layout]},
        .kv_latent = s->kv[0],
        .kv_rope = s->kv[0] + 512,
        .kv_latent_stride = 576,
        .kv_rope_stride = 576,
        .num_slots = num_slots,
        .node_indptr = s->node_indptr,
        .indptr = s->indptr,
        .slots = s->slots,
        .o = s->o[layout],
        .o_stride = {1024, 512},
    };
    int32_t status = kdtr_run(plan, &args, workspace, bytes, NULL, error);
    kdtr_memory_free(context, workspace);
    kdtr_plan_destroy(plan);
    return status;
}

START_TEST(what_the_flash_kernel_takes_of_queries_and_slots) {
    const int32_t flash = KDTR_IMPLEMENTATION_FLASH;
    const int64_t most = ((int64_t)1 << 32) - 1;
    kdtr_context *context = open_context();
    static struct small_call host;
    struct small_call *device = NULL;
    kdtr_error error = {0};
    fill_small_call(&host);
    ck_assert_int_eq(kdtr_memory_alloc(context, sizeof host, (void **)&device, NULL), KDTR_OK);
    ck_assert_int_eq(
        kdtr_memory_copy(context, device, &host, sizeof host, KDTR_COPY_TO_DEVICE, NULL, NULL),
        KDTR_OK);
    ck_assert_int_eq(run_small_call(context, flash, device, 0, most + 1, &error), KDTR_UNSUPPORTED);
    ck_assert_str_eq(error.field, "num_slots");
    ck_assert_int_eq(run_small_call(context, KDTR_IMPLEMENTATION_NAIVE, device, 0, most + 1, NULL),
                     KDTR_OK);
    ck_assert_int_eq(run_small_call(context, flash, device, 0, 6, NULL), KDTR_OK);
    ck_assert_int_eq(run_small_call(context, flash, device, 1, most, NULL), KDTR_OK);
    ck_assert_int_eq(
        kdtr_memory_copy(context, &host, device, sizeof host, KDTR_COPY_TO_HOST, NULL, NULL),
        KDTR_OK);
    ck_assert_mem_eq(host.o[0], host.o[1], sizeof host.o[0]);
    ck_assert(host.o[0][0][0][0] != 0.0f && host.o[0][2][1][511] != 0.0f);
    kdtr_memory_free(context, device);
    kdtr_context_destroy(context);
}
END_TEST

START_TEST(checks_and_bounds_need_a_cpu_context) {
    kdtr_context *context = open_context();
    kdtr_bundle *bundle = NULL;
    kdtr_problem problem = {.struct_size = sizeof problem};
    kdtr_plan *plan = NULL;
    kdtr_error error = {0};
    double bound = 3.0;
    ck_assert_int_eq(kdtr_bundle_open("tests/data/tree-tiny.kdtr", &bundle, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_bundle_problem(bundle, &problem, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_plan_create(context, &problem.config, &plan, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_check(plan, &problem.args, &error), KDTR_UNSUPPORTED);
    ck_assert_int_eq(kdtr_reference_bound(plan, &problem.args, NULL, &bound, NULL, &error),
                     KDTR_UNSUPPORTED);
    ck_assert(bound == 3.0);
    kdtr_plan_destroy(plan);
    kdtr_bundle_close(bundle);
    kdtr_context_destroy(context);
}
END_TEST

START_TEST(failures_of_the_runtime_are_statuses) {
    kdtr_context *context = open_context();
    kdtr_error error = {0};
    void *memory = &error;
    simt_fail_malloc_after(0);
    ck_assert_int_eq(kdtr_memory_alloc(context, 64, &memory, &error), KDTR_OUT_OF_MEMORY);
    ck_assert_ptr_null(memory);
    simt_fail_malloc_after(-1);
    ck_assert_int_eq(kdtr_memory_alloc(context, 64, &memory, &error), KDTR_OK);
    char host[128] = {0};
    /* Beyond the allocation: the emulator refuses what a device would write elsewhere. */
    ck_assert_int_eq(
        kdtr_memory_copy(context, memory, host, sizeof host, KDTR_COPY_TO_DEVICE, NULL, &error),
        KDTR_DEVICE_ERROR);
    ck_assert(error.text[0] != '\0');
    ck_assert_int_eq(kdtr_memory_copy(context, memory, host, 64, KDTR_COPY_TO_DEVICE, NULL, &error),
                     KDTR_OK);
    ck_assert_int_eq(kdtr_synchronize(context, NULL, &error), KDTR_OK);
    kdtr_memory_free(context, memory);
    kdtr_context_destroy(context);
}
END_TEST

/** A card for which there is no machine code of flash, or of nothing. */
START_TEST(a_device_without_code_of_flash_has_naive) {
    static const cudaError_t causes[] = {cudaErrorNoKernelImageForDevice,
                                         cudaErrorInvalidDeviceFunction};
    kdtr_error error = {0};
    kdtr_context *context = NULL;
    kdtr_plan *plan = NULL;
    simt_fail_functions(1, causes[_i]);
    ck_assert_msg(kdtr_cuda_context_create(0, &context, &error) == KDTR_OK, "%s", error.text);
    kdtr_plan_config config = capi_small_config();
    config.implementation = KDTR_IMPLEMENTATION_FLASH;
    ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, &error), KDTR_UNSUPPORTED);
    ck_assert_str_eq(error.field, "implementation");
    ck_assert_ptr_nonnull(strstr(error.text, "flash"));
    config.implementation = KDTR_IMPLEMENTATION_AUTO;
    ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, &error), KDTR_OK);
    kdtr_plan_destroy(plan);
    kdtr_context_destroy(context);
    simt_fail_functions(1000, causes[_i]);
    ck_assert_int_eq(kdtr_cuda_context_create(0, &context, &error), KDTR_DEVICE_ERROR);
    ck_assert_ptr_null(context);
    simt_fail_functions(0, cudaSuccess);
}
END_TEST

/** A failure that says nothing of the code is no reason to go without flash. */
START_TEST(other_failures_of_loading_are_errors) {
    kdtr_error error = {0};
    kdtr_context *context = NULL;
    simt_fail_functions(1, cudaErrorMemoryAllocation);
    ck_assert_int_eq(kdtr_cuda_context_create(0, &context, &error), KDTR_OUT_OF_MEMORY);
    ck_assert_ptr_null(context);
    simt_fail_functions(0, cudaSuccess);
}
END_TEST

START_TEST(the_device_has_a_name) {
    kdtr_context *context = open_context();
    ck_assert_str_eq(kdtr_context_device_name(context), "kdtr SIMT emulator");
    kdtr_context_destroy(context);
}
END_TEST

static Suite *cuda_backend_suite(void) {
    Suite *suite = suite_create("cuda_backend");
    TCase *bad = test_tcase(suite, "P0-2", "P0-2 CUDA contexts");
    tcase_add_test(bad, no_device_is_said);
    tcase_add_test(bad, wrong_arguments_are_refused);
    tcase_add_test(bad, plans_that_a_cuda_context_refuses);
    tcase_add_test(bad, plans_that_the_flash_kernel_refuses);
    tcase_add_test(bad, runs_that_the_flash_kernel_refuses);
    tcase_add_test(bad, what_the_flash_kernel_takes_of_queries_and_slots);
    tcase_add_test(bad, checks_and_bounds_need_a_cpu_context);
    tcase_add_test(bad, failures_of_the_runtime_are_statuses);
    tcase_add_loop_test(bad, a_device_without_code_of_flash_has_naive, 0, 2);
    tcase_add_test(bad, other_failures_of_loading_are_errors);
    tcase_add_test(bad, the_device_has_a_name);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {cuda_backend_suite};
    return check_main(makers, 1);
}
