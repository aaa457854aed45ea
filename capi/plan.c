// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Plans: every field of the configuration is checked here, once.
 */
#include <math.h>
#include <stdlib.h>

#include "backend.h"

/** A field that must lie within a range. */
struct range {
    const char *field;
    int64_t value;
    int64_t low;
    int64_t high;
};

static int32_t check_ranges(const kdtr_plan_config *c, kdtr_error *error) {
    const struct range ranges[] = {
        {"implementation", c->implementation, KDTR_IMPLEMENTATION_AUTO, KDTR_IMPLEMENTATION_FLASH},
        {"batch", c->batch, 1, 65535},
        {"num_heads", c->num_heads, 1, 1024},
        {"latent_dim", c->latent_dim, 1, 65536},
        {"rope_dim", c->rope_dim, 0, 65536},
        {"max_nodes", c->max_nodes, 1, 65536},
        {"mask_mode", c->mask_mode, KDTR_MASK_NONE, KDTR_MASK_PACKED},
        {"addressing", c->addressing, KDTR_ADDRESSING_CSR, KDTR_ADDRESSING_TABLE},
        {"lse_base2", c->lse_base2, 0, 1},
        {"row_capacity", c->row_capacity, 1, INT32_MAX},
        {"max_prefix_len", c->max_prefix_len, 0, INT32_MAX},
        {"num_threads", c->num_threads, 0, 256},
        {"expected_batch", c->expected_batch, 0, 65535},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const struct range *r = &ranges[i];
        if (r->value < r->low || r->value > r->high) {
            return capi_fail(error, KDTR_INVALID_ARGUMENT, r->field, "%lld is not %lld to %lld",
                             (long long)r->value, (long long)r->low, (long long)r->high);
        }
    }
    return KDTR_OK;
}

static int is_float(int32_t dtype) {
    return dtype == KDTR_F32 || dtype == KDTR_BF16;
}

static int is_index(int32_t dtype) {
    return dtype == KDTR_I32 || dtype == KDTR_I64;
}

static int32_t check_types(const kdtr_plan_config *c, kdtr_error *error) {
    if (c->kv_dtype == KDTR_F8_E4M3) {
        return capi_fail(error, KDTR_UNSUPPORTED, "kv_dtype", "float8 caches are not supported");
    }
    const struct {
        const char *field;
        int32_t dtype;
        int valid;
    } types[] = {
        {"q_dtype", c->q_dtype, is_float(c->q_dtype)},
        {"kv_dtype", c->kv_dtype, is_float(c->kv_dtype)},
        {"o_dtype", c->o_dtype, is_float(c->o_dtype)},
        {"length_dtype", c->length_dtype, is_index(c->length_dtype)},
        {"slot_dtype", c->slot_dtype, is_index(c->slot_dtype)},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!types[i].valid) {
            return capi_fail(error, KDTR_INVALID_ARGUMENT, types[i].field,
                             "%d is not a dtype that this field takes", types[i].dtype);
        }
    }
    int32_t p = c->page_size;
    int valid_page = c->addressing == KDTR_ADDRESSING_CSR
                         ? p == 0 || p == 1
                         : p == 1 || p == 16 || p == 32 || p == 64 || p == 128;
    if (!valid_page) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "page_size",
                         c->addressing == KDTR_ADDRESSING_CSR ? "%d: CSR addressing takes 0 or 1"
                                                              : "%d is not 1, 16, 32, 64 or 128",
                         p);
    }
    if (!(c->scale > 0.0f) || !(c->scale < INFINITY)) {
        return capi_fail(error, KDTR_BAD_SCALE, "scale", "the scale must be finite and above 0");
    }
    return KDTR_OK;
}

static int32_t check_config(const kdtr_plan_config *c, kdtr_error *error) {
    if (c->struct_size != sizeof *c) {
        return capi_fail(error, KDTR_STRUCT_SIZE, "struct_size", "%u, not %zu", c->struct_size,
                         sizeof *c);
    }
    for (size_t i = 0; i < sizeof c->reserved / sizeof c->reserved[0]; i++) {
        if (c->reserved[i] != 0) {
            return capi_fail(error, KDTR_RESERVED_NOT_ZERO, "reserved", "entry %zu is not 0", i);
        }
    }
    if ((c->flags & ~(uint32_t)KDTR_PLAN_EXACT) != 0) {
        return capi_fail(error, KDTR_RESERVED_NOT_ZERO, "flags", "0x%x: an undefined flag is set",
                         c->flags);
    }
    int32_t status = check_ranges(c, error);
    return status != KDTR_OK ? status : check_types(c, error);
}

/** The configuration as a call without pointers. */
static struct ref_attention call_of(const kdtr_plan_config *c) {
    return (struct ref_attention){
        .batch = c->batch,
        .num_heads = c->num_heads,
        .latent_dim = c->latent_dim,
        .rope_dim = c->rope_dim,
        .max_nodes = c->max_nodes,
        .mask_mode = c->mask_mode,
        .addressing = c->addressing,
        .page_size = c->page_size == 0 ? 1 : c->page_size,
        .q_dtype = c->q_dtype,
        .kv_dtype = c->kv_dtype,
        .o_dtype = c->o_dtype,
        .length_dtype = c->length_dtype,
        .slot_dtype = c->slot_dtype,
        .lse_base2 = c->lse_base2,
        .row_capacity = c->row_capacity,
        .max_prefix_len = c->max_prefix_len,
        .scale = c->scale,
    };
}

int32_t kdtr_plan_create(kdtr_context *context, const kdtr_plan_config *config, kdtr_plan **plan,
                         kdtr_error *error) {
    if (plan != NULL) {
        *plan = NULL;
    }
    if (context == NULL || config == NULL || plan == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT,
                         context == NULL  ? "context"
                         : config == NULL ? "config"
                                          : "plan",
                         "it is NULL");
    }
    int32_t status = check_config(config, error);
    if (status != KDTR_OK) {
        return status;
    }
    kdtr_plan *created = calloc(1, sizeof *created);
    if (created == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for a plan");
    }
    created->context = context;
    created->config = *config;
    created->config.expected_batch = config->expected_batch > 0 ? config->expected_batch : 1;
    created->call = call_of(config);
    status = context->backend->plan(context, created, error);
    if (status != KDTR_OK) {
        free(created);
        return status;
    }
    *plan = created;
    return KDTR_OK;
}

void kdtr_plan_destroy(kdtr_plan *plan) {
    free(plan);
}

size_t kdtr_plan_workspace_bytes(const kdtr_plan *plan) {
    return plan == NULL ? 0 : plan->workspace_bytes;
}
