// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Speed of the float32 reference on one core: `ninja bench`. Prints a table and, with a file name,
 * writes a result file (docs: bench/README.md).
 *
 * A row is 2 * (L + P) operations for its score and 2 * L for its output: 2,176 at model size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kdtr_bundle.h"

/** Samples of a case; the median is reported. */
#define SAMPLES 7

static const char *const cases[] = {"tree-4k", "decode", "chain-16", "tree-small", "tree-long"};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Floating-point operations of a problem with trees: every row, head and visible token. */
static double operations(const kdtr_problem *p) {
    const kdtr_plan_config *c = &p->config;
    const int32_t *parents = p->parents.data;
    double visible = 0.0;
    for (int64_t i = 0; i < c->row_capacity; i++) {
        for (int32_t k = (int32_t)i; k >= 0; k = parents[k]) {
            visible += 1.0;
        }
    }
    const int64_t *wide = p->args.indptr;
    const int32_t *narrow = p->args.indptr;
    double listed = (double)(c->length_dtype == KDTR_I64 ? wide[1] : narrow[1]);
    double prefix = listed - (p->args.tree_slots == NULL ? (double)c->row_capacity : 0.0);
    double tokens = visible + prefix * (double)c->row_capacity;
    return tokens * c->num_heads * (4.0 * c->latent_dim + 2.0 * c->rope_dim);
}

/** Median, quartiles and rate of one case; 0 on success. */
static int measure(const char *name, FILE *json, int first) {
    kdtr_error error = {0};
    kdtr_bundle *bundle = NULL;
    kdtr_context *context = NULL;
    kdtr_plan *plan = NULL;
    void *workspace = NULL;
    kdtr_problem problem = {.struct_size = sizeof problem};
    double seconds[SAMPLES] = {0};
    float *o = NULL;
    int32_t status = kdtr_case_generate(name, &bundle, &error);
    status = status != KDTR_OK ? status : kdtr_bundle_problem(bundle, &problem, &error);
    status = status != KDTR_OK ? status : kdtr_context_create_cpu(&context, &error);
    status = status != KDTR_OK ? status : kdtr_plan_create(context, &problem.config, &plan, &error);
    size_t bytes = kdtr_plan_workspace_bytes(plan);
    status = status != KDTR_OK ? status : kdtr_memory_alloc(context, bytes, &workspace, &error);
    if (status == KDTR_OK && (o = malloc(problem.o.bytes)) == NULL) {
        status = KDTR_OUT_OF_MEMORY;
    }
    problem.args.o = o;
    for (int i = -1; status == KDTR_OK && i < SAMPLES; i++) { /* the first one warms up */
        memset(o, 0xff, problem.o.bytes);
        double start = now();
        status = kdtr_run(plan, &problem.args, workspace, bytes, NULL, &error);
        seconds[i < 0 ? 0 : i] = now() - start;
    }
    if (status == KDTR_OK && memcmp(o, problem.o.data, problem.o.bytes) != 0) {
        snprintf(error.text, sizeof error.text, "the result differs from the case's");
        status = KDTR_INVALID_ARGUMENT;
    }
    if (status == KDTR_OK) {
        qsort(seconds, SAMPLES, sizeof seconds[0], by_value);
        double rate = 1e-9 * operations(&problem) / seconds[SAMPLES / 2];
        const kdtr_plan_config *c = &problem.config;
        printf("kdtr_reference  %-12s %10.1f us  (p25 %.1f, p75 %.1f)  %6.2f GFLOP/s\n", name,
               1e6 * seconds[SAMPLES / 2], 1e6 * seconds[SAMPLES / 4], 1e6 * seconds[5], rate);
        if (json != NULL) {
            fprintf(json,
                    "%s    {\"op\": \"verify\", \"implementation\": \"kdtr_reference\", "
                    "\"case\": \"%s\", \"B\": %d, \"H\": %d, \"Q\": %d, \"N\": %lld, "
                    "\"median_us\": %.1f, \"p25_us\": %.1f, \"p75_us\": %.1f, "
                    "\"samples\": %d, \"gflops\": %.2f, \"differing_bits\": 0}",
                    first ? "" : ",\n", name, c->batch, c->num_heads, c->max_nodes,
                    (long long)c->max_prefix_len, 1e6 * seconds[SAMPLES / 2],
                    1e6 * seconds[SAMPLES / 4], 1e6 * seconds[5], SAMPLES, rate);
        }
    } else {
        fprintf(stderr, "bench_reference: %s: %s\n", name, error.text);
    }
    free(o);
    kdtr_memory_free(context, workspace);
    kdtr_plan_destroy(plan);
    kdtr_context_destroy(context);
    kdtr_bundle_close(bundle);
    return status != KDTR_OK;
}

int main(int argc, char **argv) {
    FILE *json = argc > 2 ? fopen(argv[1], "w") : NULL;
    if (argc > 2 && json == NULL) {
        perror(argv[1]);
        return 2;
    }
    int failed = 0;
    if (json != NULL) {
        fprintf(json, "{\"schema\": 1,\n  \"environment\": {%s},\n  \"rows\": [\n", argv[2]);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        failed |= measure(cases[i], json, i == 0);
    }
    if (json != NULL) {
        fprintf(json, "\n  ]}\n");
        failed |= fclose(json) != 0;
    }
    return failed;
}
