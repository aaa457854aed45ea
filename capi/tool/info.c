// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr info`.
 */
#include <stdio.h>

#include "tool.h"

static const char *dtype_name(int32_t dtype) {
    static const char *const names[] = {"?", "u8", "i32", "u32", "i64", "bf16", "f32", "f64"};
    return dtype >= KDTR_U8 && dtype <= KDTR_F64 ? names[dtype] : names[0];
}

static void print_tensor(const kdtr_tensor *tensor) {
    char shape[96];
    printf("  %-16s %-5s %-20s %12zu bytes\n", tensor->name, dtype_name(tensor->dtype),
           tool_shape(tensor, shape, sizeof shape), tensor->bytes);
}

static void print_geometry(const kdtr_problem *problem) {
    static const char *const masks[] = {"none", "chain", "parents", "packed"};
    const kdtr_plan_config *c = &problem->config;
    printf("%s problem: %d request%s, %lld query rows, at most %d nodes and %lld prefix tokens\n",
           problem->is_module ? "module" : "verify", c->batch, c->batch == 1 ? "" : "s",
           (long long)c->row_capacity, c->max_nodes, (long long)c->max_prefix_len);
    printf("%d heads, latent %d, rope %d, scale %.9g, mask %s\n", c->num_heads, c->latent_dim,
           c->rope_dim, (double)c->scale, masks[c->mask_mode]);
    printf("%s cache of %lld slots, %s", dtype_name(c->kv_dtype),
           (long long)problem->args.num_slots,
           c->addressing == KDTR_ADDRESSING_CSR ? "CSR addressing" : "row table");
    if (c->addressing == KDTR_ADDRESSING_TABLE) {
        printf(" with pages of %d", c->page_size);
    }
    printf("%s\n", problem->args.tree_slots != NULL ? ", tree slots of their own" : "");
}

int tool_info(int argc, char **argv) {
    if (argc != 1 || argv[0][0] == '-') {
        return tool_usage("info", "info takes one file");
    }
    kdtr_error error = {0};
    kdtr_bundle *bundle = NULL;
    if (kdtr_bundle_open(argv[0], &bundle, &error) != KDTR_OK) {
        return tool_fail(argv[0], &error);
    }
    size_t bytes;
    kdtr_bundle_data(bundle, &bytes);
    printf("%s: case %s, %zu bytes, %d tensors\n", argv[0], kdtr_bundle_name(bundle), bytes,
           kdtr_bundle_tensor_count(bundle));
    for (int32_t i = 0; i < kdtr_bundle_tensor_count(bundle); i++) {
        kdtr_tensor tensor = {.struct_size = sizeof tensor};
        if (kdtr_bundle_tensor(bundle, i, &tensor, &error) == KDTR_OK) {
            print_tensor(&tensor);
        }
    }
    kdtr_problem problem = {.struct_size = sizeof problem};
    int32_t status = kdtr_bundle_problem(bundle, &problem, &error);
    if (status == KDTR_OK) {
        print_geometry(&problem);
    }
    kdtr_bundle_close(bundle);
    return status == KDTR_OK ? TOOL_AGREE : tool_fail(argv[0], &error);
}
