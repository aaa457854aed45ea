// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Points of bench_gpu and their limits.
 */
#include "gpu_points.h"

#include <string.h>

/** A point and the variants that are timed besides its two layouts. */
struct table_point {
    struct bench_point point;
    int parents; /* with parents instead of words, random slots */
    int padded;  /* rows of 1,168 bytes, consecutive slots */
};

static const struct table_point table[] = {
    {{1, 8, 1, 200000}, 0, 0},  {{1, 8, 8, 200000}, 1, 1},   {{1, 8, 16, 200000}, 0, 0},
    {{1, 8, 64, 200000}, 0, 0}, {{1, 64, 8, 200000}, 0, 1},  {{1, 64, 64, 200000}, 0, 0},
    {{4, 16, 16, 32768}, 1, 0}, {{16, 128, 1, 32768}, 0, 0}, {{16, 128, 1, 4096}, 0, 0},
    {{1, 8, 8, 32768}, 0, 0},   {{4, 8, 8, 32768}, 0, 0},    {{16, 8, 8, 4096}, 0, 0},
    {{1, 8, 8, 4096}, 0, 0},    {{1, 8, 8, 1000000}, 0, 0},
};

/** Elements from row to row where rows are padded to 1,168 bytes. */
#define PADDED_STRIDE 584
/** Most heads times nodes of a naive row, which takes long. */
#define NAIVE_ROWS 64

static int same_point(const struct bench_point *a, const struct bench_point *b) {
    return a->batch == b->batch && a->heads == b->heads && a->nodes == b->nodes &&
           a->prefix == b->prefix;
}

/** Longest limit that is one, us. */
#define LONGEST_US 1e9

/** Whether a line, from which comments are gone, is a limit. */
static int parse_limit(const char *line, struct bench_limit *limit) {
    long long prefix;
    int end = 0;
    if (sscanf(line, "%d %d %d %lld %lf %lf %n", &limit->point.batch, &limit->point.heads,
               &limit->point.nodes, &prefix, &limit->at_most_us, &limit->aim_us, &end) != 6 ||
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
    if (sscanf(text, "%d,%d,%d,%lld%n", &b, &h, &q, &n, &end) != 4 || text[end] != '\0') {
        return 1;
    }
    if (b < 1 || b > 65535 || h < 1 || h > 1024 || q < 1 || q > 65536 || n < 0 ||
        n + q > INT32_MAX / 2 / b || q > INT32_MAX / h / b) {
        return 1;
    }
    *point = (struct bench_point){b, h, q, n};
    return 0;
}

/** Adds a row if the selection wants it and there is room. */
static int32_t add(const struct bench_selection *s, struct bench_row row, struct bench_row *rows,
                   int32_t count) {
    if ((s->layout >= 0 && s->layout != row.layout) || count == BENCH_MAX_ROWS) {
        return count;
    }
    rows[count] = row;
    return count + 1;
}

/** Adds the rows of one point. */
static int32_t add_point(const struct bench_selection *s, const struct table_point *t,
                         struct bench_row *rows, int32_t count) {
    int small = t->point.heads * t->point.nodes <= NAIVE_ROWS;
    struct bench_row row = {t->point,         s->implementation,  BENCH_RANDOM,
                            KDTR_MASK_PACKED, BENCH_ROW_ELEMENTS, s->exact};
    row.implementation = row.implementation < 0 ? KDTR_IMPLEMENTATION_FLASH : row.implementation;
    row.mask_mode = s->mask_mode >= 0 ? s->mask_mode : row.mask_mode;
    row.stride = s->stride > 0 ? s->stride : row.stride;
    if (row.implementation == KDTR_IMPLEMENTATION_NAIVE && s->point.batch == 0 && !small) {
        return count;
    }
    count = add(s, row, rows, count);
    if (t->parents && s->mask_mode < 0) {
        struct bench_row parents = row;
        parents.mask_mode = KDTR_MASK_PARENTS;
        count = add(s, parents, rows, count);
    }
    row.layout = BENCH_CONTIGUOUS;
    count = add(s, row, rows, count);
    if (t->padded && s->stride == 0) {
        row.stride = PADDED_STRIDE;
        count = add(s, row, rows, count);
    }
    if (s->implementation < 0 && small && s->point.batch == 0) {
        row = (struct bench_row){t->point,         KDTR_IMPLEMENTATION_NAIVE, BENCH_RANDOM,
                                 KDTR_MASK_PACKED, BENCH_ROW_ELEMENTS,        0};
        count = add(s, row, rows, count);
    }
    if (s->implementation < 0) {
        row = (struct bench_row){t->point,         KDTR_IMPLEMENTATION_FLASH, BENCH_RANDOM,
                                 KDTR_MASK_PACKED, BENCH_ROW_ELEMENTS,        1};
        row.mask_mode = s->mask_mode >= 0 ? s->mask_mode : row.mask_mode;
        row.stride = s->stride > 0 ? s->stride : row.stride;
        count = add(s, row, rows, count);
    }
    return count;
}

int32_t bench_list_rows(const struct bench_selection *selection, struct bench_row *rows) {
    if (selection->point.batch > 0) {
        const struct table_point one = {selection->point, 0, 0};
        return add_point(selection, &one, rows, 0);
    }
    int32_t count = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        count = add_point(selection, &table[i], rows, count);
    }
    return count;
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
