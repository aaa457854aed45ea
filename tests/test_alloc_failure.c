// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Allocation failure at every allocation of ref/ and capi/ (gate P0-2). The linker wraps malloc and
 * its kin: the n-th allocation of a call fails, for n = 1, 2, ... until the call succeeds. Each
 * failure prints where it was, as `SITE address`: tests/scripts/alloc_sites.sh compares that with
 * the sites in the sources.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound_flash.h"
#include "cases.h"
#include "check_main.h"
#include "failing_heap.h"
#include "kdtr_bundle.h"

/** What the calls under test work on; made before the allocations fail. */
struct world {
    kdtr_bundle *bundle;
    kdtr_context *context;
    kdtr_plan *plan;
    kdtr_problem problem;
    double o_bound[6 * 2 * 32];
    double lse_bound[6 * 2];
    float o[6 * 2 * 32];
    void *workspace;
    void *result; /* what the call made; NULL on failure */
    size_t result_bytes;
    const char *name;
};

static struct world w;

static void make_world(void) {
    kdtr_error error = {0};
    memset(&w, 0, sizeof w);
    ck_assert_int_eq(kdtr_case_generate("tree-tiny", &w.bundle, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_context_create_cpu(&w.context, &error), KDTR_OK);
    w.problem.struct_size = sizeof w.problem;
    ck_assert_int_eq(kdtr_bundle_problem(w.bundle, &w.problem, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_plan_create(w.context, &w.problem.config, &w.plan, &error), KDTR_OK);
    size_t bytes = kdtr_plan_workspace_bytes(w.plan);
    ck_assert_int_eq(kdtr_memory_alloc(w.context, bytes, &w.workspace, &error), KDTR_OK);
    ck_assert_uint_eq(w.problem.o.bytes, sizeof w.o);
    w.problem.args.o = w.o;
}

static void free_world(void) {
    kdtr_memory_free(w.context, w.workspace);
    kdtr_plan_destroy(w.plan);
    kdtr_context_destroy(w.context);
    kdtr_bundle_close(w.bundle);
}

/* The calls. Each sets w.result to what it made and gives the status. */

static int32_t create_context(kdtr_error *error) {
    kdtr_context *context = (void *)&w; /* must be overwritten */
    int32_t status = kdtr_context_create_cpu(&context, error);
    w.result = context;
    return status;
}

static int32_t create_plan(kdtr_error *error) {
    kdtr_plan *plan = (void *)&w;
    int32_t status = kdtr_plan_create(w.context, &w.problem.config, &plan, error);
    w.result = plan;
    return status;
}

static int32_t alloc_memory(kdtr_error *error) {
    w.result = &w;
    return kdtr_memory_alloc(w.context, 1000, &w.result, error);
}

static int32_t open_file(kdtr_error *error) {
    kdtr_bundle *bundle = (void *)&w;
    int32_t status = kdtr_bundle_open("tests/data/tree-tiny.kdtr", &bundle, error);
    w.result = bundle;
    return status;
}

static int32_t open_memory(kdtr_error *error) {
    kdtr_bundle *bundle = (void *)&w;
    size_t bytes;
    const void *data = kdtr_bundle_data(w.bundle, &bytes);
    int32_t status = kdtr_bundle_open_memory(data, bytes, &bundle, error);
    w.result = bundle;
    return status;
}

static int32_t generate(kdtr_error *error) {
    kdtr_bundle *bundle = (void *)&w;
    int32_t status = kdtr_case_generate(w.name, &bundle, error);
    w.result = bundle;
    return status;
}

/** ref/ has an error record of its own; the fields are the same. */
static void copy_error(kdtr_error *error, const struct ref_error *cause) {
    if (error != NULL) {
        error->code = cause->code;
        memcpy(error->field, cause->field, sizeof error->field);
        memcpy(error->text, cause->text, sizeof error->text);
    }
}

static int32_t generate_ref(kdtr_error *error) {
    struct ref_error cause = {-1, "?", ""};
    w.result = &w;
    int32_t status = ref_case_generate(w.name, &w.result, &w.result_bytes, &cause);
    copy_error(error, &cause);
    return status;
}

static int32_t bound_abi(kdtr_error *error) {
    w.result = NULL;
    return kdtr_reference_bound(w.plan, &w.problem.args, NULL, w.o_bound, w.lse_bound, error);
}

static int32_t bound_flash(kdtr_error *error) {
    static const int32_t rows[2] = {0, 1};
    static const int32_t length = 0;
    const float number = 1.0f;
    const struct flash_bound_limits limits = {1, 1};
    const struct ref_attention call = {.batch = 1,
                                       .num_heads = 1,
                                       .latent_dim = 1,
                                       .max_nodes = 1,
                                       .addressing = REF_ADDRESSING_TABLE,
                                       .page_size = 1,
                                       .q_dtype = REF_F32,
                                       .kv_dtype = REF_F32,
                                       .length_dtype = REF_I32,
                                       .slot_dtype = REF_I32,
                                       .row_capacity = 1,
                                       .scale = 1.0f,
                                       .q_latent = &number,
                                       .kv_latent = &number,
                                       .row_table = &length,
                                       .prefix_len = &length,
                                       .node_indptr = rows};
    struct ref_error cause = {.text = "no memory"};
    int32_t status = attention_bound_flash_f64(&call, &limits, NULL, 1, w.o_bound, w.lse_bound);
    w.result = NULL;
    cause.code = status;
    copy_error(error, &cause);
    return status;
}

static int32_t run(kdtr_error *error) {
    return kdtr_run(w.plan, &w.problem.args, w.workspace, kdtr_plan_workspace_bytes(w.plan), NULL,
                    error);
}

static int32_t check(kdtr_error *error) {
    return kdtr_check(w.plan, &w.problem.args, error);
}

static int32_t bind(kdtr_error *error) {
    kdtr_problem problem = {.struct_size = sizeof problem};
    return kdtr_bundle_problem(w.bundle, &problem, error);
}

static void release_context(void) {
    kdtr_context_destroy(w.result);
}

static void release_plan(void) {
    kdtr_plan_destroy(w.result);
}

static void release_memory(void) {
    kdtr_memory_free(w.context, w.result);
}

static void release_bundle(void) {
    kdtr_bundle_close(w.result);
}

static void release_bytes(void) {
    free(w.result);
}

static void release_nothing(void) {}

/** A call that allocates, and how its result is released. */
struct subject {
    const char *what;
    int32_t (*call)(kdtr_error *error);
    void (*release)(void);
    const char *name; /* of a case */
};

static const struct subject subjects[] = {
    {"kdtr_context_create_cpu", create_context, release_context, NULL},
    {"kdtr_plan_create", create_plan, release_plan, NULL},
    {"kdtr_memory_alloc", alloc_memory, release_memory, NULL},
    {"kdtr_bundle_open", open_file, release_bundle, NULL},
    {"kdtr_bundle_open_memory", open_memory, release_bundle, NULL},
    {"kdtr_case_generate", generate, release_bundle, "tree-tiny"},
    {"kdtr_case_generate, table", generate, release_bundle, "table-1"},
    {"ref_case_generate", generate_ref, release_bytes, "tree-tiny"},
    {"ref_case_generate, masks", generate_ref, release_bytes, "masked-first"},
    {"ref_case_generate, steps", generate_ref, release_bytes, "step-batch"},
    {"kdtr_reference_bound", bound_abi, release_nothing, NULL},
    {"attention_bound_flash_f64", bound_flash, release_nothing, NULL},
};

static const struct subject never_allocate[] = {
    {"kdtr_run", run, release_nothing, NULL},
    {"kdtr_check", check, release_nothing, NULL},
    {"kdtr_bundle_problem", bind, release_nothing, NULL},
};

/** One call with allocations `from` to `to` failing. Gives whether one failed. */
static int attempt(const struct subject *s, long from, long to, int with_error, int32_t *status,
                   kdtr_error *error) {
    memset(&failing_heap, 0, sizeof failing_heap);
    memset(error, 0, sizeof *error);
    failing_heap.fail_from = from;
    failing_heap.fail_to = to;
    w.name = s->name;
    w.result = NULL;
    failing_heap.armed = 1;
    *status = s->call(with_error ? error : NULL);
    failing_heap.armed = 0;
    return failing_heap.failed > 0;
}

/** What must hold after a call in which an allocation failed. */
static void check_failure(const struct subject *s, long n, int32_t status, int with_error,
                          const kdtr_error *error) {
    ck_assert_msg(status == KDTR_OUT_OF_MEMORY, "%s, allocation %ld: status %d", s->what, n,
                  status);
    ck_assert_msg(w.result == NULL, "%s, allocation %ld: an output is not NULL", s->what, n);
    ck_assert_msg(failing_heap.live == 0, "%s, allocation %ld: %d leaked", s->what, n,
                  failing_heap.live);
    if (with_error) {
        ck_assert_msg(error->code == status && error->text[0] != '\0' &&
                          strchr(error->text, '\n') == NULL,
                      "%s, allocation %ld: the error is not filled", s->what, n);
    }
}

/** Fails each allocation of a call, alone and with all that follow. Gives their number. */
static long fail_each(const struct subject *s) {
    for (long n = 1;; n++) {
        for (int way = 0; way < 4; way++) {
            int32_t status;
            kdtr_error error;
            int with_error = way % 2 == 0;
            int failed = attempt(s, n, way < 2 ? n : LONG_MAX, with_error, &status, &error);
            if (failed) {
                check_failure(s, n, status, with_error, &error);
                continue;
            }
            ck_assert_msg(status == KDTR_OK, "%s: status %d: %s", s->what, status, error.text);
            s->release();
            ck_assert_msg(failing_heap.live == 0, "%s: %d leaked", s->what, failing_heap.live);
            return n - 1;
        }
    }
}

START_TEST(every_allocation_may_fail) {
    make_world();
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        long count = fail_each(&subjects[i]);
        printf("%s: %ld allocations\n", subjects[i].what, count);
        ck_assert_msg(count > 0, "%s allocates nothing", subjects[i].what);
    }
    free_world();
}
END_TEST

START_TEST(runs_and_checks_allocate_nothing) {
    make_world();
    for (size_t i = 0; i < sizeof never_allocate / sizeof never_allocate[0]; i++) {
        ck_assert_msg(fail_each(&never_allocate[i]) == 0, "%s allocates", never_allocate[i].what);
    }
    ck_assert(memcmp(w.o, w.problem.o.data, sizeof w.o) == 0);
    free_world();
}
END_TEST

static char target[64];    /* the file that is written */
static char temporary[80]; /* what it is written to before it is renamed */

static int exists(const char *path) {
    return access(path, F_OK) == 0;
}

static size_t read_target(unsigned char *data, size_t most) {
    FILE *stream = fopen(target, "rb");
    ck_assert_ptr_nonnull(stream);
    size_t bytes = fread(data, 1, most, stream);
    fclose(stream);
    return bytes;
}

static int32_t write_target(kdtr_error *error) {
    return kdtr_bundle_write(w.bundle, target, error);
}

START_TEST(a_failed_write_leaves_the_old_file) {
    static const struct subject writer = {"kdtr_bundle_write", write_target, release_nothing, NULL};
    static unsigned char data[65536];
    char folder[] = "/tmp/kdtr-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(target, sizeof target, "%s/case.kdtr", folder);
    snprintf(temporary, sizeof temporary, "%s.part", target);
    make_world();
    for (int old = 0; old < 2; old++) {
        remove(target);
        if (old) {
            FILE *stream = fopen(target, "wb");
            ck_assert_ptr_nonnull(stream);
            ck_assert(fputs("old", stream) >= 0 && fclose(stream) == 0);
        }
        int32_t status;
        kdtr_error error;
        long n = 1;
        for (; attempt(&writer, n, n, 1, &status, &error); n++) {
            check_failure(&writer, n, status, 1, &error);
            ck_assert_int_eq(exists(target), old);
            ck_assert(!exists(temporary));
            ck_assert(!old || (read_target(data, sizeof data) == 3 && memcmp(data, "old", 3) == 0));
        }
        ck_assert_int_eq(status, KDTR_OK);
        ck_assert_int_gt(n, 1);
        size_t bytes;
        const void *file = kdtr_bundle_data(w.bundle, &bytes);
        ck_assert_uint_eq(read_target(data, sizeof data), bytes);
        ck_assert(memcmp(data, file, bytes) == 0);
        ck_assert(!exists(temporary));
    }
    remove(target);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else is in it */
    free_world();
}
END_TEST

START_TEST(threads_that_cannot_be_had_change_no_bit) {
    static const uint32_t refused[] = {0, 1, 2, 4, 5, 0x15, 0x1f, UINT32_MAX};
    make_world();
    kdtr_error error = {0};
    kdtr_plan *plan;
    w.problem.config.num_threads = 6; /* one a row */
    ck_assert_int_eq(kdtr_plan_create(w.context, &w.problem.config, &plan, &error), KDTR_OK);
    size_t bytes = kdtr_plan_workspace_bytes(plan);
    void *workspace;
    ck_assert_int_eq(kdtr_memory_alloc(w.context, bytes, &workspace, &error), KDTR_OK);
    float lse[6 * 2];
    ck_assert_uint_eq(w.problem.lse.bytes, sizeof lse);
    w.problem.args.lse = lse;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        memset(w.o, 0xff, sizeof w.o);
        memset(lse, 0xff, sizeof lse);
        asked_threads = 0;
        refused_threads = refused[i];
        int32_t status = kdtr_run(plan, &w.problem.args, workspace, bytes, NULL, &error);
        refused_threads = 0;
        ck_assert_int_eq(status, KDTR_OK);
        ck_assert_int_eq(asked_threads, 5);
        ck_assert_msg(memcmp(w.o, w.problem.o.data, sizeof w.o) == 0 &&
                          memcmp(lse, w.problem.lse.data, sizeof lse) == 0,
                      "other bits without threads %x", (unsigned int)refused[i]);
    }
    kdtr_memory_free(w.context, workspace);
    kdtr_plan_destroy(plan);
    free_world();
}
END_TEST

static Suite *alloc_failure_suite(void) {
    Suite *suite = suite_create("alloc_failure");
    TCase *heap = test_tcase(suite, "P0-2", "P0-2 allocation failure");
    tcase_add_test(heap, every_allocation_may_fail);
    tcase_add_test(heap, runs_and_checks_allocate_nothing);
    tcase_add_test(heap, a_failed_write_leaves_the_old_file);
    TCase *threads = test_tcase(suite, "P0-2", "P0-2 thread failure");
    tcase_add_test(threads, threads_that_cannot_be_had_change_no_bit);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {alloc_failure_suite};
    return check_main(makers, 1);
}
