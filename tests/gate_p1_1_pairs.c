// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Gate P1-1, pairwise combinations: the flash kernel against truth in sampled rows. Cases of little
 * work, (N + Q) H Q, come first, then larger ones for pairs that are left: on the emulator of at
 * most WORK_MOST, which is what `ninja test` has time for, or of what the environment variable
 * KDTR_TEST_WORK says. On a GPU all pairs are covered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "edge_checks.h"
#include "pairs.h"
#include "sampled.h"
#ifdef KDTR_TEST_EMULATED
#include "simt/simt_runtime.h"
#endif

/** Work of a case on the emulator: of most cases, then of those that need more. */
#define WORK 3000
#define WORK_MOST 66000
/** The reduced set has every so many-th of the cases. */
#define REDUCED 8
/** Work of a case on a GPU: first of most cases, then of those that need more. */
#define WORK_GPU 40000000
#define WORK_GPU_MOST 300000000
/** Visible tokens times heads that the truth may take of a request. */
#define TRUTH_WORK 20000
#define TRUTH_WORK_SMALL 2000

/** Runs a case. */
static void check_case(const struct pairs_list *list, int32_t number) {
    struct test_problem problem;
    struct test_session session;
    struct test_outputs outputs;
    struct sampled_report report;
    const char *name = list->cases[number].name;
    test_problem_make(&list->cases[number], &problem);
#ifdef KDTR_TEST_EMULATED
    /* With few multiprocessors a block has many items one after another. */
    static const int sm_counts[] = {188, 2, 132, 7, 1};
    simt_set_sm_count(sm_counts[number % 5]);
#endif
    ck_assert_msg(test_session_open(test_implementation_at(0), &session) == 0, "%s", session.text);
    ck_assert_msg(test_run(&session, &problem, &outputs) == 0, "%s: %s", name, session.text);
    test_session_close(&session);
    int wrong = sampled_check(&problem, &outputs,
                              test_scale_is_small() ? TRUTH_WORK_SMALL : TRUTH_WORK, &report);
    ck_assert_msg(!wrong, "case %d, %s: %s", number, name, report.text);
    printf("P1-1 pair %3d: %s: %lld rows, o %.3f of its bound, lse %.3f\n", number, name,
           (long long)report.rows, report.o_ratio, report.lse_ratio);
    test_outputs_free(&outputs);
    test_problem_free(&problem);
}

/** Work limits of this run. */
static void limits(int64_t *low, int64_t *high) {
    const char *work = getenv("KDTR_TEST_WORK");
    *low = WORK;
    *high = WORK_MOST;
    if (strcmp(TEST_PLACE, "gpu") == 0) {
        *low = WORK_GPU;
        *high = WORK_GPU_MOST;
    }
    if (work != NULL) {
        *high = strtoll(work, NULL, 10);
    }
}

START_TEST(pairwise_within_bound) {
    static struct pairs_list list;
    int64_t low;
    int64_t high;
    limits(&low, &high);
    pairs_make(low, high, &list);
    int32_t step = test_scale_is_small() ? REDUCED : 1;
    int32_t first = (int32_t)(test_seed() % (uint64_t)step);
    int32_t runs = 0;
    for (int32_t i = first; i < list.count; i += step, runs++) {
        check_case(&list, i);
    }
    int32_t covered = pairs_covered(&list, first, step);
    printf("P1-1 %d of %d cases of work to %lld ran; they cover %d of %d pairs\n", runs, list.count,
           (long long)high, covered, list.pairs);
    ck_assert(step > 1 || covered == list.covered);
    ck_assert(high < WORK_GPU_MOST || list.covered == list.pairs);
    ck_assert_int_gt(list.covered, list.pairs / 2);
}
END_TEST

/** @return the suite */
static Suite *gate_p1_1_pairs_suite(void) {
    Suite *suite = suite_create("P1-1 pairwise combinations");
    TCase *tcase = test_tcase(suite, "P1-1", "P1-1 pairs within bound");
    tcase_add_test(tcase, pairwise_within_bound);
    return suite;
}

int main(void) {
    return edge_main(gate_p1_1_pairs_suite);
}
