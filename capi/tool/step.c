// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr step`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdtr_step.h"
#include "tool.h"

/** A step problem (spec/bundle_format.md) and what is made of it. */
struct step {
    struct tool_session s;
    const float *logp;
    const int64_t *draft_tokens;
    const int64_t *root_tokens;
    const int32_t *budget;
    const int64_t *target_ids;
    const int64_t *node_tokens;
    int64_t vocab_size;
    int32_t positions;
    int32_t ranks;
    size_t workspace_bytes;
    void *workspace;
    kdtr_draft_tree tree;         /* arrays of the largest budget + 1 */
    float *score;                 /* [R] */
    unsigned char *accepted;      /* [R] */
    int64_t *emitted;             /* [R], request after request */
    int32_t *accept_index;        /* [R] */
    kdtr_accept_result *results;  /* [B] */
    struct tool_columns *columns; /* [B] */
    int32_t differ;               /* requests whose tree differs */
};

/** Fails with one text. */
static int32_t fail(kdtr_error *error, int32_t code, const char *field, const char *text) {
    snprintf(error->field, sizeof error->field, "%s", field);
    snprintf(error->text, sizeof error->text, "%s", text);
    return error->code = code;
}

/** Finds a tensor of a dtype and shape; a size of -1 is any up to the largest of the ABI. */
static int32_t need(const struct step *p, const char *name, int32_t dtype, int32_t rank,
                    const int64_t *shape, kdtr_tensor *tensor, kdtr_error *error) {
    tensor->struct_size = sizeof *tensor;
    if (kdtr_bundle_find(p->s.bundle, name, tensor, error) != KDTR_OK) {
        return fail(error, KDTR_BUNDLE_MISSING, name, "the bundle has no such tensor");
    }
    if (tensor->dtype != dtype) {
        return fail(error, KDTR_BUNDLE_DTYPE, name, "its dtype does not fit");
    }
    int fits = tensor->rank == rank;
    for (int32_t i = 0; fits && i < rank; i++) {
        fits = shape[i] < 0 ? tensor->shape[i] <= 1048576 : tensor->shape[i] == shape[i];
    }
    return fits ? KDTR_OK : fail(error, KDTR_BUNDLE_SHAPE, name, "its shape does not fit");
}

/** Finds the tensors of the step. */
static int32_t bind(struct step *p, kdtr_error *error) {
    const int64_t batch = p->s.problem.config.batch;
    const int64_t rows = p->s.problem.config.row_capacity;
    int64_t draft[3] = {batch, -1, -1};
    enum { LOGP, DRAFT_TOKENS, ROOTS, BUDGET, TARGETS, NODE_TOKENS, VOCAB, COUNT };
    const struct {
        const char *name;
        int32_t dtype;
        int32_t rank;
        const int64_t *shape;
    } wanted[COUNT] = {{"draft_logp", KDTR_F32, 3, draft},   {"draft_tokens", KDTR_I64, 3, draft},
                       {"root_tokens", KDTR_I64, 1, &batch}, {"budget", KDTR_I32, 1, &batch},
                       {"target_ids", KDTR_I64, 1, &rows},   {"node_tokens", KDTR_I64, 1, &rows},
                       {"vocab_size", KDTR_I64, 0, NULL}};
    kdtr_tensor t[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int32_t status =
            need(p, wanted[i].name, wanted[i].dtype, wanted[i].rank, wanted[i].shape, &t[i], error);
        if (status != KDTR_OK) {
            return status;
        }
        draft[1] = t[LOGP].shape[1]; /* the tokens have the shape of the log-probabilities */
        draft[2] = t[LOGP].shape[2];
    }
    if (p->s.problem.is_module || p->s.problem.parents.data == NULL) {
        return fail(error, KDTR_BUNDLE_MISSING, "parents", "a step problem has o, lse and parents");
    }
    p->logp = t[LOGP].data;
    p->draft_tokens = t[DRAFT_TOKENS].data;
    p->root_tokens = t[ROOTS].data;
    p->budget = t[BUDGET].data;
    p->target_ids = t[TARGETS].data;
    p->node_tokens = t[NODE_TOKENS].data;
    p->vocab_size = *(const int64_t *)t[VOCAB].data;
    p->positions = (int32_t)draft[1];
    p->ranks = (int32_t)draft[2];
    return p->vocab_size < 1 ? fail(error, KDTR_INVALID_ARGUMENT, "vocab_size", "it is below 1")
                             : KDTR_OK;
}

/** Nodes of a request in the bundle. */
static int32_t nodes_of(const struct step *p, int32_t request) {
    const int32_t *indptr = p->s.problem.args.node_indptr;
    return indptr[request + 1] - indptr[request];
}

/** Memory for the largest tree and for all results. */
static int32_t prepare(struct step *p, kdtr_error *error) {
    size_t rows = (size_t)p->s.problem.config.row_capacity;
    size_t batch = (size_t)p->s.problem.config.batch;
    int32_t largest = 0;
    for (int32_t b = 0; b < (int32_t)batch; b++) {
        if (nodes_of(p, b) > 0 && (p->budget[b] < 0 || p->budget[b] > 65535)) {
            return fail(error, KDTR_INVALID_ARGUMENT, "budget", "it is not 0 to 65535");
        }
        largest = nodes_of(p, b) > 0 && p->budget[b] > largest ? p->budget[b] : largest;
    }
    p->workspace_bytes = kdtr_draft_tree_host_bytes(largest, p->positions, p->ranks);
    if (p->workspace_bytes == 0) {
        return fail(error, KDTR_UNSUPPORTED, "draft_logp", "its sizes are beyond the largest");
    }
    size_t most = (size_t)largest + 1;
    size_t words = p->s.problem.args.mask_words != NULL ? (most + 31) / 32 : 0;
    p->workspace = malloc(p->workspace_bytes);
    p->tree = (kdtr_draft_tree){.struct_size = sizeof p->tree,
                                .tokens = calloc(most, sizeof(int64_t)),
                                .parents = calloc(most, sizeof(int32_t)),
                                .depth = calloc(most, sizeof(int32_t)),
                                .rank = calloc(most, sizeof(int32_t)),
                                .score = calloc(most, sizeof(float)),
                                .first_child = calloc(most, sizeof(int32_t)),
                                .next_sibling = calloc(most, sizeof(int32_t)),
                                .mask_words = words > 0 ? calloc(most * words, 4) : NULL,
                                .mask_stride_words = (int64_t)words};
    p->score = calloc(rows, sizeof *p->score);
    p->accepted = calloc(rows, 1);
    p->emitted = calloc(rows, sizeof *p->emitted);
    p->accept_index = calloc(rows, sizeof *p->accept_index);
    p->results = calloc(batch, sizeof *p->results);
    p->columns = calloc(batch, sizeof *p->columns);
    int complete = p->workspace != NULL && p->tree.tokens != NULL && p->tree.parents != NULL &&
                   p->tree.depth != NULL && p->tree.rank != NULL && p->tree.score != NULL &&
                   p->tree.first_child != NULL && p->tree.next_sibling != NULL &&
                   (words == 0 || p->tree.mask_words != NULL) && p->score != NULL &&
                   p->accepted != NULL && p->emitted != NULL && p->accept_index != NULL &&
                   p->results != NULL && p->columns != NULL;
    return complete ? KDTR_OK : fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for the trees");
}

static void release(struct step *p) {
    void *const owned[] = {
        p->workspace,  p->tree.tokens,      p->tree.parents,      p->tree.depth,      p->tree.rank,
        p->tree.score, p->tree.first_child, p->tree.next_sibling, p->tree.mask_words, p->score,
        p->accepted,   p->emitted,          p->accept_index,      p->results,         p->columns};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        free(owned[i]);
    }
    tool_close(&p->s);
}

/** Whether node i of the built tree is that of the bundle, its row of the mask included. */
static int same_node(const struct step *p, int64_t first, int32_t i) {
    const kdtr_run_args *args = &p->s.problem.args;
    const kdtr_draft_tree *tree = &p->tree;
    const int32_t *parents = p->s.problem.parents.data;
    int same =
        parents[first + i] == tree->parents[i] && p->node_tokens[first + i] == tree->tokens[i];
    for (int32_t w = 0; same && tree->mask_words != NULL && w < (tree->num_nodes + 31) / 32; w++) {
        same = args->mask_words[(first + i) * args->mask_stride_words + w] ==
               tree->mask_words[i * tree->mask_stride_words + w];
    }
    return same;
}

/** Builds a request's tree, compares it, and walks it where it is the same. */
static int32_t step_request(struct step *p, int32_t b, kdtr_error *error) {
    int64_t first = p->s.problem.args.node_indptr[b];
    int64_t draft = (int64_t)b * p->positions * p->ranks;
    const kdtr_draft_args draft_args = {.struct_size = sizeof draft_args,
                                        .num_positions = p->positions,
                                        .num_ranks = p->ranks,
                                        .budget = p->budget[b],
                                        .depth_limit = p->positions,
                                        .logp = p->logp + draft,
                                        .draft_tokens = p->draft_tokens + draft,
                                        .stride = p->ranks,
                                        .root_token = p->root_tokens[b]};
    int32_t status =
        kdtr_draft_tree_build_host(&draft_args, p->workspace, p->workspace_bytes, &p->tree, error);
    if (status != KDTR_OK) {
        return status;
    }
    int32_t nodes = p->tree.num_nodes;
    int32_t at = 0;
    while (nodes == nodes_of(p, b) && at < nodes && same_node(p, first, at)) {
        at++;
    }
    if (at < nodes) {
        p->differ++;
        printf("  request %d: the draft tree has %d nodes, the bundle's %d; node %d differs\n", b,
               nodes, nodes_of(p, b), at);
        return KDTR_OK;
    }
    memcpy(p->score + first, p->tree.score, (size_t)nodes * sizeof *p->score);
    const kdtr_accept_args accept = {.struct_size = sizeof accept,
                                     .num_nodes = nodes,
                                     .path_size = nodes,
                                     .tokens = p->tree.tokens,
                                     .first_child = p->tree.first_child,
                                     .next_sibling = p->tree.next_sibling,
                                     .target_ids = p->target_ids + first,
                                     .vocab_size = p->vocab_size};
    p->results[b] = (kdtr_accept_result){.struct_size = sizeof p->results[b],
                                         .accept_index = p->accept_index + first,
                                         .emitted = p->emitted + first};
    status = kdtr_tree_accept_host(&accept, &p->results[b], error);
    for (int32_t i = 0; status == KDTR_OK && i <= p->results[b].accept_num; i++) {
        p->accepted[first + p->accept_index[first + i]] = 1;
    }
    p->columns[b] =
        (struct tool_columns){p->node_tokens + first, p->score + first, p->accepted + first};
    return status;
}

/** The lines below the trees. */
static void print_accepted(const struct step *p) {
    for (int32_t b = 0; b < p->s.problem.config.batch; b++) {
        const kdtr_accept_result *r = &p->results[b];
        if (nodes_of(p, b) == 0) {
            printf("  request %d: inactive\n", b);
            continue;
        }
        printf("  request %d: accepted %d token%s", b, r->accept_num,
               r->accept_num == 1 ? "" : "s");
        for (int32_t i = 0; i < r->accept_num; i++) {
            printf("%s%lld", i == 0 ? ": " : " ", (long long)r->emitted[i]);
        }
        if (r->bonus < 0) {
            printf("; no bonus token\n"); /* the target gives no token */
        } else {
            printf("; bonus %lld\n", (long long)r->bonus);
        }
    }
}

/** The whole step. */
static int run_step(struct step *p, kdtr_error *error) {
    int32_t status = tool_open(&p->s, error);
    status = status != KDTR_OK ? status : bind(p, error);
    status = status != KDTR_OK ? status : prepare(p, error);
    status = status != KDTR_OK ? status : tool_execute(&p->s, error);
    int32_t batch = status != KDTR_OK ? 0 : p->s.problem.config.batch;
    for (int32_t b = 0; status == KDTR_OK && b < batch; b++) {
        status = nodes_of(p, b) > 0 ? step_request(p, b, error) : KDTR_OK;
    }
    if (status != KDTR_OK) {
        return TOOL_BAD_INPUT;
    }
    if (p->differ == 0) {
        tool_draw_trees(&p->s, p->columns);
        print_accepted(p);
    }
    printf("  draft trees: %d of %d requests differ: %s\n", p->differ, batch,
           p->differ == 0 ? "ok" : "MISMATCH");
    int code = tool_compare(&p->s, error);
    return code == TOOL_AGREE && p->differ > 0 ? TOOL_MISMATCH : code;
}

int tool_step(int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] == '-') {
            return tool_usage("step", "there is no option '%s'", argv[i]);
        }
    }
    if (argc != 1) {
        return tool_usage("step", argc == 0 ? "a file is missing" : "step takes one file");
    }
    struct step p = {.s = {.path = argv[0]}};
    kdtr_error error = {0};
    int code = run_step(&p, &error);
    if (code == TOOL_BAD_INPUT) {
        tool_fail(argv[0], &error);
    }
    release(&p);
    return code;
}
