// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Problems of named cases.
 */
#include "named_problem.h"

#include <stdio.h>
#include <string.h>

/** A call from a bundle's problem, its arrays borrowed from the bundle. Returns 1 on failure. */
static int bind_bundle(const kdtr_bundle *bundle, const kdtr_problem *source,
                       struct test_problem *problem) {
    memset(problem, 0, sizeof *problem);
    struct ref_attention *a = &problem->call;
    const kdtr_plan_config *c = &source->config;
    const kdtr_run_args *r = &source->args;
    *a = (struct ref_attention){.batch = c->batch,
                                .num_heads = c->num_heads,
                                .latent_dim = c->latent_dim,
                                .rope_dim = c->rope_dim,
                                .max_nodes = c->max_nodes,
                                .mask_mode = c->mask_mode,
                                .addressing = c->addressing,
                                .page_size = c->page_size > 0 ? c->page_size : 1,
                                .q_dtype = c->q_dtype,
                                .kv_dtype = c->kv_dtype,
                                .o_dtype = c->o_dtype,
                                .length_dtype = c->length_dtype,
                                .slot_dtype = c->slot_dtype,
                                .lse_base2 = c->lse_base2,
                                .row_capacity = c->row_capacity,
                                .max_prefix_len = c->max_prefix_len,
                                .scale = c->scale,
                                .q_latent = r->q_latent,
                                .q_rope = r->q_rope,
                                .kv_latent = r->kv_latent,
                                .kv_rope = r->kv_rope,
                                .kv_latent_stride = r->kv_latent_stride,
                                .kv_rope_stride = r->kv_rope_stride,
                                .node_indptr = r->node_indptr,
                                .indptr = r->indptr,
                                .slots = r->slots,
                                .tree_slots = r->tree_slots,
                                .row_table = r->row_table,
                                .row_table_stride = r->row_table_stride,
                                .table_rows = r->table_rows,
                                .prefix_len = r->prefix_len,
                                .parents = r->parents,
                                .mask_words = r->mask_words,
                                .mask_stride_words = r->mask_stride_words};
    memcpy(a->q_latent_stride, r->q_latent_stride, sizeof a->q_latent_stride);
    memcpy(a->q_rope_stride, r->q_rope_stride, sizeof a->q_rope_stride);
    a->o_stride[0] = (int64_t)a->num_heads * a->latent_dim;
    a->o_stride[1] = a->latent_dim;
    problem->num_slots = r->num_slots;
    for (int32_t i = 0; i < kdtr_bundle_tensor_count(bundle); i++) {
        kdtr_tensor tensor = {.struct_size = sizeof tensor};
        if (kdtr_bundle_tensor(bundle, i, &tensor, NULL) != KDTR_OK) {
            return 1;
        }
        int is_input = strcmp(tensor.name, "o") != 0 && strcmp(tensor.name, "lse") != 0;
        if (is_input && tensor.rank > 0) { /* scalars are part of the configuration */
            if (problem->buffer_count == TEST_MAX_BUFFERS) {
                return 1;
            }
            problem->buffers[problem->buffer_count++] =
                (struct test_buffer){(void *)(uintptr_t)tensor.data, tensor.bytes};
        }
    }
    problem->borrowed = problem->buffer_count;
    return 0;
}

int test_named_open(const char *name, struct test_named *named, struct test_problem *problem) {
    kdtr_error error = {0};
    memset(named, 0, sizeof *named);
    named->problem.struct_size = sizeof named->problem;
    int32_t status = kdtr_case_generate(name, &named->bundle, &error);
    if (status == KDTR_OK) {
        status = kdtr_bundle_problem(named->bundle, &named->problem, &error);
    }
    if (status != KDTR_OK || bind_bundle(named->bundle, &named->problem, problem)) {
        snprintf(named->text, sizeof named->text, "%s %s: %s", kdtr_status_name(status),
                 error.field, error.text);
        test_named_close(named);
        return 1;
    }
    problem->spec.name = name;
    return 0;
}

void test_named_close(struct test_named *named) {
    kdtr_bundle_close(named->bundle);
    named->bundle = NULL;
}
