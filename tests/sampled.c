// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Checks some rows of a run.
 */
#include "sampled.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bound_flash.h"
#include "compare.h"
#include "truth_f64.h"

/** Most rows that are compared. */
#define MOST_ROWS 256
/** Visible tokens times heads of a row from which on some of its heads are compared, not all: its
 * truth takes a second or two. */
#define ROW_WORK 200000
/** Fewest heads of such a row. */
#define FEWEST_HEADS 4

/** Compares rows, in some heads. Returns 1 with the report's text set if one is wrong. */
static int compare(const struct test_problem *problem, const struct test_outputs *outputs,
                   const int64_t *rows, int64_t count, int32_t first_head, int32_t head_count,
                   struct sampled_report *report) {
    struct ref_attention part = problem->call; /* these heads alone */
    const struct ref_attention *a = &part;
    size_t bytes = (size_t)first_head * (part.q_dtype == REF_F32 ? 4 : 2);
    part.q_latent = (const char *)part.q_latent + (size_t)part.q_latent_stride[1] * bytes;
    part.q_rope = (const char *)part.q_rope + (size_t)part.q_rope_stride[1] * bytes;
    part.num_heads = head_count;
    const struct flash_bound_limits limits = flash_bound_limits_of(a);
    size_t heads = (size_t)(count * a->num_heads);
    size_t width = (size_t)a->latent_dim;
    double *o = test_calloc(heads * width * sizeof *o);
    double *o_bound = test_calloc(heads * width * sizeof *o_bound);
    double *lse = test_calloc(2 * heads * sizeof *lse);
    float *run_o = test_calloc(heads * width * sizeof *run_o);
    float *run_lse = test_calloc(heads * sizeof *run_lse);
    struct test_comparison of_o = {0};
    struct test_comparison of_lse = {0};
    attention_truth_f64(a, rows, count, o, lse);
    int wrong = attention_bound_flash_f64(a, &limits, rows, count, o_bound, lse + heads) != REF_OK;
    for (int64_t i = 0; i < count; i++) {
        size_t size = (size_t)a->num_heads;
        size_t from = (size_t)(rows[i] * outputs->heads + first_head);
        memcpy(run_o + (size_t)i * size * width, outputs->o + from * width,
               size * width * sizeof *run_o);
        if (outputs->lse != NULL) {
            memcpy(run_lse + (size_t)i * size, outputs->lse + from, size * sizeof *run_lse);
        }
    }
    const struct test_array_f64 truth_o = {{count, a->num_heads, a->latent_dim}, o};
    const struct test_array_f64 truth_lse = {{count, a->num_heads, 1}, lse};
    const struct test_array_f32 got_o = {{count, a->num_heads, a->latent_dim}, run_o};
    const struct test_array_f32 got_lse = {{count, a->num_heads, 1}, run_lse};
    wrong =
        wrong ||
        test_compare_bound(&got_o, &truth_o, o_bound, TEST_TRIVIAL_IS_FINE, &of_o) != TEST_EQUAL ||
        (outputs->lse != NULL && test_compare_bound(&got_lse, &truth_lse, lse + heads,
                                                    TEST_TRIVIAL_IS_FINE, &of_lse) != TEST_EQUAL);
    if (wrong) {
        snprintf(report->text, sizeof report->text, "rows from %lld, heads from %d: %s %s",
                 (long long)rows[0], first_head, of_o.text, of_lse.text);
    }
    report->o_ratio = fmax(report->o_ratio, of_o.worst_ratio);
    report->lse_ratio = fmax(report->lse_ratio, of_lse.worst_ratio);
    free(o);
    free(o_bound);
    free(lse);
    free(run_o);
    free(run_lse);
    return wrong;
}

/** Rows of a request: first, last, and others between; of a row that costs much, such heads. */
static int check_request(const struct test_problem *problem, const struct test_outputs *outputs,
                         int32_t b, int64_t work, struct sampled_report *report) {
    int64_t rows[MOST_ROWS];
    struct truth_request q;
    truth_request_decode(&problem->call, b, &q);
    int32_t heads = problem->call.num_heads;
    int64_t most = work / ((q.tokens + 1) * heads);
    int64_t some = ROW_WORK / (q.tokens + 1);
    most = most < 1 ? 1 : most > MOST_ROWS ? MOST_ROWS : most;
    int64_t count = !q.active ? 0 : q.nodes < most ? q.nodes : most;
    for (int64_t i = 0; i < count; i++) {
        /* The last one first: it sees most. */
        rows[i] = q.first_row + (count == 1 ? q.nodes - 1 : i * (q.nodes - 1) / (count - 1));
    }
    truth_request_free(&q);
    report->rows += count;
    if (count == 0 || some >= heads || heads <= FEWEST_HEADS) {
        return count > 0 && compare(problem, outputs, rows, count, 0, heads, report);
    }
    some = some < FEWEST_HEADS ? FEWEST_HEADS : some;
    int wrong = 0;
    for (int64_t i = 0; i < some && !wrong; i++) {
        int32_t head = (int32_t)(i * (heads - 1) / (some - 1));
        wrong = compare(problem, outputs, rows, count, head, 1, report);
    }
    return wrong;
}

/** Rows that nobody owns are zero and -inf. */
static int check_empty(const struct test_problem *problem, const struct test_outputs *outputs,
                       struct sampled_report *report) {
    const struct test_case *c = &problem->spec;
    for (int64_t i = 0; i < c->lead_rows + c->spare_rows; i++) {
        int64_t row = i < c->lead_rows ? i : outputs->rows - 1 - (i - c->lead_rows);
        for (int64_t k = 0; k < outputs->heads * outputs->columns; k++) {
            int64_t head = row * outputs->heads + k / outputs->columns;
            if (outputs->o[row * outputs->heads * outputs->columns + k] != 0.0f ||
                (outputs->lse != NULL && outputs->lse[head] != -INFINITY)) {
                snprintf(report->text, sizeof report->text, "row %lld is not empty",
                         (long long)row);
                return 1;
            }
        }
    }
    return 0;
}

int sampled_check(const struct test_problem *problem, const struct test_outputs *outputs,
                  int64_t work, struct sampled_report *report) {
    const struct ref_attention *a = &problem->call;
    memset(report, 0, sizeof *report);
    uint32_t *status = test_calloc((size_t)a->batch * sizeof *status);
    attention_truth_status(a, status);
    int wrong = check_empty(problem, outputs, report);
    for (int32_t b = 0; b < a->batch && !wrong; b++) {
        if (outputs->status != NULL && outputs->status[b] != status[b]) {
            snprintf(report->text, sizeof report->text, "device_status[%d] is %u, expected %u", b,
                     outputs->status[b], status[b]);
            wrong = 1;
        }
        wrong = wrong || check_request(problem, outputs, b, work, report);
    }
    free(status);
    return wrong;
}
