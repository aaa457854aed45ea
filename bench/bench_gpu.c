// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Times of verify attention on the GPU present, with the device's ceilings: bench_gpu [OPTIONS]
 *
 * Every row has fresh data and is checked against float64 before it is timed (bench/README.md).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gpu_report.h"

/** Exit code where nothing or not everything was measured; a row that fails gives 1. */
#define UNFINISHED 2

/** What the command line says. */
struct options {
    struct bench_selection selection;
    const char *json;
    const char *kit;
    const char *limits;
    int32_t samples; /* 0: as the method says */
    int no_ceilings;
    long long seed;
};

static const char usage[] =
    "usage: bench_gpu [OPTIONS]\n"
    "  --json FILE            result file\n"
    "  --kit FILE             lines \"name value\" for the result file: commit and the like\n"
    "  --limits FILE          limits that the table shows: B H Q N at_most aim\n"
    "  --point B,H,Q,N        this point instead of the table's\n"
    "  --layout NAME          random or contiguous instead of both\n"
    "  --mask NAME            packed or parents\n"
    "  --row-bytes N          bytes from cache row to cache row: 1152 or more\n"
    "  --implementation NAME  flash, exact (flash in exact mode), naive or auto; else both modes "
    "of\n"
    "                         flash, and naive at small points\n"
    "  --samples N            of each time, instead of 25, or 9 above 2 ms\n"
    "  --quick                as --samples 5\n"
    "  --no-ceilings          leaves the ceilings out, and so the floors\n"
    "  --seed N               of the data\n";

/** Number of the name among some; -1 if it is none. */
static int32_t choose(const char *name, const char *const *names, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

/** A number in range; -1 if it is none. */
static int32_t whole(const char *text, int32_t low, int32_t high) {
    char *end;
    long value = strtol(text, &end, 10);
    return *text == '\0' || *end != '\0' || value < low || value > high ? -1 : (int32_t)value;
}

/** An option that takes a value. Returns 1 if it is bad. */
static int take(struct options *o, const char *name, const char *value) {
    static const char *const layouts[] = {"random", "contiguous"};
    static const char *const masks[] = {"parents", "packed"};
    static const char *const implementations[] = {"auto", "naive", "flash", "exact"};
    static const int32_t numbers[] = {KDTR_IMPLEMENTATION_AUTO, KDTR_IMPLEMENTATION_NAIVE,
                                      KDTR_IMPLEMENTATION_FLASH, KDTR_IMPLEMENTATION_FLASH};
    struct bench_selection *s = &o->selection;
    int32_t got = 0;
    if (strcmp(name, "--json") == 0) {
        o->json = value;
    } else if (strcmp(name, "--kit") == 0) {
        o->kit = value;
    } else if (strcmp(name, "--limits") == 0) {
        o->limits = value;
    } else if (strcmp(name, "--point") == 0) {
        return bench_parse_point(value, &s->point);
    } else if (strcmp(name, "--layout") == 0) {
        got = s->layout = choose(value, layouts, 2);
    } else if (strcmp(name, "--mask") == 0) {
        got = choose(value, masks, 2);
        s->mask_mode = got + KDTR_MASK_PARENTS;
    } else if (strcmp(name, "--row-bytes") == 0) {
        got = whole(value, 2 * BENCH_ROW_ELEMENTS, 65536);
        s->stride = got / 2;
        return got < 0 || got % 4 != 0;
    } else if (strcmp(name, "--implementation") == 0) {
        got = choose(value, implementations, 4);
        s->implementation = got < 0 ? got : numbers[got];
        s->exact = got == 3;
    } else if (strcmp(name, "--samples") == 0) {
        got = o->samples = whole(value, 1, BENCH_MAX_SAMPLES);
    } else if (strcmp(name, "--seed") == 0) {
        got = whole(value, 0, INT32_MAX);
        o->seed = got;
    } else {
        return 1;
    }
    return got < 0;
}

/** Returns 0, 2 for bad options, or -1 where there is nothing left to do. */
static int parse(int argc, char **argv, struct options *o) {
    *o = (struct options){.selection = {{0, 0, 0, 0}, -1, -1, -1, 0, 0}, .seed = 1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            o->samples = 5;
        } else if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return -1;
        } else if (strcmp(argv[i], "--no-ceilings") == 0) {
            o->no_ceilings = 1;
        } else if (i + 1 == argc || take(o, argv[i], argv[i + 1]) != 0) {
            fprintf(stderr, "bench_gpu: bad option %s\n%s", argv[i], usage);
            return 2;
        } else {
            i++;
        }
    }
    return 0;
}

/** All rows of a selection. Returns how many failed. */
static int measure_rows(const struct bench_device *device, const struct options *o,
                        const struct bench_ceilings *ceilings, const struct bench_limit *limits,
                        int32_t limit_count, FILE *json) {
    struct bench_row rows[BENCH_MAX_ROWS];
    int32_t count = bench_list_rows(&o->selection, rows);
    int failed = 0;
    int written = 0;
    if (json != NULL) {
        fprintf(json, ",\n  \"rows\": [\n");
    }
    bench_report_heading();
    for (int32_t i = 0; i < count; i++) {
        kdtr_error error = {0};
        struct bench_result result;
        double floor_us = bench_floor_us(&rows[i], ceilings);
        int32_t status = bench_run_row(device, &rows[i], (uint64_t)(o->seed * BENCH_MAX_ROWS + i),
                                       o->samples, &result, &error);
        bench_report_row(&rows[i], &result, floor_us,
                         bench_find_limit(limits, limit_count, &rows[i]),
                         status == KDTR_OK ? NULL : error.text);
        failed += status != KDTR_OK;
        if (status == KDTR_OK && json != NULL) {
            bench_write_row(&rows[i], &result, floor_us, written == 0, json);
            written++;
        }
    }
    if (json != NULL) {
        fprintf(json, "\n  ]}\n");
    }
    printf("%d rows, %d failed\n", count, failed);
    return failed;
}

/** Everything once the device is open. Returns UNFINISHED where the result file is not whole. */
static int measure(const struct bench_device *device, const struct options *o,
                   const struct bench_limit *limits, int32_t limit_count, FILE *json) {
    struct bench_ceilings ceilings;
    kdtr_error error = {0};
    memset(&ceilings, 0, sizeof ceilings);
    bench_report_environment(device, o->kit, o->samples, json);
    int32_t status = KDTR_OK;
    if (!o->no_ceilings) {
        status = bench_measure_ceilings(device, o->samples, &ceilings, &error);
    }
    if (status != KDTR_OK) {
        fprintf(stderr, "bench_gpu: no ceilings: %s\n", error.text);
        return UNFINISHED;
    }
    bench_report_ceilings(&ceilings, json);
    return measure_rows(device, o, &ceilings, limits, limit_count, json) != 0;
}

/** Closes the result file; one that is not whole is removed. Returns the exit code. */
static int finish(FILE *json, const char *path, int code) {
    struct stat kind;
    /* Not a device such as /dev/null. */
    int regular = fstat(fileno(json), &kind) == 0 && S_ISREG(kind.st_mode);
    if (fclose(json) != 0) {
        fprintf(stderr, "bench_gpu: cannot write %s\n", path);
        code = UNFINISHED;
    }
    if (code == UNFINISHED && regular) {
        remove(path);
    }
    return code;
}

int main(int argc, char **argv) {
    struct bench_limit limits[BENCH_MAX_LIMITS];
    struct bench_device device;
    struct options o;
    kdtr_error error = {0};
    int32_t limit_count = 0;
    int code = parse(argc, argv, &o);
    if (code != 0) {
        return code < 0 ? 0 : code;
    }
    if (o.limits != NULL) {
        FILE *file = fopen(o.limits, "r");
        limit_count = file == NULL ? -1 : bench_read_limits(file, limits);
        if (file != NULL) {
            fclose(file);
        }
        if (limit_count < 0) {
            fprintf(stderr, "bench_gpu: %s is not a file of limits\n", o.limits);
            return 2;
        }
    }
    FILE *json = o.json == NULL ? NULL : fopen(o.json, "w");
    if (o.json != NULL && json == NULL) {
        fprintf(stderr, "bench_gpu: cannot write %s\n", o.json);
        return 2;
    }
    if (bench_device_open(&device, &error) == KDTR_OK) {
        code = measure(&device, &o, limits, limit_count, json);
    } else {
        fprintf(stderr, "bench_gpu: %s\n", error.text);
        code = UNFINISHED;
    }
    bench_device_close(&device);
    return json == NULL ? code : finish(json, o.json, code);
}
