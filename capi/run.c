// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Runs: every argument is checked before anything is written or launched.
 */
#include "error.h"
#include "problem.h"
#include "run_args.h"

/** A pointer of the arguments, whether this plan needs it, and its alignment. */
struct pointer_rule {
    const char *field;
    const void *pointer;
    int needed;
    size_t alignment;
};

static size_t element_bytes(int32_t dtype) {
    return dtype == KDTR_I64 ? 8 : dtype == KDTR_BF16 ? 2 : 4;
}

static int32_t check_reserved(const kdtr_run_args *args, kdtr_error *error) {
    if (args->struct_size != sizeof *args) {
        return capi_fail(error, KDTR_STRUCT_SIZE, "struct_size", "%u, not %zu", args->struct_size,
                         sizeof *args);
    }
    if (args->reserved0 != 0) {
        return capi_fail(error, KDTR_RESERVED_NOT_ZERO, "reserved0", "it is not 0");
    }
    for (size_t i = 0; i < sizeof args->reserved / sizeof args->reserved[0]; i++) {
        if (args->reserved[i] != 0) {
            return capi_fail(error, KDTR_RESERVED_NOT_ZERO, "reserved", "entry %zu is not 0", i);
        }
    }
    if (args->kv_scale != NULL) {
        return capi_fail(error, KDTR_UNSUPPORTED, "kv_scale", "scales belong to a float8 cache");
    }
    if (args->prefix_first != NULL) {
        return capi_fail(error, KDTR_UNSUPPORTED, "prefix_first", "shards are not supported yet");
    }
    return KDTR_OK;
}

static int32_t check_pointers(const kdtr_plan_config *c, const kdtr_run_args *args,
                              int with_outputs, kdtr_error *error) {
    int csr = c->addressing == KDTR_ADDRESSING_CSR;
    int rope = c->rope_dim > 0;
    int nodes_seen = c->mask_mode != KDTR_MASK_NONE;
    size_t q = element_bytes(c->q_dtype);
    size_t kv = element_bytes(c->kv_dtype);
    size_t length = element_bytes(c->length_dtype);
    size_t slot = element_bytes(c->slot_dtype);
    const struct pointer_rule rules[] = {
        {"q_latent", args->q_latent, 1, q},
        {"q_rope", rope ? args->q_rope : NULL, rope, q},
        {"kv_latent", args->kv_latent, 1, kv},
        {"kv_rope", rope ? args->kv_rope : NULL, rope, kv},
        {"node_indptr", args->node_indptr, 1, 4},
        {"indptr", csr ? args->indptr : NULL, csr, length},
        {"slots", csr ? args->slots : NULL, csr, slot},
        {"tree_slots", nodes_seen ? args->tree_slots : NULL, 0, slot},
        {"row_table", csr ? NULL : args->row_table, !csr, slot},
        {"table_rows", csr ? NULL : args->table_rows, 0, 4},
        {"prefix_len", csr ? NULL : args->prefix_len, !csr, length},
        {"parents", c->mask_mode == KDTR_MASK_PARENTS ? args->parents : NULL,
         c->mask_mode == KDTR_MASK_PARENTS, 4},
        {"mask_words", c->mask_mode == KDTR_MASK_PACKED ? args->mask_words : NULL,
         c->mask_mode == KDTR_MASK_PACKED, 4},
        {"o", with_outputs ? args->o : NULL, with_outputs, element_bytes(c->o_dtype)},
        {"lse", with_outputs ? args->lse : NULL, 0, 4},
        {"device_status", with_outputs ? args->device_status : NULL, 0, 4},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].needed && rules[i].pointer == NULL) {
            return capi_fail(error, KDTR_INVALID_ARGUMENT, rules[i].field, "it is NULL");
        }
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if ((uintptr_t)rules[i].pointer % rules[i].alignment != 0) {
            return capi_fail(error, KDTR_MISALIGNED, rules[i].field, "it is not aligned to %zu",
                             rules[i].alignment);
        }
    }
    return KDTR_OK;
}

/** Strides large enough that elements do not overlap, small enough that offsets do not overflow. */
static int32_t check_stride(const char *field, int64_t stride, int64_t least, int64_t count,
                            kdtr_error *error) {
    if (stride < least || stride > INT64_MAX / 16 / (count > 0 ? count : 1)) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, field, "a stride of %lld, at least %lld",
                         (long long)stride, (long long)least);
    }
    return KDTR_OK;
}

/** Row and head strides of [R,H,width], rows outermost or heads outermost. */
static int32_t check_row_head(const char *field, const int64_t stride[2], int64_t width,
                              const kdtr_plan_config *c, kdtr_error *error) {
    int rows_outer = stride[0] >= stride[1] || c->num_heads == 1;
    int64_t inner_count = rows_outer ? c->num_heads : c->row_capacity;
    int64_t outer_count = rows_outer ? c->row_capacity : c->num_heads;
    int64_t inner = rows_outer ? stride[1] : stride[0];
    int64_t outer = rows_outer ? stride[0] : stride[1];
    int32_t status =
        inner_count > 1 ? check_stride(field, inner, width, inner_count, error) : KDTR_OK;
    if (status != KDTR_OK || outer_count == 1) {
        return status;
    }
    int64_t least = inner_count > 1 ? inner * (inner_count - 1) + width : width;
    return check_stride(field, outer, least, outer_count, error);
}

static int32_t check_strides(const kdtr_plan_config *c, const kdtr_run_args *args, int with_outputs,
                             kdtr_error *error) {
    int32_t status =
        check_row_head("q_latent_stride", args->q_latent_stride, c->latent_dim, c, error);
    if (status == KDTR_OK && c->rope_dim > 0) {
        status = check_row_head("q_rope_stride", args->q_rope_stride, c->rope_dim, c, error);
    }
    if (status == KDTR_OK && with_outputs) {
        status = check_row_head("o_stride", args->o_stride, c->latent_dim, c, error);
    }
    if (status == KDTR_OK) {
        status = check_stride("kv_latent_stride", args->kv_latent_stride, c->latent_dim, INT32_MAX,
                              error);
    }
    if (status == KDTR_OK && c->rope_dim > 0) {
        status =
            check_stride("kv_rope_stride", args->kv_rope_stride, c->rope_dim, INT32_MAX, error);
    }
    if (status == KDTR_OK && c->addressing == KDTR_ADDRESSING_TABLE) {
        status = check_stride("row_table_stride", args->row_table_stride, 1,
                              args->table_rows != NULL ? INT32_MAX : c->batch, error);
    }
    if (status == KDTR_OK && c->mask_mode == KDTR_MASK_PACKED) {
        status = check_stride("mask_stride_words", args->mask_stride_words,
                              (c->max_nodes + 31) / 32, c->row_capacity, error);
    }
    return status;
}

/** Lengths of the lists that the plan uses, where 0 is unknown, and the size of the pool. */
static int32_t check_counts(const kdtr_plan *plan, const kdtr_run_args *args, kdtr_error *error) {
    const kdtr_plan_config *c = &plan->config;
    int table = c->addressing == KDTR_ADDRESSING_TABLE;
    int64_t count = table ? args->table_row_count : args->slot_count;
    const char *field = table ? "table_row_count" : "slot_count";
    if (count < 0 || (count > 0 && table && args->table_rows == NULL && count < c->batch)) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, field, "%lld entries", (long long)count);
    }
    /* It counts slots in 32 bits, and one more than the last. */
    if (plan->implementation == KDTR_IMPLEMENTATION_FLASH && args->num_slots > UINT32_MAX) {
        return capi_fail(error, KDTR_UNSUPPORTED, "num_slots",
                         "%lld: the flash kernel takes fewer than 2^32 slots",
                         (long long)args->num_slots);
    }
    return KDTR_OK;
}

int32_t capi_bind_args(const kdtr_plan *plan, const kdtr_run_args *args, int with_outputs,
                       struct ref_attention *call, kdtr_error *error) {
    if (plan == NULL || args == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, plan == NULL ? "plan" : "args",
                         "it is NULL");
    }
    const kdtr_plan_config *c = &plan->config;
    int32_t status = check_reserved(args, error);
    if (status == KDTR_OK) {
        status = check_pointers(c, args, with_outputs, error);
    }
    if (status == KDTR_OK) {
        status = check_strides(c, args, with_outputs, error);
    }
    if (status == KDTR_OK) {
        status = check_counts(plan, args, error);
    }
    if (status != KDTR_OK) {
        return status;
    }
    *call = plan->call;
    call->q_latent = args->q_latent;
    call->q_rope = args->q_rope;
    call->kv_latent = args->kv_latent;
    call->kv_rope = args->kv_rope;
    call->kv_latent_stride = args->kv_latent_stride;
    call->kv_rope_stride = args->kv_rope_stride;
    for (int i = 0; i < 2; i++) {
        call->q_latent_stride[i] = args->q_latent_stride[i];
        call->q_rope_stride[i] = args->q_rope_stride[i];
        call->o_stride[i] = args->o_stride[i];
    }
    call->node_indptr = args->node_indptr;
    call->indptr = args->indptr;
    call->slots = args->slots;
    call->row_table = args->row_table;
    call->row_table_stride = args->row_table_stride;
    call->table_rows = args->table_rows;
    call->prefix_len = args->prefix_len;
    /* What the mode does not need is ignored, garbage included. */
    call->tree_slots = plan->call.mask_mode == KDTR_MASK_NONE ? NULL : args->tree_slots;
    call->parents = plan->call.mask_mode == KDTR_MASK_PARENTS ? args->parents : NULL;
    call->mask_words = args->mask_words;
    call->mask_stride_words = args->mask_stride_words;
    call->o = args->o;
    call->lse = args->lse;
    call->device_status = args->device_status;
    return KDTR_OK;
}

int32_t kdtr_run(const kdtr_plan *plan, const kdtr_run_args *args, void *workspace,
                 size_t workspace_bytes, kdtr_stream stream, kdtr_error *error) {
    struct ref_attention call;
    int32_t status = capi_bind_args(plan, args, 1, &call, error);
    if (status != KDTR_OK) {
        return status;
    }
    if (workspace == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "workspace", "it is NULL");
    }
    if ((uintptr_t)workspace % 256 != 0) {
        return capi_fail(error, KDTR_MISALIGNED, "workspace", "it is not aligned to 256");
    }
    if (workspace_bytes < plan->workspace_bytes) {
        return capi_fail(error, KDTR_WORKSPACE, "workspace_bytes", "%zu bytes, the plan needs %zu",
                         workspace_bytes, plan->workspace_bytes);
    }
    if (plan->context->backend->is_host && stream != NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "stream", "a CPU context takes NULL only");
    }
    return plan->context->backend->run(plan, &call, workspace, stream, error);
}

int32_t kdtr_check(const kdtr_plan *plan, const kdtr_run_args *args, kdtr_error *error) {
    struct ref_attention call;
    int32_t status = capi_bind_args(plan, args, 0, &call, error);
    if (status != KDTR_OK) {
        return status;
    }
    if (!plan->context->backend->is_host) {
        return capi_fail(error, KDTR_UNSUPPORTED, "plan", "kdtr_check works on CPU contexts only");
    }
    if (args->num_slots < 0 || args->num_slots > INT64_MAX / 16 / args->kv_latent_stride) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "num_slots", "%lld slots",
                         (long long)args->num_slots);
    }
    const struct ref_extents extents = {args->num_slots,
                                        args->slot_count > 0 ? args->slot_count : -1,
                                        args->table_row_count > 0 ? args->table_row_count : -1};
    struct ref_error cause;
    status = ref_check_call(&call, &extents, &cause);
    return status == REF_OK ? KDTR_OK : capi_fail_from_ref(error, &cause);
}
