// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Judging result files.
 */
#include "judge.h"

#include <stdarg.h>
#include <string.h>

#include "gpu_truth.h"

/** The points at which exact mode has the tighter limit. */
static const struct bench_point named[] = {{1, 8, 1, 200000},
                                           {1, 8, 8, 200000},
                                           {1, 64, 8, 200000},
                                           {4, 16, 16, 32768},
                                           {16, 128, 1, 32768}};

/** A line about a point. The format ends a sentence that begins with the point. */
static void say(const struct judge_sheet *sheet, const char *verdict,
                const struct bench_point *point, const char *format, va_list arguments) {
    fprintf(sheet->out, "%s (%d,%d,%d,%lld) ", verdict, point->batch, point->heads, point->nodes,
            (long long)point->prefix);
    vfprintf(sheet->out, format, arguments);
    fputc('\n', sheet->out);
}

__attribute__((format(printf, 3, 4))) static void
fail(struct judge_sheet *sheet, const struct bench_point *point, const char *format, ...) {
    char verdict[64];
    va_list arguments;
    va_start(arguments, format);
    snprintf(verdict, sizeof verdict, "%s FAILED", sheet->gate);
    say(sheet, verdict, point, format, arguments);
    va_end(arguments);
    sheet->failed++;
}

/** The line of a limit that was missed and is accepted; the summary lists lines "note ID ...". */
__attribute__((format(printf, 3, 4))) static void
note(struct judge_sheet *sheet, const struct bench_point *point, const char *format, ...) {
    char verdict[64];
    va_list arguments;
    va_start(arguments, format);
    snprintf(verdict, sizeof verdict, "note %s", sheet->gate);
    say(sheet, verdict, point, format, arguments);
    va_end(arguments);
    sheet->accepted++;
}

/** A row of the table, random slots, kdtr's without padding; a missing one is a finding. */
static const struct result_row *required(const struct result_file *file, const char *implementation,
                                         const char *mask, const struct bench_point *point,
                                         struct judge_sheet *sheet) {
    struct result_row like;
    memset(&like, 0, sizeof like);
    snprintf(like.op, sizeof like.op, "verify");
    snprintf(like.set, sizeof like.set, "table");
    snprintf(like.layout, sizeof like.layout, "random");
    snprintf(like.implementation, sizeof like.implementation, "%s", implementation);
    snprintf(like.mask, sizeof like.mask, "%s", mask);
    like.point = *point;
    /* A peer may have latents and rope keys in pools of their own. */
    int ours = strncmp(implementation, "kdtr_", 5) == 0;
    like.row_stride_bytes = ours ? BENCH_ROW_ELEMENTS * 2 : 0;
    const struct result_row *row = result_find(file, &like, NULL);
    /* Rows of a page of more tokens, or of a budget, are of other calls. */
    while (row != NULL && ours && (row->page_size > 1 || row->budget > 0)) {
        row = result_find(file, &like, row);
    }
    if (row == NULL) {
        fail(sheet, point, "%s: no row of the table in %s", implementation, file->path);
    } else {
        sheet->checked++;
    }
    return row;
}

static void judge_spread(const struct result_row *row, struct judge_sheet *sheet) {
    if (row->time.count < JUDGE_SAMPLES) {
        fail(sheet, &row->point, "%s: %d samples, fewer than %d", row->implementation,
             row->time.count, JUDGE_SAMPLES);
    }
    double spread = row->time.p75 - row->time.p25;
    if (!(spread <= JUDGE_SPREAD_US || spread <= JUDGE_SPREAD_RATIO * row->time.median)) {
        fail(sheet, &row->point, "%s: a spread of %.2f us, %.1f %% of the median",
             row->implementation, spread, 100.0 * spread / row->time.median);
    }
}

/** Median of default mode against its limit. */
static void judge_time(const struct result_file *file, const struct result_row *row,
                       const struct bench_limit *limit, struct judge_sheet *sheet) {
    double us = row->time.median;
    if (us <= limit->at_most_us) {
        return;
    }
    if (limit->accepted_us > 0.0 && us <= limit->accepted_us) {
        note(sheet, &row->point,
             "%s: %.2f us in %s: above its limit of %g, accepted up to %g: "
             "docs/guides/flash_kernel.md",
             row->implementation, us, file->path, limit->at_most_us, limit->accepted_us);
    } else {
        fail(sheet, &row->point, "%s: %.2f us in %s: above its limit of %g, accepted up to %g",
             row->implementation, us, file->path, limit->at_most_us,
             limit->accepted_us > 0.0 ? limit->accepted_us : limit->at_most_us);
    }
}

static void judge_workspace(const struct result_row *row, double most, struct judge_sheet *sheet) {
    if (row->workspace_bytes < 0.0) {
        fail(sheet, &row->point, "%s: no workspace is said", row->implementation);
    } else if (row->workspace_bytes > most) {
        fail(sheet, &row->point, "%s: %.1f MiB of workspace, more than %.0f", row->implementation,
             row->workspace_bytes / 1048576.0, most / 1048576.0);
    }
}

/** How many times the time of default mode exact mode may take; 0 where nothing is asked. */
static double exact_ratio(const struct bench_point *point) {
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if (result_same_point(&named[i], point)) {
            return JUDGE_EXACT_RATIO;
        }
    }
    return point->prefix == JUDGE_SHORT_PREFIX ? JUDGE_EXACT_SHORT_RATIO : 0.0;
}

static void judge_exact(const struct result_row *row, const struct result_row *exact,
                        struct judge_sheet *sheet) {
    double most = exact_ratio(&row->point);
    if (most > 0.0 && !(exact->time.median <= most * row->time.median)) {
        fail(sheet, &row->point,
             "%s: %.2f us, %.1f %% more than the %.2f us of default mode, at most %.0f %% allowed",
             exact->implementation, exact->time.median,
             100.0 * (exact->time.median / row->time.median - 1.0), row->time.median,
             100.0 * (most - 1.0));
    }
}

/** A result that is far from float64 is no result, however fast. */
static void judge_result(const struct result_row *row, double most, struct judge_sheet *sheet) {
    /* An error of exactly 0 is that of an output compared with itself. */
    int same = strcmp(row->op, "verify") == 0 && !(row->relative_error > 0.0);
    if (same || !(row->relative_error <= most)) {
        fail(sheet, &row->point, "%s: a relative error of %.2e", row->implementation,
             row->relative_error);
    }
}

void judge_bench(const struct result_file *file, const struct bench_limit *limits, int32_t count,
                 struct judge_sheet *sheet) {
    for (int32_t i = 0; i < count; i++) {
        const struct bench_point *point = &limits[i].point;
        const struct result_row *row = required(file, "kdtr_flash", "tree", point, sheet);
        const struct result_row *exact = required(file, "kdtr_flash_exact", "tree", point, sheet);
        if (row != NULL) {
            judge_result(row, BENCH_RELATIVE_LIMIT, sheet);
            judge_time(file, row, &limits[i], sheet);
            judge_spread(row, sheet);
            judge_workspace(row, JUDGE_WORKSPACE, sheet);
        }
        if (exact != NULL) {
            judge_result(exact, BENCH_RELATIVE_LIMIT, sheet);
            judge_spread(exact, sheet);
            judge_workspace(exact, JUDGE_EXACT_WORKSPACE, sheet);
        }
        if (row != NULL && exact != NULL) {
            judge_exact(row, exact, sheet);
        }
    }
}

void judge_peers(const struct result_file *file, const struct bench_limit *limits, int32_t count,
                 struct judge_sheet *sheet) {
    for (int32_t i = 0; i < count; i++) {
        const struct bench_point *point = &limits[i].point;
        /* One node sees what it would see by any mask. */
        const char *mask = point->nodes > 1 ? "tree" : "";
        const struct result_row *row = required(file, "kdtr_flash", mask, point, sheet);
        if (row != NULL) {
            judge_result(row, BENCH_RELATIVE_LIMIT, sheet);
            judge_time(file, row, &limits[i], sheet);
            judge_spread(row, sheet);
        }
        /* fa2 and fa3 have no tree mask. */
        const struct result_row *peers[] = {
            required(file, "flashinfer_fa2", "", point, sheet),
            required(file, "flashinfer_fa3", "", point, sheet),
            required(file, point->nodes > 1 ? "sglang_triton_extend" : "sglang_triton_decode", mask,
                     point, sheet)};
        for (int k = 0; k < 3; k++) {
            if (peers[k] != NULL) {
                judge_result(peers[k], JUDGE_PEER_ERROR, sheet);
            }
        }
    }
}

/** The accuracy row of a point and seed; a missing one is a finding. */
static const struct result_row *accuracy(const struct result_file *file, const char *implementation,
                                         const struct bench_point *point, int32_t seed,
                                         struct judge_sheet *sheet) {
    struct result_row like;
    memset(&like, 0, sizeof like);
    snprintf(like.op, sizeof like.op, "accuracy");
    snprintf(like.mask, sizeof like.mask, "tree");
    snprintf(like.implementation, sizeof like.implementation, "%s", implementation);
    like.point = *point;
    like.seed = seed;
    const struct result_row *row = result_find(file, &like, NULL);
    if (row == NULL) {
        fail(sheet, point, "%s: no accuracy row of seed %d in %s", implementation, seed,
             file->path);
    } else {
        sheet->checked++;
    }
    return row;
}

void judge_accuracy(const struct result_file *file, const struct bench_limit *limits, int32_t count,
                    struct judge_sheet *sheet) {
    for (int32_t i = 0; i < count; i++) {
        const struct bench_point *point = &limits[i].point;
        for (int32_t seed = 1; point->nodes > 1 && seed <= JUDGE_SEEDS; seed++) {
            const struct result_row *ours = accuracy(file, "kdtr_flash", point, seed, sheet);
            const struct result_row *theirs =
                accuracy(file, "sglang_triton_extend", point, seed, sheet);
            if (ours == NULL || theirs == NULL) {
                continue;
            }
            judge_result(ours, BENCH_RELATIVE_LIMIT, sheet);
            judge_result(theirs, JUDGE_PEER_ERROR, sheet);
            /* An error of exactly 0 is that of an output compared with itself. */
            if (!(ours->relative_error > 0.0) || !(theirs->relative_error > 0.0)) {
                fail(sheet, point, "seed %d: an error of 0", seed);
            } else if (!(ours->relative_error <= JUDGE_ERROR_RATIO * theirs->relative_error)) {
                fail(sheet, point, "seed %d: error %.4e, %.3f times Triton's %.4e, more than %g",
                     seed, ours->relative_error, ours->relative_error / theirs->relative_error,
                     theirs->relative_error, JUDGE_ERROR_RATIO);
            }
        }
    }
}
