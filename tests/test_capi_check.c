// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What kdtr_check finds, and the floating-point environment (gate P0-2).
 */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "capi_fixture.h"
#include "check_main.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /**< Entries of an array. */

#define FLUSH_TO_ZERO 0x8000u      /**< FTZ of the SSE control register. */
#define DENORMALS_ARE_ZERO 0x0040u /**< DAZ of the SSE control register. */

/** An entry of a list that kdtr_check must find, or a limit of the plan. */
struct list_fault {
    const char *name;   /**< Case. */
    const char *tensor; /**< List, or NULL: only the limits change. */
    size_t pointer;     /**< Offset of the list in kdtr_run_args. */
    int64_t index;      /**< Entry. */
    int64_t value;      /**< Its value. */
    int32_t code;       /**< Expected. */
    const char *field;  /**< Expected. */
    int32_t max_nodes;  /**< Limit of the plan, or 0 as it was. */
    int32_t max_prefix; /**< Limit of the plan, or -1 as it was. */
};

// clang-format off
#define LIST(name, tensor, index, value, code, field) \
    {name, #tensor, offsetof(kdtr_run_args, tensor), index, value, code, field, 0, -1}
#define LIMIT(name, field, nodes, prefix) \
    {name, NULL, 0, 0, 0, KDTR_BAD_LENGTH, field, nodes, prefix}

static const struct list_fault list_faults[] = {
    LIST("tree-tiny", slots, 3, -1, KDTR_BAD_SLOT, "slots"),
    LIST("tree-tiny", slots, 0, 14, KDTR_BAD_SLOT, "slots"),
    LIST("tree-tiny", slots, 10, INT32_MAX, KDTR_BAD_SLOT, "slots"),
    LIST("tree-tiny", parents, 0, 0, KDTR_BAD_TREE, "parents"),
    LIST("tree-tiny", parents, 0, -2, KDTR_BAD_TREE, "parents"),
    LIST("tree-tiny", parents, 2, 2, KDTR_BAD_TREE, "parents"),
    LIST("tree-tiny", parents, 2, 5, KDTR_BAD_TREE, "parents"),
    LIST("tree-tiny", parents, 5, -1, KDTR_BAD_TREE, "parents"),
    LIST("tree-tiny", node_indptr, 0, 1, KDTR_BAD_INDPTR, "node_indptr"),
    LIST("tree-tiny", node_indptr, 1, -1, KDTR_BAD_INDPTR, "node_indptr"),
    LIST("tree-tiny", node_indptr, 1, 7, KDTR_BAD_INDPTR, "node_indptr"),
    LIST("tree-tiny", node_indptr, 1, INT32_MAX, KDTR_BAD_INDPTR, "node_indptr"),
    LIST("tree-tiny", indptr, 0, 1, KDTR_BAD_INDPTR, "indptr"),
    LIST("tree-tiny", indptr, 1, -1, KDTR_BAD_INDPTR, "indptr"),
    LIST("tree-tiny", indptr, 1, 5, KDTR_BAD_LENGTH, "indptr"),
    LIST("ragged", indptr, 3, 1, KDTR_BAD_INDPTR, "indptr"),
    LIST("ragged", node_indptr, 2, 2, KDTR_BAD_INDPTR, "node_indptr"),
    LIST("ragged", slots, 302, -1, KDTR_BAD_SLOT, "slots"),
    LIST("ragged", slots, 1, (int64_t)1 << 32, KDTR_BAD_SLOT, "slots"),
    LIST("two-pools", tree_slots, 15, -1, KDTR_BAD_SLOT, "tree_slots"),
    LIST("two-pools", tree_slots, 0, INT32_MAX, KDTR_BAD_SLOT, "tree_slots"),
    LIST("table-64", row_table, 0, -1, KDTR_BAD_SLOT, "row_table"),
    LIST("table-64", row_table, 0, INT64_MAX, KDTR_BAD_SLOT, "row_table"),
    LIST("table-64", row_table, 0, (int64_t)1 << 58, KDTR_BAD_SLOT, "row_table"),
    LIST("table-64", prefix_len, 1, -1, KDTR_BAD_LENGTH, "prefix_len"),
    LIST("table-64", prefix_len, 1, 201, KDTR_BAD_LENGTH, "prefix_len"),
    LIST("table-64", prefix_len, 1, INT64_MAX, KDTR_BAD_LENGTH, "prefix_len"),
    LIMIT("tree-tiny", "node_indptr", 5, -1),
    LIMIT("tree-tiny", "indptr", 0, 4),
    LIMIT("table-64", "prefix_len", 0, 199),
};
// clang-format on

/** A copy of a tensor with one element changed; the caller frees it. */
static void *changed_tensor(const kdtr_bundle *bundle, const struct list_fault *fault) {
    kdtr_tensor tensor = {.struct_size = sizeof tensor};
    ck_assert_msg(kdtr_bundle_find(bundle, fault->tensor, &tensor, NULL) == KDTR_OK, "%s has no %s",
                  fault->name, fault->tensor);
    int wide = tensor.dtype == KDTR_I64;
    ck_assert(wide || tensor.dtype == KDTR_I32);
    ck_assert_uint_lt((size_t)fault->index, tensor.bytes / (wide ? 8 : 4));
    void *copy = malloc(tensor.bytes);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, tensor.data, tensor.bytes);
    if (wide) {
        ((int64_t *)copy)[fault->index] = fault->value;
    } else {
        ((int32_t *)copy)[fault->index] = (int32_t)fault->value;
    }
    return copy;
}

START_TEST(check_finds_what_a_run_trusts) {
    for (size_t i = 0; i < COUNT(list_faults); i++) {
        const struct list_fault *fault = &list_faults[i];
        struct capi_fixture f;
        capi_open(&f, fault->name, 1);
        kdtr_error error = {0};
        f.args.o = f.args.lse = NULL; /* outputs may be NULL */
        ck_assert_int_eq(kdtr_check(f.plan, &f.args, &error), KDTR_OK);
        void *copy = NULL;
        if (fault->tensor != NULL) {
            copy = changed_tensor(f.bundle, fault);
            memcpy((unsigned char *)&f.args + fault->pointer, &copy, sizeof copy);
        }
        f.config.max_nodes = fault->max_nodes > 0 ? fault->max_nodes : f.config.max_nodes;
        f.config.max_prefix_len =
            fault->max_prefix >= 0 ? fault->max_prefix : f.config.max_prefix_len;
        capi_replan(&f);
        int32_t status = kdtr_check(f.plan, &f.args, &error);
        capi_refused(fault->field, status, &error, fault->code, fault->field);
        ck_assert_int_eq(kdtr_check(f.plan, &f.args, NULL), fault->code);
        free(copy);
        capi_close(&f);
    }
}
END_TEST

START_TEST(counts_bound_the_lists) {
    struct capi_fixture f;
    kdtr_error error = {0};
    capi_open(&f, "ragged", 1);
    int64_t count = f.args.slot_count;
    ck_assert_int_gt(count, 1);
    ck_assert_int_eq(kdtr_check(f.plan, &f.args, &error), KDTR_OK);
    f.args.slot_count = count - 1;
    capi_refused("slots", kdtr_check(f.plan, &f.args, &error), &error, KDTR_BAD_INDPTR, "indptr");
    f.args.slot_count = 0;       /* unknown */
    f.args.table_row_count = -1; /* not of this addressing */
    ck_assert_int_eq(kdtr_check(f.plan, &f.args, &error), KDTR_OK);
    capi_close(&f);

    capi_open(&f, "table-64", 1);
    ck_assert_ptr_nonnull(f.args.table_rows);
    f.args.slot_count = -1; /* not of this addressing */
    ck_assert_int_eq(kdtr_check(f.plan, &f.args, &error), KDTR_OK);
    ck_assert_int_eq(f.config.batch, 3);
    const int32_t rows[3] = {f.args.table_rows[0], f.args.table_rows[1],
                             (int32_t)f.args.table_row_count};
    f.args.table_rows = rows;
    capi_refused("table", kdtr_check(f.plan, &f.args, &error), &error, KDTR_BAD_INDPTR,
                 "table_rows");
    f.args.table_rows = NULL; /* then request b has row b */
    f.args.table_row_count = f.config.batch - 1;
    capi_refused("batch", kdtr_check(f.plan, &f.args, &error), &error, KDTR_INVALID_ARGUMENT,
                 "table_row_count");
    capi_close(&f);
}
END_TEST

START_TEST(check_passes_every_case) {
    for (int32_t i = 0; i < kdtr_case_count(); i++) {
        const char *name = kdtr_case_name(i);
        if (strcmp(name, "tree-long") == 0 || (test_scale_is_small() && i % 3 != 0)) {
            continue; /* tree-long has 245 MB */
        }
        struct capi_fixture f;
        capi_open(&f, name, 1);
        kdtr_error error = {0};
        ck_assert_msg(kdtr_check(f.plan, &f.args, &error) == KDTR_OK, "%s: %s: %s", name,
                      error.field, error.text);
        f.args.num_slots = 0; /* then no slot is inside the pool */
        ck_assert_int_eq(kdtr_check(f.plan, &f.args, &error), KDTR_BAD_SLOT);
        capi_close(&f);
    }
}
END_TEST

/** Codes of the three functions that look at the environment, called in a foreign one. */
struct environment_codes {
    int32_t create;
    int32_t run;
    int32_t generate;
    kdtr_context *context;
    kdtr_bundle *bundle;
    kdtr_error error;
};

/** Calls; asserts nothing, because the environment is the foreign one. */
static void call_all(const struct capi_fixture *f, struct environment_codes *codes) {
    codes->create = kdtr_context_create_cpu(&codes->context, NULL);
    codes->generate = kdtr_case_generate("tree-tiny", &codes->bundle, NULL);
    codes->run = kdtr_run(f->plan, &f->args, f->workspace, f->workspace_bytes, NULL, &codes->error);
}

/** Asserts that all three refused and wrote nothing. */
static void assert_refused(struct capi_fixture *f, struct environment_codes *codes) {
    ck_assert_int_eq(codes->create, KDTR_FP_ENVIRONMENT);
    ck_assert_int_eq(codes->generate, KDTR_FP_ENVIRONMENT);
    ck_assert(codes->context == NULL && codes->bundle == NULL);
    capi_refused("run", codes->run, &codes->error, KDTR_FP_ENVIRONMENT, "");
    ck_assert(capi_untouched(f->o, f->o_bytes) && capi_untouched(f->lse, f->lse_bytes));
    capi_run(f); /* and in the usual environment it runs */
    ck_assert_mem_eq(f->o, f->problem.o.data, f->problem.o.bytes);
}

START_TEST(rounding_mode_is_checked) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 2);
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct environment_codes codes = {.context = (kdtr_context *)&f,
                                          .bundle = (kdtr_bundle *)&f};
        capi_poison(&f);
        ck_assert_int_eq(fesetround(modes[i]), 0);
        call_all(&f, &codes);
        fesetround(FE_TONEAREST);
        assert_refused(&f, &codes);
    }
    capi_close(&f);
}
END_TEST

#if defined(__SSE__)
START_TEST(flushing_of_denormals_is_checked) {
    static const unsigned flags[] = {FLUSH_TO_ZERO, DENORMALS_ARE_ZERO,
                                     FLUSH_TO_ZERO | DENORMALS_ARE_ZERO};
    struct capi_fixture f;
    capi_open(&f, "tree-tiny", 2);
    for (size_t i = 0; i < COUNT(flags); i++) {
        struct environment_codes codes = {.context = (kdtr_context *)&f,
                                          .bundle = (kdtr_bundle *)&f};
        capi_poison(&f);
        unsigned before = _mm_getcsr();
        _mm_setcsr(before | flags[i]);
        call_all(&f, &codes);
        _mm_setcsr(before);
        assert_refused(&f, &codes);
    }
    capi_close(&f);
}
END_TEST
#endif

static Suite *check_suite(void) {
    Suite *suite = suite_create("capi_check");
    TCase *check = test_tcase(suite, "P0-2", "P0-2 kdtr_check and environment");
    tcase_add_test(check, check_finds_what_a_run_trusts);
    tcase_add_test(check, counts_bound_the_lists);
    tcase_add_test(check, check_passes_every_case);
    tcase_add_test(check, rounding_mode_is_checked);
#if defined(__SSE__)
    tcase_add_test(check, flushing_of_denormals_is_checked);
#endif
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {check_suite};
    return check_main(makers, 1);
}
