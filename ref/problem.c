// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Binding the problem of a bundle (spec/bundle_format.md, "The verify problem" and "The module
 * problem").
 */
#include "problem.h"

#include <math.h>
#include <string.h>

/** A bit for each dtype, for the allowed set of a tensor. */
#define BIT(dtype) (1u << (dtype))
#define FLOATS (BIT(REF_F32) | BIT(REF_BF16)) /**< Element types of values. */
#define INDICES (BIT(REF_I32) | BIT(REF_I64)) /**< Element types of lengths and slots. */

/** What the binder knows while it works. */
struct binder {
    const struct ref_bundle *bundle;
    struct ref_problem *problem;
    struct ref_error *error;
};

/**
 * Finds a tensor and checks its dtype set and shape. shape[i] < 0 accepts any size up to 2^31 - 1.
 * An absent tensor is NULL in *found, and an error where it is required.
 */
static int32_t need(const struct binder *b, const char *name, int required, uint32_t dtype_set,
                    int32_t rank, const int64_t *shape, const struct ref_tensor **found) {
    const struct ref_tensor *tensor = ref_bundle_find(b->bundle, name);
    *found = tensor;
    if (tensor == NULL) {
        return required ? ref_fail(b->error, REF_BUNDLE_MISSING, name, "the bundle has no %s", name)
                        : REF_OK;
    }
    if ((dtype_set & BIT(tensor->dtype)) == 0) {
        return ref_fail(b->error, REF_BUNDLE_DTYPE, name, "dtype %s does not fit",
                        ref_dtype_name(tensor->dtype));
    }
    if (tensor->rank != rank) {
        return ref_fail(b->error, REF_BUNDLE_SHAPE, name, "rank %d, not %d", tensor->rank, rank);
    }
    for (int32_t i = 0; i < rank; i++) {
        int64_t size = tensor->shape[i];
        if (size > INT32_MAX || (shape[i] >= 0 && size != shape[i])) {
            return ref_fail(b->error, REF_BUNDLE_SHAPE, name, "dimension %d is %lld, not %lld", i,
                            (long long)size, (long long)(shape[i] >= 0 ? shape[i] : INT32_MAX));
        }
    }
    return REF_OK;
}

/** A scalar int32 tensor; `fallback` where it is absent and not required. */
static int32_t need_int(const struct binder *b, const char *name, int required, int32_t fallback,
                        int32_t *value) {
    const struct ref_tensor *tensor;
    int32_t status = need(b, name, required, BIT(REF_I32), 0, NULL, &tensor);
    *value = status == REF_OK && tensor != NULL ? *(const int32_t *)tensor->data : fallback;
    return status;
}

/** scale, queries and the sizes that follow from them. */
static int32_t bind_queries(const struct binder *b) {
    struct ref_problem *p = b->problem;
    struct ref_attention *a = &p->call;
    const struct ref_tensor *t;
    int32_t status = need(b, "scale", 1, BIT(REF_F32), 0, NULL, &t);
    if (status != REF_OK) {
        return status;
    }
    a->scale = *(const float *)t->data;
    if (!(a->scale > 0.0f) || !(a->scale < INFINITY)) {
        return ref_fail(b->error, REF_BAD_SCALE, "scale", "the scale must be finite and above 0");
    }
    const int64_t any[3] = {-1, -1, -1};
    p->is_module = ref_bundle_find(b->bundle, "module_output") != NULL;
    status = p->is_module ? need(b, "q_nope", 1, BIT(REF_F32), 3, any, &p->q_nope)
                          : need(b, "q_latent", 1, FLOATS, 3, any, &t);
    if (status != REF_OK) {
        return status;
    }
    const struct ref_tensor *q = p->is_module ? p->q_nope : t;
    a->q_dtype = q->dtype;
    a->q_latent = p->is_module ? NULL : q->data;
    a->row_capacity = q->shape[0];
    a->num_heads = (int32_t)q->shape[1];
    a->latent_dim = (int32_t)q->shape[2]; /* of a module: set from kv_b_proj below */
    if (q->shape[0] < 1 || q->shape[1] < 1 || q->shape[2] < 1) {
        return ref_fail(b->error, REF_BUNDLE_SHAPE, q->name, "no dimension may be 0");
    }
    const int64_t rope_shape[3] = {q->shape[0], q->shape[1], -1};
    status = need(b, "q_rope", 1, BIT(q->dtype), 3, rope_shape, &t);
    if (status == REF_OK) {
        a->q_rope = t->data;
        a->rope_dim = (int32_t)t->shape[2];
    }
    return status;
}

/** kv_b_proj and module_output, or the expected o and lse. */
static int32_t bind_expected(const struct binder *b) {
    struct ref_problem *p = b->problem;
    struct ref_attention *a = &p->call;
    int32_t status;
    if (p->is_module) {
        const int64_t out_shape[3] = {a->row_capacity, a->num_heads, -1};
        status = need(b, "module_output", 1, BIT(REF_F32), 3, out_shape, &p->module_output);
        if (status == REF_OK && p->module_output->shape[2] < 1) {
            status = ref_fail(b->error, REF_BUNDLE_SHAPE, "module_output", "no dimension may be 0");
        }
        if (status != REF_OK) {
            return status;
        }
        int64_t per_head = p->q_nope->shape[2] + p->module_output->shape[2];
        const int64_t kv_b_shape[2] = {a->num_heads * per_head, -1};
        status = need(b, "kv_b_proj", 1, BIT(REF_F32), 2, kv_b_shape, &p->kv_b_proj);
        if (status == REF_OK && p->kv_b_proj->shape[1] < 1) {
            status = ref_fail(b->error, REF_BUNDLE_SHAPE, "kv_b_proj", "no dimension may be 0");
        }
        if (status == REF_OK) {
            a->latent_dim = (int32_t)p->kv_b_proj->shape[1];
        }
        return status;
    }
    const int64_t o_shape[3] = {a->row_capacity, a->num_heads, a->latent_dim};
    status = need(b, "o", 1, BIT(REF_F32), 3, o_shape, &p->o);
    return status != REF_OK ? status : need(b, "lse", 1, BIT(REF_F32), 2, o_shape, &p->lse);
}

/** One pool or two. */
static int32_t bind_cache(const struct binder *b) {
    struct ref_problem *p = b->problem;
    struct ref_attention *a = &p->call;
    const struct ref_tensor *t;
    const int64_t kv_shape[2] = {-1, (int64_t)a->latent_dim + a->rope_dim};
    int32_t status = need(b, "kv", 0, FLOATS, 2, kv_shape, &t);
    if (status != REF_OK) {
        return status;
    }
    if (t != NULL) {
        a->kv_dtype = t->dtype;
        a->kv_latent = t->data;
        a->kv_rope = (const char *)t->data + (size_t)a->latent_dim * ref_dtype_bytes(t->dtype);
        a->kv_latent_stride = a->kv_rope_stride = t->shape[1];
        p->num_slots = t->shape[0];
        return REF_OK;
    }
    const int64_t latent_shape[2] = {-1, a->latent_dim};
    status = need(b, "kv_latent", 1, FLOATS, 2, latent_shape, &t);
    if (status != REF_OK) {
        return status;
    }
    a->kv_dtype = t->dtype;
    a->kv_latent = t->data;
    a->kv_latent_stride = a->latent_dim;
    p->num_slots = t->shape[0];
    const int64_t rope_shape[2] = {t->shape[0], a->rope_dim};
    status = need(b, "kv_rope", 1, BIT(t->dtype), 2, rope_shape, &t);
    if (status == REF_OK) {
        a->kv_rope = t->data;
        a->kv_rope_stride = a->rope_dim;
    }
    return status;
}

/** CSR or row table, and tree_slots. */
static int32_t bind_addressing(const struct binder *b, struct ref_extents *extents) {
    struct ref_attention *a = &b->problem->call;
    const struct ref_tensor *t;
    const int64_t any[2] = {-1, -1};
    const int64_t batch[1] = {a->batch};
    const int64_t batch_plus_one[1] = {(int64_t)a->batch + 1};
    a->addressing =
        ref_bundle_find(b->bundle, "row_table") != NULL ? REF_ADDRESSING_TABLE : REF_ADDRESSING_CSR;
    int table = a->addressing == REF_ADDRESSING_TABLE;
    int32_t status = table ? need(b, "row_table", 1, INDICES, 2, any, &t)
                           : need(b, "slots", 1, INDICES, 1, any, &t);
    if (status == REF_OK && table && t->shape[1] < 1) {
        status = ref_fail(b->error, REF_BUNDLE_SHAPE, "row_table", "it has no column");
    }
    if (status != REF_OK) {
        return status;
    }
    a->slot_dtype = t->dtype;
    *(table ? &a->row_table : &a->slots) = t->data;
    extents->slot_count = table ? -1 : t->shape[0];
    extents->table_rows = table ? t->shape[0] : -1;
    b->problem->slot_count = table ? 0 : t->shape[0];
    b->problem->table_rows = table ? t->shape[0] : 0;
    a->row_table_stride = table ? t->shape[1] : 0;
    status = table ? need(b, "prefix_len", 1, INDICES, 1, batch, &t)
                   : need(b, "indptr", 1, INDICES, 1, batch_plus_one, &t);
    if (status != REF_OK) {
        return status;
    }
    a->length_dtype = t->dtype;
    *(table ? &a->prefix_len : &a->indptr) = t->data;
    status = need_int(b, "page_size", table, 1, &a->page_size);
    int32_t size = a->page_size;
    if (status == REF_OK && size != 1 && size != 16 && size != 32 && size != 64 && size != 128) {
        return ref_fail(b->error, REF_INVALID_ARGUMENT, "page_size",
                        "%d is not 1, 16, 32, 64 or 128", size);
    }
    if (status == REF_OK && table) {
        status = need(b, "table_rows", 0, BIT(REF_I32), 1, batch, &t);
        a->table_rows = t != NULL ? t->data : NULL;
    }
    if (status == REF_OK && table && a->table_rows == NULL && extents->table_rows < a->batch) {
        return ref_fail(b->error, REF_BUNDLE_SHAPE, "row_table",
                        "%lld rows for %d requests, and no table_rows",
                        (long long)extents->table_rows, a->batch);
    }
    const int64_t rows[1] = {a->row_capacity};
    if (status == REF_OK) {
        status = need(b, "tree_slots", 0, BIT(a->slot_dtype), 1, rows, &t);
        a->tree_slots = t != NULL ? t->data : NULL;
    }
    return status;
}

/** Mask mode and what it needs. */
static int32_t bind_mask(const struct binder *b) {
    struct ref_problem *p = b->problem;
    struct ref_attention *a = &p->call;
    const struct ref_tensor *t = NULL;
    int32_t status = need_int(b, "mask_mode", 1, 0, &a->mask_mode);
    if (status != REF_OK) {
        return status;
    }
    if (a->mask_mode < REF_MASK_NONE || a->mask_mode > REF_MASK_PACKED) {
        return ref_fail(b->error, REF_INVALID_ARGUMENT, "mask_mode", "%d is not 0 to 3",
                        a->mask_mode);
    }
    const int64_t rows[2] = {a->row_capacity, -1};
    int needs_parents = a->mask_mode == REF_MASK_PARENTS || p->is_module;
    status = need(b, "parents", needs_parents, BIT(REF_I32), 1, rows, &p->parents);
    a->parents = p->parents != NULL ? p->parents->data : NULL;
    if (status == REF_OK && a->mask_mode == REF_MASK_PACKED) {
        status = need(b, "mask_words", 1, BIT(REF_U32), 2, rows, &t);
        a->mask_words = t != NULL ? t->data : NULL;
        a->mask_stride_words = t != NULL ? t->shape[1] : 0;
    }
    return status;
}

/** Sets the limits of the plan to the largest request; bad lengths are left to the check. */
static int32_t bind_limits(const struct binder *b) {
    struct ref_attention *a = &b->problem->call;
    a->max_nodes = 1;
    for (int32_t r = 0; r < a->batch; r++) {
        int64_t nodes = (int64_t)a->node_indptr[r + 1] - a->node_indptr[r];
        if (nodes > a->max_nodes && nodes <= a->row_capacity) {
            a->max_nodes = (int32_t)nodes;
        }
        if (nodes <= 0) {
            continue; /* the lengths of an inactive request mean nothing */
        }
        /* An upper bound serves: of a list that holds the tree too, its length. */
        const void *lengths = a->addressing == REF_ADDRESSING_TABLE ? a->prefix_len : a->indptr;
        int64_t start =
            a->addressing == REF_ADDRESSING_TABLE ? 0 : ref_load_index(lengths, a->length_dtype, r);
        int64_t stop = ref_load_index(lengths, a->length_dtype,
                                      a->addressing == REF_ADDRESSING_TABLE ? r : r + 1);
        int64_t prefix = start < 0 || stop < start ? 0 : stop - start;
        if (prefix > INT32_MAX) {
            return ref_fail(b->error, REF_BAD_LENGTH,
                            a->addressing == REF_ADDRESSING_TABLE ? "prefix_len" : "indptr",
                            "request %d has %lld tokens", r, (long long)prefix);
        }
        a->max_prefix_len = prefix > a->max_prefix_len ? prefix : a->max_prefix_len;
    }
    if (a->mask_mode == REF_MASK_PACKED && a->mask_stride_words < (a->max_nodes + 31) / 32) {
        return ref_fail(b->error, REF_BUNDLE_SHAPE, "mask_words", "%lld words a row for %d nodes",
                        (long long)a->mask_stride_words, a->max_nodes);
    }
    return REF_OK;
}

int32_t ref_problem_bind(const struct ref_bundle *bundle, struct ref_problem *problem,
                         struct ref_error *error) {
    memset(problem, 0, sizeof *problem);
    const struct binder b = {bundle, problem, error};
    struct ref_attention *a = &problem->call;
    struct ref_extents extents = {-1, -1, -1};
    const struct ref_tensor *t;
    const int64_t any[1] = {-1};
    int32_t status = bind_queries(&b);
    if (status == REF_OK) {
        status = bind_expected(&b);
    }
    if (status == REF_OK) {
        status = bind_cache(&b);
    }
    if (status == REF_OK) {
        status = need(&b, "node_indptr", 1, BIT(REF_I32), 1, any, &t);
    }
    if (status == REF_OK && t->shape[0] < 2) {
        status = ref_fail(error, REF_BUNDLE_SHAPE, "node_indptr", "it has no request");
    }
    if (status != REF_OK) {
        return status;
    }
    a->node_indptr = t->data;
    a->batch = (int32_t)(t->shape[0] - 1);
    a->o_dtype = REF_F32;
    a->q_latent_stride[1] = a->o_stride[1] = a->latent_dim;
    a->q_latent_stride[0] = a->o_stride[0] = (int64_t)a->num_heads * a->latent_dim;
    a->q_rope_stride[1] = a->rope_dim;
    a->q_rope_stride[0] = (int64_t)a->num_heads * a->rope_dim;
    status = bind_addressing(&b, &extents);
    if (status == REF_OK) {
        status = bind_mask(&b);
    }
    if (status == REF_OK) {
        status = bind_limits(&b);
    }
    extents.num_slots = problem->num_slots;
    return status == REF_OK ? ref_check_call(a, &extents, error) : status;
}
