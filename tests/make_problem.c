// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Builds test problems: layout of pools, slots, lists, trees and masks.
 */
#include "make_problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"

/** Streams of test_hash used here. */
enum { STREAM_SLOTS = 11, STREAM_TREE = 12, STREAM_PATTERN = 13, STREAM_GARBAGE = 14 };

/** A slot that no pool has: a run that follows it reads far outside. */
#define ABSURD_SLOT 2147480000
/** Pages of the pool that nobody uses. */
#define SPARE_PAGES 3

/** Where the tokens of a problem stand while it is built. */
struct layout {
    int32_t page_size;                       /* 1 for CSR */
    int64_t prefix[TEST_MAX_BATCH];          /* tokens of the prefix, never negative */
    int64_t first_page[TEST_MAX_BATCH];      /* of the request's main list */
    int64_t first_tree_page[TEST_MAX_BATCH]; /* of its tree list, if it has one */
    int64_t num_pages;
    int64_t *page; /* [num_pages] permutation */
};

void *test_calloc(size_t bytes) {
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    return memory;
}

void *test_problem_alloc(struct test_problem *problem, int64_t count, int64_t bytes) {
    if (problem->buffer_count == TEST_MAX_BUFFERS) {
        fprintf(stderr, "TEST_MAX_BUFFERS is too small\n");
        exit(EXIT_FAILURE);
    }
    struct test_buffer *buffer = &problem->buffers[problem->buffer_count++];
    buffer->bytes = (size_t)(count * bytes);
    buffer->data = test_calloc(buffer->bytes);
    memset(buffer->data, 0xff, buffer->bytes);
    return buffer->data;
}

void test_put_index(const void *array, int32_t dtype, int64_t index, int64_t value) {
    /* The call has const pointers; the arrays are this module's own. */
    if (dtype == REF_I64) {
        ((int64_t *)(uintptr_t)array)[index] = value;
    } else {
        ((int32_t *)(uintptr_t)array)[index] = (int32_t)value;
    }
}

/** Replaces zeros by defaults. */
static void fill_defaults(struct test_case *c) {
    c->seed = c->seed == 0 ? test_seed() : c->seed;
    c->batch = c->batch == 0 ? 1 : c->batch;
    c->heads = c->heads == 0 ? 2 : c->heads;
    c->latent_dim = c->latent_dim == 0 ? 40 : c->latent_dim;
    c->rope_dim = c->rope_dim == 0 ? 9 : c->rope_dim < 0 ? 0 : c->rope_dim;
    c->window = c->window == 0 ? 4 : c->window;
    if (c->rope_dim == 0) {
        c->one_pool = 0;
        c->one_query = 0;
    }
}

/** Row and head stride of [R,H,width], or of [H,R,width]. */
static void set_strides(const struct test_problem *p, int64_t width, int64_t stride[2]) {
    int outer = p->spec.heads_outer != 0;
    int64_t inner_count = outer ? p->call.row_capacity : p->call.num_heads;
    stride[1 - outer] = width + p->spec.padding;
    stride[outer] = stride[1 - outer] * inner_count + p->spec.padding;
}

/** Elements of an array with these strides. */
static int64_t elements(const struct test_problem *p, const int64_t stride[2]) {
    return p->spec.heads_outer ? p->call.num_heads * stride[1] : p->call.row_capacity * stride[0];
}

/** Dimensions, types and strides of the call. */
static void set_dimensions(struct test_problem *p) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    a->batch = c->batch;
    a->num_heads = c->heads;
    a->latent_dim = c->latent_dim;
    a->rope_dim = c->rope_dim;
    a->mask_mode = c->mask_mode;
    a->addressing = c->page_size == 0 ? REF_ADDRESSING_CSR : REF_ADDRESSING_TABLE;
    a->page_size = c->page_size == 0 ? 1 : c->page_size;
    a->q_dtype = c->bf16_q ? REF_BF16 : REF_F32;
    a->kv_dtype = c->bf16_kv ? REF_BF16 : REF_F32;
    a->o_dtype = c->bf16_o ? REF_BF16 : REF_F32;
    a->length_dtype = c->wide_lengths ? REF_I64 : REF_I32;
    a->slot_dtype = c->wide_slots ? REF_I64 : REF_I32;
    a->lse_base2 = c->lse_base2;
    a->scale = test_scale(c);
    a->max_nodes = 1;
    a->row_capacity = c->lead_rows + c->spare_rows;
    for (int32_t b = 0; b < c->batch; b++) {
        a->row_capacity += c->nodes[b];
        a->max_nodes = c->nodes[b] > a->max_nodes ? c->nodes[b] : a->max_nodes;
        a->max_prefix_len = c->prefix[b] > a->max_prefix_len ? c->prefix[b] : a->max_prefix_len;
    }
    a->row_capacity = a->row_capacity == 0 ? 1 : a->row_capacity;
    a->mask_stride_words = (a->max_nodes + 31) / 32 + (c->padding > 0);
    a->max_nodes = c->limit_nodes > 0 ? c->limit_nodes : a->max_nodes;
    a->max_prefix_len = c->limit_prefix > 0 ? c->limit_prefix : a->max_prefix_len;
    set_strides(p, c->latent_dim, a->o_stride);
    p->omit_lse = c->no_optional;
    p->omit_status = c->no_optional;
}

/** Gives every list its pages and shuffles them over the pool. */
static void lay_out(struct test_problem *p, struct layout *l) {
    const struct test_case *c = &p->spec;
    l->page_size = p->call.page_size;
    for (int32_t b = 0; b < c->batch; b++) {
        l->prefix[b] = c->prefix[b] < 0 ? 0 : c->prefix[b];
        int64_t tokens = l->prefix[b] + (c->own_tree_list ? 0 : c->nodes[b]);
        l->first_page[b] = l->num_pages;
        l->num_pages += (tokens + l->page_size - 1) / l->page_size;
        l->first_tree_page[b] = l->num_pages;
        l->num_pages += c->own_tree_list ? (c->nodes[b] + l->page_size - 1) / l->page_size : 0;
    }
    l->num_pages += SPARE_PAGES;
    p->num_slots = l->num_pages * l->page_size;
    l->page = test_calloc((size_t)l->num_pages * sizeof *l->page);
    for (int64_t i = 0; i < l->num_pages; i++) {
        int64_t j = (int64_t)(test_hash(c->seed, STREAM_SLOTS, (uint64_t)i, 0) % (uint64_t)(i + 1));
        l->page[i] = l->page[j];
        l->page[j] = i;
    }
}

/** Slot of a token: the prefix, then the nodes. */
static int64_t slot_of(const struct test_case *c, const struct layout *l, int32_t b, int64_t t) {
    int64_t first = l->first_page[b];
    if (c->own_tree_list && t >= l->prefix[b]) {
        first = l->first_tree_page[b];
        t -= l->prefix[b];
    }
    return l->page[first + t / l->page_size] * l->page_size + t % l->page_size;
}

/** Query rows, one tensor or two; spare rows and gaps stay NaN. */
static void make_queries(struct test_problem *p) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    int64_t bytes = c->bf16_q ? 2 : 4;
    set_strides(p, c->latent_dim + (c->one_query ? c->rope_dim : 0), a->q_latent_stride);
    char *latent = test_problem_alloc(p, elements(p, a->q_latent_stride), bytes);
    char *rope = NULL;
    if (c->one_query) {
        rope = latent + c->latent_dim * bytes;
        memcpy(a->q_rope_stride, a->q_latent_stride, sizeof a->q_rope_stride);
    } else if (c->rope_dim > 0) {
        set_strides(p, c->rope_dim, a->q_rope_stride);
        rope = test_problem_alloc(p, elements(p, a->q_rope_stride), bytes);
    }
    int64_t row = c->lead_rows;
    for (int32_t b = 0; b < c->batch; b++) {
        for (int32_t i = 0; i < c->nodes[b]; i++, row++) {
            for (int32_t h = 0; h < c->heads; h++) {
                for (int32_t k = 0; k < c->latent_dim + c->rope_dim; k++) {
                    int in_latent = k < c->latent_dim;
                    const int64_t *stride = in_latent ? a->q_latent_stride : a->q_rope_stride;
                    ref_store_f32(in_latent ? latent : rope, a->q_dtype,
                                  row * stride[0] + h * stride[1] +
                                      (in_latent ? k : k - c->latent_dim),
                                  test_query_value(c, b, i, h, k));
                }
            }
        }
    }
    a->q_latent = latent;
    a->q_rope = rope;
}

/** The pool, one or two; slots that no token has stay NaN. */
static void make_pool(struct test_problem *p, const struct layout *l) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    int64_t bytes = c->bf16_kv ? 2 : 4;
    a->kv_latent_stride = c->latent_dim + (c->one_pool ? c->rope_dim : 0) + c->padding;
    char *latent = test_problem_alloc(p, p->num_slots * a->kv_latent_stride, bytes);
    char *rope = NULL;
    if (c->one_pool) {
        a->kv_rope_stride = a->kv_latent_stride;
        rope = latent + c->latent_dim * bytes;
    } else if (c->rope_dim > 0) {
        a->kv_rope_stride = c->rope_dim + c->padding;
        rope = test_problem_alloc(p, p->num_slots * a->kv_rope_stride, bytes);
    }
    for (int32_t b = 0; b < c->batch; b++) {
        for (int64_t t = 0; t < l->prefix[b] + c->nodes[b]; t++) {
            int64_t slot = slot_of(c, l, b, t);
            for (int32_t k = 0; k < c->latent_dim; k++) {
                ref_store_f32(latent, a->kv_dtype, slot * a->kv_latent_stride + k,
                              test_cache_value(c, b, t, k));
            }
            for (int32_t k = 0; k < c->rope_dim; k++) {
                ref_store_f32(rope, a->kv_dtype, slot * a->kv_rope_stride + k,
                              test_cache_value(c, b, t, c->latent_dim + k));
            }
        }
    }
    a->kv_latent = latent;
    a->kv_rope = rope;
}

/** CSR lists, with absurd slots after the end. */
static void make_csr(struct test_problem *p, const struct layout *l) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    int64_t total = 0;
    for (int32_t b = 0; b < c->batch; b++) {
        total += l->prefix[b] + (c->own_tree_list ? 0 : c->nodes[b]);
    }
    int64_t size = total + 8;
    void *slots = test_problem_alloc(p, size, c->wide_slots ? 8 : 4);
    void *indptr = test_problem_alloc(p, c->batch + 1, c->wide_lengths ? 8 : 4);
    for (int64_t i = total; i < size; i++) {
        test_put_index(slots, a->slot_dtype, i, ABSURD_SLOT);
    }
    int64_t next = 0;
    test_put_index(indptr, a->length_dtype, 0, 0);
    for (int32_t b = 0; b < c->batch; b++) {
        /* With MASK_NONE a list without nodes: all of it is prefix. */
        int64_t nodes = c->own_tree_list || c->mask_mode == REF_MASK_NONE ? 0 : c->nodes[b];
        for (int64_t t = 0; t < l->prefix[b] + nodes; t++) {
            /* The list of a request without nodes means nothing. */
            int64_t slot = c->nodes[b] > 0 ? slot_of(c, l, b, t) : ABSURD_SLOT;
            test_put_index(slots, a->slot_dtype, next++, slot);
        }
        test_put_index(indptr, a->length_dtype, b + 1, next);
    }
    for (int64_t i = next; i < total; i++) {
        test_put_index(slots, a->slot_dtype, i, ABSURD_SLOT);
    }
    a->slots = slots;
    a->indptr = indptr;
}

/** A row table, absurd beyond each request's pages and in unused rows. */
static void make_table(struct test_problem *p, const struct layout *l) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    int64_t rows = c->batch + 2;
    a->row_table_stride = l->num_pages;
    void *table = test_problem_alloc(p, rows * a->row_table_stride, c->wide_slots ? 8 : 4);
    void *lengths = test_problem_alloc(p, c->batch, c->wide_lengths ? 8 : 4);
    int32_t *table_rows = NULL;
    if (c->table_rows) {
        table_rows = test_problem_alloc(p, c->batch, sizeof *table_rows);
    }
    for (int64_t i = 0; i < rows * a->row_table_stride; i++) {
        test_put_index(table, a->slot_dtype, i, ABSURD_SLOT);
    }
    for (int32_t b = 0; b < c->batch; b++) {
        int64_t row = table_rows != NULL ? rows - 1 - b : b;
        int64_t tokens = l->prefix[b] + (c->own_tree_list ? 0 : c->nodes[b]);
        int64_t pages = (tokens + l->page_size - 1) / l->page_size;
        for (int64_t i = 0; i < pages && c->nodes[b] > 0; i++) {
            test_put_index(table, a->slot_dtype, row * a->row_table_stride + i,
                           l->page[l->first_page[b] + i]);
        }
        test_put_index(lengths, a->length_dtype, b, c->prefix[b]);
        if (table_rows != NULL) {
            table_rows[b] = (int32_t)row;
        }
    }
    a->row_table = table;
    a->prefix_len = lengths;
    a->table_rows = table_rows;
}

/** node_indptr, tree_slots and parents; entries of spare rows are absurd. */
static void make_nodes(struct test_problem *p, const struct layout *l) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    int32_t *node_indptr = test_problem_alloc(p, c->batch + 1, sizeof *node_indptr);
    p->parents = test_problem_alloc(p, a->row_capacity, sizeof *p->parents);
    void *tree_slots = NULL;
    if (c->own_tree_list) {
        tree_slots = test_problem_alloc(p, a->row_capacity, c->wide_slots ? 8 : 4);
    }
    for (int64_t r = 0; r < a->row_capacity; r++) {
        p->parents[r] = ABSURD_SLOT;
        if (tree_slots != NULL) {
            test_put_index(tree_slots, a->slot_dtype, r, ABSURD_SLOT);
        }
    }
    int64_t row = c->lead_rows;
    node_indptr[0] = c->lead_rows;
    for (int32_t b = 0; b < c->batch; b++) {
        for (int32_t i = 0; i < c->nodes[b]; i++, row++) {
            int32_t window = c->mask_mode == REF_MASK_CHAIN ? 1 : c->window;
            window = window > i ? i : window;
            uint64_t draw = test_hash(c->seed, STREAM_TREE,
                                      (uint64_t)b + (uint64_t)c->first_request, (uint64_t)i);
            p->parents[row] = i == 0 ? -1 : i - 1 - (int32_t)(draw % (uint64_t)window);
            if (tree_slots != NULL) {
                test_put_index(tree_slots, a->slot_dtype, row, slot_of(c, l, b, l->prefix[b] + i));
            }
        }
        node_indptr[b + 1] = (int32_t)row;
    }
    a->node_indptr = node_indptr;
    a->tree_slots = tree_slots;
    a->parents = c->mask_mode == REF_MASK_PARENTS ? p->parents : NULL;
}

/** Packed mask rows; bits at and beyond Q, and rows of nobody, are random. */
static void make_mask(struct test_problem *p) {
    const struct test_case *c = &p->spec;
    struct ref_attention *a = &p->call;
    int64_t stride = a->mask_stride_words;
    uint32_t *words = test_problem_alloc(p, a->row_capacity * stride, sizeof *words);
    for (int64_t i = 0; i < a->row_capacity * stride; i++) {
        words[i] = (uint32_t)test_hash(c->seed, STREAM_GARBAGE, (uint64_t)i, 0);
    }
    for (int32_t b = 0; b < c->batch; b++) {
        int64_t first = a->node_indptr[b];
        for (int32_t i = 0; i < c->nodes[b]; i++) {
            uint32_t *row = words + (first + i) * stride;
            for (int32_t j = 0; j < c->nodes[b]; j++) {
                int visible =
                    i % 3 != 0 &&
                    (test_hash(c->seed, STREAM_PATTERN,
                               ((uint64_t)b + (uint64_t)c->first_request) << 32 | (uint32_t)i,
                               (uint64_t)j) &
                     1u);
                if (c->pattern == TEST_PATTERN_TREE) {
                    int32_t ancestor = i;
                    while (ancestor > j) {
                        ancestor = p->parents[first + ancestor];
                    }
                    visible = ancestor == j;
                }
                row[j / 32] &= ~(1u << (j % 32));
                row[j / 32] |= (uint32_t)(visible != 0) << (j % 32);
            }
        }
    }
    a->mask_words = words;
}

void test_problem_make(const struct test_case *record, struct test_problem *problem) {
    memset(problem, 0, sizeof *problem);
    problem->spec = *record;
    fill_defaults(&problem->spec);
    set_dimensions(problem);
    struct layout l;
    memset(&l, 0, sizeof l);
    lay_out(problem, &l);
    make_queries(problem);
    make_pool(problem, &l);
    if (problem->spec.page_size == 0) {
        make_csr(problem, &l);
    } else {
        make_table(problem, &l);
    }
    make_nodes(problem, &l);
    if (problem->spec.mask_mode == REF_MASK_PACKED) {
        make_mask(problem);
    }
    free(l.page);
}

void test_problem_free(struct test_problem *problem) {
    for (int32_t i = problem->borrowed; i < problem->buffer_count; i++) {
        free(problem->buffers[i].data);
    }
    memset(problem, 0, sizeof *problem);
}
