// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * One run of an implementation: staging, poison, guards. Contract in implementations.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "implementations.h"

/** Bytes before and after each output, and after the workspace. */
#define GUARD_BYTES 256
/** What guards and gaps hold. */
#define GUARD_BYTE 0xa5
/** What outputs hold before a run: every float of it is a NaN. For the workspace: test_poison(). */
#define POISON_BYTE 0xff
/** A bit that device_status has before the run: bits are ORed in, so it must still be there. */
#define STATUS_BEFORE 0x40000000u
/** Inputs up to this size are compared after the run. */
#define COMPARED_INPUT_BYTES (1 << 20)

/** An output on the host and on the device, guards included. */
struct guarded {
    unsigned char *image; /* what is expected outside the payload */
    unsigned char *after; /* what the run left */
    char *device;
    size_t payload;
};

/** A run in progress. */
struct staging {
    struct test_session *session;
    const struct test_problem *problem;
    struct ref_attention call; /* pointers of the device */
    char *device[TEST_MAX_BUFFERS];
    struct guarded o, lse, status, workspace;
    kdtr_plan *plan;
};

/** Records an error of the ABI. Returns 1 for anything but OK. */
static int failed(struct staging *s, int32_t status, const kdtr_error *error, const char *what) {
    if (status != KDTR_OK) {
        snprintf(s->session->text, sizeof s->session->text, "%s: %s: %s %s: %s",
                 s->session->implementation->name, what, kdtr_status_name(status), error->field,
                 error->text);
    }
    return status != KDTR_OK;
}

/** Memory of the session's device. */
static int device_alloc(struct staging *s, size_t bytes, char **pointer) {
    kdtr_error error;
    memset(&error, 0, sizeof error);
    void *memory = NULL;
    int32_t status = KDTR_OK;
    if (s->session->context != NULL) {
        status = kdtr_memory_alloc(s->session->context, bytes, &memory, &error);
    } else {
        memory = test_calloc(bytes);
    }
    *pointer = memory;
    return failed(s, status, &error, "alloc");
}

/** Copies to or from the session's device. */
static int device_copy(struct staging *s, void *target, const void *source, size_t bytes,
                       int32_t direction) {
    kdtr_error error;
    memset(&error, 0, sizeof error);
    int32_t status = KDTR_OK;
    if (s->session->context != NULL) {
        status =
            kdtr_memory_copy(s->session->context, target, source, bytes, direction, NULL, &error);
    } else {
        memcpy(target, source, bytes);
    }
    return failed(s, status, &error, "copy");
}

/** Frees memory of the session's device. */
static void device_free(struct staging *s, void *pointer) {
    if (s->session->context != NULL) {
        kdtr_memory_free(s->session->context, pointer);
    } else {
        free(pointer);
    }
}

/** Moves a pointer from the host array that it points into to the device's copy. */
static const void *moved(const struct staging *s, const void *pointer) {
    const void *target = NULL;
    uintptr_t place = (uintptr_t)pointer;
    for (int32_t i = 0; pointer != NULL && i < s->problem->buffer_count; i++) {
        const struct test_buffer *buffer = &s->problem->buffers[i];
        uintptr_t begin = (uintptr_t)buffer->data;
        if (place >= begin && place < begin + buffer->bytes) {
            return s->device[i] + (place - begin);
        }
        /* In a bundle an array without elements starts where the next one does. */
        target = place == begin ? s->device[i] : target;
    }
    return target;
}

/** Copies every array to the device and redirects the call. */
static int stage_inputs(struct staging *s) {
    const struct test_problem *p = s->problem;
    for (int32_t i = 0; i < p->buffer_count; i++) {
        if (device_alloc(s, p->buffers[i].bytes, &s->device[i]) ||
            device_copy(s, s->device[i], p->buffers[i].data, p->buffers[i].bytes,
                        KDTR_COPY_TO_DEVICE)) {
            return 1;
        }
    }
    struct ref_attention *a = &s->call;
    const void **pointers[] = {&a->q_latent,   &a->q_rope,    &a->kv_latent,
                               &a->kv_rope,    &a->indptr,    &a->slots,
                               &a->tree_slots, &a->row_table, &a->prefix_len};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        *pointers[i] = moved(s, *pointers[i]);
    }
    a->node_indptr = moved(s, a->node_indptr);
    a->table_rows = moved(s, a->table_rows);
    a->parents = moved(s, a->parents);
    a->mask_words = moved(s, a->mask_words);
    return 0;
}

/** Makes an output: guards around a payload that is all guard bytes as well, for now. */
static int make_guarded(struct staging *s, size_t payload, struct guarded *g) {
    g->payload = payload;
    size_t bytes = payload + 2 * (size_t)GUARD_BYTES;
    g->image = test_calloc(bytes);
    g->after = test_calloc(bytes);
    memset(g->image, GUARD_BYTE, bytes);
    return device_alloc(s, bytes, &g->device);
}

/** Copies an output with its guards to the device. */
static int upload(struct staging *s, const struct guarded *g) {
    return device_copy(s, g->device, g->image, g->payload + 2 * (size_t)GUARD_BYTES,
                       KDTR_COPY_TO_DEVICE);
}

/** Bytes of an element of o. */
static int64_t o_bytes(const struct ref_attention *a) {
    return a->o_dtype == REF_BF16 ? 2 : 4;
}

/** Outputs, poisoned where the run must write, guarded everywhere else. */
static int stage_outputs(struct staging *s) {
    struct ref_attention *a = &s->call;
    int64_t bytes = o_bytes(a);
    int64_t elements = (a->row_capacity - 1) * a->o_stride[0] +
                       (a->num_heads - 1) * a->o_stride[1] + a->latent_dim;
    int64_t heads = a->row_capacity * a->num_heads;
    if (make_guarded(s, (size_t)(elements * bytes), &s->o) ||
        make_guarded(s, (size_t)heads * sizeof(float), &s->lse) ||
        make_guarded(s, (size_t)a->batch * sizeof(uint32_t), &s->status)) {
        return 1;
    }
    for (int64_t i = 0; i < heads; i++) {
        int64_t at = i / a->num_heads * a->o_stride[0] + i % a->num_heads * a->o_stride[1];
        memset(s->o.image + GUARD_BYTES + at * bytes, POISON_BYTE, (size_t)(a->latent_dim * bytes));
    }
    memset(s->lse.image + GUARD_BYTES, POISON_BYTE, s->lse.payload);
    for (int32_t b = 0; b < a->batch; b++) {
        const uint32_t before = STATUS_BEFORE;
        memcpy(s->status.image + GUARD_BYTES + (size_t)b * sizeof before, &before, sizeof before);
    }
    a->o = s->o.device + GUARD_BYTES;
    a->lse = s->problem->omit_lse ? NULL : (float *)(void *)(s->lse.device + GUARD_BYTES);
    a->device_status =
        s->problem->omit_status ? NULL : (uint32_t *)(void *)(s->status.device + GUARD_BYTES);
    return upload(s, &s->o) || upload(s, &s->lse) || upload(s, &s->status);
}

/** The plan of a call. */
static kdtr_plan_config config_of(const struct staging *s) {
    const struct ref_attention *a = &s->call;
    kdtr_plan_config c;
    memset(&c, 0, sizeof c);
    c.struct_size = sizeof c;
    c.implementation = s->session->implementation->id;
    c.batch = a->batch;
    c.num_heads = a->num_heads;
    c.latent_dim = a->latent_dim;
    c.rope_dim = a->rope_dim;
    c.max_nodes = a->max_nodes;
    c.mask_mode = a->mask_mode;
    c.addressing = a->addressing;
    c.page_size = a->page_size;
    c.q_dtype = a->q_dtype;
    c.kv_dtype = a->kv_dtype;
    c.o_dtype = a->o_dtype;
    c.length_dtype = a->length_dtype;
    c.slot_dtype = a->slot_dtype;
    c.lse_base2 = a->lse_base2;
    c.row_capacity = a->row_capacity;
    c.max_prefix_len = a->max_prefix_len;
    c.scale = a->scale;
    c.expected_batch = s->problem->spec.expected_batch;
    c.num_threads = s->session->implementation->num_threads;
    c.flags = s->session->implementation->flags;
    return c;
}

/** Where the pool begins: so far before its rows that the slots of the lists are theirs. */
static const void *pool_base(const struct staging *s, const void *rows, int64_t stride) {
    int64_t bytes = s->call.kv_dtype == REF_BF16 ? 2 : 4;
    return (const void *)((uintptr_t)rows - (uintptr_t)(s->problem->slot_shift * stride * bytes));
}

/** The arguments of a call. */
static kdtr_run_args args_of(const struct staging *s) {
    const struct ref_attention *a = &s->call;
    kdtr_run_args r;
    memset(&r, 0, sizeof r);
    r.struct_size = sizeof r;
    r.q_latent = a->q_latent;
    r.q_rope = a->q_rope;
    memcpy(r.q_latent_stride, a->q_latent_stride, sizeof r.q_latent_stride);
    memcpy(r.q_rope_stride, a->q_rope_stride, sizeof r.q_rope_stride);
    r.kv_latent = pool_base(s, a->kv_latent, a->kv_latent_stride);
    r.kv_rope = pool_base(s, a->kv_rope, a->kv_rope_stride);
    r.kv_latent_stride = a->kv_latent_stride;
    r.kv_rope_stride = a->kv_rope_stride;
    r.num_slots = s->problem->num_slots + s->problem->slot_shift;
    r.node_indptr = a->node_indptr;
    r.indptr = a->indptr;
    r.slots = a->slots;
    r.tree_slots = a->tree_slots;
    r.row_table = a->row_table;
    r.row_table_stride = a->row_table_stride;
    r.table_rows = a->table_rows;
    r.prefix_len = a->prefix_len;
    r.parents = a->parents;
    r.mask_words = a->mask_words;
    r.mask_stride_words = a->mask_words != NULL ? a->mask_stride_words : 0;
    r.o = a->o;
    memcpy(r.o_stride, a->o_stride, sizeof r.o_stride);
    r.lse = a->lse;
    r.device_status = a->device_status;
    return r;
}

/** Plan, workspace of exactly the size asked for, run. */
static int launch(struct staging *s) {
    if (s->session->implementation->host_run != NULL) {
        s->session->implementation->host_run(&s->call, s->session->implementation->option);
        return 0;
    }
    kdtr_error error;
    memset(&error, 0, sizeof error);
    kdtr_plan_config config = config_of(s);
    if (failed(s, kdtr_plan_create(s->session->context, &config, &s->plan, &error), &error,
               "plan")) {
        return 1;
    }
    size_t bytes = kdtr_plan_workspace_bytes(s->plan);
    if (make_guarded(s, bytes, &s->workspace)) {
        return 1;
    }
    test_poison(s->session->poison, s->workspace.image + GUARD_BYTES, bytes);
    kdtr_run_args args = args_of(s);
    if (upload(s, &s->workspace) ||
        failed(s, kdtr_run(s->plan, &args, s->workspace.device + GUARD_BYTES, bytes, NULL, &error),
               &error, "run")) {
        return 1;
    }
    return failed(s, kdtr_synchronize(s->session->context, NULL, &error), &error, "synchronize");
}

/** Fails if a byte that the image does not poison has changed. */
static int check_guard(struct staging *s, struct guarded *g, const char *name) {
    size_t bytes = g->payload + 2 * (size_t)GUARD_BYTES;
    if (device_copy(s, g->after, g->device, bytes, KDTR_COPY_TO_HOST)) {
        return 1;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (g->image[i] == GUARD_BYTE && g->after[i] != GUARD_BYTE) {
            snprintf(s->session->text, sizeof s->session->text,
                     "%s: wrote outside %s: byte %lld of %zu", s->session->implementation->name,
                     name, (long long)i - GUARD_BYTES, g->payload);
            return 1;
        }
    }
    return 0;
}

/** Fails if an input has changed. */
static int check_inputs(struct staging *s) {
    for (int32_t i = 0; i < s->problem->buffer_count; i++) {
        const struct test_buffer *buffer = &s->problem->buffers[i];
        if (buffer->bytes > COMPARED_INPUT_BYTES) {
            continue;
        }
        void *after = test_calloc(buffer->bytes);
        int wrong = device_copy(s, after, s->device[i], buffer->bytes, KDTR_COPY_TO_HOST);
        if (!wrong && memcmp(after, buffer->data, buffer->bytes) != 0) {
            snprintf(s->session->text, sizeof s->session->text, "%s: wrote into input array %d",
                     s->session->implementation->name, i);
            wrong = 1;
        }
        free(after);
        if (wrong) {
            return 1;
        }
    }
    return 0;
}

/** Takes the outputs out of their guards. Fails if a status bit was cleared. */
static int collect(struct staging *s, struct test_outputs *out) {
    const struct ref_attention *a = &s->call;
    out->rows = a->row_capacity;
    out->heads = a->num_heads;
    out->columns = a->latent_dim;
    out->batch = a->batch;
    int64_t heads = out->rows * out->heads;
    out->o = test_calloc((size_t)(heads * out->columns) * sizeof *out->o);
    for (int64_t i = 0; i < heads; i++) {
        int64_t at = i / out->heads * a->o_stride[0] + i % out->heads * a->o_stride[1];
        for (int64_t d = 0; d < out->columns; d++) {
            out->o[i * out->columns + d] =
                ref_load_f32(s->o.after + GUARD_BYTES, a->o_dtype, at + d);
        }
    }
    if (!s->problem->omit_lse) {
        out->lse = test_calloc(s->lse.payload);
        memcpy(out->lse, s->lse.after + GUARD_BYTES, s->lse.payload);
    }
    if (s->problem->omit_status) {
        return 0;
    }
    out->status = test_calloc(s->status.payload);
    memcpy(out->status, s->status.after + GUARD_BYTES, s->status.payload);
    for (int64_t b = 0; b < out->batch; b++) {
        if ((out->status[b] & STATUS_BEFORE) == 0) {
            snprintf(s->session->text, sizeof s->session->text,
                     "%s: cleared a bit of device_status[%lld]", s->session->implementation->name,
                     (long long)b);
            return 1;
        }
        out->status[b] &= ~STATUS_BEFORE;
    }
    return 0;
}

/** Releases a guarded array. */
static void free_guarded(struct staging *s, struct guarded *g) {
    free(g->image);
    free(g->after);
    if (g->device != NULL) {
        device_free(s, g->device);
    }
}

int test_run(struct test_session *session, const struct test_problem *problem,
             struct test_outputs *outputs) {
    struct staging s;
    memset(&s, 0, sizeof s);
    memset(outputs, 0, sizeof *outputs);
    s.session = session;
    s.problem = problem;
    s.call = problem->call;
    int wrong = stage_inputs(&s) || stage_outputs(&s) || launch(&s) || check_guard(&s, &s.o, "o") ||
                check_guard(&s, &s.lse, "lse") || check_guard(&s, &s.status, "device_status") ||
                (s.plan != NULL && check_guard(&s, &s.workspace, "workspace")) ||
                check_inputs(&s) || collect(&s, outputs);
    kdtr_plan_destroy(s.plan);
    for (int32_t i = 0; i < problem->buffer_count; i++) {
        if (s.device[i] != NULL) {
            device_free(&s, s.device[i]);
        }
    }
    free_guarded(&s, &s.o);
    free_guarded(&s, &s.lse);
    free_guarded(&s, &s.status);
    free_guarded(&s, &s.workspace);
    if (wrong) {
        test_outputs_free(outputs);
    }
    return wrong;
}

void test_outputs_free(struct test_outputs *outputs) {
    free(outputs->o);
    free(outputs->lse);
    free(outputs->status);
    memset(outputs, 0, sizeof *outputs);
}
