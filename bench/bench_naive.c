// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Time of the naive kernel on the GPU present: bench_naive RESULT.json KIT.txt
 *
 * Events around a whole call on a stream, L2 flushed by reading before each sample, median of
 * several. Each case is a named one, and its bits are checked before it is timed. Effective GB/s
 * counts each visible cache row once.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdtr_bundle.h"
#include "kdtr_cuda.h"
#include "measure.h"

/** Samples of a case. */
#define SAMPLES 9
/** Bytes read to flush L2: several times the largest one. */
#define FLUSH_BYTES ((size_t)512 << 20)

/** What a case needs while it is measured. */
struct measurement {
    kdtr_context *context;
    kdtr_bundle *bundle;
    kdtr_problem problem;
    kdtr_plan *plan;
    void *workspace;
    char *device_file; /* the bundle's bytes on the device */
    void *flush;
    float *sink;
};

/** A host pointer into the bundle as the same place in its device copy. */
static const void *translate(const struct measurement *m, const void *pointer) {
    size_t bytes;
    const char *host = kdtr_bundle_data(m->bundle, &bytes);
    return pointer == NULL ? NULL : m->device_file + ((const char *)pointer - host);
}

/** Bundle to device, plan, workspace, output on the device. */
static int32_t prepare(struct measurement *m, const char *name, float **o, kdtr_error *error) {
    size_t bytes = 0;
    m->problem.struct_size = sizeof m->problem;
    int32_t status = kdtr_case_generate(name, &m->bundle, error);
    status = status != KDTR_OK ? status : kdtr_bundle_problem(m->bundle, &m->problem, error);
    const void *file = kdtr_bundle_data(m->bundle, &bytes);
    status = status != KDTR_OK
                 ? status
                 : kdtr_memory_alloc(m->context, bytes, (void **)&m->device_file, error);
    status = status != KDTR_OK ? status
                               : kdtr_memory_copy(m->context, m->device_file, file, bytes,
                                                  KDTR_COPY_TO_DEVICE, NULL, error);
    status = status != KDTR_OK
                 ? status
                 : kdtr_memory_alloc(m->context, m->problem.o.bytes, (void **)o, error);
    m->problem.config.implementation = KDTR_IMPLEMENTATION_NAIVE;
    status = status != KDTR_OK ? status
                               : kdtr_plan_create(m->context, &m->problem.config, &m->plan, error);
    status = status != KDTR_OK ? status
                               : kdtr_memory_alloc(m->context, kdtr_plan_workspace_bytes(m->plan),
                                                   &m->workspace, error);
    kdtr_run_args *args = &m->problem.args;
    args->q_latent = translate(m, args->q_latent);
    args->q_rope = translate(m, args->q_rope);
    args->kv_latent = translate(m, args->kv_latent);
    args->kv_rope = translate(m, args->kv_rope);
    args->node_indptr = translate(m, args->node_indptr);
    args->indptr = translate(m, args->indptr);
    args->slots = translate(m, args->slots);
    args->tree_slots = translate(m, args->tree_slots);
    args->parents = translate(m, args->parents);
    args->mask_words = translate(m, args->mask_words);
    args->o = *o;
    return status;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

/** Runs once after a flush; microseconds between two events. */
static int32_t sample(const struct measurement *m, float *microseconds, kdtr_error *error) {
    cudaEvent_t begin;
    cudaEvent_t end;
    float milliseconds = 0.0f;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaError_t cause = measure_flush_l2(m->flush, FLUSH_BYTES, m->sink, NULL);
    cudaEventRecord(begin, NULL);
    int32_t status = kdtr_run(m->plan, &m->problem.args, m->workspace,
                              kdtr_plan_workspace_bytes(m->plan), NULL, error);
    cudaEventRecord(end, NULL);
    cause = cause != cudaSuccess ? cause : cudaEventSynchronize(end);
    cudaEventElapsedTime(&milliseconds, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    if (status == KDTR_OK && cause != cudaSuccess) {
        snprintf(error->text, sizeof error->text, "%s", cudaGetErrorString(cause));
        status = KDTR_DEVICE_ERROR;
    }
    *microseconds = 1000.0f * milliseconds;
    return status;
}

/** Bits first, then the samples, sorted. */
static int32_t measure(const struct measurement *m, const float *o, float *microseconds,
                       kdtr_error *error) {
    float ignored;
    int32_t status = sample(m, &ignored, error);
    char *host = malloc(m->problem.o.bytes);
    if (status == KDTR_OK && host != NULL) {
        status = kdtr_memory_copy(m->context, host, o, m->problem.o.bytes, KDTR_COPY_TO_HOST, NULL,
                                  error);
    }
    if (status == KDTR_OK &&
        (host == NULL || memcmp(host, m->problem.o.data, m->problem.o.bytes) != 0)) {
        snprintf(error->text, sizeof error->text, "the result differs from the reference");
        status = KDTR_DEVICE_ERROR;
    }
    free(host);
    for (int i = 0; status == KDTR_OK && i < SAMPLES; i++) {
        status = sample(m, &microseconds[i], error);
    }
    qsort(microseconds, SAMPLES, sizeof microseconds[0], by_value);
    return status;
}

/** Measures one case and prints its line and its row. */
static int report(struct measurement *m, const char *name, FILE *json, int first) {
    kdtr_error error = {0};
    float us[SAMPLES] = {0};
    float *o = NULL;
    int32_t status = prepare(m, name, &o, &error);
    status = status != KDTR_OK ? status : measure(m, o, us, &error);
    if (status == KDTR_OK) {
        const kdtr_plan_config *c = &m->problem.config;
        double bytes = ((double)c->max_prefix_len + c->max_nodes) * (c->latent_dim + c->rope_dim) *
                       (c->kv_dtype == KDTR_BF16 ? 2 : 4);
        double median = us[SAMPLES / 2];
        printf("kdtr_naive  %-12s B=%d H=%d Q=%d N=%lld  %10.1f us (p25 %.1f, p75 %.1f)  "
               "%7.2f GB/s effective\n",
               name, c->batch, c->num_heads, c->max_nodes, (long long)c->max_prefix_len, median,
               us[SAMPLES / 4], us[3 * SAMPLES / 4], bytes / median / 1000.0);
        fprintf(json,
                "%s    {\"op\": \"verify\", \"implementation\": \"kdtr_naive\", \"case\": \"%s\", "
                "\"mask\": \"%s\", \"B\": %d, \"H\": %d, \"Q\": %d, \"N\": %lld, "
                "\"layout\": \"random\", \"median_us\": %.1f, \"p25_us\": %.1f, "
                "\"p75_us\": %.1f, \"samples\": %d, \"differing_bits\": 0, "
                "\"effective_gbps\": %.2f}",
                first ? "" : ",\n", name, c->mask_mode == KDTR_MASK_CHAIN ? "causal" : "tree",
                c->batch, c->num_heads, c->max_nodes, (long long)c->max_prefix_len, median,
                us[SAMPLES / 4], us[3 * SAMPLES / 4], SAMPLES, bytes / median / 1000.0);
    } else {
        fprintf(stderr, "bench_naive: %s: %s %s\n", name, error.field, error.text);
    }
    kdtr_memory_free(m->context, o);
    kdtr_memory_free(m->context, m->device_file);
    kdtr_memory_free(m->context, m->workspace);
    kdtr_plan_destroy(m->plan);
    kdtr_bundle_close(m->bundle);
    return status != KDTR_OK;
}

/** The environment of a result file, from the device and the kit's own lines. */
static void print_environment(FILE *json, const char *kit_path) {
    struct cudaDeviceProp properties;
    int driver = 0;
    char line[256];
    cudaGetDeviceProperties(&properties, 0);
    cudaDriverGetVersion(&driver);
    fprintf(json, "{\"schema\": 1,\n  \"environment\": {\"gpu\": \"%s\", \"driver_cuda\": %d, ",
            properties.name, driver);
    FILE *kit = fopen(kit_path, "r");
    while (kit != NULL && fgets(line, sizeof line, kit) != NULL) {
        char *value = strchr(line, ' ');
        line[strcspn(line, "\n")] = '\0';
        if (value != NULL) {
            *value = '\0';
            fprintf(json, "\"%s\": \"%s\", ", line, value + 1);
        }
    }
    if (kit != NULL) {
        fclose(kit);
    }
    fprintf(json,
            "\"method\": \"events around a call, L2 flushed by reading 512 MiB before each "
            "sample, median of %d\"},\n  \"rows\": [\n",
            SAMPLES);
}

int main(int argc, char **argv) {
    static const char *const cases[] = {"decode", "tree-small", "tree-4k", "tree-long"};
    kdtr_error error = {0};
    struct measurement m = {0};
    FILE *json = argc == 3 ? fopen(argv[1], "w") : NULL;
    if (json == NULL) {
        fprintf(stderr, "usage: bench_naive RESULT.json KIT.txt\n");
        return 2;
    }
    if (kdtr_cuda_context_create(0, &m.context, &error) != KDTR_OK) {
        fprintf(stderr, "bench_naive: %s\n", error.text);
        fclose(json);
        return 2;
    }
    if (cudaMalloc(&m.flush, FLUSH_BYTES) != cudaSuccess ||
        cudaMalloc((void **)&m.sink, sizeof *m.sink) != cudaSuccess ||
        cudaMemset(m.flush, 0, FLUSH_BYTES) != cudaSuccess) {
        fprintf(stderr, "bench_naive: no memory to flush L2 with\n");
        return 2;
    }
    print_environment(json, argv[2]);
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct measurement one = m;
        failed |= report(&one, cases[i], json, i == 0);
    }
    fprintf(json, "\n  ]}\n");
    failed |= fclose(json) != 0;
    cudaFree(m.flush);
    cudaFree(m.sink);
    kdtr_context_destroy(m.context);
    return failed;
}
