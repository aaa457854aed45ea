// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Refusals of the C ABI (gate P0-2): every bad argument of contexts, plans and runs has its code,
 * names its field, and leaves every output alone.
 */
#include <string.h>

#include "capi_fixture.h"
#include "check_main.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /**< Entries of an array. */
#define BITS_NAN 0x7fc00000                             /**< Bits of a float32 NaN. */
#define BITS_INF 0x7f800000                             /**< Bits of infinity. */
#define STRIDE_OVERFLOW (INT64_MAX / 16)                /**< A stride whose offsets overflow. */

#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__asan_default_options(void);
/** An allocation that fails returns NULL, as malloc does. */
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
#endif

// clang-format off
#define CONFIG(member, value) \
    CAPI_SET(kdtr_plan_config, member, value, #member, KDTR_INVALID_ARGUMENT)
#define CONFIG_AS(member, value, field, code) CAPI_SET(kdtr_plan_config, member, value, field, code)
#define RESERVED KDTR_RESERVED_NOT_ZERO

static const struct capi_mutation bad_configs[] = {
    CONFIG_AS(struct_size, 0, "struct_size", KDTR_STRUCT_SIZE),
    CONFIG_AS(struct_size, sizeof(kdtr_plan_config) - 4, "struct_size", KDTR_STRUCT_SIZE),
    CONFIG_AS(struct_size, sizeof(kdtr_plan_config) + 4, "struct_size", KDTR_STRUCT_SIZE),
    CONFIG_AS(flags, 2, "flags", RESERVED),
    CONFIG_AS(flags, INT32_MIN, "flags", RESERVED),
    CONFIG_AS(reserved[0], 1, "reserved", RESERVED),
    CONFIG_AS(reserved[5], INT32_MIN, "reserved", RESERVED),
    CONFIG(implementation, -1), CONFIG(implementation, 4),
    CONFIG_AS(implementation, KDTR_IMPLEMENTATION_NAIVE, "implementation", KDTR_UNSUPPORTED),
    CONFIG_AS(implementation, KDTR_IMPLEMENTATION_FLASH, "implementation", KDTR_UNSUPPORTED),
    CONFIG(batch, 0), CONFIG(batch, -1), CONFIG(batch, 65536),
    CONFIG(num_heads, 0), CONFIG(num_heads, -1), CONFIG(num_heads, 1025),
    CONFIG(latent_dim, 0), CONFIG(latent_dim, -1), CONFIG(latent_dim, 65537),
    CONFIG(rope_dim, -1), CONFIG(rope_dim, 65537),
    CONFIG(max_nodes, 0), CONFIG(max_nodes, -1), CONFIG(max_nodes, 65537),
    CONFIG(mask_mode, -1), CONFIG(mask_mode, 4),
    CONFIG(addressing, -1), CONFIG(addressing, 2),
    CONFIG(page_size, -1), CONFIG(page_size, 2), CONFIG(page_size, 16), CONFIG(page_size, 64),
    CONFIG(q_dtype, 0), CONFIG(q_dtype, KDTR_F64), CONFIG(q_dtype, KDTR_F8_E4M3),
    CONFIG(kv_dtype, 0), CONFIG(kv_dtype, KDTR_U8), CONFIG(kv_dtype, 9),
    CONFIG_AS(kv_dtype, KDTR_F8_E4M3, "kv_dtype", KDTR_UNSUPPORTED),
    CONFIG(o_dtype, 0), CONFIG(o_dtype, KDTR_F64), CONFIG(o_dtype, KDTR_I32),
    CONFIG(length_dtype, 0), CONFIG(length_dtype, KDTR_U32), CONFIG(length_dtype, KDTR_F32),
    CONFIG(slot_dtype, 0), CONFIG(slot_dtype, KDTR_U32), CONFIG(slot_dtype, KDTR_F32),
    CONFIG(lse_base2, -1), CONFIG(lse_base2, 2),
    CONFIG(row_capacity, 0), CONFIG(row_capacity, -1), CONFIG(row_capacity, (int64_t)1 << 31),
    CONFIG(max_prefix_len, -1), CONFIG(max_prefix_len, (int64_t)1 << 31),
    CONFIG(max_prefix_len, INT64_MIN),
    CONFIG(num_threads, -1), CONFIG(num_threads, 257), CONFIG(expected_batch, -1),
    CONFIG_AS(scale, 0, "scale", KDTR_BAD_SCALE),
    CONFIG_AS(scale, INT32_MIN, "scale", KDTR_BAD_SCALE),
    CONFIG_AS(scale, BITS_NAN, "scale", KDTR_BAD_SCALE),
    CONFIG_AS(scale, BITS_INF, "scale", KDTR_BAD_SCALE),
    CONFIG_AS(scale, (int32_t)0xbf800000, "scale", KDTR_BAD_SCALE),
};

/** Row-table pages that a table does not take. */
static const struct capi_mutation bad_pages[] = {
    CONFIG(page_size, 0), CONFIG(page_size, 2), CONFIG(page_size, 8), CONFIG(page_size, 256),
    CONFIG(page_size, -16),
};

/** Limits that a plan must take. */
static const struct capi_mutation good_configs[] = {
    CONFIG(batch, 65535), CONFIG(num_heads, 1024), CONFIG(latent_dim, 65536), CONFIG(rope_dim, 0),
    CONFIG(rope_dim, 65536), CONFIG(max_nodes, 65536), CONFIG(page_size, 0), CONFIG(page_size, 1),
    CONFIG(row_capacity, INT32_MAX), CONFIG(max_prefix_len, 0), CONFIG(max_prefix_len, INT32_MAX),
    CONFIG(num_threads, 256), CONFIG(lse_base2, 1), CONFIG(scale, 1), CONFIG(scale, 0x7f7fffff),
    CONFIG(expected_batch, 1), CONFIG(expected_batch, 65535),
    CONFIG(implementation, KDTR_IMPLEMENTATION_REFERENCE),
};

#define ARG(member, value, field, code) CAPI_SET(kdtr_run_args, member, value, field, code)
#define NO_POINTER(member) ARG(member, 0, #member, KDTR_INVALID_ARGUMENT)
#define MOVED(member, by) CAPI_MOVE(kdtr_run_args, member, by, #member)
#define STRIDE(member, value) ARG(member, value, #member, KDTR_INVALID_ARGUMENT)
#define STRIDE_OF(field, index, value) \
    ARG(field[index], value, #field, KDTR_INVALID_ARGUMENT)

/** Of any case with rope. */
static const struct capi_mutation bad_args[] = {
    ARG(struct_size, 0, "struct_size", KDTR_STRUCT_SIZE),
    ARG(struct_size, sizeof(kdtr_run_args) - 8, "struct_size", KDTR_STRUCT_SIZE),
    ARG(struct_size, sizeof(kdtr_run_args) + 8, "struct_size", KDTR_STRUCT_SIZE),
    ARG(reserved0, 1, "reserved0", RESERVED),
    ARG(reserved[0], 1, "reserved", RESERVED),
    ARG(reserved[1], INT64_MIN, "reserved", RESERVED),
    ARG(kv_scale, 64, "kv_scale", KDTR_UNSUPPORTED),
    ARG(prefix_first, 64, "prefix_first", KDTR_UNSUPPORTED),
    NO_POINTER(q_latent), NO_POINTER(q_rope), NO_POINTER(kv_latent), NO_POINTER(kv_rope),
    NO_POINTER(node_indptr),
    MOVED(q_latent, 1), MOVED(q_rope, 1), MOVED(kv_latent, 1), MOVED(kv_rope, 1),
    MOVED(node_indptr, 2),
    STRIDE_OF(q_latent_stride, 0, 0), STRIDE_OF(q_latent_stride, 1, 0),
    STRIDE_OF(q_latent_stride, 0, -1), STRIDE_OF(q_latent_stride, 1, -1),
    STRIDE_OF(q_latent_stride, 0, INT64_MIN), STRIDE_OF(q_latent_stride, 1, INT64_MAX),
    STRIDE_OF(q_latent_stride, 0, STRIDE_OVERFLOW),
    STRIDE_OF(q_rope_stride, 0, 0), STRIDE_OF(q_rope_stride, 1, -1),
    STRIDE_OF(q_rope_stride, 0, STRIDE_OVERFLOW),
    STRIDE(kv_latent_stride, 0), STRIDE(kv_latent_stride, -1),
    STRIDE(kv_latent_stride, INT64_MAX), STRIDE(kv_latent_stride, STRIDE_OVERFLOW / INT32_MAX + 1),
    STRIDE(kv_rope_stride, 0), STRIDE(kv_rope_stride, -1), STRIDE(kv_rope_stride, INT64_MAX),
};

/** Of tree-tiny: CSR, parents, float32, two heads, L = 32, P = 8. */
static const struct capi_mutation bad_args_csr[] = {
    NO_POINTER(indptr), NO_POINTER(slots), NO_POINTER(parents),
    MOVED(indptr, 2), MOVED(slots, 2), MOVED(parents, 2), MOVED(q_latent, 2), MOVED(kv_rope, 2),
    ARG(tree_slots, 2, "tree_slots", KDTR_MISALIGNED),
    STRIDE_OF(q_latent_stride, 1, 31), STRIDE_OF(q_latent_stride, 0, 63),
    STRIDE_OF(q_rope_stride, 1, 7), STRIDE_OF(q_rope_stride, 0, 15),
    STRIDE(kv_latent_stride, 31), STRIDE(kv_rope_stride, 7),
    ARG(slot_count, -1, "slot_count", KDTR_INVALID_ARGUMENT),
};

/** Of table-64: row table with int64 entries, packed mask. */
static const struct capi_mutation bad_args_table[] = {
    NO_POINTER(row_table), NO_POINTER(prefix_len), NO_POINTER(mask_words),
    MOVED(row_table, 4), MOVED(prefix_len, 4), MOVED(mask_words, 2),
    ARG(table_rows, 2, "table_rows", KDTR_MISALIGNED),
    ARG(table_row_count, -1, "table_row_count", KDTR_INVALID_ARGUMENT),
    ARG(tree_slots, 4, "tree_slots", KDTR_MISALIGNED),
    STRIDE(row_table_stride, 0), STRIDE(row_table_stride, -1), STRIDE(row_table_stride, INT64_MAX),
    STRIDE(mask_stride_words, 0), STRIDE(mask_stride_words, -1),
    STRIDE(mask_stride_words, INT64_MAX),
};

/** Of outputs, which only a run looks at. */
static const struct capi_mutation bad_outputs[] = {
    ARG(device_status, 2, "device_status", KDTR_MISALIGNED),
    NO_POINTER(o), MOVED(o, 1), MOVED(lse, 2),
    STRIDE_OF(o_stride, 0, 0), STRIDE_OF(o_stride, 1, 0), STRIDE_OF(o_stride, 0, -1),
    STRIDE_OF(o_stride, 1, INT64_MIN), STRIDE_OF(o_stride, 1, 31), STRIDE_OF(o_stride, 0, 63),
    STRIDE_OF(o_stride, 0, STRIDE_OVERFLOW), STRIDE_OF(o_stride, 1, STRIDE_OVERFLOW),
};
// clang-format on

/** Tries configurations that must be refused. */
static void refuse_configs(const char *name, const struct capi_mutation *list, size_t count) {
    struct capi_fixture f;
    capi_open(&f, name, 1);
    for (size_t i = 0; i < count; i++) {
        kdtr_plan_config config = f.config;
        capi_mutate(&config, &list[i]);
        kdtr_plan *plan = (kdtr_plan *)&f;
        kdtr_error error;
        capi_fill(&error, sizeof error);
        int32_t status = kdtr_plan_create(f.context, &config, &plan, &error);
        capi_refused(list[i].what, status, &error, list[i].code, list[i].field);
        ck_assert_msg(plan == NULL, "%s: the plan is not NULL", list[i].what);
        ck_assert_int_eq(kdtr_plan_create(f.context, &config, &plan, NULL), list[i].code);
    }
    capi_close(&f);
}

START_TEST(every_bad_configuration_is_refused) {
    refuse_configs("tree-tiny", bad_configs, COUNT(bad_configs));
    refuse_configs("table-64", bad_pages, COUNT(bad_pages));
}
END_TEST

START_TEST(limits_are_accepted) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 1);
    for (size_t i = 0; i < COUNT(good_configs); i++) {
        kdtr_plan_config config = f.config;
        capi_mutate(&config, &good_configs[i]);
        kdtr_plan *plan = NULL;
        kdtr_error error = {0};
        ck_assert_msg(kdtr_plan_create(f.context, &config, &plan, &error) == KDTR_OK, "%s: %s: %s",
                      good_configs[i].what, error.field, error.text);
        ck_assert_ptr_nonnull(plan);
        kdtr_plan_destroy(plan);
    }
    capi_close(&f);
}
END_TEST

START_TEST(null_arguments_of_a_plan_are_named) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 1);
    kdtr_error error = {0};
    kdtr_plan *plan = (kdtr_plan *)&f;
    int32_t status = kdtr_plan_create(NULL, &f.config, &plan, &error);
    capi_refused("no context", status, &error, KDTR_INVALID_ARGUMENT, "context");
    ck_assert_ptr_null(plan);
    plan = (kdtr_plan *)&f;
    status = kdtr_plan_create(f.context, NULL, &plan, &error);
    capi_refused("no config", status, &error, KDTR_INVALID_ARGUMENT, "config");
    ck_assert_ptr_null(plan);
    status = kdtr_plan_create(f.context, &f.config, NULL, &error);
    capi_refused("no plan", status, &error, KDTR_INVALID_ARGUMENT, "plan");
    ck_assert_uint_eq(kdtr_plan_workspace_bytes(NULL), 0);
    kdtr_plan_destroy(NULL);
    capi_close(&f);
}
END_TEST

/** Asserts that nothing of the fixture was written. */
static void assert_nothing_written(const struct capi_fixture *f, const char *what) {
    ck_assert_msg(capi_untouched(f->o, f->o_bytes), "%s: o was written", what);
    ck_assert_msg(capi_untouched(f->lse, f->lse_bytes), "%s: lse was written", what);
    ck_assert_msg(capi_untouched(f->workspace, f->workspace_bytes), "%s: workspace was written",
                  what);
}

/** Tries arguments that run, check and bound must refuse; of outputs, run alone. */
static void refuse_args(const char *name, const struct capi_mutation *list, size_t count,
                        int outputs) {
    struct capi_fixture f;
    capi_open(&f, name, 1);
    for (size_t i = 0; i < count; i++) {
        const struct capi_mutation *m = &list[i];
        kdtr_run_args args = f.args;
        capi_mutate(&args, m);
        kdtr_error error;
        capi_fill(&error, sizeof error);
        int32_t status = kdtr_run(f.plan, &args, f.workspace, f.workspace_bytes, NULL, &error);
        capi_refused(m->what, status, &error, m->code, m->field);
        status = kdtr_run(f.plan, &args, f.workspace, f.workspace_bytes, NULL, NULL);
        ck_assert_int_eq(status, m->code);
        capi_fill(&error, sizeof error);
        status = kdtr_check(f.plan, &args, &error);
        if (outputs) {
            ck_assert_msg(status == KDTR_OK, "%s: kdtr_check looks at outputs", m->what);
            continue;
        }
        capi_refused(m->what, status, &error, m->code, m->field);
        capi_fill(&error, sizeof error);
        status = kdtr_reference_bound(f.plan, &args, NULL, (double *)f.workspace, NULL, &error);
        capi_refused(m->what, status, &error, m->code, m->field);
        assert_nothing_written(&f, m->what);
    }
    assert_nothing_written(&f, name);
    capi_close(&f);
}

START_TEST(every_bad_argument_is_refused) {
    refuse_args("tree-tiny", bad_args, COUNT(bad_args), 0);
    refuse_args("tree-tiny", bad_args_csr, COUNT(bad_args_csr), 0);
    refuse_args("table-64", bad_args, COUNT(bad_args), 0);
    refuse_args("table-64", bad_args_table, COUNT(bad_args_table), 0);
    refuse_args("tree-tiny", bad_outputs, COUNT(bad_outputs), 1);
}
END_TEST

START_TEST(null_arguments_of_a_run_are_named) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 1);
    kdtr_error error = {0};
    int32_t status = kdtr_run(NULL, &f.args, f.workspace, f.workspace_bytes, NULL, &error);
    capi_refused("run, no plan", status, &error, KDTR_INVALID_ARGUMENT, "plan");
    status = kdtr_run(f.plan, NULL, f.workspace, f.workspace_bytes, NULL, &error);
    capi_refused("run, no args", status, &error, KDTR_INVALID_ARGUMENT, "args");
    status = kdtr_check(NULL, &f.args, &error);
    capi_refused("check, no plan", status, &error, KDTR_INVALID_ARGUMENT, "plan");
    status = kdtr_check(f.plan, NULL, &error);
    capi_refused("check, no args", status, &error, KDTR_INVALID_ARGUMENT, "args");
    double bound;
    status = kdtr_reference_bound(NULL, &f.args, NULL, &bound, NULL, &error);
    capi_refused("bound, no plan", status, &error, KDTR_INVALID_ARGUMENT, "plan");
    status = kdtr_reference_bound(f.plan, NULL, NULL, &bound, NULL, &error);
    capi_refused("bound, no args", status, &error, KDTR_INVALID_ARGUMENT, "args");
    status = kdtr_reference_bound(f.plan, &f.args, NULL, NULL, NULL, &error);
    capi_refused("bound, no output", status, &error, KDTR_INVALID_ARGUMENT, "o_bound");
    assert_nothing_written(&f, "NULL");
    capi_close(&f);
}
END_TEST

START_TEST(workspace_and_stream_are_checked) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 3);
    size_t bytes = f.workspace_bytes;
    unsigned char *w = f.workspace;
    int place = 0;
    kdtr_stream stream = (kdtr_stream)(void *)&place;
    kdtr_error error = {0};
    ck_assert_uint_eq(bytes % 256, 0);
    int32_t status = kdtr_run(f.plan, &f.args, NULL, bytes, NULL, &error);
    capi_refused("no workspace", status, &error, KDTR_INVALID_ARGUMENT, "workspace");
    status = kdtr_run(f.plan, &f.args, w + 64, bytes, NULL, &error);
    capi_refused("misaligned workspace", status, &error, KDTR_MISALIGNED, "workspace");
    status = kdtr_run(f.plan, &f.args, w, bytes - 1, NULL, &error);
    capi_refused("small workspace", status, &error, KDTR_WORKSPACE, "workspace_bytes");
    status = kdtr_run(f.plan, &f.args, w, 0, NULL, &error);
    capi_refused("empty workspace", status, &error, KDTR_WORKSPACE, "workspace_bytes");
    status = kdtr_run(f.plan, &f.args, w, bytes, stream, &error);
    capi_refused("run on a stream", status, &error, KDTR_INVALID_ARGUMENT, "stream");
    assert_nothing_written(&f, "workspace");
    status = kdtr_synchronize(f.context, stream, &error);
    capi_refused("synchronize a stream", status, &error, KDTR_INVALID_ARGUMENT, "stream");
    status = kdtr_synchronize(NULL, NULL, &error);
    capi_refused("synchronize nothing", status, &error, KDTR_INVALID_ARGUMENT, "context");
    ck_assert_int_eq(kdtr_synchronize(f.context, NULL, &error), KDTR_OK);
    capi_close(&f);
}
END_TEST

START_TEST(bad_copies_are_refused) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 1);
    unsigned char source[16] = {1};
    unsigned char target[16];
    kdtr_stream stream = (kdtr_stream)(void *)source;
    capi_fill(target, sizeof target);
    const struct {
        kdtr_context *context;
        void *target;
        const void *source;
        int32_t direction;
        kdtr_stream stream;
        const char *field;
    } bad[] = {
        {NULL, target, source, KDTR_COPY_TO_HOST, NULL, "context"},
        {f.context, NULL, source, KDTR_COPY_TO_HOST, NULL, "target"},
        {f.context, target, NULL, KDTR_COPY_TO_HOST, NULL, "source"},
        {f.context, target, source, -1, NULL, "direction"},
        {f.context, target, source, 2, NULL, "direction"},
        {f.context, target, source, KDTR_COPY_TO_DEVICE, stream, "stream"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        kdtr_error error = {0};
        int32_t status = kdtr_memory_copy(bad[i].context, bad[i].target, bad[i].source, 16,
                                          bad[i].direction, bad[i].stream, &error);
        capi_refused(bad[i].field, status, &error, KDTR_INVALID_ARGUMENT, bad[i].field);
        ck_assert(capi_untouched(target, sizeof target));
    }
    kdtr_error error = {0};
    ck_assert_int_eq(kdtr_memory_copy(f.context, NULL, NULL, 0, 0, NULL, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_memory_copy(f.context, target, source, 16, 1, NULL, &error), KDTR_OK);
    ck_assert_mem_eq(target, source, sizeof target);
    capi_close(&f);
}
END_TEST

START_TEST(bad_allocations_are_refused) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 1);
    kdtr_error error = {0};
    void *pointer = &error;
    int32_t status = kdtr_memory_alloc(NULL, 1, &pointer, &error);
    capi_refused("no context", status, &error, KDTR_INVALID_ARGUMENT, "context");
    ck_assert_ptr_null(pointer);
    status = kdtr_memory_alloc(f.context, 1, NULL, &error);
    capi_refused("no pointer", status, &error, KDTR_INVALID_ARGUMENT, "pointer");
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2 + 1, SIZE_MAX / 2, SIZE_MAX / 2 - 256};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        pointer = &error;
        status = kdtr_memory_alloc(f.context, sizes[i], &pointer, &error);
        capi_refused("huge", status, &error, KDTR_OUT_OF_MEMORY, "bytes");
        ck_assert_ptr_null(pointer);
    }
    for (size_t bytes = 0; bytes < 600; bytes += 255) {
        ck_assert_int_eq(kdtr_memory_alloc(f.context, bytes, &pointer, &error), KDTR_OK);
        ck_assert(pointer != NULL && (uintptr_t)pointer % 256 == 0);
        capi_fill(pointer, bytes);
        kdtr_memory_free(f.context, pointer);
    }
    kdtr_memory_free(f.context, NULL);
    kdtr_memory_free(NULL, NULL);
    status = kdtr_context_create_cpu(NULL, &error);
    capi_refused("no place", status, &error, KDTR_INVALID_ARGUMENT, "context");
    kdtr_context_destroy(NULL);
    ck_assert_str_eq(kdtr_context_device_name(NULL), "");
    ck_assert(strlen(kdtr_context_device_name(f.context)) > 0);
    capi_close(&f);
}
END_TEST

static Suite *capi_suite(void) {
    Suite *suite = suite_create("capi");
    TCase *plan = test_tcase(suite, "P0-2", "P0-2 bad configurations");
    tcase_add_test(plan, every_bad_configuration_is_refused);
    tcase_add_test(plan, null_arguments_of_a_plan_are_named);
    tcase_add_test(plan, limits_are_accepted);
    TCase *run = test_tcase(suite, "P0-2", "P0-2 bad arguments");
    tcase_add_test(run, every_bad_argument_is_refused);
    tcase_add_test(run, null_arguments_of_a_run_are_named);
    tcase_add_test(run, workspace_and_stream_are_checked);
    tcase_add_test(run, bad_copies_are_refused);
    tcase_add_test(run, bad_allocations_are_refused);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {capi_suite};
    return check_main(makers, 1);
}
