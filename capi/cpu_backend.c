// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The CPU backend: the float32 reference, query rows shared out over threads.
 */
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "fp_environment.h"

int32_t capi_check_fp_environment(kdtr_error *error) {
    if (fegetround() != FE_TONEAREST) {
        return capi_fail(error, KDTR_FP_ENVIRONMENT, "", "the rounding mode is not to nearest");
    }
    /* volatile: the hardware must do both operations, whatever the compiler knows. */
    volatile float least_normal = 0x1p-126f;
    volatile float half = least_normal * 0.5f; /* flushed by FTZ */
    volatile float denormal = ref_f32_from_bits(1);
    volatile float doubled = denormal * 2.0f; /* read as zero by DAZ */
    if (ref_bits_from_f32(half) != 0x00400000u || ref_bits_from_f32(doubled) != 2u) {
        return capi_fail(error, KDTR_FP_ENVIRONMENT, "", "denormals are flushed to zero");
    }
    return KDTR_OK;
}

static int32_t thread_count(const struct kdtr_plan *plan) {
    int32_t threads = plan->config.num_threads > 0 ? plan->config.num_threads : 1;
    /* A thread without a row would be idle. */
    return plan->call.row_capacity < threads ? (int32_t)plan->call.row_capacity : threads;
}

/** Workspace of one thread, rounded so that the next one's is aligned too. */
static size_t thread_bytes(const struct kdtr_plan *plan) {
    return plan->workspace_bytes / (size_t)thread_count(plan);
}

static int32_t cpu_plan(const kdtr_context *context, struct kdtr_plan *plan, kdtr_error *error) {
    (void)context;
    int32_t implementation = plan->config.implementation;
    if (implementation != KDTR_IMPLEMENTATION_AUTO &&
        implementation != KDTR_IMPLEMENTATION_REFERENCE) {
        return capi_fail(error, KDTR_UNSUPPORTED, "implementation",
                         "a CPU context has the reference only");
    }
    plan->implementation = KDTR_IMPLEMENTATION_REFERENCE;
    size_t bytes = 0;
    size_t threads = (size_t)thread_count(plan);
    if (attention_reference_f32_workspace(&plan->call, &bytes) != REF_OK ||
        bytes > (SIZE_MAX / 2 - 256) / threads) {
        return capi_fail(error, KDTR_SIZE_OVERFLOW, "max_prefix_len", "the workspace overflows");
    }
    plan->workspace_bytes = (bytes + 255) / 256 * 256 * threads;
    return KDTR_OK;
}

/** What the threads of a run share. */
struct team {
    const struct kdtr_plan *plan;
    const struct ref_attention *call;
    unsigned char *workspace;
    atomic_llong next_row; /* rows are drawn one by one: they differ in length */
};

/** One thread of a team and its number. */
struct worker {
    struct team *team;
    int32_t number;
    pthread_t thread;
};

static void *work(void *argument) {
    const struct worker *worker = argument;
    struct team *team = worker->team;
    void *workspace = team->workspace + (size_t)worker->number * thread_bytes(team->plan);
    for (;;) {
        int64_t row = atomic_fetch_add(&team->next_row, 1);
        if (row >= team->call->row_capacity) {
            return NULL;
        }
        attention_reference_f32(team->call, row, row + 1, workspace);
    }
}

static int32_t cpu_run(const struct kdtr_plan *plan, const struct ref_attention *call,
                       void *workspace, kdtr_stream stream, kdtr_error *error) {
    (void)stream;
    int32_t status = capi_check_fp_environment(error);
    if (status != KDTR_OK) {
        return status;
    }
    struct team team = {plan, call, workspace, 0};
    struct worker workers[256];
    int32_t started = 1;
    workers[0] = (struct worker){&team, 0, pthread_self()};
    /* A thread that cannot be had is no failure: the others draw its rows. */
    for (int32_t i = 1; i < thread_count(plan); i++) {
        workers[started] = (struct worker){&team, started, pthread_self()};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0) {
            started++;
        }
    }
    attention_reference_f32_status(call);
    work(&workers[0]);
    for (int32_t i = 1; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    return KDTR_OK;
}

static int32_t cpu_alloc(const kdtr_context *context, size_t bytes, void **pointer,
                         kdtr_error *error) {
    (void)context;
    *pointer = aligned_alloc(256, (bytes / 256 + 1) * 256);
    if (*pointer == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "bytes", "%zu bytes", bytes);
    }
    return KDTR_OK;
}

static void cpu_release(const kdtr_context *context, void *pointer) {
    (void)context;
    free(pointer);
}

static int32_t cpu_copy(const kdtr_context *context, void *target, const void *source, size_t bytes,
                        int32_t direction, kdtr_stream stream, kdtr_error *error) {
    (void)context;
    (void)direction;
    (void)stream;
    (void)error;
    memcpy(target, source, bytes);
    return KDTR_OK;
}

static int32_t cpu_synchronize(const kdtr_context *context, kdtr_stream stream, kdtr_error *error) {
    (void)context;
    (void)stream;
    (void)error;
    return KDTR_OK;
}

static void cpu_destroy(kdtr_context *context) {
    free(context);
}

static const struct kdtr_backend cpu_backend = {
    .plan = cpu_plan,
    .run = cpu_run,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .copy = cpu_copy,
    .synchronize = cpu_synchronize,
    .destroy = cpu_destroy,
    .is_host = 1,
};

int32_t kdtr_context_create_cpu(kdtr_context **context, kdtr_error *error) {
    if (context == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "context", "it is NULL");
    }
    *context = NULL;
    int32_t status = capi_check_fp_environment(error);
    if (status != KDTR_OK) {
        return status;
    }
    kdtr_context *created = calloc(1, sizeof *created);
    if (created == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for a context");
    }
    created->version = kdtr_version();
    created->backend = &cpu_backend;
    memcpy(created->device_name, "CPU (float32 reference)", sizeof "CPU (float32 reference)");
    *context = created;
    return KDTR_OK;
}
