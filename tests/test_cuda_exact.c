// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode in the C ABI, on the emulator: who may ask for it, and what a context says of it.
 */
#include <string.h>

#include "capi_fixture.h"
#include "check_main.h"
#include "kdtr_cuda.h"
#include "simt/simt_runtime.h"

/** A context for exact mode, and what its check must say. */
static kdtr_context *open_exact(int32_t verdict) {
    kdtr_context *context = NULL;
    kdtr_error error = {0};
    ck_assert_msg(kdtr_cuda_context_create_flags(0, KDTR_CUDA_CONTEXT_EXACT, &context, &error) ==
                      KDTR_OK,
                  "%s", error.text);
    ck_assert_int_eq(kdtr_cuda_context_exact(context), verdict);
    return context;
}

/** A context of a verdict: the check is asked for but where it is to be UNCHECKED. */
static kdtr_context *open_verdict(int32_t verdict) {
    kdtr_context *context = NULL;
    if (verdict != KDTR_EXACT_UNCHECKED) {
        return open_exact(verdict);
    }
    ck_assert_int_eq(kdtr_cuda_context_create(0, &context, NULL), KDTR_OK);
    return context;
}

/** A plan in exact mode must be made, or refused with the flags as the field. */
static void exact_plan(kdtr_context *context, int32_t implementation, int32_t code) {
    kdtr_plan_config config = capi_flash_config();
    kdtr_plan *plan = NULL;
    kdtr_error error = {0};
    config.flags = KDTR_PLAN_EXACT;
    config.implementation = implementation;
    ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, &error), code);
    ck_assert_str_eq(error.field, code == KDTR_OK ? "" : "flags");
    kdtr_plan_destroy(plan);
}

START_TEST(exact_mode_must_be_asked_for) {
    static const int32_t verdicts[] = {KDTR_EXACT_UNCHECKED, KDTR_EXACT_HOLDS, KDTR_EXACT_FAILS};
    ck_assert_int_eq(kdtr_cuda_context_exact(NULL), KDTR_EXACT_UNCHECKED);
    for (int32_t i = 0; i < 3; i++) {
        simt_leak_rows(verdicts[i] == KDTR_EXACT_FAILS);
        kdtr_context *context = open_verdict(verdicts[i]);
        ck_assert_int_eq(kdtr_cuda_context_exact(context), verdicts[i]);
        int32_t code = verdicts[i] == KDTR_EXACT_HOLDS ? KDTR_OK : KDTR_UNSUPPORTED;
        exact_plan(context, KDTR_IMPLEMENTATION_FLASH, code);
        exact_plan(context, KDTR_IMPLEMENTATION_AUTO, code);
        exact_plan(context, KDTR_IMPLEMENTATION_NAIVE, KDTR_OK);
        kdtr_context_destroy(context);
    }
    simt_leak_rows(false);
}
END_TEST

/** Each part of the condition by itself. */
START_TEST(every_fault_of_an_mma_is_found) {
    simt_set_mma_fault((enum simt_mma_fault)_i);
    int32_t verdict = _i == SIMT_MMA_RIGHT ? KDTR_EXACT_HOLDS : KDTR_EXACT_FAILS;
    kdtr_context *context = open_exact(verdict);
    exact_plan(context, KDTR_IMPLEMENTATION_FLASH,
               _i == SIMT_MMA_RIGHT ? KDTR_OK : KDTR_UNSUPPORTED);
    kdtr_context_destroy(context);
    simt_set_mma_fault(SIMT_MMA_RIGHT);
}
END_TEST

START_TEST(a_device_without_code_of_flash_has_no_exact_mode) {
    simt_fail_functions(1, cudaErrorNoKernelImageForDevice);
    kdtr_context *context = open_exact(KDTR_EXACT_UNCHECKED);
    exact_plan(context, KDTR_IMPLEMENTATION_AUTO, KDTR_UNSUPPORTED);
    kdtr_context_destroy(context);
    simt_fail_functions(0, cudaSuccess);
}
END_TEST

START_TEST(flags_of_a_context_are_checked) {
    kdtr_context *context = NULL;
    kdtr_error error = {0};
    ck_assert_int_eq(kdtr_cuda_context_create_flags(0, 2, &context, &error),
                     KDTR_RESERVED_NOT_ZERO);
    ck_assert_str_eq(error.field, "flags");
    ck_assert_ptr_null(context);
    ck_assert_int_eq(kdtr_cuda_context_create_flags(0, 1, NULL, &error), KDTR_INVALID_ARGUMENT);
    simt_fail_malloc_after(0);
    ck_assert_int_eq(kdtr_cuda_context_create_flags(0, 1, &context, &error), KDTR_OUT_OF_MEMORY);
    ck_assert_ptr_null(context);
    simt_fail_malloc_after(-1);
    ck_assert_uint_eq(simt_live_bytes(), 0);
}
END_TEST

START_TEST(the_reference_is_exact) {
    kdtr_context *context = NULL;
    ck_assert_int_eq(kdtr_context_create_cpu(&context, NULL), KDTR_OK);
    exact_plan(context, KDTR_IMPLEMENTATION_AUTO, KDTR_OK);
    ck_assert_int_eq(kdtr_cuda_context_exact(context), KDTR_EXACT_UNCHECKED);
    kdtr_context_destroy(context);
}
END_TEST

static Suite *cuda_exact_suite(void) {
    Suite *suite = suite_create("cuda_exact");
    TCase *tcase = test_tcase(suite, "P1-3", "P1-3 exact mode in the C ABI");
    tcase_add_test(tcase, exact_mode_must_be_asked_for);
    tcase_add_loop_test(tcase, every_fault_of_an_mma_is_found, SIMT_MMA_RIGHT, SIMT_MMA_PLACES + 1);
    tcase_add_test(tcase, a_device_without_code_of_flash_has_no_exact_mode);
    tcase_add_test(tcase, flags_of_a_context_are_checked);
    tcase_add_test(tcase, the_reference_is_exact);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {cuda_exact_suite};
    return check_main(makers, 1);
}
