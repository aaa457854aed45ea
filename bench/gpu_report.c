// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Table and result file of bench_gpu.
 */
#include "gpu_report.h"

#include <string.h>
#include <time.h>

/** A fact on the screen and in the file. */
static void fact(FILE *json, const char *name, const char *value) {
    printf("%-20s %s\n", name, value);
    if (json != NULL) {
        fprintf(json, "\"%s\": \"", name);
        for (; *value != '\0'; value++) {
            if (*value == '"' || *value == '\\') {
                fputc('\\', json);
            }
            fputc((unsigned char)*value < ' ' ? ' ' : *value, json);
        }
        fprintf(json, "\", ");
    }
}

static void number(FILE *json, const char *name, double value) {
    printf("%-20s %.0f\n", name, value);
    if (json != NULL) {
        fprintf(json, "\"%s\": %.0f, ", name, value);
    }
}

/** What nvidia-smi says, where there is one. */
static void report_driver(FILE *json) {
    static const char *const names[] = {"driver",         "sm_clock_max", "memory_clock_max",
                                        "sm_clock_start", "power_limit",  "temperature"};
    char line[256] = "";
    FILE *smi = popen("nvidia-smi --id=0 --format=csv,noheader --query-gpu=driver_version,"
                      "clocks.max.sm,clocks.max.mem,clocks.sm,power.limit,temperature.gpu "
                      "2> /dev/null",
                      "r");
    if (smi == NULL) {
        return;
    }
    int got = fgets(line, sizeof line, smi) != NULL;
    if (pclose(smi) != 0 || !got) {
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    char *at = line;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && at != NULL; i++) {
        char *end = strstr(at, ", ");
        if (end != NULL) {
            *end = '\0';
            end += 2;
        }
        fact(json, names[i], at);
        at = end;
    }
}

/** Lines "name value" of the kit: commit, hash of the sources. */
static void report_kit(const char *path, FILE *json) {
    char line[256];
    FILE *kit = path == NULL ? NULL : fopen(path, "r");
    while (kit != NULL && fgets(line, sizeof line, kit) != NULL) {
        char *value = strchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        if (value != NULL) {
            *value = '\0';
            fact(json, line, value + 1);
        }
    }
    if (kit != NULL) {
        fclose(kit);
    }
}

/** How it is measured, in words and with the numbers of this run. */
static void report_method(int32_t samples, FILE *json) {
    char count[64];
    char method[400];
    if (samples > 0) {
        snprintf(count, sizeof count, "%d samples", samples);
    } else {
        snprintf(count, sizeof count, "%d samples or of %d above %d ms", BENCH_SAMPLES,
                 BENCH_FEW_SAMPLES, BENCH_LONG_US / 1000);
    }
    snprintf(method, sizeof method,
             "events around kdtr_run behind %d us of a spinning kernel, L2 flushed by reading %g "
             "MiB before each sample, %d warm-ups, median and quartiles of %s, nothing subtracted; "
             "fresh data a row, o and lse checked against float64 before it is timed",
             BENCH_SPIN_US, (double)BENCH_FLUSH_BYTES / 1048576, BENCH_WARM_UP, count);
    printf("%-20s %s\n", "method", method);
    if (json != NULL) {
        fprintf(json, "\"method\": \"%s\"}", method);
    }
}

void bench_report_environment(const struct bench_device *device, const char *kit, int32_t samples,
                              FILE *json) {
    int driver = 0;
    int runtime = 0;
    char date[32] = "";
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%d", &utc);
    }
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (json != NULL) {
        fprintf(json, "{\"schema\": 1,\n  \"environment\": {");
    }
    fact(json, "gpu", kdtr_context_device_name(device->context));
    number(json, "sms", device->sm_count);
    number(json, "l2_bytes", device->l2_bytes);
    number(json, "sm_clock_khz", device->sm_khz);
    number(json, "memory_clock_khz", device->memory_khz);
    number(json, "driver_cuda", driver);
    number(json, "runtime_cuda", runtime);
    report_driver(json);
    report_kit(kit, json);
    fact(json, "date", date);
    report_method(samples, json);
}

void bench_report_ceilings(const struct bench_ceilings *c, FILE *json) {
    printf("\nbetween two events   %8.2f us\nempty kernel         %8.2f us\n"
           "copy                 %8.1f GB/s (read and written)\nread                 %8.1f GB/s\n",
           c->event_us, c->empty_us, c->copy_gbps, c->read_gbps);
    for (int i = 0; i < BENCH_GATHER_SIZES; i++) {
        printf("gather %9.0f rows %7.1f GB/s random, %7.1f GB/s contiguous\n", c->gather_rows[i],
               c->gather_random_gbps[i], c->gather_contiguous_gbps[i]);
    }
    printf("mma m16n8k16 bf16    %8.1f TFLOP/s\n\n", c->mma_tflops);
    if (json == NULL) {
        return;
    }
    fprintf(json,
            ",\n  \"ceilings\": {\"event_us\": %.2f, \"empty_kernel_us\": %.2f, "
            "\"copy_gbps\": %.1f, \"read_gbps\": %.1f, \"mma_tflops\": %.1f, \"gather\": [",
            c->event_us, c->empty_us, c->copy_gbps, c->read_gbps, c->mma_tflops);
    for (int i = 0; i < BENCH_GATHER_SIZES; i++) {
        fprintf(json, "%s{\"rows\": %.0f, \"random_gbps\": %.1f, \"contiguous_gbps\": %.1f}",
                i == 0 ? "" : ", ", c->gather_rows[i], c->gather_random_gbps[i],
                c->gather_contiguous_gbps[i]);
    }
    fprintf(json, "]}");
    fflush(stdout);
}

void bench_report_heading(void) {
    printf("%-5s %3s %3s %3s %8s %-10s %-7s %5s %10s %10s %10s %9s %6s %8s %7s %7s %8s %9s %8s "
           "%6s %5s %6s %6s %5s\n",
           "impl", "B", "H", "Q", "N", "layout", "mask", "row B", "median us", "p25", "p75",
           "floor", "floor%", "at most", "aim", "GB/s", "rel err", "max err", "lse err", "tiles",
           "parts", "chunks", "items", "waves");
}

void bench_report_row(const struct bench_row *row, const struct bench_result *result,
                      double floor_us, const struct bench_limit *limit, const char *failure) {
    const struct bench_point *p = &row->point;
    printf("%-11s %3d %3d %3d %8lld %-10s %-7s %5d ", bench_implementation_name(row), p->batch,
           p->heads, p->nodes, (long long)p->prefix, bench_layout_name(row->layout),
           bench_mask_name(row->mask_mode), 2 * row->stride);
    if (failure != NULL) {
        printf("FAILED: %s (rel err %.2e, max err %.2e, lse err %.2e)\n", failure,
               result->error.relative_error, result->error.max_abs_error, result->lse_error);
        fflush(stdout);
        return;
    }
    double median = result->time.median;
    printf("%10.2f %10.2f %10.2f %9.2f %6.1f ", median, result->time.p25, result->time.p75,
           floor_us, median > 0.0 ? 100.0 * floor_us / median : 0.0);
    if (limit != NULL) {
        printf("%7g%c %7g ", limit->at_most_us, median > limit->at_most_us ? '!' : ' ',
               limit->aim_us);
    } else {
        printf("%8s %7s ", "", "");
    }
    printf("%7.1f %8.2e %9.2e %8.1e", median > 0.0 ? bench_cache_bytes(p) / median * 1e-3 : 0.0,
           result->error.relative_error, result->error.max_abs_error, result->lse_error);
    const struct bench_schedule *s = &result->schedule;
    if (s->row_tiles > 0) {
        printf(" %6d %5d %6d %6lld %5lld", s->row_tiles, s->parts, s->chunks, (long long)s->items,
               (long long)s->waves);
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
            "\"row_stride_bytes\": %d, ",
            first ? "" : ",\n", bench_implementation_name(row),
            row->mask_mode == KDTR_MASK_PARENTS ? "tree_parents" : "tree", p->batch, p->heads,
            p->nodes, (long long)p->prefix, bench_layout_name(row->layout), 2 * row->stride);
    fprintf(json,
            "\"median_us\": %.2f, \"p25_us\": %.2f, \"p75_us\": %.2f, \"samples\": %d, "
            "\"max_abs_error\": %.3e, \"relative_error\": %.3e, \"lse_error\": %.3e, "
            "\"floor_us\": %.2f, \"gbps\": %.1f, \"workspace_bytes\": %.0f",
            median, result->time.p25, result->time.p75, result->time.count,
            result->error.max_abs_error, result->error.relative_error, result->lse_error, floor_us,
            median > 0.0 ? bench_cache_bytes(p) / median * 1e-3 : 0.0, result->workspace_bytes);
    const struct bench_schedule *s = &result->schedule;
    if (s->row_tiles > 0) {
        fprintf(json,
                ", \"row_tiles\": %d, \"parts\": %d, \"chunks\": %d, \"items\": %lld, "
                "\"waves\": %lld",
                s->row_tiles, s->parts, s->chunks, (long long)s->items, (long long)s->waves);
    }
    fputc('}', json);
}
