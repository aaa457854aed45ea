// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What a run of `kdtr bench` is made of: lists of rows, options, trees, the progress bar.
 */
#include <stdlib.h>
#include <string.h>

#include "draft_marginals.h"
#include "draft_tree.h"
#include "gpu_options.h"
#include "gpu_progress.h"
#include "gpu_schedule.h"
#include "gpu_sets.h"
#include "gpu_tree.h"
#include "test_bench.h"

/** Every set. */
static const struct bench_selection everything = {
    .implementation = -1, .layout = -1, .mask_mode = -1};

/** What count_rows looks for; -1 is any. */
struct wanted {
    int32_t set;
    int32_t implementation;
    int32_t layout;
    int32_t mask_mode;
    int32_t stride;
    int32_t exact;
};

static int32_t count_rows(const struct bench_row *rows, int32_t count, struct wanted w) {
    int32_t found = 0;
    for (int32_t i = 0; i < count; i++) {
        const struct bench_row *r = &rows[i];
        found += (w.set < 0 || r->set == w.set) && (w.exact < 0 || r->exact == w.exact) &&
                 (w.implementation < 0 || r->implementation == w.implementation) &&
                 (w.layout < 0 || r->layout == w.layout) &&
                 (w.mask_mode < 0 || r->mask_mode == w.mask_mode) &&
                 (w.stride < 0 || r->stride == w.stride);
    }
    return found;
}

static int same_row(const struct bench_row *a, const struct bench_row *b) {
    return a->point.batch == b->point.batch && a->point.heads == b->point.heads &&
           a->point.nodes == b->point.nodes && a->point.prefix == b->point.prefix &&
           a->implementation == b->implementation && a->layout == b->layout &&
           a->mask_mode == b->mask_mode && a->stride == b->stride && a->exact == b->exact &&
           a->set == b->set && a->budget == b->budget;
}

START_TEST(rows_of_the_table) {
    struct bench_row rows[BENCH_MAX_ROWS];
    const int32_t flash = KDTR_IMPLEMENTATION_FLASH;
    struct bench_selection s = everything;
    s.sets = 1u << BENCH_TABLE;
    int32_t n = bench_list_rows(&s, rows);
    const int32_t packed = KDTR_MASK_PACKED;
    const int32_t plain = BENCH_ROW_ELEMENTS;
    struct wanted w = {BENCH_TABLE, flash, BENCH_RANDOM, packed, plain, 0};
    ck_assert_int_eq(count_rows(rows, n, w), 13);
    w.layout = BENCH_CONTIGUOUS;
    ck_assert_int_eq(count_rows(rows, n, w), 13);
    w.stride = 584;
    ck_assert_int_eq(count_rows(rows, n, w), 2);
    w = (struct wanted){BENCH_TABLE, flash, BENCH_RANDOM, KDTR_MASK_PARENTS, plain, 0};
    ck_assert_int_eq(count_rows(rows, n, w), 2);
    w = (struct wanted){BENCH_TABLE, flash, BENCH_RANDOM, packed, plain, 1};
    ck_assert_int_eq(count_rows(rows, n, w), 13);
    w = (struct wanted){BENCH_TABLE, KDTR_IMPLEMENTATION_NAIVE, BENCH_RANDOM, packed, plain, 0};
    ck_assert_int_eq(count_rows(rows, n, w), 6);
    ck_assert_int_eq(n, 13 + 13 + 2 + 2 + 13 + 6);
    s.implementation = KDTR_IMPLEMENTATION_NAIVE;
    s.layout = BENCH_RANDOM;
    s.mask_mode = packed;
    ck_assert_int_eq(bench_list_rows(&s, rows), 6);
}
END_TEST

/** All sets in one run: in order, no row twice within one, each with flash in both modes. */
START_TEST(rows_of_all_sets) {
    struct bench_row rows[BENCH_MAX_ROWS];
    int32_t n = bench_list_rows(&everything, rows);
    ck_assert_int_lt(n, BENCH_MAX_ROWS); /* else some may be missing */
    for (int32_t i = 0; i < n; i++) {
        ck_assert(i == 0 || rows[i - 1].set <= rows[i].set);
        ck_assert(rows[i].exact == 0 || rows[i].implementation == KDTR_IMPLEMENTATION_FLASH);
        for (int32_t k = 0; k < i; k++) {
            ck_assert(!same_row(&rows[i], &rows[k]));
        }
    }
    int32_t sum = 0;
    for (int32_t set = 0; set < BENCH_SETS; set++) {
        struct bench_row alone[BENCH_MAX_ROWS];
        struct bench_selection s = everything;
        s.sets = 1u << set;
        int32_t count = bench_list_rows(&s, alone);
        ck_assert_int_eq(count, count_rows(rows, n, (struct wanted){set, -1, -1, -1, -1, -1}));
        ck_assert_int_eq(count, count_rows(alone, count, (struct wanted){set, -1, -1, -1, -1, -1}));
        for (int32_t i = 0; i < count; i++) {
            ck_assert(same_row(&alone[i], &rows[sum + i]));
        }
        ck_assert_str_ne(bench_set_title(set), "");
        sum += count;
    }
    ck_assert_int_eq(sum, n);
}
END_TEST

/** Each point of a sweep: random and contiguous slots, exact mode, and no other than that. */
static void check_sweep(int32_t set, const struct bench_point *points, int32_t count,
                        int32_t naive) {
    struct bench_row rows[BENCH_MAX_ROWS];
    struct bench_selection s = everything;
    s.sets = 1u << set;
    int32_t n = bench_list_rows(&s, rows);
    ck_assert_int_eq(n, 3 * count + naive);
    int32_t at = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t kinds[4] = {0, 0, 0, 0};
        for (; at < n && rows[at].point.prefix == points[i].prefix &&
               rows[at].point.nodes == points[i].nodes && rows[at].point.heads == points[i].heads;
             at++) {
            int kind = rows[at].implementation == KDTR_IMPLEMENTATION_NAIVE ? 3
                       : rows[at].exact                                     ? 2
                                                                            : rows[at].layout;
            kinds[kind]++;
            ck_assert_int_eq(rows[at].point.batch, 1);
            ck_assert_int_eq(rows[at].budget, set == BENCH_SWEEP_BUDGET ? points[i].nodes - 1 : 0);
        }
        ck_assert_msg(kinds[0] == 1 && kinds[1] == 1 && kinds[2] == 1 && kinds[3] <= 1,
                      "set %d, point %d", set, i);
    }
    ck_assert_int_eq(at, n);
}

START_TEST(rows_of_the_sweeps) {
    struct bench_point points[11];
    for (int i = 0; i < 11; i++) {
        points[i] = (struct bench_point){1, 8, 8, 1024 << i};
    }
    check_sweep(BENCH_SWEEP_N, points, 11, 6);
    for (int i = 0; i < 9; i++) {
        points[i] = (struct bench_point){1, 8, 1 << i, 32768};
    }
    check_sweep(BENCH_SWEEP_Q, points, 9, 4);
    for (int i = 0; i < 8; i++) {
        points[i] = (struct bench_point){1, 1 << i, 8, 32768};
    }
    check_sweep(BENCH_SWEEP_H, points, 8, 4);
    for (int i = 0; i < 7; i++) {
        points[i] = (struct bench_point){1, 8, (16 << i) + 1, 32768};
    }
    check_sweep(BENCH_SWEEP_BUDGET, points, 7, 0);
    points[0] = (struct bench_point){1, 8, 8, 1000000};
    check_sweep(BENCH_LONG, points, 1, 0);
}
END_TEST

/** No row is refused for its sizes, on two cards' numbers of multiprocessors. */
START_TEST(rows_have_plans) {
    struct bench_row rows[BENCH_MAX_ROWS];
    int32_t n = bench_list_rows(&everything, rows);
    for (int32_t i = 0; i < n; i++) {
        for (int32_t sm_count = 132; sm_count <= 188; sm_count += 56) {
            struct bench_schedule schedule;
            bench_schedule_row(&rows[i], sm_count, &schedule);
            ck_assert_msg(schedule.workspace_bytes > 0, "row %d", i);
            ck_assert_int_le(schedule.workspace_bytes, (int64_t)256 << 20);
        }
    }
}
END_TEST

START_TEST(rows_of_a_point) {
    struct bench_row rows[BENCH_MAX_ROWS];
    const int32_t flash = KDTR_IMPLEMENTATION_FLASH;
    struct bench_selection s = everything;
    s.point = (struct bench_point){3, 64, 9, 100};
    s.stride = 600;
    ck_assert_int_eq(bench_list_rows(&s, rows), 3);
    ck_assert_int_eq(
        count_rows(rows, 3, (struct wanted){BENCH_POINT, flash, -1, KDTR_MASK_PACKED, 600, 0}), 2);
    ck_assert(rows[2].exact && rows[2].stride == 600 && rows[2].set == BENCH_POINT);
    s.implementation = flash;
    s.exact = 1;
    ck_assert_int_eq(bench_list_rows(&s, rows), 2);
    ck_assert(rows[0].exact && rows[1].exact);
    s.implementation = KDTR_IMPLEMENTATION_NAIVE;
    s.exact = 0;
    s.mask_mode = KDTR_MASK_PARENTS;
    ck_assert_int_eq(bench_list_rows(&s, rows), 2);
    ck_assert(rows[0].implementation == KDTR_IMPLEMENTATION_NAIVE);
    ck_assert(rows[1].mask_mode == KDTR_MASK_PARENTS && rows[1].layout == BENCH_CONTIGUOUS);
}
END_TEST

/** Parses a few words. */
static int parse(struct bench_options *o, const char *a, const char *b, const char *c,
                 const char *d) {
    const char *const words[] = {a, b, c, d};
    char *argv[4];
    int argc = 0;
    while (argc < 4 && words[argc] != NULL) {
        memcpy(&argv[argc], &words[argc], sizeof argv[0]);
        argc++;
    }
    return bench_parse_options(argc, argv, o);
}

START_TEST(options_parse) {
    struct bench_options o;
    ck_assert_int_eq(parse(&o, NULL, NULL, NULL, NULL), 0);
    ck_assert(o.samples == 0 && o.seed == 1 && !o.partial && o.json == NULL);
    ck_assert(o.selection.point.batch == 0 && o.selection.sets == 0 && o.selection.layout < 0);
    ck_assert(o.selection.implementation < 0 && o.selection.mask_mode < 0);
    ck_assert(o.selection.stride == 0 && o.selection.exact == 0);
    ck_assert_int_eq(parse(&o, "--quick", "--json", "a", "--wide"), 0);
    ck_assert(o.samples == 5 && o.quick && o.wide && !o.partial);
    ck_assert_str_eq(o.json, "a");
    /* What changes the rows makes the run a partial one. */
    static const char *const partial[][2] = {
        {"--point", "1,2,3,4"}, {"--set", "sweep_q"}, {"--layout", "random"},
        {"--mask", "parents"},  {"--seed", "2"},      {"--row-bytes", "1168"},
        {"--samples", "7"},     {"--seed", "0"},      {"--implementation", "exact"}};
    for (size_t i = 0; i < sizeof partial / sizeof partial[0]; i++) {
        ck_assert_int_eq(parse(&o, partial[i][0], partial[i][1], NULL, NULL), 0);
        ck_assert_msg(o.partial, "%s", partial[i][0]);
    }
    ck_assert(o.selection.implementation == KDTR_IMPLEMENTATION_FLASH && o.selection.exact);
    ck_assert_int_eq(parse(&o, "--no-ceilings", NULL, NULL, NULL), 0);
    ck_assert(o.partial && o.no_ceilings);
    ck_assert_int_eq(parse(&o, "--set", "sweep_h", "--set", "table"), 0);
    ck_assert_uint_eq(o.selection.sets, 1u << BENCH_SWEEP_H | 1u << BENCH_TABLE);
    struct bench_row rows[BENCH_MAX_ROWS];
    int32_t n = bench_list_rows(&o.selection, rows);
    ck_assert_int_eq(n, 49 + 28);
    ck_assert(rows[0].set == BENCH_TABLE && rows[n - 1].set == BENCH_SWEEP_H);
    for (int32_t set = 0; set < BENCH_SETS; set++) {
        ck_assert_int_eq(parse(&o, "--set", bench_set_name(set), NULL, NULL), 0);
        ck_assert_uint_eq(o.selection.sets, 1u << set);
    }
}
END_TEST

START_TEST(trees_random) {
    enum { NODES = 70, WORDS = 3 };
    int32_t parents[NODES];
    uint32_t mask[NODES * WORDS];
    int32_t other[NODES];
    bench_random_tree(5, 1000, NODES, parents, mask);
    ck_assert_int_eq(parents[0], -1);
    for (int32_t i = 0; i < NODES; i++) {
        ck_assert(i == 0 || (parents[i] >= 0 && parents[i] < i));
        for (int32_t j = 0; j < 32 * WORDS; j++) {
            int32_t at = i;
            while (at > j) {
                at = parents[at];
            }
            ck_assert_int_eq(mask[i * WORDS + j / 32] >> (j % 32) & 1u, at == j);
        }
    }
    bench_random_tree(6, 1000, NODES, other, mask);
    ck_assert(memcmp(parents, other, sizeof parents) != 0);
}
END_TEST

/** The builder's tree against the reference's other builder, level by level. */
START_TEST(trees_of_a_draft) {
    enum { MOST = 1024, RANKED = MOST * BENCH_DRAFT_POSITIONS };
    static float logp[RANKED];
    static int64_t ranked[RANKED];
    static int64_t tokens[MOST + 1];
    static int32_t parents[MOST + 1];
    static int32_t expected[MOST + 1];
    static int32_t depth[MOST + 1];
    static int32_t rank[MOST + 1];
    static float score[MOST + 1];
    static uint32_t mask[(MOST + 1) * 33];
    for (int32_t budget = 16; budget <= MOST; budget *= 4) {
        kdtr_error error = {0};
        struct ref_error cause = {0};
        const struct ref_draft_marginals m = {logp, ranked, budget, BENCH_DRAFT_POSITIONS, budget};
        struct ref_draft_tree tree = {tokens, expected, depth, rank, score, 0, 0};
        size_t bytes = ref_draft_levels_bytes(budget, BENCH_DRAFT_POSITIONS, budget);
        void *workspace = malloc(bytes);
        ck_assert_int_eq(bench_draft_tree(77, budget, parents, mask, &error), KDTR_OK);
        ck_assert_int_eq(ref_draft_marginals_make(77, BENCH_DRAFT_POSITIONS, budget,
                                                  BENCH_DRAFT_VOCABULARY, logp, ranked, &cause),
                         REF_OK);
        ck_assert_int_eq(ref_draft_tree_levels(&m, 0, budget, BENCH_DRAFT_POSITIONS, workspace,
                                               bytes, &tree, &cause),
                         REF_OK);
        free(workspace);
        ck_assert_int_eq(tree.num_nodes, budget + 1);
        ck_assert(memcmp(parents, expected, (size_t)(budget + 1) * sizeof parents[0]) == 0);
        int32_t words = (budget + 1 + 31) / 32;
        for (int32_t i = 0; i <= budget; i++) {
            ck_assert_int_le(depth[i], BENCH_DRAFT_POSITIONS);
            for (int32_t j = 0; j <= budget; j++) {
                int32_t at = i;
                while (at > j) {
                    at = parents[at];
                }
                ck_assert_int_eq(mask[i * words + j / 32] >> (j % 32) & 1u, at == j);
            }
        }
    }
}
END_TEST

/** Which of them a row has, and that requests differ. */
START_TEST(trees_of_a_row) {
    enum { NODES = 33, WORDS = 2 };
    int32_t parents[2][NODES];
    int32_t expected[NODES];
    uint32_t mask[NODES * WORDS];
    kdtr_error error = {0};
    struct bench_row row = {.point = {2, 8, NODES, 100}, .budget = NODES - 1};
    for (int64_t b = 0; b < 2; b++) {
        ck_assert_int_eq(bench_make_tree(&row, 9, b, parents[b], mask, &error), KDTR_OK);
    }
    ck_assert(memcmp(parents[0], parents[1], sizeof parents[0]) != 0);
    ck_assert_int_eq(bench_draft_tree(11, NODES - 1, expected, mask, &error), KDTR_OK);
    ck_assert(memcmp(parents[0], expected, sizeof expected) == 0);
    row.budget = 0;
    for (int64_t b = 0; b < 2; b++) {
        ck_assert_int_eq(bench_make_tree(&row, 9, b, parents[b], mask, &error), KDTR_OK);
        bench_random_tree(9, (uint64_t)(b * NODES), NODES, expected, mask);
        ck_assert(memcmp(parents[b], expected, sizeof expected) == 0);
    }
}
END_TEST

START_TEST(progress_text) {
    char text[BENCH_PROGRESS_SIZE];
    bench_progress_text(0, 160, 0.9, text, sizeof text);
    ck_assert_str_eq(text, "[........................] 0 of 160 rows, 0:00 elapsed");
    bench_progress_text(40, 160, 65.0, text, sizeof text);
    ck_assert_str_eq(text,
                     "[######..................] 40 of 160 rows, 1:05 elapsed, about 3:15 left");
    bench_progress_text(160, 160, 600.0, text, sizeof text);
    ck_assert_str_eq(text, "[########################] 160 of 160 rows, 10:00 elapsed");
}
END_TEST

Suite *bench_run_suite(void) {
    Suite *suite = suite_create("bench run");
    TCase *tcase = tcase_create("bench_run");
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, rows_of_the_table);
    tcase_add_test(tcase, rows_of_all_sets);
    tcase_add_test(tcase, rows_of_the_sweeps);
    tcase_add_test(tcase, rows_have_plans);
    tcase_add_test(tcase, rows_of_a_point);
    tcase_add_test(tcase, options_parse);
    tcase_add_test(tcase, trees_random);
    tcase_add_test(tcase, trees_of_a_draft);
    tcase_add_test(tcase, trees_of_a_row);
    tcase_add_test(tcase, progress_text);
    return suite;
}
