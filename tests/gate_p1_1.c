// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-1: every implementation of class BOUND stays within the bound of the flash kernel. One
 * source for three programs: with the model of tests/flash_model.c, and, linked with a CUDA library
 * that has the flash kernel, emulated and on a GPU.
 */
#include <stdio.h>
#include <string.h>

#include "case_table.h"
#include "check_main.h"
#include "edge_cases.h"
#include "edge_checks.h"
#include "named_problem.h"
#ifdef KDTR_TEST_EMULATED
#include "flash_probe.h"
#include "simt/simt_runtime.h"
#endif

/** Largest work, in tokens times rows times columns, of a named case's truth; the CPU's model is
 * right on the smaller ones too. */
#ifdef KDTR_TEST_CUDA
#define HOST_WORK 400000000
#else
#define HOST_WORK 100000000
#endif

/** Multiprocessors of a card on which a request has many chunks. */
#define MANY 188

/** Emulates a card: with few multiprocessors a block has many items one after another, with many a
 * request has many chunks. 0: another one for each case. */
static void take_card(int sm_count) {
#ifdef KDTR_TEST_EMULATED
    static const int sm_counts[] = {188, 1, 132, 3};
    static uint64_t cards = 0;
    simt_set_sm_count(sm_count > 0 ? sm_count : sm_counts[(test_seed() + cards++) % 4]);
#else
    (void)sm_count;
#endif
}

/** On MANY multiprocessors the combination of a problem must take pieces of this width, and come to
 * its third batch of loads, or with width 1 its second. A GPU's own number is not asked. */
static void check_pieces(const struct test_problem *problem, int32_t width) {
#ifdef KDTR_TEST_EMULATED
    const struct flash_split split = {.blocks = MANY, .expected_batch = 1};
    struct flash_layout layout;
    struct flash_probe_shape shape;
    struct ref_row row;
    ck_assert_int_eq(flash_workspace_layout(&problem->call, &split, &layout), REF_OK);
    flash_probe_combine(flash_wave_end(&layout, 0), &shape);
    struct flash_cut cut = flash_cut_request(&problem->call, &split, 0, &row);
    ck_assert_int_eq(shape.width, width);
    ck_assert_int_gt(cut.chunks, (width == 1 ? 1 : 2) * shape.chunks);
#else
    (void)problem;
    (void)width;
#endif
}

/** Whether an implementation runs a problem. */
static int runs_it(const struct test_implementation *implementation,
                   const struct test_problem *problem) {
    return test_takes(implementation, &problem->call) &&
           test_affordable(implementation, &problem->call);
}

/** Runs a problem with every implementation that takes it, on a card for take_card(). Returns how
 * many ran. */
static int check_problem(const struct test_problem *problem, int32_t trivial, int sm_count) {
    struct harness_expected expected;
    int runs = 0;
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        runs += runs_it(test_implementation_at(k), problem);
    }
    if (runs == 0) {
        printf("P1-1 %-42s not run\n", problem->spec.name);
        return 0;
    }
    runs = 0;
    take_card(sm_count);
    harness_expect_class(TEST_CLASS_BOUND, problem, &expected);
    expected.trivial = trivial;
    for (int32_t k = 0; k < test_implementation_count(); k++) {
        const struct test_implementation *implementation = test_implementation_at(k);
        struct test_outputs outputs;
        struct harness_report report;
        if (!test_takes(implementation, &problem->call) || !edge_run(k, problem, &outputs)) {
            printf("P1-1 %-42s %s: not run\n", problem->spec.name, implementation->name);
            continue;
        }
        ck_assert_msg(harness_check(problem, &expected, &outputs, &report) == 0, "%s: %s: %s",
                      implementation->name, problem->spec.name, report.text);
        printf("P1-1 %-42s %s: o %.3f of its bound, lse %.3f\n", problem->spec.name,
               implementation->name, report.o.worst_ratio, report.lse.worst_ratio);
        test_outputs_free(&outputs);
        runs++;
    }
    harness_expected_free(&expected);
    return runs;
}

static int check_record(const struct test_case *record) {
    struct test_problem problem;
    edge_make(record, &problem);
    int runs = check_problem(&problem, TEST_TRIVIAL_IS_ERROR, 0);
    test_problem_free(&problem);
    return runs;
}

START_TEST(within_bound_on_the_table) {
    int runs = 0;
    for (int32_t i = 0; i < case_table_count(); i++) {
        if (!test_scale_is_small() || !case_is_large(case_table_at(i))) {
            runs += check_record(case_table_at(i));
        }
    }
    ck_assert_int_gt(runs, 0);
}
END_TEST

START_TEST(within_bound_on_all_kinds_and_tile_edges) {
    static const int64_t lengths[] = {1, 15, 16, 17, 63, 64, 65, 257};
    int runs = 0;
    for (int32_t kind = 0; kind < TEST_KIND_COUNT; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            char name[64];
            if (test_scale_is_small() && i % 4 != 0) {
                continue;
            }
            snprintf(name, sizeof name, "kind %d, N = %lld", kind, (long long)lengths[i]);
            /* A second request keeps the case telling where the first is NaN or empty. */
            runs += check_record(&(struct test_case){.name = name,
                                                     .batch = 2,
                                                     .prefix = {lengths[i], lengths[i]},
                                                     .nodes = {5, 2},
                                                     .kind = kind,
                                                     .window = 3,
                                                     .mask_mode = REF_MASK_PARENTS});
        }
    }
    ck_assert_int_gt(runs, 0);
}
END_TEST

START_TEST(within_bound_wherever_the_mask_begins) {
    /* Tiles of 16 keys meet words of 32 bits at every place: the nodes begin behind N keys. The
       last row tile has one row more than an m16 tile. */
    int runs = 0;
    for (int64_t prefix = 16; prefix < 32; prefix++) {
        char name[64];
        snprintf(name, sizeof name, "random mask, N = %lld", (long long)prefix);
        runs += check_record(&(struct test_case){.name = name,
                                                 .prefix = {prefix},
                                                 .nodes = {81},
                                                 .heads = 1,
                                                 .mask_mode = REF_MASK_PACKED,
                                                 .pattern = TEST_PATTERN_RANDOM});
    }
    ck_assert_int_gt(runs, 0);
}
END_TEST

START_TEST(within_bound_on_named_cases) {
    int runs = 0;
    for (int32_t i = 0; i < kdtr_case_count(); i++) {
        const char *name = kdtr_case_name(i);
        struct test_problem problem;
        struct test_named named;
        ck_assert_msg(test_named_open(name, &named, &problem) == 0, "%s: %s", name, named.text);
        const struct ref_attention *a = &problem.call;
        int64_t work = (a->max_prefix_len + a->max_nodes) * a->row_capacity * a->num_heads *
                       (a->latent_dim + a->rope_dim);
        if (work <= HOST_WORK) {
            runs += check_problem(&problem, TEST_TRIVIAL_IS_FINE, 0);
        } else {
            printf("P1-1 %-42s not run: its truth takes too long\n", name);
        }
        test_problem_free(&problem);
        test_named_close(&named);
    }
    ck_assert_int_gt(runs, 0);
}
END_TEST

START_TEST(within_bound_with_many_chunks) {
    /* One row with keys. Spare rows make the wave as large as the width of the pieces asks for.
       Where all scores are equal, every chunk counts. */
    static const struct {
        int32_t width;
        int32_t spare_rows;
        int64_t prefix;
    } pieces[] = {{1, 0, 3500}, {2, 127, 4300}, {4, 255, 1160}};
    static const int32_t kinds[] = {TEST_EQUAL_SCORES, TEST_BENIGN};
    for (size_t i = 0; i < 6; i++) {
        char name[64];
        struct test_problem problem;
        int32_t width = pieces[i % 3].width;
        snprintf(name, sizeof name, "many chunks, pieces of width %d, kind %d", width,
                 kinds[i / 3]);
        edge_make(&(struct test_case){.name = name,
                                      .prefix = {pieces[i % 3].prefix},
                                      .nodes = {1},
                                      .heads = 1,
                                      .spare_rows = pieces[i % 3].spare_rows,
                                      .kind = kinds[i / 3],
                                      .mask_mode = REF_MASK_CHAIN},
                  &problem);
        check_pieces(&problem, width);
        ck_assert_int_gt(check_problem(&problem, TEST_TRIVIAL_IS_ERROR, MANY), 0);
        test_problem_free(&problem);
    }
}
END_TEST

/** A tensor of queries moved to memory of exactly its size: so many elements behind its beginning,
 * with so many more in its row stride and its head stride. */
static const void *move_queries(struct test_problem *problem, const void *queries, int32_t width,
                                const int32_t more[3], int64_t stride[2]) {
    const struct ref_attention *a = &problem->call;
    const int64_t wide[] = {stride[0] + 8 * (int64_t)a->num_heads + more[1], stride[1] + more[2]};
    int64_t rows = a->row_capacity;
    int64_t size = more[0] + (rows - 1) * wide[0] + (a->num_heads - 1) * wide[1] + width;
    uint16_t *moved = (uint16_t *)test_problem_alloc(problem, size, 2) + more[0];
    for (int64_t i = 0; i < rows * a->num_heads; i++) {
        int64_t row = i / a->num_heads;
        int64_t head = i % a->num_heads;
        memcpy(moved + row * wide[0] + head * wide[1],
               (const uint16_t *)queries + row * stride[0] + head * stride[1], (size_t)width * 2);
    }
    memcpy(stride, wide, sizeof wide);
    return moved;
}

/** On MANY multiprocessors a row tile of a problem must have so many parts. */
static void check_parts(const struct test_problem *problem, int32_t parts) {
#ifdef KDTR_TEST_EMULATED
    const struct flash_split split = {.blocks = MANY,
                                      .expected_batch = problem->spec.expected_batch};
    struct ref_row row;
    ck_assert_int_eq(flash_cut_request(&problem->call, &split, 0, &row).parts, parts);
#else
    (void)problem;
    (void)parts;
#endif
}

START_TEST(within_bound_of_queries_at_any_4_bytes) {
    /* Row tiles of four m16 tiles, which come to one block or, expected alone, to four; and one of
       six rows. */
    static const struct {
        int32_t heads, nodes, expected_batch, parts;
    } shapes[] = {{8, 8, 200, 1}, {8, 8, 1, 4}, {64, 2, 200, 1}, {64, 2, 1, 4}, {2, 3, 1, 1}};
    /* Of the latent, then of the rope query: see move_queries. One number alone is enough. */
    static const int32_t more[][6] = {{2, 2, 2, 6, 6, 6}, {2, 0, 0, 0, 0, 0}, {0, 4, 0, 0, 0, 0},
                                      {0, 0, 6, 0, 0, 0}, {0, 0, 0, 4, 0, 0}, {0, 0, 0, 0, 6, 0},
                                      {0, 0, 0, 0, 0, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0] * 7; i++) {
        char name[64];
        struct test_problem problem;
        const int32_t *m = more[i % 7];
        if (test_scale_is_small() && i % 7 > 0 && shapes[i / 7].heads > 2) {
            continue;
        }
        snprintf(name, sizeof name, "queries H %d, Q %d, more %d %d %d, %d %d %d",
                 shapes[i / 7].heads, shapes[i / 7].nodes, m[0], m[1], m[2], m[3], m[4], m[5]);
        edge_make(&(struct test_case){.name = name,
                                      .prefix = {21},
                                      .nodes = {shapes[i / 7].nodes},
                                      .heads = shapes[i / 7].heads,
                                      .expected_batch = shapes[i / 7].expected_batch,
                                      .mask_mode = REF_MASK_PARENTS},
                  &problem);
        struct ref_attention *a = &problem.call;
        check_parts(&problem, shapes[i / 7].parts);
        a->q_latent = move_queries(&problem, a->q_latent, a->latent_dim, m, a->q_latent_stride);
        a->q_rope = move_queries(&problem, a->q_rope, a->rope_dim, m + 3, a->q_rope_stride);
        ck_assert_int_gt(check_problem(&problem, TEST_TRIVIAL_IS_ERROR, MANY), 0);
        test_problem_free(&problem);
    }
}
END_TEST

/** @return the suite */
static Suite *gate_p1_1_suite(void) {
    Suite *suite = suite_create("P1-1 within the bound of the flash kernel");
    TCase *tcase = test_tcase(suite, "P1-1", "P1-1 cases within bound");
    tcase_add_test(tcase, within_bound_on_the_table);
    tcase_add_test(tcase, within_bound_on_all_kinds_and_tile_edges);
    tcase_add_test(tcase, within_bound_wherever_the_mask_begins);
    tcase_add_test(tcase, within_bound_on_named_cases);
    tcase_add_test(test_tcase(suite, "P1-1", "P1-1 many chunks"), within_bound_with_many_chunks);
    tcase_add_test(test_tcase(suite, "P1-1", "P1-1 queries at any 4 bytes"),
                   within_bound_of_queries_at_any_4_bytes);
    edge_cases_poison(test_tcase(suite, "P1-1", "P1-1 poison and sizes"));
    edge_cases_batches(test_tcase(suite, "P1-1", "P1-1 batches and limits"));
    return suite;
}

int main(void) {
    take_card(0);
    return edge_main(gate_p1_1_suite);
}
