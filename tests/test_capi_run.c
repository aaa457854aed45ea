// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Runs through the C ABI: threads, formats and strides, and what a mode ignores.
 */
#include <stdlib.h>
#include <string.h>

#include "bf16.h"
#include "capi_fixture.h"
#include "check_main.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /**< Entries of an array. */

/** Bytes of [R,H,L] float32. */
static size_t dense_bytes(const struct capi_fixture *f) {
    return f->o_bytes / 2;
}

/** Asserts that o and lse are what the bundle expects. */
static void assert_expected(const struct capi_fixture *f, const char *what) {
    ck_assert_uint_eq(f->problem.o.bytes, dense_bytes(f));
    ck_assert_msg(memcmp(f->o, f->problem.o.data, dense_bytes(f)) == 0, "%s: o differs", what);
    ck_assert_msg(memcmp(f->lse, f->problem.lse.data, f->lse_bytes) == 0, "%s: lse differs", what);
    ck_assert_msg(capi_untouched(f->o + dense_bytes(f), dense_bytes(f)), "%s: beyond o", what);
}

START_TEST(threads_give_equal_bits) {
    static const int32_t threads[] = {0, 1, 2, 7, 256};
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct capi_fixture f;
        capi_open(&f, "ragged", threads[i]);
        capi_run(&f);
        assert_expected(&f, "ragged");
        /* The content of the workspace is arbitrary, and a plan serves any number of runs. */
        memset(f.workspace, 0xff, f.workspace_bytes);
        capi_fill(f.o, f.o_bytes);
        capi_run(&f);
        assert_expected(&f, "ragged again");
        capi_close(&f);
    }
}
END_TEST

START_TEST(lse_may_be_null) {
    struct capi_fixture f;
    capi_open(&f, "ragged", 2);
    f.args.lse = NULL;
    capi_run(&f);
    ck_assert(capi_untouched(f.lse, f.lse_bytes));
    ck_assert_mem_eq(f.o, f.problem.o.data, dense_bytes(&f));
    capi_close(&f);
}
END_TEST

START_TEST(bf16_output_is_the_rounded_f32_output) {
    struct capi_fixture f;
    capi_open(&f, "ragged", 2);
    f.config.o_dtype = KDTR_BF16;
    capi_replan(&f);
    capi_run(&f);
    const float *expected = f.problem.o.data;
    size_t count = dense_bytes(&f) / sizeof(float);
    const uint16_t *o = (const uint16_t *)(void *)f.o;
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(o[i], ref_bf16_from_f32(expected[i]));
    }
    ck_assert(capi_untouched(f.o + count * 2, f.o_bytes - count * 2));
    ck_assert_mem_eq(f.lse, f.problem.lse.data, f.lse_bytes);
    capi_close(&f);
}
END_TEST

START_TEST(strides_of_o_move_the_numbers_only) {
    struct capi_fixture f;
    capi_open(&f, "ragged", 2);
    int64_t rows = f.config.row_capacity;
    int64_t heads = f.config.num_heads;
    int64_t latent = f.config.latent_dim;
    const float *expected = f.problem.o.data;
    /* Heads outermost, and rows outermost with a gap after each head. */
    const int64_t strides[2][2] = {{latent, rows * latent}, {heads * (latent + 3), latent + 3}};
    for (int i = 0; i < 2; i++) {
        capi_poison(&f);
        memcpy(f.args.o_stride, strides[i], sizeof strides[i]);
        capi_run(&f);
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t h = 0; h < heads; h++) {
                const float *o = (const float *)(void *)f.o + r * strides[i][0] + h * strides[i][1];
                ck_assert_mem_eq(o, expected + (r * heads + h) * latent,
                                 (size_t)latent * sizeof *o);
                ck_assert(i == 0 || capi_untouched(o + latent, 3 * sizeof *o));
            }
        }
    }
    capi_close(&f);
}
END_TEST

START_TEST(request_status_is_ored_in) {
    struct capi_fixture f;
    capi_open(&f, "ragged", 2);
    f.config.max_nodes = 8; /* request 2 has 33 */
    capi_replan(&f);
    uint32_t status[6];
    memset(status, 0, sizeof status);
    status[0] = 0x80000000u;
    f.args.device_status = status;
    capi_run(&f);
    const uint32_t expected[6] = {0x80000000u, 0, KDTR_REQUEST_NODES, 0, 0, 0};
    ck_assert_mem_eq(status, expected, sizeof status);
    capi_close(&f);
}
END_TEST

/** Pointers that no memory stands behind, and that are aligned to nothing. */
static void *garbage(void) {
    return (void *)(uintptr_t)1;
}

/** Runs, checks and bounds with what the mode does not need being garbage. */
static void run_with_garbage(struct capi_fixture *f, const char *what) {
    kdtr_error error = {0};
    double *bound = malloc(2 * dense_bytes(f));
    ck_assert_ptr_nonnull(bound);
    capi_poison(f);
    ck_assert_msg(kdtr_check(f->plan, &f->args, &error) == KDTR_OK, "%s: %s: %s", what, error.field,
                  error.text);
    int32_t status = kdtr_run(f->plan, &f->args, f->workspace, f->workspace_bytes, NULL, &error);
    ck_assert_msg(status == KDTR_OK, "%s: %s: %s", what, error.field, error.text);
    status = kdtr_reference_bound(f->plan, &f->args, NULL, bound, NULL, &error);
    ck_assert_msg(status == KDTR_OK, "%s: %s: %s", what, error.field, error.text);
    free(bound);
}

START_TEST(pointers_of_other_modes_are_ignored) {
    static const char *const csr[] = {"chain-16", "prefix-only", "tree-small"};
    for (size_t i = 0; i < COUNT(csr); i++) {
        struct capi_fixture f;
        capi_open(&f, csr[i], 1);
        f.args.row_table = f.args.prefix_len = f.args.table_rows = garbage();
        f.args.mask_words = garbage();
        f.args.row_table_stride = f.args.mask_stride_words = -1;
        f.args.num_slots = f.problem.args.num_slots;
        if (f.config.mask_mode != KDTR_MASK_PARENTS) {
            f.args.parents = garbage();
        }
        run_with_garbage(&f, csr[i]);
        assert_expected(&f, csr[i]);
        capi_close(&f);
    }
    struct capi_fixture f;
    capi_open(&f, "table-64", 1);
    f.args.indptr = f.args.slots = garbage();
    f.args.parents = garbage();
    run_with_garbage(&f, "table-64");
    assert_expected(&f, "table-64");
    capi_close(&f);
}
END_TEST

START_TEST(tree_slots_are_ignored_without_a_tree) {
    struct capi_fixture f;
    capi_open(&f, "prefix-only", 1);
    f.args.tree_slots = garbage();
    run_with_garbage(&f, "prefix-only");
    assert_expected(&f, "prefix-only");
    capi_close(&f);
}
END_TEST

START_TEST(rope_pointers_are_ignored_without_rope) {
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 1);
    f.config.rope_dim = 0;
    capi_replan(&f);
    f.args.q_rope = f.args.kv_rope = NULL;
    capi_run(&f);
    float *expected = malloc(dense_bytes(&f));
    ck_assert_ptr_nonnull(expected);
    memcpy(expected, f.o, dense_bytes(&f));
    f.args.q_rope = f.args.kv_rope = garbage();
    f.args.q_rope_stride[0] = f.args.q_rope_stride[1] = f.args.kv_rope_stride = -1;
    run_with_garbage(&f, "no rope");
    ck_assert_mem_eq(f.o, expected, dense_bytes(&f));
    free(expected);
    capi_close(&f);
}
END_TEST

static Suite *run_suite(void) {
    Suite *suite = suite_create("capi_run");
    TCase *run = tcase_create("capi runs");
    tcase_set_tags(run, TEST_PLACE);
    tcase_set_timeout(run, 900);
    suite_add_tcase(suite, run);
    tcase_add_test(run, threads_give_equal_bits);
    tcase_add_test(run, lse_may_be_null);
    tcase_add_test(run, bf16_output_is_the_rounded_f32_output);
    tcase_add_test(run, strides_of_o_move_the_numbers_only);
    tcase_add_test(run, request_status_is_ored_in);
    tcase_add_test(run, pointers_of_other_modes_are_ignored);
    tcase_add_test(run, tree_slots_are_ignored_without_a_tree);
    tcase_add_test(run, rope_pointers_are_ignored_without_rope);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {run_suite};
    return check_main(makers, 1);
}
