// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Building the bundle of a named case (spec/bundle_format.md, "Named cases"). Every number comes
 * from ref_random with the streams below and the case's own seed, so that the bytes are the same
 * everywhere.
 */
#include "case_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_step.h"
#include "problem.h"
#include "random.h"
#include "tree.h"

/** Scale of DeepSeek V3 and Kimi K2: 192^-1/2 (0.1 ln 40 + 1)^2. */
#define CASE_SCALE 0x1.14f572p-3f

/** Streams of random numbers: added to the seed of the case, which is a multiple of 16. */
enum stream {
    STREAM_QUERY,
    STREAM_ROPE,
    STREAM_CACHE,
    STREAM_SLOTS,
    STREAM_MASK,
    STREAM_TREE,
    STREAM_STEP /* and the two after it */
};

/** A case under construction. Memory is freed at the end, whatever happened. */
struct builder {
    const struct ref_case *c;
    uint64_t seed;
    int32_t rows;      /* query rows, spare ones included */
    int64_t tokens;    /* prefix tokens and nodes of all requests */
    int64_t page_size; /* tokens that move together */
    int64_t num_slots;
    int64_t *token_slot; /* [tokens] slot of each token, request after request */
    struct ref_bundle bundle;
    void *owned[REF_BUNDLE_MAX_TENSORS];
    int32_t failed;        /* an allocation failed: everything after is skipped */
    struct case_step step; /* arrays of all requests; only of a step problem */
    int32_t *budget;       /* of a step problem */
};

/** FNV-1a over the name, times 16: a seed that adding a case to the table does not change. */
static uint64_t seed_of(const char *name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    }
    return hash << 4;
}

/** Appends a tensor and returns its zeroed memory; NULL once an allocation has failed. */
static void *append(struct builder *b, const char *name, int32_t dtype, int32_t rank, int64_t d0,
                    int64_t d1, int64_t d2) {
    if (b->failed) {
        return NULL;
    }
    struct ref_tensor *t = &b->bundle.tensors[b->bundle.tensor_count];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->dtype = dtype;
    t->rank = rank;
    const int64_t shape[4] = {d0, d1, d2, 1};
    size_t count = 1;
    for (int32_t i = 0; i < 4; i++) {
        t->shape[i] = i < rank ? shape[i] : 1;
        count *= (size_t)t->shape[i];
    }
    void *data = calloc(count + 1, ref_dtype_bytes(dtype));
    b->failed = data == NULL;
    b->owned[b->bundle.tensor_count++] = data;
    t->data = data;
    return data;
}

/** Stores an index as int32 or int64. */
static void put_index(void *base, int32_t wide, int64_t at, int64_t value) {
    if (wide) {
        ((int64_t *)base)[at] = value;
    } else {
        ((int32_t *)base)[at] = (int32_t)value;
    }
}

/** Queries: 2 x ref_random_normal, so that scores spread over several units. */
static void add_queries(struct builder *b) {
    const struct ref_case *c = b->c;
    int32_t dtype = c->q_bf16 ? REF_BF16 : REF_F32;
    const int32_t width[2] = {c->latent_dim, c->rope_dim};
    const char *const name[2] = {"q_latent", "q_rope"};
    for (int part = 0; part < 2; part++) {
        void *q = append(b, name[part], dtype, 3, b->rows, c->num_heads, width[part]);
        int64_t count = (int64_t)b->rows * c->num_heads * width[part];
        for (int64_t i = 0; q != NULL && i < count; i++) {
            ref_store_f32(
                q, dtype, i,
                2.0f * ref_random_normal(b->seed + STREAM_QUERY + (uint64_t)part, (uint64_t)i));
        }
    }
}

/** Gives every token a slot: pages of the pool in a random order, some of them unused. */
static void place_tokens(struct builder *b) {
    const struct ref_case *c = b->c;
    b->page_size = c->page_size > 0 ? c->page_size : 1;
    int64_t pages = 0;
    b->tokens = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        int64_t tokens = (int64_t)c->prefix_len[r] + c->num_nodes[r];
        b->tokens += tokens;
        pages += (tokens + b->page_size - 1) / b->page_size;
    }
    int64_t spare = pages / 16 + 3;
    b->num_slots = (pages + spare) * b->page_size;
    int64_t *order = calloc((size_t)(pages + spare), sizeof *order);
    b->token_slot = malloc((size_t)(b->tokens + 1) * sizeof *b->token_slot);
    if (order == NULL || b->token_slot == NULL) {
        b->failed = 1;
        free(order);
        return;
    }
    for (int64_t i = 0; i < pages + spare; i++) { /* Fisher-Yates, from the front */
        uint64_t draw = ref_random(b->seed + STREAM_SLOTS, (uint64_t)i) >> 32;
        int64_t j = (int64_t)((draw * (uint64_t)(i + 1)) >> 32);
        order[i] = order[j];
        order[j] = i;
    }
    int64_t page = 0;
    int64_t at = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        int64_t tokens = (int64_t)c->prefix_len[r] + c->num_nodes[r];
        for (int64_t t = 0; t < tokens; t++) {
            b->token_slot[at++] = order[page + t / b->page_size] * b->page_size + t % b->page_size;
        }
        page += (tokens + b->page_size - 1) / b->page_size;
    }
    free(order);
}

/** The cache: ref_random_normal in slots that hold a token, NaN in the others. */
static void add_cache(struct builder *b) {
    const struct ref_case *c = b->c;
    int32_t width = c->latent_dim + c->rope_dim;
    int32_t first_width = c->two_pools ? c->latent_dim : width;
    void *first =
        append(b, c->two_pools ? "kv_latent" : "kv", c->kv_dtype, 2, b->num_slots, first_width, 1);
    void *rope =
        c->two_pools ? append(b, "kv_rope", c->kv_dtype, 2, b->num_slots, c->rope_dim, 1) : NULL;
    if (b->failed) {
        return;
    }
    const float nan_value = ref_f32_from_bits(0x7fc00000u);
    for (int64_t i = 0; i < b->num_slots * first_width; i++) {
        ref_store_f32(first, c->kv_dtype, i, nan_value);
    }
    for (int64_t i = 0; rope != NULL && i < b->num_slots * c->rope_dim; i++) {
        ref_store_f32(rope, c->kv_dtype, i, nan_value);
    }
    for (int64_t t = 0; t < b->tokens; t++) {
        for (int32_t k = 0; k < width; k++) {
            float x = ref_random_normal(b->seed + STREAM_CACHE, (uint64_t)(t * width + k));
            int64_t slot = b->token_slot[t];
            if (k < first_width) {
                ref_store_f32(first, c->kv_dtype, slot * first_width + k, x);
            } else if (rope != NULL) {
                ref_store_f32(rope, c->kv_dtype, slot * c->rope_dim + k - first_width, x);
            }
        }
    }
}

/** CSR lists. Without tree_slots, and with a mask, a request's nodes follow its prefix. */
static void add_lists(struct builder *b) {
    const struct ref_case *c = b->c;
    int32_t dtype = c->wide ? REF_I64 : REF_I32;
    int with_nodes = !c->tree_list && c->mask_mode != REF_MASK_NONE;
    int64_t total = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        total += c->prefix_len[r] + (with_nodes ? c->num_nodes[r] : 0);
    }
    void *indptr = append(b, "indptr", dtype, 1, c->batch + 1, 1, 1);
    void *slots = append(b, "slots", dtype, 1, total, 1, 1);
    int64_t token = 0;
    int64_t at = 0;
    for (int32_t r = 0; !b->failed && r < c->batch; r++) {
        int64_t listed = c->prefix_len[r] + (with_nodes ? c->num_nodes[r] : 0);
        for (int64_t t = 0; t < listed; t++) {
            put_index(slots, c->wide, at++, b->token_slot[token + t]);
        }
        token += c->prefix_len[r] + c->num_nodes[r];
        put_index(indptr, c->wide, r + 1, at);
    }
}

/** A row table whose rows stand in reverse, with table_rows to find them. */
static void add_table(struct builder *b) {
    const struct ref_case *c = b->c;
    int32_t dtype = c->wide ? REF_I64 : REF_I32;
    int64_t pages = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        int64_t tokens = (int64_t)c->prefix_len[r] + c->num_nodes[r];
        int64_t needed = (tokens + b->page_size - 1) / b->page_size;
        pages = needed > pages ? needed : pages;
    }
    pages += 2;
    void *table = append(b, "row_table", dtype, 2, c->batch, pages, 1);
    void *lengths = append(b, "prefix_len", dtype, 1, c->batch, 1, 1);
    int32_t *rows = append(b, "table_rows", REF_I32, 1, c->batch, 1, 1);
    int32_t *page_size = append(b, "page_size", REF_I32, 0, 1, 1, 1);
    if (b->failed) {
        return;
    }
    *page_size = c->page_size;
    for (int64_t i = 0; i < c->batch * pages; i++) {
        put_index(table, c->wide, i, 0x7ffffff0); /* entries that must not be followed */
    }
    int64_t token = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        int64_t tokens = (int64_t)c->prefix_len[r] + c->num_nodes[r];
        rows[r] = c->batch - 1 - r;
        put_index(lengths, c->wide, r, c->prefix_len[r]);
        for (int64_t t = 0; t < tokens; t += b->page_size) {
            put_index(table, c->wide, rows[r] * pages + t / b->page_size,
                      b->token_slot[token + t] / b->page_size);
        }
        token += tokens;
    }
}

/** The tensors of a step problem, which make_parents fills. */
static void add_step(struct builder *b) {
    const struct ref_case *c = b->c;
    const int64_t l = c->draft_positions;
    b->step.logp = append(b, "draft_logp", REF_F32, 3, c->batch, l, c->draft_ranks);
    b->step.draft_tokens = append(b, "draft_tokens", REF_I64, 3, c->batch, l, c->draft_ranks);
    b->step.root_token = append(b, "root_tokens", REF_I64, 1, c->batch, 1, 1);
    b->budget = append(b, "budget", REF_I32, 1, c->batch, 1, 1);
    b->step.target_ids = append(b, "target_ids", REF_I64, 1, b->rows, 1, 1);
    b->step.node_tokens = append(b, "node_tokens", REF_I64, 1, b->rows, 1, 1);
    int64_t *vocab_size = append(b, "vocab_size", REF_I64, 0, 1, 1, 1);
    if (vocab_size != NULL) {
        *vocab_size = c->vocab_size;
    }
}

/** The tree of a request: the draft tree of a step problem, otherwise a random one. */
static int32_t make_parents(struct builder *b, int32_t request, int32_t row, int32_t *parents,
                            struct ref_error *error) {
    const struct ref_case *c = b->c;
    uint64_t offset = 16u * (uint64_t)request;
    if (c->draft_positions == 0) {
        int32_t window = c->mask_mode == REF_MASK_CHAIN ? 1 : c->window > 0 ? c->window : 6;
        ref_tree_random(b->seed + STREAM_TREE + offset, c->num_nodes[request], window, parents);
        return REF_OK;
    }
    const struct case_step *all = &b->step;
    int64_t first = (int64_t)request * c->draft_positions * c->draft_ranks;
    b->budget[request] = c->num_nodes[request] - 1;
    const struct case_step one = {.num_nodes = c->num_nodes[request],
                                  .num_positions = c->draft_positions,
                                  .num_ranks = c->draft_ranks,
                                  .vocab_size = c->vocab_size,
                                  .logp = all->logp + first,
                                  .draft_tokens = all->draft_tokens + first,
                                  .root_token = all->root_token + request,
                                  .node_tokens = all->node_tokens + row,
                                  .parents = parents,
                                  .target_ids = all->target_ids + row};
    return case_step_make(b->seed + STREAM_STEP + offset, &one, error);
}

/** node_indptr, tree_slots, and the tree or mask of every request. */
static int32_t add_trees(struct builder *b, struct ref_error *error) {
    const struct ref_case *c = b->c;
    int32_t stride = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        int32_t words = (c->num_nodes[r] + 31) / 32;
        stride = words > stride ? words : stride;
    }
    int32_t *node_indptr = append(b, "node_indptr", REF_I32, 1, c->batch + 1, 1, 1);
    int32_t *mode = append(b, "mask_mode", REF_I32, 0, 1, 1, 1);
    void *tree_slots = c->tree_list
                           ? append(b, "tree_slots", c->wide ? REF_I64 : REF_I32, 1, b->rows, 1, 1)
                           : NULL;
    int32_t *parents = c->any_mask == 0 ? append(b, "parents", REF_I32, 1, b->rows, 1, 1) : NULL;
    uint32_t *words = c->mask_mode == REF_MASK_PACKED
                          ? append(b, "mask_words", REF_U32, 2, b->rows, stride, 1)
                          : NULL;
    if (c->draft_positions > 0) {
        add_step(b);
    }
    if (b->failed) {
        return REF_OUT_OF_MEMORY;
    }
    *mode = c->mask_mode;
    int64_t token = 0;
    int32_t row = 0;
    for (int32_t r = 0; r < c->batch; r++) {
        int32_t nodes = c->num_nodes[r];
        for (int32_t i = 0; tree_slots != NULL && i < nodes; i++) {
            put_index(tree_slots, c->wide, row + i, b->token_slot[token + c->prefix_len[r] + i]);
        }
        if (parents != NULL && nodes > 0) {
            int32_t status = make_parents(b, r, row, parents + row, error);
            if (status != REF_OK) {
                return status;
            }
            if (words != NULL) {
                ref_tree_packed_mask(parents + row, nodes, stride, words + (int64_t)row * stride);
            }
        }
        for (int64_t w = 0; parents == NULL && w < (int64_t)nodes * stride; w++) {
            uint64_t draw = ref_random(b->seed + STREAM_MASK, (uint64_t)(row * stride + w));
            words[row * stride + w] = c->any_mask == 2 && r == 0 ? 0 : (uint32_t)draw;
        }
        token += c->prefix_len[r] + nodes;
        row += nodes;
        node_indptr[r + 1] = row;
    }
    return REF_OK;
}

/** Runs the reference on the built inputs and fills the expected o and lse. */
static int32_t add_expected(struct builder *b, struct ref_error *error) {
    const struct ref_case *c = b->c;
    float *o = append(b, "o", REF_F32, 3, b->rows, c->num_heads, c->latent_dim);
    float *lse = append(b, "lse", REF_F32, 2, b->rows, c->num_heads, 1);
    struct ref_problem problem;
    int32_t status = b->failed ? REF_OUT_OF_MEMORY : ref_problem_bind(&b->bundle, &problem, error);
    size_t bytes = 0;
    if (status == REF_OK) {
        status = attention_reference_f32_workspace(&problem.call, &bytes);
    }
    void *workspace = status == REF_OK ? aligned_alloc(64, bytes) : NULL;
    if (workspace == NULL) {
        return status != REF_OK ? status : REF_OUT_OF_MEMORY;
    }
    problem.call.o = o;
    problem.call.lse = lse;
    attention_reference_f32(&problem.call, 0, b->rows, workspace);
    free(workspace);
    return REF_OK;
}

/** The finished file. */
static int32_t finish(const struct builder *b, void **file, size_t *bytes,
                      struct ref_error *error) {
    size_t size;
    int32_t status = ref_bundle_file_bytes(&b->bundle, &size, error);
    if (status != REF_OK) {
        return status;
    }
    *file = aligned_alloc(64, (size + 63) / 64 * 64);
    if (*file == NULL) {
        return REF_OUT_OF_MEMORY;
    }
    *bytes = size;
    ref_bundle_build(&b->bundle, *file, size);
    return REF_OK;
}

int32_t ref_case_build(const struct ref_case *description, void **file, size_t *bytes,
                       struct ref_error *error) {
    *file = NULL;
    struct builder b = {.c = description, .seed = seed_of(description->name)};
    snprintf(b.bundle.case_name, sizeof b.bundle.case_name, "%s", description->name);
    for (int32_t r = 0; r < description->batch; r++) {
        b.rows += description->num_nodes[r];
    }
    b.rows += description->spare_rows;
    float *scale = append(&b, "scale", REF_F32, 0, 1, 1, 1);
    if (scale != NULL) {
        *scale = CASE_SCALE;
    }
    add_queries(&b);
    place_tokens(&b);
    add_cache(&b);
    if (description->page_size > 0) {
        add_table(&b);
    } else {
        add_lists(&b);
    }
    int32_t status = add_trees(&b, error);
    status = status == REF_OK ? add_expected(&b, error) : status;
    if (status == REF_OK) {
        status = finish(&b, file, bytes, error);
    }
    free(b.token_slot);
    for (int32_t i = 0; i < b.bundle.tensor_count; i++) {
        free(b.owned[i]);
    }
    return status == REF_OUT_OF_MEMORY
               ? ref_fail(error, status, "", "out of memory for case %s", description->name)
               : status;
}
