// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Running a bundle's problem on a context: the tensors that the arguments point into are copied to
 * the context's memory, whatever that is.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdtr_cuda.h"
#include "tool.h"

int32_t tool_open_context(struct tool_session *session, kdtr_error *error) {
    if (!session->naive) {
        return kdtr_context_create_cpu(&session->context, error);
    }
    /* The library is optional: the tool must start where it was not built. */
    session->cuda_library = dlopen("libkdtr_cuda.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = session->cuda_library == NULL
                       ? NULL
                       : dlsym(session->cuda_library, "kdtr_cuda_context_create_flags");
    if (symbol == NULL) {
        const char *why = dlerror();
        snprintf(error->text, sizeof error->text, "no CUDA library (ninja cuda builds it): %s",
                 why != NULL ? why : "libkdtr_cuda.so.0 is of another version");
        return error->code = KDTR_UNSUPPORTED;
    }
    int32_t (*create)(int32_t, uint32_t, kdtr_context **, kdtr_error *);
    memcpy(&create, &symbol, sizeof create); /* ISO C has no cast from object to function pointer */
    return create(0, session->exact ? KDTR_CUDA_CONTEXT_EXACT : 0, &session->context, error);
}

/** Tensors of the bundle in the context's memory; one that nothing points into stays NULL. */
struct staging {
    struct tool_session *session;
    void *tensor[64]; /* a bundle has at most 64 tensors */
    void *array[TOOL_ARRAYS];
    void *q_latent; /* of a module problem */
    void *o;
    void *lse;
    void *workspace;
    int32_t status;
    kdtr_error *error;
};

/** Allocates and, from `source`, fills memory of the context; NULL after a failure. */
static void *stage(struct staging *g, const void *source, size_t bytes) {
    void *memory = NULL;
    kdtr_context *context = g->session->context;
    if (g->status == KDTR_OK) {
        g->status = kdtr_memory_alloc(context, bytes, &memory, g->error);
    }
    if (g->status == KDTR_OK && source != NULL) {
        g->status =
            kdtr_memory_copy(context, memory, source, bytes, KDTR_COPY_TO_DEVICE, NULL, g->error);
    }
    return memory;
}

/**
 * Where a host pointer into a tensor is in the context's memory. A tensor is staged whole and once,
 * so that two pointers into one pool keep their distance.
 */
static const void *translate(struct staging *g, const void *pointer) {
    uintptr_t at = (uintptr_t)pointer;
    int32_t count = pointer == NULL ? 0 : kdtr_bundle_tensor_count(g->session->bundle);
    for (int32_t i = 0; i < count; i++) {
        kdtr_tensor tensor = {.struct_size = sizeof tensor};
        kdtr_bundle_tensor(g->session->bundle, i, &tensor, NULL);
        uintptr_t begin = (uintptr_t)tensor.data;
        /* An empty tensor never matches: the next one starts where it does. */
        if (at < begin || at - begin >= tensor.bytes) {
            continue;
        }
        if (g->tensor[i] == NULL) {
            g->tensor[i] = stage(g, tensor.data, tensor.bytes);
        }
        return g->tensor[i] == NULL ? NULL : (const char *)g->tensor[i] + (at - begin);
    }
    for (int i = 0; pointer != NULL && i < TOOL_ARRAYS; i++) {
        const struct tool_array *array = &g->session->arrays[i];
        if (array->data == pointer) {
            return g->array[i] = stage(g, array->data, array->bytes);
        }
    }
    return NULL; /* nothing, or no element of anything: there is nothing to read */
}

static void release(struct staging *g) {
    kdtr_context *context = g->session->context;
    for (int i = 0; i < 64; i++) {
        kdtr_memory_free(context, g->tensor[i]);
    }
    for (int i = 0; i < TOOL_ARRAYS; i++) {
        kdtr_memory_free(context, g->array[i]);
    }
    kdtr_memory_free(context, g->q_latent);
    kdtr_memory_free(context, g->o);
    kdtr_memory_free(context, g->lse);
    kdtr_memory_free(context, g->workspace);
}

int32_t tool_run(struct tool_session *session, kdtr_error *error) {
    struct staging g = {.session = session, .error = error};
    const kdtr_plan_config *c = &session->problem.config;
    size_t pairs = (size_t)c->row_capacity * (size_t)c->num_heads;
    size_t o_bytes = pairs * (size_t)c->latent_dim * sizeof(float);
    size_t workspace_bytes = kdtr_plan_workspace_bytes(session->plan);
    kdtr_run_args args = session->problem.args;
    if (session->problem.is_module) {
        args.q_latent = g.q_latent = stage(&g, session->q_latent, o_bytes);
    } else {
        args.q_latent = translate(&g, args.q_latent);
    }
    args.q_rope = translate(&g, args.q_rope);
    args.kv_latent = translate(&g, args.kv_latent);
    args.kv_rope = translate(&g, args.kv_rope);
    args.node_indptr = translate(&g, args.node_indptr);
    args.indptr = translate(&g, args.indptr);
    args.slots = translate(&g, args.slots);
    args.tree_slots = translate(&g, args.tree_slots);
    args.row_table = translate(&g, args.row_table);
    args.table_rows = translate(&g, args.table_rows);
    args.prefix_len = translate(&g, args.prefix_len);
    args.parents = translate(&g, args.parents);
    args.mask_words = translate(&g, args.mask_words);
    args.o = g.o = stage(&g, NULL, o_bytes);
    args.lse = g.lse = stage(&g, NULL, pairs * sizeof(float));
    g.workspace = stage(&g, NULL, workspace_bytes);
    if (g.status == KDTR_OK) {
        g.status = kdtr_run(session->plan, &args, g.workspace, workspace_bytes, NULL, error);
    }
    if (g.status == KDTR_OK) {
        g.status = kdtr_memory_copy(session->context, session->o, g.o, o_bytes, KDTR_COPY_TO_HOST,
                                    NULL, error);
    }
    if (g.status == KDTR_OK) {
        g.status = kdtr_memory_copy(session->context, session->lse, g.lse, pairs * sizeof(float),
                                    KDTR_COPY_TO_HOST, NULL, error);
    }
    release(&g);
    return g.status;
}
