// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The model side of MLA, named cases, versions and status names of the C ABI.
 */
#include <string.h>

#include "capi_fixture.h"
#include "check_main.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /**< Entries of an array. */

/** Sizes and pointers of a call of the model side. */
struct model_call {
    int64_t rows;
    int32_t heads;
    int32_t nope;
    int32_t value;
    int32_t latent;
    const float *input;
    const double *bound; /* of the expansion's bound only */
    const float *weights;
    void *output;
};

/** Calls function 0 to 3: absorb, expand, and the bound of each. */
static int32_t call_model(int function, const struct model_call *c) {
    switch (function) {
    case 0:
        return kdtr_absorb_query(c->rows, c->heads, c->nope, c->value, c->latent, c->input,
                                 c->weights, c->output);
    case 1:
        return kdtr_expand_value(c->rows, c->heads, c->nope, c->value, c->latent, c->input,
                                 c->weights, c->output);
    case 2:
        return kdtr_absorb_query_bound(c->rows, c->heads, c->nope, c->value, c->latent, c->input,
                                       c->weights, c->output);
    default:
        return kdtr_expand_value_bound(c->rows, c->heads, c->nope, c->value, c->latent, c->input,
                                       c->bound, c->weights, c->output);
    }
}

START_TEST(bad_shapes_are_refused) {
    static const float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    static const double bounds[4] = {0.0, 0.0, 0.0, 0.0};
    double output[4];
    const struct model_call good = {1, 1, 1, 1, 1, numbers, bounds, numbers, output};
    static const int64_t sizes[] = {0, -1, INT32_MIN, 65537};
    for (int function = 0; function < 4; function++) {
        capi_fill(output, sizeof output);
        for (size_t i = 0; i < COUNT(sizes); i++) {
            for (int field = 0; field < 5; field++) {
                struct model_call bad = good;
                int32_t *const dims[] = {&bad.heads, &bad.nope, &bad.value, &bad.latent};
                if (field == 4) {
                    bad.rows = sizes[i] > 0 ? (int64_t)INT32_MAX + 1 : sizes[i];
                } else {
                    *dims[field] = (int32_t)sizes[i];
                }
                ck_assert_msg(call_model(function, &bad) == KDTR_INVALID_ARGUMENT,
                              "function %d takes %lld in field %d", function, (long long)sizes[i],
                              field);
            }
        }
        struct model_call bad = good;
        bad.input = NULL;
        ck_assert_int_eq(call_model(function, &bad), KDTR_INVALID_ARGUMENT);
        bad = good;
        bad.weights = NULL;
        ck_assert_int_eq(call_model(function, &bad), KDTR_INVALID_ARGUMENT);
        bad = good;
        bad.output = NULL;
        ck_assert_int_eq(call_model(function, &bad), KDTR_INVALID_ARGUMENT);
        bad = good;
        bad.bound = NULL;
        if (function == 3) {
            ck_assert_int_eq(call_model(function, &bad), KDTR_INVALID_ARGUMENT);
        }
        ck_assert_msg(capi_untouched(output, sizeof output), "function %d wrote", function);
        ck_assert_int_eq(call_model(function, &good), KDTR_OK);
    }
}
END_TEST

START_TEST(absorption_and_expansion_use_their_rows) {
    /* One head, D = 2, V = 1, L = 2: two rows of W_uk, then one of W_uv. */
    static const float weights[6] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
    static const float q_nope[2] = {10.0f, 100.0f};
    static const float o[2] = {7.0f, 8.0f};
    float q_latent[2] = {0.0f, 0.0f};
    float out = 0.0f;
    ck_assert_int_eq(kdtr_absorb_query(1, 1, 2, 1, 2, q_nope, weights, q_latent), KDTR_OK);
    ck_assert(q_latent[0] == 310.0f && q_latent[1] == 420.0f);
    ck_assert_int_eq(kdtr_expand_value(1, 1, 2, 1, 2, o, weights, &out), KDTR_OK);
    ck_assert(out == 83.0f);
}
END_TEST

START_TEST(cases_are_listed) {
    ck_assert_int_gt(kdtr_case_count(), 0);
    for (int32_t i = 0; i < kdtr_case_count(); i++) {
        ck_assert(strlen(kdtr_case_name(i)) > 0 && strlen(kdtr_case_summary(i)) > 0);
        for (int32_t k = 0; k < i; k++) {
            ck_assert_str_ne(kdtr_case_name(i), kdtr_case_name(k));
        }
    }
    const int32_t outside[] = {-1, INT32_MIN, kdtr_case_count(), INT32_MAX};
    for (size_t i = 0; i < COUNT(outside); i++) {
        ck_assert_ptr_null(kdtr_case_name(outside[i]));
        ck_assert_ptr_null(kdtr_case_summary(outside[i]));
    }
}
END_TEST

START_TEST(unknown_cases_are_not_found) {
    char longest[1000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *const names[] = {"", "tree", "tree-tiny ", "TREE-TINY", longest};
    kdtr_error error = {0};
    kdtr_bundle *bundle;
    for (size_t i = 0; i < COUNT(names); i++) {
        bundle = (kdtr_bundle *)&error;
        int32_t status = kdtr_case_generate(names[i], &bundle, &error);
        capi_refused("unknown case", status, &error, KDTR_NOT_FOUND, "name");
        ck_assert_ptr_null(bundle);
    }
    bundle = (kdtr_bundle *)&error;
    int32_t status = kdtr_case_generate(NULL, &bundle, &error);
    capi_refused("no name", status, &error, KDTR_INVALID_ARGUMENT, "name");
    ck_assert_ptr_null(bundle);
    status = kdtr_case_generate("tree-tiny", NULL, &error);
    capi_refused("no bundle", status, &error, KDTR_INVALID_ARGUMENT, "bundle");
}
END_TEST

// clang-format off
#define STATUS(name) {KDTR_##name, #name} /**< A status and its name. */
static const struct {
    int32_t status;
    const char *name;
} statuses[] = {
    STATUS(OK), STATUS(INVALID_ARGUMENT), STATUS(STRUCT_SIZE), STATUS(RESERVED_NOT_ZERO),
    STATUS(UNSUPPORTED), STATUS(SIZE_OVERFLOW), STATUS(MISALIGNED), STATUS(WORKSPACE),
    STATUS(OUT_OF_MEMORY), STATUS(NO_DEVICE), STATUS(DEVICE_ERROR), STATUS(FP_ENVIRONMENT),
    STATUS(IO), STATUS(VERSION_MISMATCH), STATUS(NOT_FOUND), STATUS(BUNDLE_MAGIC),
    STATUS(BUNDLE_VERSION), STATUS(BUNDLE_TRUNCATED), STATUS(BUNDLE_TRAILING),
    STATUS(BUNDLE_HEADER), STATUS(BUNDLE_CHECKSUM), STATUS(BUNDLE_NAME), STATUS(BUNDLE_DUPLICATE),
    STATUS(BUNDLE_DTYPE), STATUS(BUNDLE_SHAPE), STATUS(BUNDLE_OFFSET), STATUS(BUNDLE_MISSING),
    STATUS(BAD_SCALE), STATUS(BAD_INDPTR), STATUS(BAD_TREE), STATUS(BAD_SLOT), STATUS(BAD_LENGTH),
};
// clang-format on

START_TEST(every_status_has_its_name) {
    size_t known = 0;
    for (int32_t status = -100; status < 1000; status++) {
        const char *name = "UNKNOWN";
        for (size_t i = 0; i < COUNT(statuses); i++) {
            if (statuses[i].status == status) {
                name = statuses[i].name;
                known++;
            }
        }
        ck_assert_str_eq(kdtr_status_name(status), name);
    }
    ck_assert_uint_eq(known, COUNT(statuses));
    ck_assert_str_eq(kdtr_status_name(INT32_MIN), "UNKNOWN");
    ck_assert_str_eq(kdtr_status_name(INT32_MAX), "UNKNOWN");
}
END_TEST

START_TEST(versions_are_those_of_the_header) {
    ck_assert_uint_eq(kdtr_version(), KDTR_VERSION_MAJOR * 1000000u + KDTR_VERSION_MINOR * 1000u +
                                          KDTR_VERSION_PATCH);
    ck_assert_uint_eq(kdtr_numerics_version(), KDTR_NUMERICS_VERSION);
}
END_TEST

static Suite *model_suite(void) {
    Suite *suite = suite_create("capi_model");
    TCase *good = tcase_create("capi names, cases and model");
    tcase_set_tags(good, TEST_PLACE);
    suite_add_tcase(suite, good);
    tcase_add_test(good, absorption_and_expansion_use_their_rows);
    tcase_add_test(good, cases_are_listed);
    tcase_add_test(good, every_status_has_its_name);
    tcase_add_test(good, versions_are_those_of_the_header);
    TCase *bad = test_tcase(suite, "P0-2", "P0-2 bad shapes and names");
    tcase_add_test(bad, bad_shapes_are_refused);
    tcase_add_test(bad, unknown_cases_are_not_found);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {model_suite};
    return check_main(makers, 1);
}
