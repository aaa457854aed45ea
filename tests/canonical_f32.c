// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The canonical order, written down once more. exp and log are those of ref/exp_log.h, which have
 * tests of their own.
 */
#include "canonical_f32.h"

#include <math.h>
#include <stdlib.h>

#include "exp_log.h"
#include "truth_f64.h"

/** Element k of the concatenated query. */
static float query(const struct ref_attention *a, int64_t row, int32_t h, int32_t k) {
    if (k < a->latent_dim) {
        return ref_load_f32(a->q_latent, a->q_dtype,
                            row * a->q_latent_stride[0] + h * a->q_latent_stride[1] + k);
    }
    return ref_load_f32(a->q_rope, a->q_dtype,
                        row * a->q_rope_stride[0] + h * a->q_rope_stride[1] + k - a->latent_dim);
}

/** Element k of the concatenated cache row. */
static float cache(const struct ref_attention *a, int64_t slot, int32_t k) {
    if (k < a->latent_dim) {
        return ref_load_f32(a->kv_latent, a->kv_dtype, slot * a->kv_latent_stride + k);
    }
    return ref_load_f32(a->kv_rope, a->kv_dtype, slot * a->kv_rope_stride + k - a->latent_dim);
}

/** 32 accumulators, then the tree 16, 8, 4, 2, 1; the scale is one more product. */
static float score(const struct ref_attention *a, int64_t row, int32_t h, int64_t slot) {
    float sum[32] = {0.0f};
    for (int32_t k = 0; k < a->latent_dim + a->rope_dim; k++) {
        volatile float product = query(a, row, h, k) * cache(a, slot, k);
        sum[k % 32] = sum[k % 32] + product;
    }
    for (int32_t half = 16; half >= 1; half /= 2) {
        for (int32_t i = 0; i < half; i++) {
            sum[i] = sum[i] + sum[i + half];
        }
    }
    return a->scale * sum[0];
}

/** Sum of terms over blocks of 256, then of the blocks; column -1 sums the weights alone. */
static float block_sum(const struct ref_attention *a, const float *weight, const int64_t *slot,
                       int64_t count, int32_t column) {
    float total = 0.0f;
    for (int64_t first = 0; first < count; first += 256) {
        float block = 0.0f;
        for (int64_t v = first; v < count && v < first + 256; v++) {
            if (column < 0) {
                block = block + weight[v];
            } else if (weight[v] != 0.0f) {
                volatile float product = weight[v] * cache(a, slot[v], column);
                block = block + product;
            }
        }
        total = total + block;
    }
    return total;
}

/** One row and head. Returns lse as it is stored. */
static float attend(const struct ref_attention *a, int64_t row, int32_t h, const int64_t *slot,
                    int64_t count, float *weight, float *o) {
    float maximum = -INFINITY;
    int is_nan = 0;
    for (int64_t v = 0; v < count; v++) {
        weight[v] = score(a, row, h, slot[v]);
        is_nan |= isnan(weight[v]) || weight[v] == INFINITY;
        maximum = weight[v] > maximum ? weight[v] : maximum;
    }
    if (is_nan || maximum == -INFINITY) {
        for (int32_t d = 0; d < a->latent_dim; d++) {
            ref_store_f32(o, REF_F32, d, is_nan ? NAN : 0.0f);
        }
        return is_nan ? ref_canonical_f32(NAN) : -INFINITY;
    }
    for (int64_t v = 0; v < count; v++) {
        weight[v] = ref_exp_f32(weight[v] - maximum);
    }
    float sum = block_sum(a, weight, slot, count, -1);
    for (int32_t d = 0; d < a->latent_dim; d++) {
        float quotient = block_sum(a, weight, slot, count, d) / sum;
        if (a->o_dtype == REF_BF16) {
            quotient = ref_f32_from_bf16(ref_bf16_from_f32(quotient));
        }
        ref_store_f32(o, REF_F32, d, quotient);
    }
    float lse = maximum + ref_log_f32(sum);
    const float log2_e = 0x1.715476p+0f;
    return ref_canonical_f32(a->lse_base2 ? lse * log2_e : lse);
}

void attention_canonical_f32(const struct ref_attention *a, struct test_outputs *out) {
    out->rows = a->row_capacity;
    out->heads = a->num_heads;
    out->columns = a->latent_dim;
    out->batch = a->batch;
    out->o = test_calloc((size_t)(out->rows * out->heads * out->columns) * sizeof *out->o);
    out->lse = test_calloc((size_t)(out->rows * out->heads) * sizeof *out->lse);
    out->status = test_calloc((size_t)out->batch * sizeof *out->status);
    for (int64_t i = 0; i < out->rows * out->heads; i++) {
        out->lse[i] = -INFINITY;
    }
    for (int32_t b = 0; b < a->batch; b++) {
        struct truth_request q;
        truth_request_decode(a, b, &q);
        out->status[b] = q.status;
        int64_t *slot = test_calloc((size_t)q.tokens * sizeof *slot);
        float *weight = test_calloc((size_t)q.tokens * sizeof *weight);
        for (int64_t i = 0; i < q.nodes && q.active; i++) {
            int64_t count = 0;
            for (int64_t t = 0; t < q.tokens; t++) {
                if (q.visible[i * q.tokens + t]) {
                    slot[count++] = q.slots[t];
                }
            }
            for (int32_t h = 0; h < a->num_heads; h++) {
                int64_t place = (q.first_row + i) * a->num_heads + h;
                out->lse[place] = attend(a, q.first_row + i, h, slot, count, weight,
                                         out->o + place * out->columns);
            }
        }
        free(slot);
        free(weight);
        truth_request_free(&q);
    }
}
