// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The bound of the flash kernel: a model of its arithmetic stays within it on every case, split in
 * several ways, and every wrong variant is rejected on at least one.
 */
#include <math.h>
#include <stdio.h>

#include "bf16.h"
#include "bound_flash.h"
#include "case_table.h"
#include "check_main.h"
#include "flash_model.h"
#include "harness.h"

/** Largest ratios of errors and bounds so far, and by how many cases a bug was rejected. */
struct tally {
    double o;
    double lse;
    int32_t caught[FLASH_BUG_COUNT];
};

/** One run of the model. */
static int run_model(const struct test_problem *problem, const struct harness_expected *expected,
                     int32_t option, struct harness_report *report) {
    const struct test_implementation model = {
        .name = "flash model", .host_run = flash_model_run, .option = option};
    struct test_session session;
    test_session_open(&model, &session);
    int wrong = harness_run(&session, problem, expected, report);
    test_session_close(&session);
    return wrong;
}

/** The right model with chunks of 1, 3 and all tiles, in every way; then every bug. */
static void try_problem(const struct test_problem *problem, int32_t trivial, struct tally *tally) {
    static const int32_t chunk_tiles[] = {1, 3, 1 << 20};
    static const int32_t ways[] = {
        0, FLASH_OLD_MMA | FLASH_FOUR_CHAINS, FLASH_FOUR_CHAINS, FLASH_OLD_MMA,
        0, FLASH_OLD_MMA | FLASH_FOUR_CHAINS};
    const char *name = problem->spec.name;
    struct harness_expected expected;
    struct harness_report report;
    harness_expect_flash(problem, &expected);
    expected.trivial = trivial;
    for (int32_t i = 0; i < 6; i++) {
        int32_t option = FLASH_OPTION(chunk_tiles[i / 2], ways[i], FLASH_RIGHT);
        int wrong = run_model(problem, &expected, option, &report);
        ck_assert_msg(!wrong, "%s, tiles of a chunk %d, ways %d: %s", name, chunk_tiles[i / 2],
                      ways[i], report.text);
        tally->o = fmax(tally->o, report.o.worst_ratio);
        tally->lse = fmax(tally->lse, report.lse.worst_ratio);
    }
    printf("P0-7 %-44s o %.3f of its bound, lse %.3f\n", name, report.o.worst_ratio,
           report.lse.worst_ratio);
    for (int32_t bug = FLASH_RIGHT + 1; bug < FLASH_BUG_COUNT; bug++) {
        tally->caught[bug] += run_model(problem, &expected, FLASH_OPTION(3, 0, bug), &report);
    }
    harness_expected_free(&expected);
}

/** Makes a case with a bfloat16 query and cache and tries it. */
static void try_case(const struct test_case *source, struct tally *tally) {
    struct test_case record = *source;
    struct test_problem problem;
    record.bf16_q = record.bf16_kv = 1;
    test_problem_make(&record, &problem);
    try_problem(&problem, TEST_TRIVIAL_IS_ERROR, tally);
    test_problem_free(&problem);
}

static void put_bf16(const void *array, int64_t index, float value) {
    ((uint16_t *)(uintptr_t)array)[index] = ref_bf16_from_f32(value);
}

/**
 * Weights just below the next bfloat16: truncation then errs by nearly 2^-7 of each, and rounding
 * by little. One key scores 0; the others score -gap in log2 units.
 */
static void try_edge_of_bf16(float gap, struct tally *tally) {
    const struct test_case record = {.name = "weights at an edge of bfloat16",
                                     .prefix = {400},
                                     .nodes = {1},
                                     .heads = 1,
                                     .latent_dim = 32,
                                     .rope_dim = 16,
                                     .mask_mode = REF_MASK_CHAIN,
                                     .bf16_q = 1,
                                     .bf16_kv = 1};
    struct test_problem problem;
    test_problem_make(&record, &problem);
    const struct ref_attention *a = &problem.call;
    for (int32_t k = 0; k < a->latent_dim + a->rope_dim; k++) {
        int rope = k >= a->latent_dim;
        int32_t column = rope ? k - a->latent_dim : k;
        put_bf16(rope ? a->q_rope : a->q_latent, column, k == a->latent_dim ? 1.0f : 0.0f);
        for (int64_t slot = 0; slot < problem.num_slots; slot++) {
            int64_t at = slot * (rope ? a->kv_rope_stride : a->kv_latent_stride) + column;
            put_bf16(rope ? a->kv_rope : a->kv_latent, at,
                     rope ? -1.0f : (k % 2 == 0 ? 1.0f : -0.5f));
        }
    }
    /* The first key of the list stands out, and has other values. */
    int64_t first = ref_load_index(a->slots, a->slot_dtype, 0);
    put_bf16(a->kv_rope, first * a->kv_rope_stride, 0.0f);
    for (int32_t k = 0; k < a->latent_dim; k++) {
        put_bf16(a->kv_latent, first * a->kv_latent_stride + k, -64.0f);
    }
    problem.call.scale = (float)((double)gap / 0x1.71547652b82fep+0);
    try_problem(&problem, TEST_TRIVIAL_IS_ERROR, tally);
    test_problem_free(&problem);
}

static void report_tally(const char *what, const struct tally *tally) {
    printf("P0-7 %s: worst o %.3f, worst lse %.3f of the bound\n", what, tally->o, tally->lse);
    for (int32_t bug = FLASH_RIGHT + 1; bug < FLASH_BUG_COUNT; bug++) {
        printf("P0-7 %s: a model that %s is rejected %d times\n", what, flash_bug_name(bug),
               tally->caught[bug]);
    }
}

START_TEST(model_obeys_the_bound_and_wrong_ones_do_not) {
    struct tally tally = {0};
    for (int32_t i = 0; i < case_table_count(); i++) {
        if (!test_scale_is_small() || !case_is_large(case_table_at(i))) {
            try_case(case_table_at(i), &tally);
        }
    }
    try_edge_of_bf16(1.0f - 0x1.6p-7f, &tally);
    report_tally("case table", &tally);
    for (int32_t bug = FLASH_RIGHT + 1; bug < FLASH_BUG_COUNT; bug++) {
        ck_assert_msg(tally.caught[bug] > 0, "a model that %s passes every case",
                      flash_bug_name(bug));
    }
}
END_TEST

START_TEST(model_obeys_the_bound_on_every_kind) {
    struct tally tally = {0};
    for (int32_t kind = 0; kind < TEST_KIND_COUNT; kind++) {
        for (int32_t model_sizes = 0; model_sizes < 2; model_sizes++) {
            char name[64];
            snprintf(name, sizeof name, "kind %d, %s", kind, model_sizes ? "512 + 64" : "64 + 16");
            try_case(&(struct test_case){.name = name,
                                         .batch = 2,
                                         .prefix = {model_sizes ? 60 : 700, 33},
                                         .nodes = {4, 20},
                                         .kind = kind,
                                         .mask_mode = REF_MASK_PARENTS,
                                         .latent_dim = model_sizes ? 512 : 64,
                                         .rope_dim = model_sizes ? 64 : 16},
                     &tally);
        }
    }
    report_tally("kinds", &tally);
}
END_TEST

START_TEST(model_obeys_the_bound_on_long_prefixes) {
    struct tally tally = {0};
    const struct test_case record = {.name = "200,000 tokens",
                                     .prefix = {test_scale_is_small() ? 2000 : 200000},
                                     .nodes = {1},
                                     .heads = 1,
                                     .mask_mode = REF_MASK_CHAIN,
                                     .bf16_q = 1,
                                     .bf16_kv = 1,
                                     .latent_dim = 32,
                                     .rope_dim = 16};
    struct test_problem problem;
    struct harness_expected expected;
    struct harness_report report;
    test_problem_make(&record, &problem);
    harness_expect_flash(&problem, &expected);
    for (int32_t ways = 0; ways < 4; ways++) {
        for (int32_t tiles = 48; tiles < 1 << 20; tiles *= 512) {
            int wrong =
                run_model(&problem, &expected, FLASH_OPTION(tiles, ways, FLASH_RIGHT), &report);
            ck_assert_msg(!wrong, "%s", report.text);
            tally.o = fmax(tally.o, report.o.worst_ratio);
            tally.lse = fmax(tally.lse, report.lse.worst_ratio);
        }
    }
    printf("P0-7 %s: worst o %.4f, worst lse %.4f of the bound\n", record.name, tally.o, tally.lse);
    harness_expected_free(&expected);
    test_problem_free(&problem);
}
END_TEST

/**
 * One key. The sums of even and of odd steps cancel, and products that an mma cuts off are added to
 * the even ones: a score of one chain keeps them, one of two loses them in each step.
 */
START_TEST(the_bound_holds_where_steps_cancel) {
    struct tally tally = {0};
    const struct test_case record = {.name = "steps that cancel",
                                     .prefix = {0},
                                     .nodes = {1},
                                     .heads = 1,
                                     .latent_dim = 512,
                                     .rope_dim = 64,
                                     .mask_mode = REF_MASK_CHAIN,
                                     .bf16_q = 1,
                                     .bf16_kv = 1};
    struct test_problem problem;
    test_problem_make(&record, &problem);
    struct ref_attention *a = &problem.call;
    int64_t row = ref_load_index(a->slots, a->slot_dtype, 0) * a->kv_latent_stride;
    for (int32_t k = 0; k < a->latent_dim; k++) {
        int32_t step = k / FLASH_TILE;
        float big = step == 0 ? 1024.0f : -1024.0f;
        /* The largest bfloat16 below 2^-23 of 1,024. */
        float small = step % 2 == 0 && step < 18 ? 0x1.fep-14f : 0.0f;
        put_bf16(a->q_latent, k, 1.0f);
        put_bf16(a->kv_latent, row + k, step < 2 && k % FLASH_TILE == 0 ? big : small);
    }
    for (int32_t k = 0; k < a->rope_dim; k++) {
        put_bf16(a->q_rope, k, 0.0f);
    }
    a->scale = 1.0f;
    try_problem(&problem, TEST_TRIVIAL_IS_FINE, &tally);
    test_problem_free(&problem);
}
END_TEST

static Suite *bound_flash_suite(void) {
    Suite *suite = suite_create("bound_flash");
    TCase *tcase = test_tcase(suite, "P0-7", "P0-7 bound of the flash kernel");
    tcase_add_test(tcase, model_obeys_the_bound_and_wrong_ones_do_not);
    tcase_add_test(tcase, model_obeys_the_bound_on_every_kind);
    tcase_add_test(tcase, model_obeys_the_bound_on_long_prefixes);
    tcase_add_test(tcase, the_bound_holds_where_steps_cancel);
    return suite;
}

int main(void) {
    test_suite_make *const makers[] = {bound_flash_suite};
    return check_main(makers, 1);
}
