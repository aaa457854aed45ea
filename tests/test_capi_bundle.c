// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Bundles, named cases, the model side and the names of the C ABI.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capi_fixture.h"
#include "check_main.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0]) /**< Entries of an array. */

static const char *const committed[] = {
    "tests/data/tree-tiny.kdtr",         "tests/data/tree-small.kdtr",
    "tests/data/masked-first.kdtr",      "tests/data/table-1.kdtr",
    "tests/data/module-deepseek-a.kdtr", "tests/data/module-deepseek-b.kdtr"};

/** A folder of this test and two paths in it. */
struct scratch {
    char folder[64];
    char path[96];
    char part[104]; /* what kdtr_bundle_write writes first */
};

static void scratch_open(struct scratch *s) {
    snprintf(s->folder, sizeof s->folder, "out/test_capi_bundle-XXXXXX");
    ck_assert_msg(mkdtemp(s->folder) != NULL, "no folder %s", s->folder);
    snprintf(s->path, sizeof s->path, "%s/case.kdtr", s->folder);
    snprintf(s->part, sizeof s->part, "%s.part0", s->path);
}

static void scratch_close(const struct scratch *s) {
    remove(s->path);
    remove(s->part);
    ck_assert_msg(rmdir(s->folder) == 0, "something is left in %s", s->folder);
}

/** Opens a file that is known to be good. */
static kdtr_bundle *open_good(const char *path) {
    kdtr_bundle *bundle = NULL;
    kdtr_error error = {0};
    ck_assert_msg(kdtr_bundle_open(path, &bundle, &error) == KDTR_OK, "%s: %s", path, error.text);
    ck_assert_ptr_nonnull(bundle);
    return bundle;
}

/** Asserts that two bundles have the same bytes. */
static void assert_same(const kdtr_bundle *a, const kdtr_bundle *b, const char *what) {
    size_t a_bytes = 0;
    size_t b_bytes = 0;
    const void *a_data = kdtr_bundle_data(a, &a_bytes);
    const void *b_data = kdtr_bundle_data(b, &b_bytes);
    ck_assert_msg(a_bytes == b_bytes && memcmp(a_data, b_data, a_bytes) == 0, "%s differs", what);
}

/** Asserts that each tensor is found by number and by name, aligned and within the file. */
static void check_tensors(const kdtr_bundle *bundle) {
    size_t bytes = 0;
    const char *data = kdtr_bundle_data(bundle, &bytes);
    ck_assert_int_gt(kdtr_bundle_tensor_count(bundle), 0);
    for (int32_t i = 0; i < kdtr_bundle_tensor_count(bundle); i++) {
        kdtr_tensor tensor;
        kdtr_tensor found;
        capi_fill(&tensor, sizeof tensor);
        capi_fill(&found, sizeof found);
        tensor.struct_size = found.struct_size = sizeof tensor;
        ck_assert_int_eq(kdtr_bundle_tensor(bundle, i, &tensor, NULL), KDTR_OK);
        ck_assert_int_eq(kdtr_bundle_find(bundle, tensor.name, &found, NULL), KDTR_OK);
        ck_assert_mem_eq(&tensor, &found, sizeof tensor);
        ck_assert_uint_eq(tensor.struct_size, sizeof tensor);
        ck_assert_int_eq(tensor.reserved, 0);
        ck_assert(tensor.rank >= 0 && tensor.rank <= 4);
        for (int32_t k = tensor.rank; k < 4; k++) {
            ck_assert_int_eq(tensor.shape[k], 1);
        }
        ck_assert_uint_eq((uintptr_t)tensor.data % 64, 0);
        ck_assert((const char *)tensor.data >= data + 64 &&
                  (const char *)tensor.data + tensor.bytes <= data + bytes);
    }
}

START_TEST(committed_bundles_round_trip) {
    struct scratch s;
    scratch_open(&s);
    for (size_t i = 0; i < COUNT(committed); i++) {
        kdtr_error error = {0};
        kdtr_bundle *bundle = open_good(committed[i]);
        check_tensors(bundle);
        ck_assert_msg(strstr(committed[i], kdtr_bundle_name(bundle)) != NULL, "%s is named %s",
                      committed[i], kdtr_bundle_name(bundle));
        size_t bytes = 0;
        const unsigned char *data = kdtr_bundle_data(bundle, &bytes);
        unsigned char *odd = malloc(bytes + 1); /* the bytes may stand anywhere */
        ck_assert_ptr_nonnull(odd);
        memcpy(odd + 1, data, bytes);
        kdtr_bundle *copy = NULL;
        ck_assert_int_eq(kdtr_bundle_open_memory(odd + 1, bytes, &copy, &error), KDTR_OK);
        memset(odd, 0, bytes + 1);
        free(odd);
        check_tensors(copy);
        assert_same(bundle, copy, "the copy");
        ck_assert_int_eq(kdtr_bundle_write(copy, s.path, &error), KDTR_OK);
        ck_assert_int_ne(access(s.part, F_OK), 0);
        kdtr_bundle *again = open_good(s.path);
        assert_same(bundle, again, "the file");
        kdtr_bundle_close(again);
        kdtr_bundle_close(copy);
        kdtr_bundle_close(bundle);
    }
    scratch_close(&s);
}
END_TEST

START_TEST(what_is_no_file_is_refused) {
    static const char *const paths[] = {
        "", "tests/data/none.kdtr", "tests/data/tree-tiny.kdtr/x", "tests/data", ".", "/", "/proc"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        kdtr_error error = {0};
        kdtr_bundle *bundle = (kdtr_bundle *)&error;
        int32_t status = kdtr_bundle_open(paths[i], &bundle, &error);
        capi_refused(paths[i], status, &error, KDTR_IO, "path");
        ck_assert_ptr_null(bundle);
    }
    kdtr_error error = {0};
    kdtr_bundle *bundle = (kdtr_bundle *)&error;
    int32_t status = kdtr_bundle_open(NULL, &bundle, &error);
    capi_refused("no path", status, &error, KDTR_INVALID_ARGUMENT, "path");
    ck_assert_ptr_null(bundle);
    status = kdtr_bundle_open("tests/data/tree-tiny.kdtr", NULL, &error);
    capi_refused("no bundle", status, &error, KDTR_INVALID_ARGUMENT, "bundle");
}
END_TEST

START_TEST(bad_memory_is_refused) {
    kdtr_bundle *good = open_good("tests/data/tree-tiny.kdtr");
    size_t bytes = 0;
    const unsigned char *data = kdtr_bundle_data(good, &bytes);
    unsigned char *bad = malloc(bytes + 1);
    ck_assert_ptr_nonnull(bad);
    memcpy(bad, data, bytes);
    bad[bytes] = 0;
    const struct {
        size_t flip;
        size_t bytes;
        int32_t code;
        const char *field;
    } faults[] = {
        {bytes, 0, KDTR_BUNDLE_TRUNCATED, "preamble"},
        {bytes, 63, KDTR_BUNDLE_TRUNCATED, "preamble"},
        {bytes, bytes - 1, KDTR_BUNDLE_TRUNCATED, "file_bytes"},
        {bytes, bytes + 1, KDTR_BUNDLE_TRAILING, "file_bytes"},
        {0, bytes, KDTR_BUNDLE_MAGIC, "magic"},
        {8, bytes, KDTR_BUNDLE_VERSION, "version"},
        {bytes - 1, bytes, KDTR_BUNDLE_CHECKSUM, "checksum"},
    };
    kdtr_error error = {0};
    kdtr_bundle *bundle;
    for (size_t i = 0; i < COUNT(faults); i++) {
        bundle = good;
        bad[faults[i].flip] ^= 0x40;
        int32_t status = kdtr_bundle_open_memory(bad, faults[i].bytes, &bundle, &error);
        bad[faults[i].flip] ^= 0x40;
        capi_refused(faults[i].field, status, &error, faults[i].code, faults[i].field);
        ck_assert_ptr_null(bundle);
    }
    bundle = good;
    int32_t status = kdtr_bundle_open_memory(NULL, bytes, &bundle, &error);
    capi_refused("no data", status, &error, KDTR_INVALID_ARGUMENT, "data");
    ck_assert_ptr_null(bundle);
    status = kdtr_bundle_open_memory(data, bytes, NULL, &error);
    capi_refused("no bundle", status, &error, KDTR_INVALID_ARGUMENT, "bundle");
    free(bad);
    kdtr_bundle_close(good);
}
END_TEST

/** Asserts that a refused write left the old file, tree-tiny, and nothing else. */
static void assert_old_file(const struct scratch *s, const kdtr_bundle *old) {
    kdtr_bundle *kept = open_good(s->path);
    assert_same(old, kept, "the old file");
    kdtr_bundle_close(kept);
    ck_assert_msg(access(s->part, F_OK) != 0, "%s is left", s->part);
}

/** Writes with room for less than the file. */
static int32_t write_without_room(const kdtr_bundle *bundle, const char *path, kdtr_error *error) {
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int32_t status = kdtr_bundle_write(bundle, path, error);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    return status;
}

START_TEST(a_failed_write_changes_nothing) {
    struct scratch s;
    scratch_open(&s);
    kdtr_error error = {0};
    kdtr_bundle *old = open_good("tests/data/tree-tiny.kdtr");
    kdtr_bundle *new = open_good("tests/data/table-1.kdtr");
    ck_assert_int_eq(kdtr_bundle_write(old, s.path, &error), KDTR_OK);
    int32_t status = write_without_room(new, s.path, &error);
    capi_refused("no room", status, &error, KDTR_IO, "path");
    assert_old_file(&s, old);
    /* Somebody else's file of the temporary name is left alone. */
    ck_assert_int_eq(mkdir(s.part, 0700), 0);
    ck_assert_int_eq(kdtr_bundle_write(old, s.path, &error), KDTR_OK);
    ck_assert_int_eq(rmdir(s.part), 0);
    assert_old_file(&s, old);
    char inside[128];
    snprintf(inside, sizeof inside, "%s/x", s.path);
    status = kdtr_bundle_write(new, inside, &error);
    capi_refused("below a file", status, &error, KDTR_IO, "path");
    assert_old_file(&s, old);
    remove(s.path);
    ck_assert_int_eq(mkdir(s.path, 0700), 0);
    status = kdtr_bundle_write(new, s.path, &error);
    capi_refused("over a folder", status, &error, KDTR_IO, "path");
    ck_assert_int_ne(access(s.part, F_OK), 0);
    ck_assert_int_eq(rmdir(s.path), 0);
    status = kdtr_bundle_write(NULL, s.path, &error);
    capi_refused("no bundle", status, &error, KDTR_INVALID_ARGUMENT, "bundle");
    status = kdtr_bundle_write(new, NULL, &error);
    capi_refused("no path", status, &error, KDTR_INVALID_ARGUMENT, "path");
    kdtr_bundle_close(new);
    kdtr_bundle_close(old);
    scratch_close(&s);
}
END_TEST

START_TEST(bad_tensor_requests_are_refused) {
    kdtr_bundle *bundle = open_good("tests/data/tree-tiny.kdtr");
    int32_t count = kdtr_bundle_tensor_count(bundle);
    const uint32_t right = sizeof(kdtr_tensor);
    const struct {
        const kdtr_bundle *bundle;
        int32_t index;    /* used where there is no name */
        const char *name; /* or "index" */
        uint32_t size;
        int32_t code;
        const char *field;
    } bad[] = {
        {bundle, -1, "index", right, KDTR_INVALID_ARGUMENT, "index"},
        {bundle, count, "index", right, KDTR_INVALID_ARGUMENT, "index"},
        {bundle, INT32_MAX, "index", right, KDTR_INVALID_ARGUMENT, "index"},
        {bundle, 0, "index", 0, KDTR_STRUCT_SIZE, "struct_size"},
        {bundle, 0, "index", right + 8, KDTR_STRUCT_SIZE, "struct_size"},
        {NULL, 0, "index", right, KDTR_INVALID_ARGUMENT, "bundle"},
        {bundle, 0, NULL, right, KDTR_INVALID_ARGUMENT, "name"},
        {bundle, 0, "", right, KDTR_NOT_FOUND, "name"},
        {bundle, 0, "kv_latent", right, KDTR_NOT_FOUND, "name"},
        {bundle, 0, "scal", right, KDTR_NOT_FOUND, "name"},
        {bundle, 0, "scale", right - 8, KDTR_STRUCT_SIZE, "struct_size"},
        {NULL, 0, "scale", right, KDTR_INVALID_ARGUMENT, "bundle"},
    };
    kdtr_error error = {0};
    for (size_t i = 0; i < COUNT(bad); i++) {
        kdtr_tensor tensor;
        capi_fill(&tensor, sizeof tensor);
        tensor.struct_size = bad[i].size;
        int by_index = bad[i].name != NULL && strcmp(bad[i].name, "index") == 0;
        int32_t status = by_index ? kdtr_bundle_tensor(bad[i].bundle, bad[i].index, &tensor, &error)
                                  : kdtr_bundle_find(bad[i].bundle, bad[i].name, &tensor, &error);
        capi_refused(bad[i].field, status, &error, bad[i].code, bad[i].field);
        ck_assert(capi_untouched(&tensor.dtype, sizeof tensor - offsetof(kdtr_tensor, dtype)));
    }
    int32_t status = kdtr_bundle_tensor(bundle, 0, NULL, &error);
    capi_refused("no tensor", status, &error, KDTR_INVALID_ARGUMENT, "tensor");
    status = kdtr_bundle_find(bundle, "scale", NULL, &error);
    capi_refused("no tensor", status, &error, KDTR_INVALID_ARGUMENT, "tensor");
    kdtr_bundle_close(bundle);
}
END_TEST

START_TEST(bad_problem_requests_are_refused) {
    kdtr_bundle *bundle = open_good("tests/data/tree-tiny.kdtr");
    kdtr_error error = {0};
    kdtr_problem problem;
    capi_fill(&problem, sizeof problem);
    problem.struct_size = sizeof problem - 8;
    int32_t status = kdtr_bundle_problem(bundle, &problem, &error);
    capi_refused("struct_size", status, &error, KDTR_STRUCT_SIZE, "struct_size");
    problem.struct_size = sizeof problem;
    status = kdtr_bundle_problem(NULL, &problem, &error);
    capi_refused("no bundle", status, &error, KDTR_INVALID_ARGUMENT, "bundle");
    const size_t first = offsetof(kdtr_problem, is_module);
    ck_assert(capi_untouched((char *)&problem + first, sizeof problem - first));
    status = kdtr_bundle_problem(bundle, NULL, &error);
    capi_refused("no problem", status, &error, KDTR_INVALID_ARGUMENT, "problem");
    ck_assert_int_eq(kdtr_bundle_problem(bundle, &problem, &error), KDTR_OK);
    ck_assert_uint_eq(problem.config.struct_size, sizeof problem.config);
    ck_assert_uint_eq(problem.args.struct_size, sizeof problem.args);
    ck_assert(problem.is_module == 0 && problem.args.o == NULL && problem.args.lse == NULL);
    ck_assert(problem.o.data != NULL && problem.module_output.data == NULL);
    kdtr_bundle_close(bundle);
}
END_TEST

START_TEST(functions_take_null) {
    size_t bytes = 1;
    ck_assert_str_eq(kdtr_bundle_name(NULL), "");
    ck_assert_int_eq(kdtr_bundle_tensor_count(NULL), 0);
    ck_assert_ptr_null(kdtr_bundle_data(NULL, &bytes));
    ck_assert_uint_eq(bytes, 0);
    ck_assert_ptr_null(kdtr_bundle_data(NULL, NULL));
    kdtr_bundle_close(NULL);
}
END_TEST

static Suite *bundle_suite(void) {
    Suite *suite = suite_create("capi_bundle");
    TCase *good = tcase_create("capi bundles");
    tcase_set_tags(good, TEST_PLACE);
    suite_add_tcase(suite, good);
    tcase_add_test(good, committed_bundles_round_trip);
    tcase_add_test(good, functions_take_null);
    TCase *bad = test_tcase(suite, "P0-2", "P0-2 bad files and requests");
    tcase_add_test(bad, what_is_no_file_is_refused);
    tcase_add_test(bad, bad_memory_is_refused);
    tcase_add_test(bad, a_failed_write_changes_nothing);
    tcase_add_test(bad, bad_tensor_requests_are_refused);
    tcase_add_test(bad, bad_problem_requests_are_refused);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {bundle_suite};
    return check_main(makers, 1);
}
