// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Hostile problems in well-formed bundles (gate P0-2): every fault has its code and names its
 * tensor. The tensors of a good case are changed one at a time.
 */
#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check_main.h"

/** What is done to a tensor. */
enum change {
    DROP,   /* the tensor is missing */
    DTYPE,  /* its dtype is set to `value` */
    RANK,   /* one dimension less */
    SHAPE,  /* its first dimension is less by one */
    EMPTY,  /* its second dimension is 0 */
    ELEMENT /* element `index` is set to `value` */
};

/** One fault. */
struct fault {
    const char *case_name; /**< The good case. */
    const char *tensor;    /**< Tensor that is changed. */
    enum change change;    /**< How. */
    int64_t index;         /**< ELEMENT: which. */
    double value;          /**< ELEMENT or DTYPE: to what. */
    int32_t code;          /**< Expected code. */
    const char *field;     /**< Expected field; NULL: the tensor's name. */
};

static const struct fault faults[] = {
    {"tree-tiny", "scale", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "scale", ELEMENT, 0, NAN, REF_BAD_SCALE, NULL},
    {"tree-tiny", "scale", ELEMENT, 0, INFINITY, REF_BAD_SCALE, NULL},
    {"tree-tiny", "scale", ELEMENT, 0, 0, REF_BAD_SCALE, NULL},
    {"tree-tiny", "scale", ELEMENT, 0, -1, REF_BAD_SCALE, NULL},
    {"tree-tiny", "scale", DTYPE, 0, REF_I32, REF_BUNDLE_DTYPE, NULL},
    {"tree-tiny", "q_latent", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "q_latent", DTYPE, 0, REF_U32, REF_BUNDLE_DTYPE, NULL},
    {"tree-tiny", "q_latent", RANK, 0, 0, REF_BUNDLE_SHAPE, NULL},
    {"tree-tiny", "q_latent", SHAPE, 0, 0, REF_BUNDLE_SHAPE, "q_rope"},
    {"tree-tiny", "q_rope", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "q_rope", DTYPE, 0, REF_BF16, REF_BUNDLE_DTYPE, NULL},
    {"tree-tiny", "kv", DROP, 0, 0, REF_BUNDLE_MISSING, "kv_latent"},
    {"two-pools", "kv_rope", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"two-pools", "kv_rope", SHAPE, 0, 0, REF_BUNDLE_SHAPE, NULL},
    {"tree-tiny", "o", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "o", SHAPE, 0, 0, REF_BUNDLE_SHAPE, NULL},
    {"tree-tiny", "lse", SHAPE, 0, 0, REF_BUNDLE_SHAPE, NULL},
    {"tree-tiny", "node_indptr", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "node_indptr", ELEMENT, 0, 1, REF_BAD_INDPTR, NULL},
    {"tree-tiny", "node_indptr", ELEMENT, 0, -1, REF_BAD_INDPTR, NULL},
    {"tree-tiny", "node_indptr", ELEMENT, 1, 7, REF_BAD_INDPTR, NULL},
    {"tree-tiny", "node_indptr", ELEMENT, 1, 2147483647, REF_BAD_INDPTR, NULL},
    {"ragged", "node_indptr", ELEMENT, 2, 1, REF_BAD_INDPTR, NULL},
    {"tree-tiny", "indptr", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "indptr", SHAPE, 0, 0, REF_BUNDLE_SHAPE, NULL},
    {"tree-tiny", "indptr", ELEMENT, 1, 12, REF_BAD_INDPTR, NULL},
    {"tree-tiny", "indptr", ELEMENT, 1, 5, REF_BAD_LENGTH, NULL},
    {"tree-tiny", "indptr", ELEMENT, 1, -1, REF_BAD_INDPTR, NULL},
    {"ragged", "indptr", ELEMENT, 1, -9e18, REF_BAD_INDPTR, NULL},
    {"ragged", "indptr", ELEMENT, 6, 9e18, REF_BAD_LENGTH, NULL},
    {"tree-tiny", "slots", ELEMENT, 0, -1, REF_BAD_SLOT, NULL},
    {"tree-tiny", "slots", ELEMENT, 3, 14, REF_BAD_SLOT, NULL}, /* one past the pool of 14 */
    {"tree-tiny", "slots", ELEMENT, 10, 2147483647, REF_BAD_SLOT, NULL},
    {"ragged", "slots", ELEMENT, 5, 9e18, REF_BAD_SLOT, NULL},
    {"tree-long", "tree_slots", ELEMENT, 1, -7, REF_BAD_SLOT, NULL},
    {"table-64", "row_table", ELEMENT, 12, 1e18, REF_BAD_SLOT, NULL},
    {"table-64", "row_table", ELEMENT, 12, 9.2e18, REF_BAD_SLOT, NULL},
    {"table-64", "row_table", ELEMENT, 12, -1, REF_BAD_SLOT, NULL},
    {"table-64", "page_size", ELEMENT, 0, 48, REF_INVALID_ARGUMENT, NULL},
    {"table-64", "page_size", ELEMENT, 0, 0, REF_INVALID_ARGUMENT, NULL},
    {"table-64", "table_rows", ELEMENT, 0, 3, REF_BAD_INDPTR, NULL},
    {"table-64", "table_rows", ELEMENT, 0, -1, REF_BAD_INDPTR, NULL},
    {"table-64", "prefix_len", ELEMENT, 0, -1, REF_BAD_LENGTH, NULL},
    {"table-64", "prefix_len", ELEMENT, 0, 1000, REF_BAD_LENGTH, NULL},
    {"table-64", "prefix_len", ELEMENT, 0, 9e18, REF_BAD_LENGTH, NULL},
    {"table-64", "row_table", EMPTY, 0, 0, REF_BUNDLE_SHAPE, NULL},
    {"tree-tiny", "mask_mode", ELEMENT, 0, 4, REF_INVALID_ARGUMENT, NULL},
    {"tree-tiny", "mask_mode", ELEMENT, 0, 3, REF_BUNDLE_MISSING, "mask_words"},
    {"tree-tiny", "parents", DROP, 0, 0, REF_BUNDLE_MISSING, NULL},
    {"tree-tiny", "parents", ELEMENT, 0, 0, REF_BAD_TREE, NULL},
    {"tree-tiny", "parents", ELEMENT, 2, 2, REF_BAD_TREE, NULL},
    {"tree-tiny", "parents", ELEMENT, 2, 5, REF_BAD_TREE, NULL},
    {"tree-tiny", "parents", ELEMENT, 3, -1, REF_BAD_TREE, NULL},
    {"tree-tiny", "parents", ELEMENT, 3, -2147483647, REF_BAD_TREE, NULL},
    {"tree-4k", "parents", ELEMENT, 3, 7, REF_BAD_TREE, NULL},
    {"nodes-33", "mask_words", RANK, 0, 0, REF_BUNDLE_SHAPE, NULL},
};

/** Sets an element, whatever the dtype. */
static void set_element(struct ref_tensor *tensor, int64_t index, double value) {
    void *data = (void *)(uintptr_t)tensor->data;
    switch (tensor->dtype) {
    case REF_I32:
        ((int32_t *)data)[index] = (int32_t)value;
        break;
    case REF_I64:
        ((int64_t *)data)[index] = (int64_t)value;
        break;
    case REF_F32:
        ((float *)data)[index] = (float)value;
        break;
    default:
        ck_abort_msg("no element of dtype %d is ever changed", tensor->dtype);
    }
}

static void apply(const struct fault *fault, struct ref_bundle *bundle) {
    struct ref_tensor *tensor =
        (struct ref_tensor *)(uintptr_t)ref_bundle_find(bundle, fault->tensor);
    ck_assert_msg(tensor != NULL, "%s has no %s", fault->case_name, fault->tensor);
    switch (fault->change) {
    case DROP:
        strcpy(tensor->name, "dropped");
        break;
    case DTYPE:
        tensor->dtype = (int32_t)fault->value;
        break;
    case RANK:
        tensor->rank -= 1;
        break;
    case SHAPE:
        tensor->shape[0] -= 1;
        break;
    case EMPTY:
        tensor->shape[1] = 0;
        break;
    case ELEMENT:
        set_element(tensor, fault->index, fault->value);
        break;
    }
}

START_TEST(every_fault_is_named) {
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const struct fault *fault = &faults[i];
        if (test_scale_is_small() && strcmp(fault->case_name, "tree-long") == 0) {
            continue; /* 245 MB: the plain build does it */
        }
        void *file;
        size_t bytes;
        struct ref_error error = {0};
        static struct ref_bundle bundle;
        static struct ref_problem problem;
        ck_assert_int_eq(ref_case_generate(fault->case_name, &file, &bytes, &error), REF_OK);
        ck_assert_int_eq(ref_bundle_parse(file, bytes, &bundle, &error), REF_OK);
        ck_assert_int_eq(ref_problem_bind(&bundle, &problem, &error), REF_OK);
        apply(fault, &bundle);
        int32_t code = ref_problem_bind(&bundle, &problem, &error);
        const char *field = fault->field != NULL ? fault->field : fault->tensor;
        ck_assert_msg(code == fault->code && strcmp(error.field, field) == 0,
                      "%s, %s, fault %zu: code %d field %s: %s", fault->case_name, fault->tensor, i,
                      code, error.field, error.text);
        free(file);
    }
}
END_TEST

START_TEST(every_case_binds) {
    for (int32_t i = 0; i < ref_case_count(); i++) {
        void *file;
        size_t bytes;
        struct ref_error error = {0};
        static struct ref_bundle bundle;
        static struct ref_problem problem;
        if (test_scale_is_small() && strcmp(ref_case_name(i), "tree-long") == 0) {
            continue;
        }
        ck_assert_int_eq(ref_case_generate(ref_case_name(i), &file, &bytes, &error), REF_OK);
        ck_assert_int_eq(ref_bundle_parse(file, bytes, &bundle, &error), REF_OK);
        ck_assert_msg(ref_problem_bind(&bundle, &problem, &error) == REF_OK, "%s: %s: %s",
                      ref_case_name(i), error.field, error.text);
        ck_assert_int_eq(problem.is_module, 0);
        ck_assert_ptr_nonnull(problem.o);
        free(file);
    }
}
END_TEST

/** Stale lengths of a request without nodes are no fault, and no reason for a large workspace. */
START_TEST(lengths_of_inactive_requests_mean_nothing) {
    void *file;
    size_t bytes;
    struct ref_error error = {0};
    static struct ref_bundle bundle;
    static struct ref_problem problem;
    ck_assert_int_eq(ref_case_generate("table-64", &file, &bytes, &error), REF_OK);
    ck_assert_int_eq(ref_bundle_parse(file, bytes, &bundle, &error), REF_OK);
    static const struct fault stale[] = {
        {"table-64", "node_indptr", ELEMENT, 3, 5, REF_OK, NULL}, /* request 2 has no node */
        {"table-64", "prefix_len", ELEMENT, 2, 9e18, REF_OK, NULL},
        {"table-64", "prefix_len", ELEMENT, 2, 2147483647, REF_OK, NULL},
        {"table-64", "prefix_len", ELEMENT, 2, -5, REF_OK, NULL}};
    for (size_t i = 0; i < sizeof stale / sizeof stale[0]; i++) {
        apply(&stale[i], &bundle);
        ck_assert_msg(ref_problem_bind(&bundle, &problem, &error) == REF_OK, "%s", error.text);
        ck_assert_int_eq(problem.call.max_prefix_len, 200);
    }
    free(file);
}
END_TEST

/** A module problem without a latent dimension is no call. */
START_TEST(a_module_needs_a_latent_dimension) {
    FILE *stream = fopen("tests/data/module-deepseek-a.kdtr", "rb");
    ck_assert_ptr_nonnull(stream);
    static _Alignas(64) unsigned char file[1 << 20];
    size_t bytes = fread(file, 1, sizeof file, stream);
    fclose(stream);
    struct ref_error error = {0};
    static struct ref_bundle bundle;
    static struct ref_problem problem;
    ck_assert_int_eq(ref_bundle_parse(file, bytes, &bundle, &error), REF_OK);
    ck_assert_int_eq(ref_problem_bind(&bundle, &problem, &error), REF_OK);
    const struct fault no_latent = {"", "kv_b_proj", EMPTY, 0, 0, REF_BUNDLE_SHAPE, NULL};
    apply(&no_latent, &bundle);
    ck_assert_int_eq(ref_problem_bind(&bundle, &problem, &error), REF_BUNDLE_SHAPE);
    ck_assert_str_eq(error.field, "kv_b_proj");
}
END_TEST

/** Without table_rows, request b has row b of the table, whether it is active or not. */
START_TEST(a_row_table_has_a_row_for_each_request) {
    void *file;
    size_t bytes;
    struct ref_error error = {0};
    static struct ref_bundle bundle;
    static struct ref_problem problem;
    ck_assert_int_eq(ref_case_generate("table-64", &file, &bytes, &error), REF_OK);
    ck_assert_int_eq(ref_bundle_parse(file, bytes, &bundle, &error), REF_OK);
    static const struct fault no_rows = {"table-64", "table_rows", DROP, 0, 0, REF_OK, NULL};
    static const struct fault idle = {"table-64", "node_indptr", ELEMENT, 3, 5, REF_OK, NULL};
    static const struct fault shorter = {"table-64", "row_table", SHAPE, 0, 0, REF_OK, NULL};
    apply(&no_rows, &bundle);
    apply(&idle, &bundle); /* request 2 has no node */
    /* Row 0 is the shortest request's, where table_rows had turned them round. */
    const struct fault fits = {"table-64", "prefix_len", ELEMENT, 0, 60, REF_OK, NULL};
    apply(&fits, &bundle);
    ck_assert_msg(ref_problem_bind(&bundle, &problem, &error) == REF_OK, "%s", error.text);
    apply(&shorter, &bundle);
    ck_assert_int_eq(ref_problem_bind(&bundle, &problem, &error), REF_BUNDLE_SHAPE);
    ck_assert_str_eq(error.field, "row_table");
    free(file);
}
END_TEST

static Suite *problem_suite(void) {
    Suite *suite = suite_create("problem");
    TCase *bad = test_tcase(suite, "P0-2", "P0-2 hostile problems");
    tcase_add_test(bad, every_fault_is_named);
    tcase_add_test(bad, every_case_binds);
    tcase_add_test(bad, lengths_of_inactive_requests_mean_nothing);
    tcase_add_test(bad, a_module_needs_a_latent_dimension);
    tcase_add_test(bad, a_row_table_has_a_row_for_each_request);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {problem_suite};
    return check_main(makers, 1);
}
