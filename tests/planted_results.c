// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Planted result files.
 */
#include "planted_results.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_truth.h"

static char folder[RESULT_PATH];

/** Ends the program, whether it is one of Check or not. */
static void must(int condition) {
    if (!condition) {
        perror("planted results");
        exit(3);
    }
}

const char *planted_folder(void) {
    return folder;
}

void planted_make_folder(void) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/kdtr-planted-XXXXXX", base != NULL ? base : "/tmp");
    must(mkdtemp(folder) != NULL);
}

void planted_empty_folder(void) {
    DIR *entries = opendir(folder);
    must(entries != NULL);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        if (entry->d_name[0] != '.') {
            must(remove(planted_path(entry->d_name)) == 0);
        }
    }
    closedir(entries);
}

void planted_remove_folder(void) {
    planted_empty_folder();
    rmdir(folder);
}

const char *planted_path(const char *name) {
    static char path[2 * RESULT_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void planted_text(const char *text, const char *name) {
    FILE *out = fopen(planted_path(name), "w");
    must(out != NULL);
    must(fputs(text, out) >= 0);
    must(fclose(out) == 0);
}

/** Adds a row. */
static void add(struct planted_file *file, struct planted_row row) {
    must(file->count < PLANTED_MOST);
    file->rows[file->count++] = row;
}

/** A median that passes. */
static double passing(const struct bench_limit *limit) {
    return limit->accepted_us > 0.0 ? (limit->at_most_us + limit->accepted_us) / 2
                                    : limit->at_most_us * 0.99;
}

static void begin(struct planted_file *file) {
    memset(file, 0, sizeof *file);
    file->gpu = "NVIDIA H200";
    file->date = "2026-11-30";
    file->sources = PLANTED_SOURCES;
}

void planted_bench(struct planted_file *file, const struct bench_limit *limits, int32_t count) {
    begin(file);
    for (int32_t i = 0; i < count; i++) {
        double us = passing(&limits[i]);
        struct planted_row row = {.op = "verify",
                                  .implementation = "kdtr_flash",
                                  .mask = "tree",
                                  .point = limits[i].point,
                                  .median = us,
                                  .spread = 0.5,
                                  .error = BENCH_RELATIVE_LIMIT / 2,
                                  .workspace = 40000000};
        add(file, row);
        row.implementation = "kdtr_flash_exact";
        row.median = 1.2 * us;
        row.workspace = 200e6;
        add(file, row);
        /* Neither a naive row nor one with a mask of parents has a limit. */
        row.implementation = "kdtr_naive";
        row.median = 1000.0 * us;
        add(file, row);
        row.implementation = "kdtr_flash";
        row.mask = "tree_parents";
        row.median = 2.0 * us;
        add(file, row);
    }
}

void planted_peers(struct planted_file *file, const struct bench_limit *limits, int32_t count) {
    begin(file);
    for (int32_t i = 0; i < count; i++) {
        int tree = limits[i].point.nodes > 1;
        double us = passing(&limits[i]);
        struct planted_row row = {.op = "verify",
                                  .implementation = "kdtr_flash",
                                  .mask = "tree",
                                  .point = limits[i].point,
                                  .median = us,
                                  .spread = 0.5,
                                  .error = BENCH_RELATIVE_LIMIT / 2};
        add(file, row);
        row.spread = 0.2 * us;
        row.median = 4.0 * us;
        row.implementation = tree ? "sglang_triton_extend" : "sglang_triton_decode";
        add(file, row);
        row.implementation = "flashinfer_fa2";
        row.mask = "causal";
        add(file, row);
        row.implementation = "flashinfer_fa3";
        row.median = us / 2;
        add(file, row);
        for (int32_t seed = 1; tree && seed <= JUDGE_SEEDS; seed++) {
            struct planted_row error = {.op = "accuracy",
                                        .implementation = "kdtr_flash",
                                        .mask = "tree",
                                        .point = limits[i].point,
                                        .error = BENCH_RELATIVE_LIMIT / 2,
                                        .seed = seed};
            add(file, error);
            error.implementation = "sglang_triton_extend";
            error.error = BENCH_RELATIVE_LIMIT / 2 / 1.01;
            add(file, error);
        }
    }
}

/** Adds a row of a sweep in both modes. */
static void add_swept(struct planted_file *file, const char *set, struct bench_point point,
                      int32_t budget) {
    double tiles = (double)point.heads * point.nodes / 64.0;
    struct planted_row row = {.op = "verify",
                              .implementation = "kdtr_flash",
                              .mask = "tree",
                              .set = set,
                              .point = point,
                              .error = BENCH_RELATIVE_LIMIT / 2,
                              .budget = budget};
    row.median = 15.0 + (double)point.prefix * (tiles > 1.0 ? tiles : 1.0) / 2600.0;
    add(file, row);
    row.implementation = "kdtr_flash_exact";
    row.median *= 1.3;
    add(file, row);
}

void planted_sweeps(struct planted_file *file) {
    for (int64_t n = 1024; n <= 1048576; n *= 2) {
        add_swept(file, "sweep_n", (struct bench_point){1, 8, 8, n}, 0);
    }
    for (int32_t q = 1; q <= 256; q *= 2) {
        add_swept(file, "sweep_q", (struct bench_point){1, 8, q, 32768}, 0);
    }
    for (int32_t h = 1; h <= 128; h *= 2) {
        add_swept(file, "sweep_h", (struct bench_point){1, h, 8, 32768}, 0);
    }
    for (int32_t budget = 16; budget <= 1024; budget *= 2) {
        add_swept(file, "sweep_budget", (struct bench_point){1, 8, budget + 1, 32768}, budget);
    }
}

void planted_served(struct planted_file *file) {
    static const char *const names[] = {"kdtr_flash", "sglang_triton_extend"};
    for (int32_t q = 8; q <= 64; q *= q == 16 ? 4 : 2) {
        for (int64_t n = 4096; n <= 200000; n *= 2) {
            for (int k = 0; k < 2; k++) {
                struct planted_row row = {.op = "served",
                                          .implementation = names[k],
                                          .mask = "tree",
                                          .point = {1, 8, q, n},
                                          .spread = 1.0,
                                          .error = BENCH_RELATIVE_LIMIT / 2};
                row.median = (1000.0 + (double)n * q / 400.0) * (k == 0 ? 1.0 : 8.0);
                add(file, row);
            }
        }
    }
}

struct planted_row *planted_row(struct planted_file *file, const char *implementation,
                                struct bench_point point, int32_t seed) {
    for (int32_t i = 0; i < file->count; i++) {
        struct planted_row *row = &file->rows[i];
        if (strcmp(row->implementation, implementation) == 0 && row->seed == seed &&
            result_same_point(&row->point, &point)) {
            return row;
        }
    }
    must(0);
    return NULL;
}

static void write_row(FILE *out, const struct planted_row *row) {
    fprintf(out,
            "{\"op\": \"%s\", \"implementation\": \"%s\", \"mask\": \"%s\", \"B\": %d, \"H\": %d, "
            "\"Q\": %d, \"N\": %lld, \"relative_error\": %.6e",
            row->op, row->implementation, row->mask, row->point.batch, row->point.heads,
            row->point.nodes, (long long)row->point.prefix, row->error);
    if (row->seed > 0) {
        fprintf(out, ", \"seed\": %d}", row->seed);
        return;
    }
    fprintf(out,
            ", \"layout\": \"random\", \"median_us\": %.3f, \"p25_us\": %.3f, \"p75_us\": %.3f, "
            "\"samples\": %d",
            row->median, row->median - row->spread / 2, row->median + row->spread / 2,
            row->samples > 0 ? row->samples : 25);
    if (strcmp(row->op, "served") == 0) {
        fprintf(out, ", \"layers\": 61, \"accepted_length\": 4, \"tokens_per_s\": %.3f}",
                4e6 / row->median);
        return;
    }
    fprintf(out,
            ", \"set\": \"%s\", \"row_stride_bytes\": 1152, \"max_abs_error\": 5e-4, "
            "\"lse_error\": 1e-6, \"floor_us\": %.3f",
            row->set != NULL ? row->set : "table", row->median / 2);
    if (row->budget > 0) {
        fprintf(out, ", \"budget\": %d", row->budget);
    }
    if (row->workspace > 0.0) {
        fprintf(out, ", \"workspace_bytes\": %.0f", row->workspace);
    }
    fputc('}', out);
}

void planted_write(const struct planted_file *file, const char *name) {
    planted_write_to(file, planted_path(name));
}

void planted_write_to(const struct planted_file *file, const char *path) {
    FILE *out = fopen(path, "w");
    must(out != NULL);
    fprintf(out,
            "{\"schema\": 1, \"environment\": {\"gpu\": \"%s\", \"sms\": 132, \"driver\": "
            "\"580.159.04\", \"runtime_cuda\": 13000, \"sm_clock_max\": \"1980 MHz\", "
            "\"power_limit\": \"700.00 W\", \"commit\": \"c0ffee\", \"sources_sha256\": \"%s\", "
            "\"date\": \"%s\", \"method\": \"planted\", \"peers\": \"planted <1> & 2\"},\n"
            "\"ceilings\": {\"event_us\": 1.25, \"empty_kernel_us\": 2.66, \"copy_gbps\": 4100, "
            "\"read_gbps\": 4500, \"mma_tflops\": 640, \"gather\": ["
            "{\"rows\": 4096, \"random_gbps\": 880, \"contiguous_gbps\": 990}, "
            "{\"rows\": 32768, \"random_gbps\": 2900, \"contiguous_gbps\": 3160}, "
            "{\"rows\": 200000, \"random_gbps\": 4130, \"contiguous_gbps\": 4330}, "
            "{\"rows\": 1000000, \"random_gbps\": 4390, \"contiguous_gbps\": 4570}]},\n"
            "\"rows\": [",
            file->gpu, file->sources, file->date);
    int first = 1;
    for (int32_t i = 0; i < file->count; i++) {
        if (!file->rows[i].left_out) {
            fputs(first ? "\n" : ",\n", out);
            write_row(out, &file->rows[i]);
            first = 0;
        }
    }
    fputs("\n]}\n", out);
    must(fclose(out) == 0);
}
