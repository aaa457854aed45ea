// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The float32 MLA-absorb reference in the canonical order (spec/numerics.md).
 *
 * For each query row: list what its node sees, then three passes over the visible tokens: scores,
 * weights, output. Masked tokens do not exist, so the row of a node has the bits of a plain decode
 * of its path.
 */
#include "attention.h"

#include <math.h>

#include "canonical.h"
#include "exp_log.h"
#include "rows.h"

/** Rows of a tile in the score pass: 16 of model size are 36 KB, so that the heads after the first
 * find them in the first cache. A score depends on its own row only: any number gives its bits. */
#define SCORE_TILE 16

/** The workspace of one thread, cut into its arrays. */
struct scratch {
    int32_t *nodes; /* [max_nodes] visible nodes of the row */
    float *query;   /* [H, L+P] queries of the row */
    float *tile;    /* [256, L+P] cache rows of a block */
    float *weights; /* [H, max_prefix_len + max_nodes] scores, then weights */
    float *total;   /* [H, L] output before division */
    float *sums;    /* [2, H] log-sum-exp and sum of weights of each head */
};

/** Adds count elements of `bytes` each, rounded up to 64, to a running size. */
static int32_t grow(size_t *size, uint64_t count, uint64_t factor, uint64_t bytes) {
    if (factor != 0 && count > SIZE_MAX / 2 / bytes / factor) {
        return REF_SIZE_OVERFLOW;
    }
    uint64_t more = (count * factor * bytes + 63) / 64 * 64;
    if (more > SIZE_MAX / 2 - *size) {
        return REF_SIZE_OVERFLOW;
    }
    *size += more;
    return REF_OK;
}

/** Sizes of the arrays of struct scratch, as ends: offset[i] is where array i starts. */
static int32_t scratch_layout(const struct ref_attention *a, size_t offset[7]) {
    uint64_t heads = (uint64_t)a->num_heads;
    uint64_t width = (uint64_t)a->latent_dim + (uint64_t)a->rope_dim;
    uint64_t tokens = (uint64_t)a->max_prefix_len + (uint64_t)a->max_nodes;
    const uint64_t counts[6][2] = {{(uint64_t)a->max_nodes, 1},      {heads, width},
                                   {CANONICAL_BLOCK, width},         {heads, tokens},
                                   {heads, (uint64_t)a->latent_dim}, {heads, 2}};
    offset[0] = 0;
    for (int i = 0; i < 6; i++) {
        offset[i + 1] = offset[i];
        if (grow(&offset[i + 1], counts[i][0], counts[i][1], sizeof(float)) != REF_OK) {
            return REF_SIZE_OVERFLOW;
        }
    }
    return REF_OK;
}

int32_t attention_reference_f32_workspace(const struct ref_attention *a, size_t *bytes) {
    size_t offset[7];
    int32_t status = scratch_layout(a, offset);
    *bytes = status == REF_OK ? offset[6] : 0;
    return status;
}

/** Copies elements to float; a loop of its own for each type so that it vectorises. */
static void copy_to_f32(float *target, const void *base, int32_t dtype, int64_t index,
                        int32_t count) {
    if (dtype == REF_BF16) {
        const uint16_t *source = (const uint16_t *)base + index;
        for (int32_t k = 0; k < count; k++) {
            target[k] = ref_f32_from_bf16(source[k]);
        }
    } else if (count > 0) {
        memcpy(target, (const float *)base + index, (size_t)count * sizeof(float));
    }
}

/** Loads the queries of a row, [H, L+P]. */
static void load_queries(const struct ref_attention *a, int64_t index, float *query) {
    int64_t width = (int64_t)a->latent_dim + a->rope_dim;
    for (int32_t h = 0; h < a->num_heads; h++) {
        copy_to_f32(query + h * width, a->q_latent, a->q_dtype,
                    index * a->q_latent_stride[0] + h * a->q_latent_stride[1], a->latent_dim);
        copy_to_f32(query + h * width + a->latent_dim, a->q_rope, a->q_dtype,
                    index * a->q_rope_stride[0] + h * a->q_rope_stride[1], a->rope_dim);
    }
}

/** Loads the cache rows of visible tokens first to first + count - 1, [count, L+P]. */
static void load_tile(const struct ref_attention *a, const struct ref_row *row,
                      const int32_t *nodes, int64_t first, int64_t count, float *tile) {
    int64_t width = (int64_t)a->latent_dim + a->rope_dim;
    for (int64_t t = 0; t < count; t++) {
        int64_t slot = ref_visible_slot(a, row, nodes, first + t);
        copy_to_f32(tile + t * width, a->kv_latent, a->kv_dtype, slot * a->kv_latent_stride,
                    a->latent_dim);
        copy_to_f32(tile + t * width + a->latent_dim, a->kv_rope, a->kv_dtype,
                    slot * a->kv_rope_stride, a->rope_dim);
    }
}

// [scores]
/** Pass 1: the scores of every head and visible token (eq-score-f32). */
static void score_pass(const struct ref_attention *a, const struct ref_row *row, int64_t tokens,
                       const struct scratch *s) {
    int32_t width = a->latent_dim + a->rope_dim;
    for (int64_t first = 0; first < tokens; first += SCORE_TILE) {
        int64_t count = tokens - first < SCORE_TILE ? tokens - first : SCORE_TILE;
        load_tile(a, row, s->nodes, first, count, s->tile);
        for (int32_t h = 0; h < a->num_heads; h++) {
            for (int64_t t = 0; t < count; t++) {
                float dot =
                    dot_canonical(s->query + (int64_t)h * width, s->tile + t * width, width);
                s->weights[h * tokens + first + t] = a->scale * dot;
            }
        }
    }
}
// [scores]

// [weights]
/**
 * Pass 2: turns the scores of one head into weights exp(score - maximum) and sums them.
 *
 * Returns the log-sum-exp; NaN if a score is NaN or +inf, -inf if there is nothing to attend to.
 */
static float weight_pass(float *weights, int64_t tokens, float *weight_sum) {
    float maximum = -INFINITY;
    int not_a_number = 0;
    for (int64_t v = 0; v < tokens; v++) {
        not_a_number |= !(weights[v] < INFINITY);
        maximum = weights[v] > maximum ? weights[v] : maximum;
    }
    if (not_a_number || maximum == -INFINITY) {
        return not_a_number ? NAN : -INFINITY;
    }
    float sum = 0.0f;
    for (int64_t first = 0; first < tokens; first += CANONICAL_BLOCK) {
        int64_t end = tokens - first < CANONICAL_BLOCK ? tokens : first + CANONICAL_BLOCK;
        float block = 0.0f;
        for (int64_t v = first; v < end; v++) {
            weights[v] = ref_exp_f32(weights[v] - maximum);
            block += weights[v];
        }
        sum += block;
    }
    *weight_sum = sum;
    return maximum + ref_log_f32(sum);
}
// [weights]

// [output]
/** Adds one block of weighted rows to at most 32 columns of one head's total (eq-block-sum). */
static void add_block(const float *weights, const float *tile, int64_t count, int32_t width,
                      int32_t lanes, float *total) {
    float block[CANONICAL_LANES] = {0};
    for (int64_t t = 0; t < count; t++) {
        const float *row = tile + t * width;
        if (weights[t] == 0.0f) {
            continue; /* a weight of zero contributes nothing, whatever the row holds */
        }
        if (lanes == CANONICAL_LANES) {
            for (int32_t lane = 0; lane < CANONICAL_LANES; lane++) {
                block[lane] += weights[t] * row[lane];
            }
        } else {
            for (int32_t lane = 0; lane < lanes; lane++) {
                block[lane] += weights[t] * row[lane];
            }
        }
    }
    for (int32_t lane = 0; lane < lanes; lane++) {
        total[lane] += block[lane];
    }
}
// [output]

/** Stores one head of a row; an empty row has no total. */
static void store_head(const struct ref_attention *a, int64_t index, int32_t head, float lse,
                       const float *total, float weight_sum) {
    for (int32_t d = 0; d < a->latent_dim; d++) {
        ref_store_f32(a->o, a->o_dtype, ref_output_index(a, index, head, d),
                      ref_output_value(lse, total == NULL ? 0.0f : total[d], weight_sum));
    }
    if (a->lse != NULL) {
        a->lse[index * a->num_heads + head] = ref_stored_lse(a, lse);
    }
}

/** Pass 3: output of every head from the weights; lse and sums come from pass 2. */
static void output_pass(const struct ref_attention *a, const struct ref_row *row, int64_t tokens,
                        const struct scratch *s) {
    int32_t width = a->latent_dim + a->rope_dim;
    memset(s->total, 0, (size_t)a->num_heads * (size_t)a->latent_dim * sizeof(float));
    for (int64_t first = 0; first < tokens; first += CANONICAL_BLOCK) {
        int64_t count = tokens - first < CANONICAL_BLOCK ? tokens - first : CANONICAL_BLOCK;
        load_tile(a, row, s->nodes, first, count, s->tile);
        /* Columns outside, heads inside: 256 rows of 32 columns stay in the first cache. */
        for (int32_t d = 0; d < a->latent_dim; d += CANONICAL_LANES) {
            int32_t rest = a->latent_dim - d;
            int32_t lanes = rest < CANONICAL_LANES ? rest : CANONICAL_LANES;
            for (int32_t h = 0; h < a->num_heads; h++) {
                add_block(s->weights + h * tokens + first, s->tile + d, count, width, lanes,
                          s->total + (int64_t)h * a->latent_dim + d);
            }
        }
    }
}

/** One owned query row, all heads. */
static void attend_row(const struct ref_attention *a, int64_t index, const struct ref_row *row,
                       int32_t visible, const struct scratch *s) {
    int64_t tokens = row->prefix_len + visible;
    load_queries(a, index, s->query);
    score_pass(a, row, tokens, s);
    float *lse = s->sums;
    float *weight_sum = s->sums + a->num_heads;
    for (int32_t h = 0; h < a->num_heads; h++) {
        weight_sum[h] = 0.0f;
        lse[h] = weight_pass(s->weights + h * tokens, tokens, &weight_sum[h]);
    }
    output_pass(a, row, tokens, s);
    for (int32_t h = 0; h < a->num_heads; h++) {
        store_head(a, index, h, lse[h], s->total + (int64_t)h * a->latent_dim, weight_sum[h]);
    }
}

void attention_reference_f32_status(const struct ref_attention *a) {
    for (int32_t b = 0; a->device_status != NULL && b < a->batch; b++) {
        a->device_status[b] |= ref_request_status(a, b);
    }
}

void attention_reference_f32(const struct ref_attention *a, int64_t row_begin, int64_t row_end,
                             void *workspace) {
    size_t offset[7];
    if (scratch_layout(a, offset) != REF_OK) {
        return; /* the plan has refused such sizes */
    }
    unsigned char *base = workspace;
    const struct scratch s = {
        (int32_t *)(void *)(base + offset[0]), (float *)(void *)(base + offset[1]),
        (float *)(void *)(base + offset[2]),   (float *)(void *)(base + offset[3]),
        (float *)(void *)(base + offset[4]),   (float *)(void *)(base + offset[5])};
    for (int64_t index = row_begin; index < row_end; index++) {
        struct ref_row row = ref_find_row(a, index);
        int32_t visible = row.request < 0 ? -1 : ref_visible_nodes(a, &row, s.nodes);
        if (visible >= 0) {
            attend_row(a, index, &row, visible, &s);
        } else {
            for (int32_t h = 0; h < a->num_heads; h++) {
                store_head(a, index, h, -INFINITY, NULL, 0.0f);
            }
        }
    }
}
