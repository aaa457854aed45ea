// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The problem of a bundle as a plan's configuration and a run's arguments.
 */
#include "problem.h"

#include <string.h>

#include "backend.h"
#include "bundle_internal.h"
#include "error.h"

static kdtr_plan_config config_of(const struct ref_attention *a) {
    return (kdtr_plan_config){
        .struct_size = sizeof(kdtr_plan_config),
        .batch = a->batch,
        .num_heads = a->num_heads,
        .latent_dim = a->latent_dim,
        .rope_dim = a->rope_dim,
        .max_nodes = a->max_nodes,
        .mask_mode = a->mask_mode,
        .addressing = a->addressing,
        .page_size = a->page_size,
        .q_dtype = a->q_dtype,
        .kv_dtype = a->kv_dtype,
        .o_dtype = a->o_dtype,
        .length_dtype = a->length_dtype,
        .slot_dtype = a->slot_dtype,
        .row_capacity = a->row_capacity,
        .max_prefix_len = a->max_prefix_len,
        .scale = a->scale,
    };
}

static kdtr_run_args args_of(const struct ref_problem *p) {
    const struct ref_attention *a = &p->call;
    return (kdtr_run_args){
        .struct_size = sizeof(kdtr_run_args),
        .q_latent = a->q_latent,
        .q_rope = a->q_rope,
        .q_latent_stride = {a->q_latent_stride[0], a->q_latent_stride[1]},
        .q_rope_stride = {a->q_rope_stride[0], a->q_rope_stride[1]},
        .kv_latent = a->kv_latent,
        .kv_rope = a->kv_rope,
        .kv_latent_stride = a->kv_latent_stride,
        .kv_rope_stride = a->kv_rope_stride,
        .num_slots = p->num_slots,
        .node_indptr = a->node_indptr,
        .indptr = a->indptr,
        .slots = a->slots,
        .tree_slots = a->tree_slots,
        .row_table = a->row_table,
        .row_table_stride = a->row_table_stride,
        .table_rows = a->table_rows,
        .prefix_len = a->prefix_len,
        .parents = a->parents,
        .mask_words = a->mask_words,
        .mask_stride_words = a->mask_stride_words,
        .o_stride = {a->o_stride[0], a->o_stride[1]},
        .slot_count = p->slot_count,
        .table_row_count = p->table_rows,
    };
}

int32_t kdtr_bundle_problem(const kdtr_bundle *bundle, kdtr_problem *problem, kdtr_error *error) {
    if (bundle == NULL || problem == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, bundle == NULL ? "bundle" : "problem",
                         "it is NULL");
    }
    if (problem->struct_size != sizeof *problem) {
        return capi_fail(error, KDTR_STRUCT_SIZE, "struct_size", "%u, not %zu",
                         problem->struct_size, sizeof *problem);
    }
    struct ref_problem bound;
    struct ref_error cause;
    if (ref_problem_bind(capi_bundle_parsed(bundle), &bound, &cause) != REF_OK) {
        return capi_fail_from_ref(error, &cause);
    }
    memset(problem, 0, sizeof *problem);
    problem->struct_size = sizeof *problem;
    problem->is_module = bound.is_module;
    problem->config = config_of(&bound.call);
    problem->args = args_of(&bound);
    capi_tensor_from_ref(bound.o, &problem->o);
    capi_tensor_from_ref(bound.lse, &problem->lse);
    capi_tensor_from_ref(bound.parents, &problem->parents);
    capi_tensor_from_ref(bound.q_nope, &problem->q_nope);
    capi_tensor_from_ref(bound.kv_b_proj, &problem->kv_b_proj);
    capi_tensor_from_ref(bound.module_output, &problem->module_output);
    return KDTR_OK;
}
