// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * CUDA contexts on the emulator: no device, wrong devices, failing allocations, plans that a CUDA
 * context refuses, and the caller's current device.
 */
#include <stdint.h>
#include <string.h>

#include "check_main.h"
#include "kdtr_bundle.h"
#include "kdtr_cuda.h"
#include "simt/simt_runtime.h"

/** A plan that the naive kernel takes. */
static kdtr_plan_config good_config(void) {
    return (kdtr_plan_config){.struct_size = sizeof(kdtr_plan_config),
                              .batch = 1,
                              .num_heads = 2,
                              .latent_dim = 32,
                              .rope_dim = 8,
                              .max_nodes = 4,
                              .mask_mode = KDTR_MASK_CHAIN,
                              .q_dtype = KDTR_F32,
                              .kv_dtype = KDTR_F32,
                              .o_dtype = KDTR_F32,
                              .length_dtype = KDTR_I32,
                              .slot_dtype = KDTR_I32,
                              .row_capacity = 4,
                              .max_prefix_len = 10,
                              .scale = 1.0f};
}

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
    kdtr_plan_config config = good_config();
    config.implementation = KDTR_IMPLEMENTATION_REFERENCE;
    refused(context, &config, KDTR_UNSUPPORTED, "implementation");
    config = good_config();
    config.num_threads = 2;
    refused(context, &config, KDTR_INVALID_ARGUMENT, "num_threads");
    config = good_config();
    config.row_capacity = INT32_MAX;
    refused(context, &config, KDTR_UNSUPPORTED, "row_capacity");
    config = good_config();
    config.row_capacity = INT32_MAX / 1024;
    config.num_heads = 1024;
    config.max_prefix_len = INT32_MAX;
    refused(context, &config, KDTR_SIZE_OVERFLOW, "max_prefix_len");
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
    tcase_add_test(bad, checks_and_bounds_need_a_cpu_context);
    tcase_add_test(bad, failures_of_the_runtime_are_statuses);
    tcase_add_test(bad, the_device_has_a_name);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {cuda_backend_suite};
    return check_main(makers, 1);
}
