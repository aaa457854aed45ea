// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Tables for people, and rows of the result file.
 */
#include "gpu_report.h"

#include "gpu_sets.h"

void bench_report_ceilings(const struct bench_ceilings *c, FILE *json) {
    printf("\nbetween two events   %8.2f us\nempty kernel         %8.2f us\n"
           "copy                 %8.1f GB/s (read and written)\nread                 %8.1f GB/s\n",
           c->event_us, c->empty_us, c->copy_gbps, c->read_gbps);
    for (int i = 0; i < BENCH_GATHER_SIZES; i++) {
        printf("gather %9.0f rows %7.1f GB/s random, %7.1f GB/s contiguous\n", c->gather_rows[i],
               c->gather_random_gbps[i], c->gather_contiguous_gbps[i]);
    }
    printf("mma m16n8k16 bf16    %8.1f TFLOP/s\n", c->mma_tflops);
    fprintf(json,
            "{\"event_us\": %.2f, \"empty_kernel_us\": %.2f, \"copy_gbps\": %.1f, "
            "\"read_gbps\": %.1f, \"mma_tflops\": %.1f, \"gather\": [",
            c->event_us, c->empty_us, c->copy_gbps, c->read_gbps, c->mma_tflops);
    for (int i = 0; i < BENCH_GATHER_SIZES; i++) {
        fprintf(json, "%s{\"rows\": %.0f, \"random_gbps\": %.1f, \"contiguous_gbps\": %.1f}",
                i == 0 ? "" : ", ", c->gather_rows[i], c->gather_random_gbps[i],
                c->gather_contiguous_gbps[i]);
    }
    fprintf(json, "]}");
    fflush(stdout);
}

void bench_report_heading(int32_t set, int32_t wide) {
    printf("\n%s: %s\n", bench_set_name(set), bench_set_title(set));
    printf("%-11s %3s %4s %5s %8s %-15s %-7s %10s %10s %10s %9s %5s %8s %8s", "impl", "B", "H", "Q",
           "N", "slots", "mask", "median us", "p25", "p75", "floor", "share", "at most", "rel err");
    if (wide) {
        printf(" %7s %7s %9s %8s %6s %5s %6s %6s %5s", "aim", "GB/s", "max err", "lse err", "tiles",
               "parts", "chunks", "items", "waves");
    }
    printf("\n");
}

/** Effective rate: each cache row counts once. */
static double rate(const struct bench_row *row, double median) {
    return median > 0.0 ? bench_cache_bytes(&row->point) / median * 1e-3 : 0.0;
}

/** The columns that tuning needs. */
static void print_wide(const struct bench_row *row, const struct bench_result *result,
                       const struct bench_limit *limit) {
    char aim[16] = "";
    if (limit != NULL) {
        snprintf(aim, sizeof aim, "%g", limit->aim_us);
    }
    printf(" %7s %7.1f %9.2e %8.1e", aim, rate(row, result->time.median),
           result->error.max_abs_error, result->lse_error);
    const struct bench_schedule *s = &result->schedule;
    if (s->row_tiles > 0) {
        printf(" %6d %5d %6d %6lld %5lld", s->row_tiles, s->parts, s->chunks, (long long)s->items,
               (long long)s->waves);
    }
}

void bench_report_row(const struct bench_row *row, const struct bench_result *result,
                      double floor_us, const struct bench_limit *limit, int32_t wide,
                      const char *failure) {
    const struct bench_point *p = &row->point;
    char slots[32];
    char padding[16] = "";
    if (row->stride != BENCH_ROW_ELEMENTS) {
        snprintf(padding, sizeof padding, " %d", 2 * row->stride);
    }
    snprintf(slots, sizeof slots, "%s%s", bench_layout_name(row->layout), padding);
    printf("%-11s %3d %4d %5d %8lld %-15s %-7s ", bench_implementation_name(row), p->batch,
           p->heads, p->nodes, (long long)p->prefix, slots, bench_mask_name(row->mask_mode));
    if (failure != NULL) {
        printf("FAILED: %s (rel err %.2e, max err %.2e, lse err %.2e)\n", failure,
               result->error.relative_error, result->error.max_abs_error, result->lse_error);
        fflush(stdout);
        return;
    }
    double median = result->time.median;
    printf("%10.2f %10.2f %10.2f ", median, result->time.p25, result->time.p75);
    if (floor_us > 0.0 && median > 0.0) {
        printf("%9.2f %3.0f %% ", floor_us, 100.0 * floor_us / median);
    } else {
        printf("%9s %5s ", "", "");
    }
    if (limit != NULL) {
        printf("%7g%c ", limit->at_most_us, median > limit->at_most_us ? '!' : ' ');
    } else {
        printf("%8s ", "");
    }
    printf("%8.2e", result->error.relative_error);
    if (wide) {
        print_wide(row, result, limit);
    }
    printf("\n");
    fflush(stdout);
}

void bench_write_row(const struct bench_row *row, const struct bench_result *result,
                     double floor_us, int first, FILE *json) {
    const struct bench_point *p = &row->point;
    double median = result->time.median;
    fprintf(json,
            "%s    {\"op\": \"verify\", \"implementation\": \"kdtr_%s\", \"mask\": \"%s\", "
            "\"B\": %d, \"H\": %d, \"Q\": %d, \"N\": %lld, \"layout\": \"%s\", "
            "\"row_stride_bytes\": %d, \"set\": \"%s\", ",
            first ? "" : ",\n", bench_implementation_name(row),
            row->mask_mode == KDTR_MASK_PARENTS ? "tree_parents" : "tree", p->batch, p->heads,
            p->nodes, (long long)p->prefix, bench_layout_name(row->layout), 2 * row->stride,
            bench_set_name(row->set));
    fprintf(json,
            "\"median_us\": %.2f, \"p25_us\": %.2f, \"p75_us\": %.2f, \"samples\": %d, "
            "\"max_abs_error\": %.3e, \"relative_error\": %.3e, \"lse_error\": %.3e, "
            "\"floor_us\": %.2f, \"gbps\": %.1f, \"workspace_bytes\": %.0f",
            median, result->time.p25, result->time.p75, result->time.count,
            result->error.max_abs_error, result->error.relative_error, result->lse_error, floor_us,
            rate(row, median), result->workspace_bytes);
    if (row->budget > 0) {
        fprintf(json, ", \"budget\": %d", row->budget);
    }
    const struct bench_schedule *s = &result->schedule;
    if (s->row_tiles > 0) {
        fprintf(json,
                ", \"row_tiles\": %d, \"parts\": %d, \"chunks\": %d, \"items\": %lld, "
                "\"waves\": %lld",
                s->row_tiles, s->parts, s->chunks, (long long)s->items, (long long)s->waves);
    }
    fputc('}', json);
}
