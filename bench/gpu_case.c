// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Data, plan and check of one row.
 */
#include "gpu_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_tree.h"
#include "measure.h"
#include "random.h"

/** Rows and heads that are checked. */
#define PAIRS 8
/** Most threads of the check. */
#define MAX_THREADS 64

/** Device arrays, in the order in which they are allocated. */
enum { POOL, QUERY, NODE_INDPTR, INDPTR, SLOTS, TREE_SLOTS, PARENTS, MASK, O, LSE, WORK, ARRAYS };

/** Everything of one row. */
struct bench_case {
    const struct bench_device *device;
    const struct bench_row *row;
    uint64_t seed;
    kdtr_plan *plan;
    kdtr_run_args args;
    size_t bytes[ARRAYS];
    void *memory[ARRAYS];
    void *host[ARRAYS]; /* NODE_INDPTR to MASK, and O and LSE to compare */
};

static int32_t wrong(kdtr_error *error, const char *text) {
    error->code = KDTR_DEVICE_ERROR;
    snprintf(error->text, sizeof error->text, "%s", text);
    return KDTR_DEVICE_ERROR;
}

/** Sizes of the device arrays but the workspace. */
static void set_sizes(struct bench_case *c) {
    const struct bench_point *p = &c->row->point;
    size_t rows = (size_t)p->batch * (size_t)p->nodes;
    size_t tokens = (size_t)p->batch * (size_t)p->prefix;
    size_t heads = rows * (size_t)p->heads;
    c->bytes[POOL] = 2 * (tokens + rows) * (size_t)c->row->stride * 2;
    c->bytes[QUERY] = heads * BENCH_ROW_ELEMENTS * 2;
    c->bytes[NODE_INDPTR] = ((size_t)p->batch + 1) * 4;
    c->bytes[INDPTR] = ((size_t)p->batch + 1) * 4;
    c->bytes[SLOTS] = tokens * 4;
    c->bytes[TREE_SLOTS] = rows * 4;
    c->bytes[PARENTS] = rows * 4;
    c->bytes[MASK] = rows * (size_t)((p->nodes + 31) / 32) * 4;
    c->bytes[O] = heads * BENCH_LATENT * 2;
    c->bytes[LSE] = heads * 4;
}

/** Slots of all requests: a permutation of the pool, or request after request. */
static int32_t make_slots(struct bench_case *c) {
    const struct bench_point *p = &c->row->point;
    int64_t each = p->prefix + p->nodes;
    int64_t pool = 2 * each * p->batch;
    int32_t *order = malloc((size_t)pool * sizeof *order);
    if (order == NULL) {
        return 1;
    }
    for (int64_t i = 0; i < pool; i++) {
        order[i] = (int32_t)i;
    }
    if (c->row->layout == BENCH_RANDOM) {
        bench_permute(order, pool, c->seed + 2);
    }
    int32_t *slots = c->host[SLOTS];
    int32_t *tree_slots = c->host[TREE_SLOTS];
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t i = 0; i < p->prefix; i++) {
            slots[b * p->prefix + i] = order[b * each + i];
        }
        for (int64_t i = 0; i < p->nodes; i++) {
            tree_slots[b * p->nodes + i] = order[b * each + p->prefix + i];
        }
    }
    free(order);
    return 0;
}

/** Trees, as parents and as words, and where each request's rows begin. */
static int32_t make_trees(struct bench_case *c, kdtr_error *error) {
    const struct bench_point *p = &c->row->point;
    int64_t words = (p->nodes + 31) / 32;
    int32_t *node_indptr = c->host[NODE_INDPTR];
    int32_t *indptr = c->host[INDPTR];
    for (int32_t b = 0; b <= p->batch; b++) {
        node_indptr[b] = b * p->nodes;
        indptr[b] = (int32_t)(b * p->prefix);
    }
    int32_t status = KDTR_OK;
    for (int64_t b = 0; status == KDTR_OK && b < p->batch; b++) {
        int32_t *parents = (int32_t *)c->host[PARENTS] + b * p->nodes;
        uint32_t *mask = (uint32_t *)c->host[MASK] + b * p->nodes * words;
        status = bench_make_tree(c->row, c->seed + 3, b, parents, mask, error);
    }
    return status;
}

/** The plan, whose workspace is the last array. */
static int32_t make_plan(struct bench_case *c, kdtr_error *error) {
    const struct bench_point *p = &c->row->point;
    kdtr_plan_config config = {.struct_size = sizeof config};
    config.implementation = c->row->implementation;
    config.batch = p->batch;
    config.num_heads = p->heads;
    config.latent_dim = BENCH_LATENT;
    config.rope_dim = BENCH_ROW_ELEMENTS - BENCH_LATENT;
    config.max_nodes = p->nodes;
    config.mask_mode = c->row->mask_mode;
    config.addressing = KDTR_ADDRESSING_CSR;
    config.q_dtype = config.kv_dtype = config.o_dtype = KDTR_BF16;
    config.length_dtype = config.slot_dtype = KDTR_I32;
    config.row_capacity = (int64_t)p->batch * p->nodes;
    config.max_prefix_len = p->prefix;
    config.scale = 0.0721687824f; /* 1 / sqrt(128 + 64) */
    config.expected_batch = p->batch;
    config.flags = c->row->exact ? KDTR_PLAN_EXACT : 0;
    int32_t status = kdtr_plan_create(c->device->context, &config, &c->plan, error);
    c->bytes[WORK] = kdtr_plan_workspace_bytes(c->plan);
    return status;
}

/** How the plan cuts the row. The workspace tells whether the plan is the one that is described. */
static int32_t describe(const struct bench_case *c, struct bench_result *result,
                        kdtr_error *error) {
    result->workspace_bytes = (double)c->bytes[WORK];
    bench_schedule_row(c->row, c->device->sm_count, &result->schedule);
    if (result->schedule.workspace_bytes == (int64_t)c->bytes[WORK]) {
        return KDTR_OK;
    }
    memset(&result->schedule, 0, sizeof result->schedule);
    return c->row->implementation == KDTR_IMPLEMENTATION_FLASH
               ? wrong(error, "the plan's workspace is not that of its schedule")
               : KDTR_OK;
}

/** Host arrays filled, device arrays allocated, poisoned and filled. */
static int32_t make_data(struct bench_case *c, kdtr_error *error) {
    cudaStream_t stream = c->device->stream;
    const struct bench_point *p = &c->row->point;
    int failed = 0;
    for (int i = NODE_INDPTR; i <= LSE; i++) {
        c->host[i] = malloc(c->bytes[i] + 1);
        failed |= c->host[i] == NULL;
    }
    if (failed || make_slots(c) != 0) {
        return bench_cuda(cudaErrorMemoryAllocation, "host memory", error);
    }
    int32_t status = make_trees(c, error);
    for (int i = 0; status == KDTR_OK && i < ARRAYS; i++) {
        status = kdtr_memory_alloc(c->device->context, c->bytes[i], &c->memory[i], error);
        if (status == KDTR_OK && c->bytes[i] > 0) {
            status = bench_cuda(measure_poison(c->memory[i], c->bytes[i], stream), "poison", error);
        }
    }
    for (int i = NODE_INDPTR; status == KDTR_OK && i <= MASK; i++) {
        if (c->bytes[i] > 0) {
            status = kdtr_memory_copy(c->device->context, c->memory[i], c->host[i], c->bytes[i],
                                      KDTR_COPY_TO_DEVICE, stream, error);
        }
    }
    if (status != KDTR_OK) {
        return status;
    }
    int64_t rows = (int64_t)p->batch * p->nodes;
    cudaError_t cause = measure_fill(c->memory[QUERY], rows * p->heads, BENCH_ROW_ELEMENTS,
                                     BENCH_ROW_ELEMENTS, c->seed, stream);
    if (cause == cudaSuccess) {
        cause = measure_fill(c->memory[POOL], 2 * (rows + p->batch * p->prefix), BENCH_ROW_ELEMENTS,
                             c->row->stride, c->seed + 1, stream);
    }
    return bench_cuda(cause, "fill", error);
}

static void make_args(struct bench_case *c) {
    const struct bench_point *p = &c->row->point;
    kdtr_run_args *a = &c->args;
    a->struct_size = sizeof *a;
    a->q_latent = c->memory[QUERY];
    a->q_rope = (const char *)c->memory[QUERY] + 2 * BENCH_LATENT;
    a->q_latent_stride[0] = a->q_rope_stride[0] = (int64_t)p->heads * BENCH_ROW_ELEMENTS;
    a->q_latent_stride[1] = a->q_rope_stride[1] = BENCH_ROW_ELEMENTS;
    a->kv_latent = c->memory[POOL];
    a->kv_rope = (const char *)c->memory[POOL] + 2 * BENCH_LATENT;
    a->kv_latent_stride = a->kv_rope_stride = c->row->stride;
    a->num_slots = 2 * p->batch * (p->prefix + p->nodes);
    a->node_indptr = c->memory[NODE_INDPTR];
    a->indptr = c->memory[INDPTR];
    a->slots = c->memory[SLOTS];
    a->tree_slots = c->memory[TREE_SLOTS];
    if (c->row->mask_mode == KDTR_MASK_PARENTS) {
        a->parents = c->memory[PARENTS];
    } else {
        a->mask_words = c->memory[MASK];
        a->mask_stride_words = (p->nodes + 31) / 32;
    }
    a->o = c->memory[O];
    a->o_stride[0] = (int64_t)p->heads * BENCH_LATENT;
    a->o_stride[1] = BENCH_LATENT;
    a->lse = c->memory[LSE];
}

/** The call that is timed. */
static int32_t run(void *state, cudaStream_t stream, kdtr_error *error) {
    const struct bench_case *c = state;
    return kdtr_run(c->plan, &c->args, c->memory[WORK], c->bytes[WORK], stream, error);
}

static int32_t fetch(struct bench_case *c, int array, kdtr_error *error) {
    return kdtr_memory_copy(c->device->context, c->host[array], c->memory[array], c->bytes[array],
                            KDTR_COPY_TO_HOST, c->device->stream, error);
}

/** One NaN among bfloat16 elements is enough. */
static int has_nan(const uint16_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if ((values[i] & 0x7fff) > 0x7f80) {
            return 1;
        }
    }
    return 0;
}

static int all_finite(const float *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            return 0;
        }
    }
    return 1;
}

/** Runs into poisoned memory and compares sampled rows with the truth. */
static int32_t check(struct bench_case *c, struct bench_result *result, kdtr_error *error) {
    const struct bench_point *p = &c->row->point;
    struct bench_pair pairs[PAIRS];
    struct timespec begin;
    struct timespec end;
    int32_t status = run(c, c->device->stream, error);
    status = status != KDTR_OK ? status : fetch(c, O, error);
    status = status != KDTR_OK ? status : fetch(c, LSE, error);
    if (status != KDTR_OK) {
        return status;
    }
    for (int32_t i = 0; i < PAIRS; i++) {
        uint64_t number = ref_random(c->seed + 4, (uint64_t)i);
        pairs[i].row = (int64_t)(number % (uint64_t)(p->batch * p->nodes));
        pairs[i].head = (int32_t)(number / 4294967296u % (uint64_t)p->heads);
    }
    const struct bench_problem problem = {
        *p,           c->seed, c->seed + 1, 0.0721687824f, c->host[SLOTS], c->host[TREE_SLOTS],
        c->host[MASK]};
    long threads = sysconf(_SC_NPROCESSORS_ONLN);
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (bench_truth(&problem, pairs, PAIRS, (int32_t)threads) != 0) {
        return wrong(error, "no memory or threads for the check");
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    result->check_seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    result->error = bench_compare(pairs, PAIRS, p->heads, c->host[O]);
    result->lse_error = bench_compare_lse(pairs, PAIRS, p->heads, c->host[LSE]);
    if (has_nan(c->host[O], c->bytes[O] / 2)) {
        return wrong(error, "an output is NaN");
    }
    if (!(result->error.relative_error <= BENCH_RELATIVE_LIMIT)) {
        return wrong(error, "the output differs from the truth");
    }
    if (!all_finite(c->host[LSE], c->bytes[LSE] / 4)) {
        return wrong(error, "a log-sum-exp is not finite");
    }
    return result->lse_error <= BENCH_LSE_LIMIT
               ? KDTR_OK
               : wrong(error, "a log-sum-exp differs from the truth");
}

/** Whether the last run's output and log-sum-exp have the bits of the checked ones. */
static int32_t check_repeat(struct bench_case *c, kdtr_error *error) {
    static const int arrays[] = {O, LSE};
    int32_t status = KDTR_OK;
    for (int i = 0; status == KDTR_OK && i < 2; i++) {
        void *last = c->host[arrays[i]];
        size_t bytes = c->bytes[arrays[i]];
        void *first = malloc(bytes);
        if (first == NULL) {
            return wrong(error, "no memory for the check");
        }
        memcpy(first, last, bytes);
        status = fetch(c, arrays[i], error);
        if (status == KDTR_OK && memcmp(first, last, bytes) != 0) {
            status = wrong(error, "a repeated run gave other bits");
        }
        free(first);
    }
    return status;
}

int32_t bench_run_row(const struct bench_device *device, const struct bench_row *row, uint64_t seed,
                      int32_t samples, struct bench_result *result, kdtr_error *error) {
    /* Six streams of numbers from `seed` on. */
    struct bench_case c = {.device = device, .row = row, .seed = 8 * seed};
    memset(result, 0, sizeof *result);
    set_sizes(&c);
    int32_t status = make_plan(&c, error);
    status = status != KDTR_OK ? status : describe(&c, result, error);
    status = status != KDTR_OK ? status : make_data(&c, error);
    if (status == KDTR_OK) {
        make_args(&c);
        status = check(&c, result, error);
    }
    status =
        status != KDTR_OK ? status : bench_time(device, run, &c, samples, &result->time, error);
    status = status != KDTR_OK ? status : check_repeat(&c, error);
    for (int i = 0; i < ARRAYS; i++) {
        kdtr_memory_free(device->context, c.memory[i]);
        free(c.host[i]);
    }
    kdtr_plan_destroy(c.plan);
    return status;
}
