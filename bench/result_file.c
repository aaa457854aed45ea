// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Result files: reading and checking one.
 */
#include "result_file.h"

#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** How far tokens_per_s may be from what its row says: it is a rounded quotient. */
#define QUOTIENT_SLACK 0.05

/** What a reader is at; the first error stays. */
struct reader {
    const char *path; /* of the file */
    char place[64];   /* "environment", "row 3" */
    char *error;      /* RESULT_ERROR bytes */
    int failed;
};

/** Reports an error, unless there is one. */
static void fail(struct reader *r, const char *name, const char *what) {
    if (!r->failed) {
        snprintf(r->error, RESULT_ERROR, "%.300s: %s: %s%s%s", r->path, r->place, name,
                 name[0] != '\0' ? " " : "", what);
        r->failed = 1;
    }
}

/** A member that must be there, or may be absent. NULL if it is not there. */
static const json_t *member(struct reader *r, const json_t *object, const char *name, int needed) {
    const json_t *value = json_object_get(object, name);
    if (value == NULL && needed) {
        fail(r, name, "is missing");
    }
    return value;
}

/** A number of at least 0, or above it if `above` is; `absent` where it may be missing and is. */
static double number(struct reader *r, const json_t *object, const char *name, int needed,
                     int above, double absent) {
    const json_t *value = member(r, object, name, needed);
    if (value == NULL) {
        return absent;
    }
    double x = json_number_value(value);
    if (!json_is_number(value)) {
        fail(r, name, "is not a number");
    } else if (!isfinite(x)) {
        fail(r, name, "is not finite");
    } else if (above && !(x > 0.0)) {
        fail(r, name, "is not above 0");
    } else if (!(x >= 0.0)) {
        fail(r, name, "is below 0");
    }
    return x;
}

/** An integer from least to most; 0 where it may be missing and is. */
static int64_t whole(struct reader *r, const json_t *object, const char *name, int needed,
                     int64_t least, int64_t most) {
    const json_t *value = member(r, object, name, needed);
    if (value == NULL) {
        return 0;
    }
    int64_t x = json_integer_value(value);
    if (!json_is_integer(value)) {
        fail(r, name, "is not an integer");
    } else if (x < least || x > most) {
        fail(r, name, "is out of range");
    }
    return x;
}

static int has_control(const char *from, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)from[i] < ' ') {
            return 1;
        }
    }
    return 0;
}

/** A text without control characters; empty where it may be missing and is. */
static void text(struct reader *r, const json_t *object, const char *name, int needed, char *to,
                 size_t bytes) {
    to[0] = '\0';
    const json_t *value = member(r, object, name, needed);
    if (value == NULL) {
        return;
    }
    const char *from = json_string_value(value);
    if (from == NULL) {
        fail(r, name, "is not a string");
    } else if (from[0] == '\0' || json_string_length(value) >= bytes) {
        fail(r, name, from[0] == '\0' ? "is empty" : "is too long");
    } else if (has_control(from, json_string_length(value))) {
        fail(r, name, "has a control character");
    } else {
        memcpy(to, from, json_string_length(value) + 1);
    }
}

/** A text that is a name: lower-case letters, digits, underscores. */
static void name_of(struct reader *r, const json_t *object, const char *name, int needed,
                    char *to) {
    text(r, object, name, needed, to, RESULT_NAME);
    if (to[strspn(to, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0') {
        fail(r, name, "is no name of lower-case letters, digits and underscores");
    }
}

/** Whether a name is among others. */
static int among(const char *name, const char *const *names, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

static int is_date(const char *date) {
    return strlen(date) == 10 && strspn(date, "0123456789-") == 10 && date[4] == '-' &&
           date[7] == '-' && strspn(date, "0123456789") == 4 &&
           strspn(date + 5, "0123456789") == 2 && strspn(date + 8, "0123456789") == 2;
}

static void read_environment(struct reader *r, const json_t *root, struct result_file *file) {
    snprintf(r->place, sizeof r->place, "environment");
    const json_t *e = json_object_get(root, "environment");
    char clock[RESULT_TEXT];
    char power[RESULT_TEXT];
    char cuda[RESULT_TEXT];
    if (!json_is_object(e)) {
        fail(r, "", "is missing or no object");
        return;
    }
    text(r, e, "gpu", 1, file->gpu, sizeof file->gpu);
    text(r, e, "driver", 1, file->driver, sizeof file->driver);
    text(r, e, "sm_clock_max", 1, clock, sizeof clock);
    text(r, e, "power_limit", 1, power, sizeof power);
    text(r, e, "commit", 1, file->commit, sizeof file->commit);
    text(r, e, "sources_sha256", 1, file->sources_sha256, sizeof file->sources_sha256);
    text(r, e, "date", 1, file->date, sizeof file->date);
    text(r, e, "method", 1, file->method, sizeof file->method);
    text(r, e, "peers", 0, file->peers, sizeof file->peers);
    file->sms = (int32_t)whole(r, e, "sms", 1, 1, 100000);
    /* The version of CUDA: a number of the runtime, or the text of what stands above it. */
    if (json_object_get(e, "cuda") == NULL) {
        whole(r, e, "runtime_cuda", 1, 1, INT32_MAX);
    } else {
        text(r, e, "cuda", 1, cuda, sizeof cuda);
    }
    if (file->sources_sha256[0] != '\0' &&
        (strlen(file->sources_sha256) != 64 ||
         strspn(file->sources_sha256, "0123456789abcdef") != 64)) {
        fail(r, "sources_sha256", "is not of 64 hexadecimal digits");
    }
    for (const char *c = file->commit; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != ' ') {
            fail(r, "commit", "is not of letters, digits, dashes and blanks");
        }
    }
    char *end = clock;
    file->sm_clock_mhz = strtod(clock, &end);
    if (!(file->sm_clock_mhz > 0.0) || !isfinite(file->sm_clock_mhz) || strcmp(end, " MHz") != 0) {
        fail(r, "sm_clock_max", "is not of the form 1980 MHz");
    }
    if (!is_date(file->date)) {
        fail(r, "date", "is not of the form YYYY-MM-DD");
    }
}

static void read_ceilings(struct reader *r, const json_t *root, struct result_file *file) {
    struct bench_ceilings *c = &file->ceilings;
    const json_t *from = json_object_get(root, "ceilings");
    snprintf(r->place, sizeof r->place, "ceilings");
    if (from == NULL) {
        return;
    }
    const json_t *gather = json_object_get(from, "gather");
    if (!json_is_object(from)) {
        fail(r, "", "are no object");
        return;
    }
    if (!json_is_array(gather) || json_array_size(gather) != BENCH_GATHER_SIZES) {
        fail(r, "gather", "is not an array of 4 sizes");
        return;
    }
    file->has_ceilings = 1;
    c->event_us = number(r, from, "event_us", 1, 0, 0.0);
    c->empty_us = number(r, from, "empty_kernel_us", 1, 1, 0.0);
    c->copy_gbps = number(r, from, "copy_gbps", 1, 1, 0.0);
    c->read_gbps = number(r, from, "read_gbps", 1, 1, 0.0);
    c->mma_tflops = number(r, from, "mma_tflops", 1, 1, 0.0);
    for (size_t i = 0; i < BENCH_GATHER_SIZES; i++) {
        const json_t *one = json_array_get(gather, i);
        c->gather_rows[i] = number(r, one, "rows", 1, 1, 0.0);
        c->gather_random_gbps[i] = number(r, one, "random_gbps", 1, 1, 0.0);
        c->gather_contiguous_gbps[i] = number(r, one, "contiguous_gbps", 1, 1, 0.0);
        if (i > 0 && !(c->gather_rows[i] > c->gather_rows[i - 1])) {
            fail(r, "gather", "is not in ascending order of rows");
        }
    }
}

/** Shape and names, which all rows have. */
static void read_point(struct reader *r, const json_t *from, struct result_row *row) {
    static const char *const masks[] = {"tree", "tree_parents", "causal", "none"};
    static const char *const layouts[] = {"random", "contiguous"};
    name_of(r, from, "implementation", 1, row->implementation);
    name_of(r, from, "mask", 1, row->mask);
    name_of(r, from, "set", 0, row->set);
    text(r, from, "note", 0, row->note, sizeof row->note);
    row->point.batch = (int32_t)whole(r, from, "B", 1, 1, 65535);
    row->point.heads = (int32_t)whole(r, from, "H", 1, 1, 1024);
    row->point.nodes = (int32_t)whole(r, from, "Q", 1, 1, 65536);
    row->point.prefix = whole(r, from, "N", 1, 0, INT32_MAX);
    row->page_size = (int32_t)whole(r, from, "page_size", 0, 1, 65536);
    row->budget = (int32_t)whole(r, from, "budget", 0, 1, 65535);
    row->relative_error = number(r, from, "relative_error", 1, 0, 0.0);
    if (!among(row->mask, masks, 4)) {
        fail(r, "mask", "is none of tree, tree_parents, causal, none");
    }
    if (strcmp(row->op, "accuracy") != 0) {
        name_of(r, from, "layout", 1, row->layout);
        if (!among(row->layout, layouts, 2)) {
            fail(r, "layout", "is neither random nor contiguous");
        }
    }
}

static void read_times(struct reader *r, const json_t *from, struct result_row *row) {
    row->time.median = number(r, from, "median_us", 1, 1, 0.0);
    row->time.p25 = number(r, from, "p25_us", 1, 1, 0.0);
    row->time.p75 = number(r, from, "p75_us", 1, 1, 0.0);
    row->time.count = (int32_t)whole(r, from, "samples", 1, 1, INT32_MAX);
    if (!(row->time.p25 <= row->time.median && row->time.median <= row->time.p75)) {
        fail(r, "p25_us, median_us, p75_us", "are not in ascending order");
    }
}

static void read_row(struct reader *r, const json_t *from, struct result_row *row) {
    row->max_abs_error = row->lse_error = row->workspace_bytes = -1.0;
    if (!json_is_object(from)) {
        fail(r, "", "is no object");
        return;
    }
    name_of(r, from, "op", 1, row->op);
    read_point(r, from, row);
    if (strcmp(row->op, "verify") == 0) {
        read_times(r, from, row);
        int ours = strncmp(row->implementation, "kdtr_", 5) == 0;
        row->row_stride_bytes = (int32_t)whole(r, from, "row_stride_bytes", 1, 1, INT32_MAX);
        row->floor_us = number(r, from, "floor_us", 0, 0, 0.0);
        row->max_abs_error = number(r, from, "max_abs_error", 1, 0, -1.0);
        row->lse_error = number(r, from, "lse_error", ours, 0, -1.0);
        row->workspace_bytes = number(r, from, "workspace_bytes", 0, 0, -1.0);
    } else if (strcmp(row->op, "served") == 0) {
        read_times(r, from, row);
        row->layers = (int32_t)whole(r, from, "layers", 1, 1, 100000);
        row->accepted_length = number(r, from, "accepted_length", 1, 1, 0.0);
        row->tokens_per_s = number(r, from, "tokens_per_s", 1, 1, 0.0);
        double quotient = row->accepted_length / row->time.median * 1e6;
        if (!(fabs(row->tokens_per_s - quotient) <= QUOTIENT_SLACK * quotient)) {
            fail(r, "tokens_per_s", "is not accepted_length by median_us");
        }
    } else if (strcmp(row->op, "accuracy") == 0) {
        row->seed = (int32_t)whole(r, from, "seed", 1, 1, INT32_MAX);
    } else {
        fail(r, "op", "is none of verify, served, accuracy");
    }
}

static int same_row(const struct result_row *a, const struct result_row *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->implementation, b->implementation) == 0 &&
           strcmp(a->mask, b->mask) == 0 && strcmp(a->layout, b->layout) == 0 &&
           strcmp(a->set, b->set) == 0 && result_same_point(&a->point, &b->point) &&
           a->row_stride_bytes == b->row_stride_bytes && a->page_size == b->page_size &&
           a->budget == b->budget && a->layers == b->layers && a->seed == b->seed;
}

static void read_rows(struct reader *r, const json_t *root, struct result_file *file) {
    const json_t *rows = json_object_get(root, "rows");
    snprintf(r->place, sizeof r->place, "rows");
    size_t count = json_array_size(rows);
    if (count == 0 || count > RESULT_MOST_ROWS) {
        fail(r, "", count == 0 ? "are missing, empty or no array" : "are too many");
        return;
    }
    file->rows = calloc(count, sizeof file->rows[0]);
    if (file->rows == NULL) {
        fail(r, "", "need more memory than there is");
        return;
    }
    for (size_t i = 0; i < count && !r->failed; i++) {
        snprintf(r->place, sizeof r->place, "row %zu", i + 1);
        read_row(r, json_array_get(rows, i), &file->rows[i]);
        for (size_t k = 0; k < i && !r->failed; k++) {
            if (same_row(&file->rows[k], &file->rows[i])) {
                char what[48];
                snprintf(what, sizeof what, "says again what row %zu says", k + 1);
                fail(r, "", what);
            }
        }
    }
    file->count = (int32_t)count;
}

int result_read(const char *path, struct result_file *file, char *error) {
    struct reader r = {path, "file", error, 0};
    memset(file, 0, sizeof *file);
    if (strlen(path) >= sizeof file->path) {
        fail(&r, "", "its path is too long");
        return 1;
    }
    memcpy(file->path, path, strlen(path) + 1);
    json_error_t cause;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &cause);
    if (root == NULL) {
        snprintf(error, RESULT_ERROR, "%.300s:%d: %s", path, cause.line, cause.text);
        return 1;
    }
    const json_t *schema = json_object_get(root, "schema");
    if (!json_is_integer(schema) || json_integer_value(schema) != 1) {
        fail(&r, "schema", "is not 1");
    }
    read_environment(&r, root, file);
    if (!r.failed) {
        read_ceilings(&r, root, file);
    }
    if (!r.failed) {
        read_rows(&r, root, file);
    }
    json_decref(root);
    return r.failed;
}

void result_free(struct result_file *file) {
    free(file->rows);
    file->rows = NULL;
    file->count = 0;
}
