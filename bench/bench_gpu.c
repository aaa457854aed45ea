// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr bench`: times of verify attention on the GPU present, with the device's ceilings.
 *
 * Every row has fresh data and is checked against float64 before it is timed (bench/README.md). The
 * result is kept in memory until it is whole, so that a run that ends early, by whatever, leaves no
 * file and does no harm to one that is there.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_facts.h"
#include "gpu_options.h"
#include "gpu_progress.h"
#include "gpu_report.h"
#include "gpu_sets.h"
#include "kdtr_bench.h"
#include "output_file.h"

/** Exit code where nothing or not everything was measured; a row that fails gives 1. */
#define UNFINISHED 2

/** A text that grows: part of the result file. */
struct text {
    FILE *file;
    char *data;
    size_t size;
};

/** A run. */
struct run {
    struct bench_options options;
    struct bench_device device;
    struct bench_limit limits[BENCH_MAX_LIMITS];
    int32_t limit_count;
    struct bench_ceilings ceilings;
    struct bench_progress progress;
    struct text environment; /* its JSON object, but for the end */
    struct text rest;        /* ceilings and rows */
    int32_t failed;
};

/** Says why a run cannot go on. */
static int unfinished(const char *subject, const char *text) {
    fprintf(stderr, "kdtr: bench: %s%s%s\n", subject, *subject != '\0' ? ": " : "", text);
    return UNFINISHED;
}

/** Limits of a file, or those beside the program, which are an H200's. Returns an exit code. */
static int read_limits(struct run *run) {
    const char *name = run->options.limits;
    FILE *file;
    if (name != NULL) {
        file = fopen(name, "r");
        if (file == NULL) {
            return unfinished(name, "the limits cannot be read");
        }
    } else {
        int meant = strstr(kdtr_context_device_name(run->device.context), "H200") != NULL;
        file = meant ? output_open_beside("limits.txt") : NULL;
        if (file == NULL) {
            return 0;
        }
    }
    run->limit_count = bench_read_limits(file, run->limits);
    fclose(file);
    return run->limit_count >= 0
               ? 0
               : unfinished(name != NULL ? name : "limits.txt", "this is not a file of limits");
}

/** Device, build, ceilings. Returns an exit code. */
static int measure_device(struct run *run) {
    const struct bench_options *o = &run->options;
    kdtr_error error = {0};
    FILE *kit = o->kit != NULL ? fopen(o->kit, "r") : output_open_beside("kit.txt");
    if (kit == NULL && o->kit != NULL) {
        return unfinished(o->kit, "the facts about the build cannot be read");
    }
    bench_report_facts(&run->device, kit, o->samples, run->environment.file);
    if (kit != NULL) {
        fclose(kit);
    }
    bench_progress_draw(&run->progress, 0);
    int32_t status = KDTR_OK;
    if (!o->no_ceilings) {
        status = bench_measure_ceilings(&run->device, o->samples, &run->ceilings, &error);
    }
    bench_progress_clear(&run->progress);
    if (status != KDTR_OK) {
        return unfinished("no ceilings", error.text);
    }
    bench_report_ceilings(&run->ceilings, run->rest.file);
    return 0;
}

/** All rows of the selection; those that fail are counted. */
static void measure_rows(struct run *run, const struct bench_row *rows) {
    int written = 0;
    int32_t set = -1;
    for (int32_t i = 0; i < run->progress.total; i++) {
        kdtr_error error = {0};
        struct bench_result result;
        double floor_us = bench_floor_us(&rows[i], &run->ceilings);
        bench_progress_draw(&run->progress, i);
        int32_t status = bench_run_row(&run->device, &rows[i],
                                       (uint64_t)(run->options.seed * BENCH_MAX_ROWS + i),
                                       run->options.samples, &result, &error);
        bench_progress_clear(&run->progress);
        if (rows[i].set != set) {
            set = rows[i].set;
            bench_report_heading(set, run->options.wide);
        }
        bench_report_row(&rows[i], &result, floor_us,
                         bench_find_limit(run->limits, run->limit_count, &rows[i]),
                         run->options.wide, status == KDTR_OK ? NULL : error.text);
        run->failed += status != KDTR_OK;
        if (status == KDTR_OK) {
            bench_write_row(&rows[i], &result, floor_us, written == 0, run->rest.file);
            written++;
        }
    }
}

/** Puts the parts of the result together and writes them. Returns an exit code. */
static int write_result(struct run *run, double seconds, const char *path) {
    struct text whole = {0};
    int failed = fclose(run->environment.file) != 0;
    failed |= fclose(run->rest.file) != 0;
    run->environment.file = run->rest.file = NULL;
    if (failed) {
        return unfinished(path, "no memory for the result");
    }
    whole.file = open_memstream(&whole.data, &whole.size);
    if (whole.file == NULL) {
        return unfinished(path, "no memory for the result");
    }
    fprintf(whole.file,
            "{\"schema\": 1,\n  \"environment\": {%s, \"seconds\": %.1f, \"rows_failed\": %d},\n"
            "  \"ceilings\": %s\n  ]}\n",
            run->environment.data, seconds, run->failed, run->rest.data);
    int cause = fclose(whole.file) != 0 ? -1 : output_write(path, whole.data, whole.size);
    free(whole.data);
    if (cause != 0) {
        return unfinished(path, cause > 0 ? strerror(cause) : "no memory for the result");
    }
    if (strncmp(path, "/dev/", 5) != 0) {
        printf("%s is written\n", path);
    }
    return 0;
}

/** Everything once the device is open. Returns an exit code. */
static int measure(struct run *run) {
    struct bench_row rows[BENCH_MAX_ROWS];
    char name[OUTPUT_NAME_SIZE];
    const struct bench_options *o = &run->options;
    const char *path = o->json;
    int code = read_limits(run);
    if (code != 0) {
        return code;
    }
    if (path == NULL && !o->partial) {
        path = output_name(kdtr_context_device_name(run->device.context),
                           o->quick ? "bench-quick" : "bench", name, sizeof name);
    }
    int cause = path == NULL ? 0 : output_check(path);
    if (cause != 0) {
        return unfinished(path, strerror(cause));
    }
    run->progress.total = bench_list_rows(&o->selection, rows);
    if (run->progress.total == 0) {
        return unfinished("--set", "no row of these sets is of that implementation");
    }
    run->progress.shown = o->progress || isatty(STDERR_FILENO);
    run->progress.begin = bench_now();
    code = measure_device(run);
    if (code != 0) {
        return code;
    }
    fprintf(run->rest.file, ",\n  \"rows\": [\n");
    measure_rows(run, rows);
    double seconds = bench_now() - run->progress.begin;
    printf("\n%d rows, %d failed, %.1f s\n", run->progress.total, run->failed, seconds);
    code = path == NULL ? 0 : write_result(run, seconds, path);
    return code != 0 ? code : run->failed > 0;
}

/** Closes and frees a text. */
static void drop(struct text *text) {
    if (text->file != NULL) {
        fclose(text->file);
    }
    free(text->data);
}

int kdtr_bench_main(int argc, char **argv) {
    struct run run;
    kdtr_error error = {0};
    memset(&run, 0, sizeof run);
    int code = bench_parse_options(argc, argv, &run.options);
    if (code != 0) {
        return code;
    }
    run.environment.file = open_memstream(&run.environment.data, &run.environment.size);
    run.rest.file = open_memstream(&run.rest.data, &run.rest.size);
    if (run.environment.file == NULL || run.rest.file == NULL) {
        code = unfinished("", "no memory for the result");
    } else if (bench_device_open(&run.device, &error) != KDTR_OK) {
        code = unfinished("", error.text);
    } else {
        code = measure(&run);
    }
    bench_device_close(&run.device);
    drop(&run.environment);
    drop(&run.rest);
    return code;
}
