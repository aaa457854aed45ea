// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Points, their limits, and the names of what a row has.
 */
#include "gpu_points.h"

#include <string.h>

static int same_point(const struct bench_point *a, const struct bench_point *b) {
    return a->batch == b->batch && a->heads == b->heads && a->nodes == b->nodes &&
           a->prefix == b->prefix;
}

/** Whether a plan could have these shapes. */
static int in_range(int b, int h, int q, long long n) {
    return b >= 1 && b <= 65535 && h >= 1 && h <= 1024 && q >= 1 && q <= 65536 && n >= 0 &&
           n + q <= INT32_MAX / 2 / b && q <= INT32_MAX / h / b;
}

/** Longest limit that is one, us. */
#define LONGEST_US 1e9

/** Whether a line, from which comments are gone, is a limit. */
static int parse_limit(const char *line, struct bench_limit *limit) {
    long long prefix;
    int end = 0;
    if (sscanf(line, "%9d %9d %9d %18lld %lf %lf %n", &limit->point.batch, &limit->point.heads,
               &limit->point.nodes, &prefix, &limit->at_most_us, &limit->aim_us, &end) != 6 ||
        !in_range(limit->point.batch, limit->point.heads, limit->point.nodes, prefix) ||
        !(limit->at_most_us > 0.0 && limit->at_most_us < LONGEST_US) ||
        !(limit->aim_us > 0.0 && limit->aim_us < LONGEST_US)) {
        return 0;
    }
    limit->point.prefix = prefix;
    limit->accepted_us = 0.0;
    if (line[end] == '\0') {
        return 1;
    }
    int more = 0;
    return sscanf(line + end, "%lf %n", &limit->accepted_us, &more) == 1 &&
           line[end + more] == '\0' && limit->accepted_us >= limit->at_most_us &&
           limit->accepted_us < LONGEST_US;
}

int bench_parse_point(const char *text, struct bench_point *point) {
    int b;
    int h;
    int q;
    long long n;
    int end = 0;
    if (sscanf(text, "%9d,%9d,%9d,%18lld%n", &b, &h, &q, &n, &end) != 4 || text[end] != '\0' ||
        !in_range(b, h, q, n)) {
        return 1;
    }
    *point = (struct bench_point){b, h, q, n};
    return 0;
}

int32_t bench_read_limits(FILE *file, struct bench_limit *limits) {
    char line[256];
    int32_t count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " ")] == '\0') {
            continue;
        }
        struct bench_limit one;
        if (count == BENCH_MAX_LIMITS || !parse_limit(line, &one)) {
            return -1;
        }
        for (int32_t i = 0; i < count; i++) {
            if (same_point(&limits[i].point, &one.point)) {
                return -1;
            }
        }
        limits[count++] = one;
    }
    return count;
}

const struct bench_limit *bench_find_limit(const struct bench_limit *limits, int32_t count,
                                           const struct bench_row *row) {
    if (row->implementation == KDTR_IMPLEMENTATION_NAIVE || row->exact ||
        row->layout != BENCH_RANDOM || row->stride != BENCH_ROW_ELEMENTS) {
        return NULL;
    }
    for (int32_t i = 0; i < count; i++) {
        if (same_point(&limits[i].point, &row->point)) {
            return &limits[i];
        }
    }
    return NULL;
}

const char *bench_implementation_name(const struct bench_row *row) {
    return row->implementation == KDTR_IMPLEMENTATION_NAIVE   ? "naive"
           : row->implementation != KDTR_IMPLEMENTATION_FLASH ? "auto"
           : row->exact                                       ? "flash_exact"
                                                              : "flash";
}

const char *bench_layout_name(int32_t layout) {
    return layout == BENCH_CONTIGUOUS ? "contiguous" : "random";
}

const char *bench_mask_name(int32_t mask_mode) {
    return mask_mode == KDTR_MASK_PARENTS ? "parents" : "packed";
}

const char *bench_set_name(int32_t set) {
    static const char *const names[] = {"table",   "long",         "sweep_n", "sweep_q",
                                        "sweep_h", "sweep_budget", "point"};
    return names[set];
}
