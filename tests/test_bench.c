// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Host code of `kdtr bench`: points, limits, quartiles, floors, the float64 check.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "gpu_schedule.h"
#include "gpu_sets.h"
#include "gpu_statistics.h"
#include "gpu_truth.h"
#include "measure_value.h"
#include "test_bench.h"

/** Every set. */
static const struct bench_selection everything = {
    .implementation = -1, .layout = -1, .mask_mode = -1};

START_TEST(points_parse) {
    struct bench_point p = {0, 0, 0, 0};
    ck_assert_int_eq(bench_parse_point("16,128,1,32768", &p), 0);
    ck_assert(p.batch == 16 && p.heads == 128 && p.nodes == 1 && p.prefix == 32768);
    static const char *const bad[] = {"",          "1,8,8",      "1,8,8,",          "1,8,8,5x",
                                      "0,8,8,5",   "1,0,8,5",    "1,8,0,5",         "1,8,8,-1",
                                      "1,8,8,5,6", "1,1025,8,5", "65535,8,8,40000", "1 8 8 5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(bench_parse_point(bad[i], &p) != 0, "%s", bad[i]);
    }
    ck_assert_int_eq(p.batch, 16);
}
END_TEST

/** Reads limits from text. */
static int32_t read_text(const char *text, struct bench_limit *limits) {
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    ck_assert(fputs(text, file) >= 0);
    rewind(file);
    int32_t count = bench_read_limits(file, limits);
    fclose(file);
    return count;
}

START_TEST(limits_read) {
    struct bench_limit limits[BENCH_MAX_LIMITS];
    ck_assert_int_eq(
        read_text("# all\n\n  \n1 8 1 200000 88 68\n 1 8 8 4096 17 11.5  # b\n", limits), 2);
    ck_assert(limits[0].point.prefix == 200000 && limits[0].at_most_us == 88.0);
    ck_assert(limits[1].point.nodes == 8 && limits[1].aim_us == 11.5);
    ck_assert_int_eq(read_text("", limits), 0);
    static const char *const bad[] = {"1 8 1 200000 88\n",
                                      "1 8 1 200000 88 68 9\n",
                                      "1 8 1 200000 0 68\n",
                                      "1 8 1 200000 nan 68\n",
                                      "x\n",
                                      "1 8 1 5 2 1\n1 8 1 5 3 1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(read_text(bad[i], limits) == -1, "%s", bad[i]);
    }
}
END_TEST

START_TEST(limits_too_many) {
    struct bench_limit limits[BENCH_MAX_LIMITS];
    char text[(BENCH_MAX_LIMITS + 1) * 16] = "";
    size_t length = 0;
    for (int32_t i = 0; i < BENCH_MAX_LIMITS; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "1 8 1 %d 2 1\n", i + 1);
    }
    ck_assert_int_eq(read_text(text, limits), BENCH_MAX_LIMITS);
    snprintf(text + length, sizeof text - length, "1 8 2 1 2 1\n");
    ck_assert_int_eq(read_text(text, limits), -1);
}
END_TEST

/** The committed limits are those of the table: each of its points with random slots has one. */
START_TEST(limits_committed) {
    struct bench_limit limits[BENCH_MAX_LIMITS];
    struct bench_row rows[BENCH_MAX_ROWS];
    FILE *file = fopen("bench/limits.txt", "r");
    ck_assert_ptr_nonnull(file);
    int32_t limit_count = bench_read_limits(file, limits);
    fclose(file);
    ck_assert_int_eq(limit_count, 13);
    int32_t count = bench_list_rows(&everything, rows);
    int32_t found = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct bench_limit *limit = bench_find_limit(limits, limit_count, &rows[i]);
        if (limit != NULL) {
            ck_assert(limit->at_most_us > limit->aim_us);
            ck_assert_int_eq(rows[i].layout, BENCH_RANDOM);
            ck_assert_int_eq(rows[i].implementation, KDTR_IMPLEMENTATION_FLASH);
            found += rows[i].set == BENCH_TABLE && rows[i].mask_mode == KDTR_MASK_PACKED;
        }
    }
    ck_assert_int_eq(found, 13);
}
END_TEST

START_TEST(statistics_quartiles) {
    double odd[] = {5.0, 1.0, 4.0, 2.0, 3.0};
    struct bench_summary s = bench_summarize(odd, 5);
    ck_assert(s.median == 3.0 && s.p25 == 2.0 && s.p75 == 4.0 && s.count == 5);
    double even[] = {4.0, 1.0, 3.0, 2.0};
    s = bench_summarize(even, 4);
    ck_assert(s.median == 2.5 && s.p25 == 1.75 && s.p75 == 3.25);
    double one[] = {7.0};
    s = bench_summarize(one, 1);
    ck_assert(s.median == 7.0 && s.p25 == 7.0 && s.p75 == 7.0);
}
END_TEST

START_TEST(statistics_interpolate) {
    const double x[] = {1.0, 4.0, 16.0};
    const double y[] = {10.0, 20.0, 60.0};
    ck_assert(bench_interpolate(x, y, 3, 0.5) == 10.0);
    ck_assert(bench_interpolate(x, y, 3, 1.0) == 10.0);
    ck_assert(bench_interpolate(x, y, 3, 4.0) == 20.0);
    ck_assert(bench_interpolate(x, y, 3, 100.0) == 60.0);
    double middle = bench_interpolate(x, y, 3, 2.0);
    ck_assert(middle > 14.5 && middle < 15.5);
    middle = bench_interpolate(x, y, 3, 8.0);
    ck_assert(middle > 39.5 && middle < 40.5);
    ck_assert(bench_interpolate(x, y, 1, 3.0) == 10.0);
}
END_TEST

START_TEST(statistics_floor) {
    struct bench_ceilings c;
    memset(&c, 0, sizeof c);
    struct bench_row row = {.point = {2, 8, 1, 999}, .stride = BENCH_ROW_ELEMENTS};
    ck_assert(bench_floor_us(&row, &c) == 0.0);
    for (int i = 0; i < BENCH_GATHER_SIZES; i++) {
        c.gather_rows[i] = 1000.0 * (i + 1);
        c.gather_random_gbps[i] = 1000.0;
        c.gather_contiguous_gbps[i] = 2000.0;
    }
    /* 2,000 rows of 1,152 bytes at a byte a picosecond. */
    double us = bench_floor_us(&row, &c);
    ck_assert(us > 2.30 && us < 2.31);
    row.layout = BENCH_CONTIGUOUS;
    us = bench_floor_us(&row, &c);
    ck_assert(us > 1.15 && us < 1.16);
    /* 8 query rows count as 16: 2 * 2 * 16 * 1,000 * 1,088 operations. */
    c.mma_tflops = 1.0;
    us = bench_floor_us(&row, &c);
    ck_assert(us > 69.63 && us < 69.64);
    row.point.nodes = 2;
    row.point.prefix = 998;
    us = bench_floor_us(&row, &c);
    ck_assert(us > 69.63 && us < 69.64);
    row.point.nodes = 3;
    row.point.prefix = 997;
    us = bench_floor_us(&row, &c);
    ck_assert(us > 139.26 && us < 139.27);
}
END_TEST

START_TEST(schedule_of_a_row) {
    struct bench_row row = {
        .point = {1, 8, 8, 200000}, .mask_mode = KDTR_MASK_PACKED, .stride = BENCH_ROW_ELEMENTS};
    struct bench_schedule s;
    bench_schedule_row(&row, 132, &s);
    ck_assert(s.row_tiles == 1 && s.chunks == 132 && s.items == 132 && s.waves == 1);
    ck_assert_int_gt(s.workspace_bytes, 132 * 64 * 512 * 4);
    /* Sixteen requests at once share the blocks. */
    row.point = (struct bench_point){16, 8, 8, 4096};
    bench_schedule_row(&row, 132, &s);
    ck_assert(s.row_tiles == 16 && s.chunks > 1 && s.items == 16 * s.chunks && s.items <= 264);
    /* Row tiles beyond what the workspace may hold. */
    row.point = (struct bench_point){1, 128, 1025, 100};
    bench_schedule_row(&row, 132, &s);
    ck_assert(s.row_tiles == 2050 && s.chunks == 1 && s.items == 2050 && s.waves > 1);
    bench_schedule_row(&row, 0, &s);
    ck_assert(s.row_tiles == 0 && s.workspace_bytes == 0);
}
END_TEST

/** Requests, nodes, prefix of the problem below. */
enum { B = 2, H = 3, Q = 34, N = 21, SLOTS = 2 * B * (N + Q), WORDS = 2 };

/** A problem and what the float32 reference makes of it. */
struct checked {
    int32_t slots[B * N];
    int32_t tree_slots[B * Q];
    uint32_t mask_words[B * Q * WORDS];
    uint16_t pool[SLOTS][BENCH_ROW_ELEMENTS];
    uint16_t query[B * Q * H][BENCH_ROW_ELEMENTS];
    uint16_t o[B * Q * H][BENCH_LATENT];
    float lse[B * Q * H];
    struct bench_problem problem;
};

/** Runs the reference. */
static void run_reference(struct checked *c) {
    const int32_t node_indptr[B + 1] = {0, Q, 2 * Q};
    const int32_t indptr[B + 1] = {0, N, 2 * N};
    kdtr_error error = {0};
    kdtr_context *context = NULL;
    kdtr_plan *plan = NULL;
    kdtr_plan_config config = {.struct_size = sizeof config};
    config.batch = B;
    config.num_heads = H;
    config.latent_dim = BENCH_LATENT;
    config.rope_dim = BENCH_ROW_ELEMENTS - BENCH_LATENT;
    config.max_nodes = Q;
    config.max_prefix_len = N;
    config.row_capacity = B * Q;
    config.mask_mode = KDTR_MASK_PACKED;
    config.q_dtype = config.kv_dtype = config.o_dtype = KDTR_BF16;
    config.length_dtype = config.slot_dtype = KDTR_I32;
    config.scale = (float)c->problem.scale;
    kdtr_run_args args = {.struct_size = sizeof args};
    args.q_latent = c->query;
    args.q_rope = &c->query[0][BENCH_LATENT];
    args.q_latent_stride[0] = args.q_rope_stride[0] = H * BENCH_ROW_ELEMENTS;
    args.q_latent_stride[1] = args.q_rope_stride[1] = BENCH_ROW_ELEMENTS;
    args.kv_latent = c->pool;
    args.kv_rope = &c->pool[0][BENCH_LATENT];
    args.kv_latent_stride = args.kv_rope_stride = BENCH_ROW_ELEMENTS;
    args.num_slots = SLOTS;
    args.node_indptr = node_indptr;
    args.indptr = indptr;
    args.slots = c->slots;
    args.tree_slots = c->tree_slots;
    args.mask_words = c->mask_words;
    args.mask_stride_words = WORDS;
    args.o = c->o;
    args.o_stride[0] = H * BENCH_LATENT;
    args.o_stride[1] = BENCH_LATENT;
    args.lse = c->lse;
    void *workspace = NULL;
    ck_assert_int_eq(kdtr_context_create_cpu(&context, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_plan_create(context, &config, &plan, &error), KDTR_OK);
    size_t bytes = kdtr_plan_workspace_bytes(plan);
    ck_assert_int_eq(kdtr_memory_alloc(context, bytes, &workspace, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_check(plan, &args, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_run(plan, &args, workspace, bytes, NULL, &error), KDTR_OK);
    kdtr_memory_free(context, workspace);
    kdtr_plan_destroy(plan);
    kdtr_context_destroy(context);
}

/** Makes the problem, a chain whose every third node is seen by nobody after it. */
static struct checked *make_checked(void) {
    struct checked *c = calloc(1, sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (int32_t i = 0; i < B * N; i++) {
        c->slots[i] = (i * 7 + 3) % SLOTS;
    }
    for (int32_t i = 0; i < B * Q; i++) {
        c->tree_slots[i] = (i * 7 + 5 + 7 * B * N) % SLOTS;
        for (int32_t j = 0; j <= i % Q; j++) {
            if (j == i % Q || j % 3 != 2) {
                c->mask_words[i * WORDS + j / 32] |= 1u << (j % 32);
            }
        }
    }
    for (int32_t k = 0; k < BENCH_ROW_ELEMENTS; k++) {
        for (int32_t i = 0; i < SLOTS; i++) {
            c->pool[i][k] = measure_value(11, (uint64_t)(i * BENCH_ROW_ELEMENTS + k));
        }
        for (int32_t i = 0; i < B * Q * H; i++) {
            c->query[i][k] = measure_value(10, (uint64_t)(i * BENCH_ROW_ELEMENTS + k));
        }
    }
    c->problem = (struct bench_problem){{B, H, Q, N},  10,           11, 0.0625, c->slots,
                                        c->tree_slots, c->mask_words};
    run_reference(c);
    return c;
}

START_TEST(truth_meets_the_reference) {
    struct checked *c = make_checked();
    struct bench_pair pairs[] = {{.row = 0, .head = 0},
                                 {.row = 33, .head = 2},
                                 {.row = 50, .head = 1},
                                 {.row = 67, .head = 2}};
    for (int32_t threads = 1; threads <= 64; threads *= 4) {
        ck_assert_int_eq(bench_truth(&c->problem, pairs, 4, threads), 0);
        struct bench_error e = bench_compare(pairs, 4, H, c->o[0]);
        ck_assert(e.relative_error > 0.0 && e.relative_error < BENCH_RELATIVE_LIMIT);
        ck_assert(e.max_abs_error > 0.0 && e.max_abs_error < 0.0625);
        double lse_error = bench_compare_lse(pairs, 4, H, c->lse);
        ck_assert(lse_error > 0.0 && lse_error < BENCH_LSE_LIMIT);
    }
    free(c);
}
END_TEST

START_TEST(truth_notices_errors) {
    struct checked *c = make_checked();
    struct bench_pair pairs[] = {{.row = 40, .head = 1}, {.row = 5, .head = 0}};
    ck_assert_int_eq(bench_truth(&c->problem, pairs, 2, 2), 0);
    uint16_t *o = c->o[40 * H + 1];
    o[77] = 0x3f80; /* one element of 1,024 */
    ck_assert(!(bench_compare(pairs, 2, H, c->o[0]).relative_error <= BENCH_RELATIVE_LIMIT));
    o[77] = 0x7fc0;
    struct bench_error e = bench_compare(pairs, 2, H, c->o[0]);
    ck_assert(isnan(e.relative_error) && isnan(e.max_abs_error));
    float *lse = &c->lse[5 * H];
    ck_assert(bench_compare_lse(pairs, 2, H, c->lse) <= BENCH_LSE_LIMIT);
    *lse += 4.0f * (float)BENCH_LSE_LIMIT;
    ck_assert(!(bench_compare_lse(pairs, 2, H, c->lse) <= BENCH_LSE_LIMIT));
    *lse = NAN;
    ck_assert(!(bench_compare_lse(pairs, 2, H, c->lse) <= BENCH_LSE_LIMIT));
    /* One node too many, one cache row exchanged. */
    run_reference(c);
    c->mask_words[40 * WORDS] ^= 1u << 2;
    ck_assert_int_eq(bench_truth(&c->problem, pairs, 2, 2), 0);
    ck_assert(!(bench_compare(pairs, 2, H, c->o[0]).relative_error <= BENCH_RELATIVE_LIMIT));
    ck_assert(!(bench_compare_lse(pairs, 2, H, c->lse) <= BENCH_LSE_LIMIT));
    c->mask_words[40 * WORDS] ^= 1u << 2;
    c->slots[N] = c->slots[N + 1];
    ck_assert_int_eq(bench_truth(&c->problem, pairs, 2, 2), 0);
    ck_assert(!(bench_compare(pairs, 2, H, c->o[0]).relative_error <= BENCH_RELATIVE_LIMIT));
    free(c);
}
END_TEST

/** @return the suite */
static Suite *bench_suite(void) {
    Suite *suite = suite_create("bench");
    TCase *tcase = tcase_create("bench_gpu");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, points_parse);
    tcase_add_test(tcase, limits_read);
    tcase_add_test(tcase, limits_too_many);
    tcase_add_test(tcase, limits_committed);
    tcase_add_test(tcase, statistics_quartiles);
    tcase_add_test(tcase, statistics_interpolate);
    tcase_add_test(tcase, statistics_floor);
    tcase_add_test(tcase, schedule_of_a_row);
    tcase_add_test(tcase, truth_meets_the_reference);
    tcase_add_test(tcase, truth_notices_errors);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {bench_suite, bench_run_suite, output_file_suite};
    return check_main(makers, 3);
}
