// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Speed of building draft trees on one core, by the heap and level by level: `ninja bench`. Prints
 * a table and, with a file name, writes a result file (docs: bench/README.md).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draft_marginals.h"
#include "draft_tree.h"

/** Samples of a case; the median is reported. */
#define SAMPLES 201
/** Calls before the first sample. */
#define WARM_UP 20
/** Largest budget. */
#define MOST_BUDGET 1024
/** Positions of a draft: DFlash blocks of 8. */
#define POSITIONS 7

/** Either builder. */
typedef int32_t build_function(const struct ref_draft_marginals *, int64_t, int32_t, int32_t,
                               void *, size_t, struct ref_draft_tree *, struct ref_error *);

/** A budget, and the time that building its tree by the heap must stay below. */
struct tree_case {
    int32_t budget;
    double target_us;
};

static const struct tree_case cases[] = {{16, 0}, {64, 60}, {256, 0}, {1024, 1000}};

/** A tree with its arrays. */
struct tree_arrays {
    int64_t tokens[MOST_BUDGET + 1];
    int32_t parents[MOST_BUDGET + 1];
    int32_t depth[MOST_BUDGET + 1];
    int32_t rank[MOST_BUDGET + 1];
    float score[MOST_BUDGET + 1];
    struct ref_draft_tree tree;
};

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

/** Builds until there are enough samples. Returns a status code; microseconds are sorted. */
static int32_t sample(build_function *build, size_t workspace_bytes,
                      const struct ref_draft_marginals *m, int32_t budget, struct tree_arrays *out,
                      double *microseconds) {
    struct ref_error error = {0};
    void *workspace = malloc(workspace_bytes);
    int32_t status = workspace == NULL ? REF_OUT_OF_MEMORY : REF_OK;
    out->tree =
        (struct ref_draft_tree){out->tokens, out->parents, out->depth, out->rank, out->score, 0, 0};
    for (int i = -WARM_UP; status == REF_OK && i < SAMPLES; i++) {
        double start = now();
        status = build(m, 0, budget, POSITIONS, workspace, workspace_bytes, &out->tree, &error);
        microseconds[i < 0 ? 0 : i] = 1e6 * (now() - start);
    }
    if (status != REF_OK) {
        fprintf(stderr, "bench_tree: %s\n", error.text);
    }
    qsort(microseconds, SAMPLES, sizeof microseconds[0], by_value);
    free(workspace);
    return status;
}

/** Prints one line and one row of the result file. */
static void report(const char *name, int32_t budget, int32_t nodes, const double *us, FILE *json,
                   int first) {
    double median = us[SAMPLES / 2];
    printf("%-16s budget %5d  L=%d K=%-5d %9.1f us  (p25 %.1f, p75 %.1f)\n", name, budget,
           POSITIONS, budget, median, us[SAMPLES / 4], us[3 * SAMPLES / 4]);
    if (json != NULL) {
        fprintf(json,
                "%s    {\"op\": \"tree_build\", \"implementation\": \"%s\", \"budget\": %d, "
                "\"L\": %d, \"K\": %d, \"nodes\": %d, \"median_us\": %.1f, \"p25_us\": %.1f, "
                "\"p75_us\": %.1f, \"samples\": %d}",
                first ? "" : ",\n", name, budget, POSITIONS, budget, nodes, median, us[SAMPLES / 4],
                us[3 * SAMPLES / 4], SAMPLES);
    }
}

/** Measures both builders with one budget; they must agree. 0 on success. */
static int measure(const struct tree_case *c, FILE *json, int first) {
    static float logp[POSITIONS * MOST_BUDGET];
    static int64_t tokens[POSITIONS * MOST_BUDGET];
    static struct tree_arrays heap;
    static struct tree_arrays levels;
    static double us[SAMPLES];
    const struct ref_draft_marginals m = {logp, tokens, c->budget, POSITIONS, c->budget};
    struct ref_error error = {0};
    if (ref_draft_marginals_make(1, POSITIONS, c->budget, 163840, logp, tokens, &error) != REF_OK ||
        sample(ref_draft_tree_heap, ref_draft_heap_bytes(c->budget, POSITIONS, c->budget), &m,
               c->budget, &heap, us) != REF_OK) {
        return 1;
    }
    report("ref_tree_heap", c->budget, heap.tree.num_nodes, us, json, first);
    if (c->target_us > 0.0 && us[SAMPLES / 2] >= c->target_us) {
        printf("    above the target of %.0f us\n", c->target_us);
    }
    if (sample(ref_draft_tree_levels, ref_draft_levels_bytes(c->budget, POSITIONS, c->budget), &m,
               c->budget, &levels, us) != REF_OK) {
        return 1;
    }
    report("ref_tree_levels", c->budget, levels.tree.num_nodes, us, json, 0);
    if (heap.tree.num_nodes != levels.tree.num_nodes ||
        memcmp(heap.tokens, levels.tokens, sizeof heap.tokens) != 0 ||
        memcmp(heap.parents, levels.parents, sizeof heap.parents) != 0) {
        fprintf(stderr, "bench_tree: the builders differ\n");
        return 1;
    }
    return 0;
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
        failed |= measure(&cases[i], json, i == 0);
    }
    if (json != NULL) {
        fprintf(json, "\n  ]}\n");
        failed |= fclose(json) != 0;
    }
    return failed;
}
