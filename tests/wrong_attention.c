// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Attention with planted bugs. Each bug is one line at the place where such a bug would sit.
 */
#include "wrong_attention.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "make_problem.h"
#include "truth_f64.h"

/** Names of enum wrong_bug. */
static const char *const names[WRONG_COUNT] = {
    "nothing",
    "ignores the mask",
    "ignores the tree",
    "drops the last prefix token",
    "reads one row past the prefix",
    "writes NaN into one element",
    "leaves one element unwritten",
    "infers visibility from the row number",
    "gives an empty row lse = +inf",
    "reads a poisoned row (0 * NaN)",
    "multiplies weight 0 with a visible infinity",
    "scales by 1/sqrt(576)",
    "drops the last split of 256",
    "forgets the rope part",
    "swaps two heads",
    "uses the parent's row",
    "reads mask bits from the most significant",
    "uses the first mask word only",
    "sees a sibling at a tile edge",
    "lse in the other base",
    "lse without the maximum",
    "empty row is NaN",
    "does not write rows that nobody owns",
    "leaves one row unnormalised",
    "takes no maximum off",
    "treats a NaN score as masked",
    "ignores the slots",
    "ignores the offset in a page",
    "uses the prefix of request 0",
    "computes requests over the limits",
    "sets no status",
    "overwrites the status",
    "ignores output strides",
    "writes past the end",
    "writes into an input",
    "truncates to bfloat16",
    "rounds weights to bfloat16",
    "flushes denormals",
};

const char *wrong_bug_name(int32_t bug) {
    return names[bug];
}

/** The run of one request. */
struct wrong_run {
    const struct ref_attention *call;
    int32_t bug;
    struct truth_request q;
    double *score; /* [tokens + 1] */
};

/** Bugs in what a node sees. */
static void plant_in_mask(struct wrong_run *w, int64_t node, unsigned char *visible) {
    const struct truth_request *q = &w->q;
    int64_t nodes = q->tokens - q->prefix;
    unsigned char *sees = visible + q->prefix;
    memcpy(visible, q->visible + node * q->tokens, (size_t)q->tokens);
    for (int64_t j = 0; j < nodes; j++) {
        int64_t mirrored = j / 32 * 32 + 31 - j % 32;
        if (w->bug == WRONG_IGNORES_MASK) {
            sees[j] = 1;
        } else if (w->bug == WRONG_ROW_ORDER) {
            sees[j] = j <= node;
        } else if (w->bug == WRONG_IGNORES_TREE || (w->bug == WRONG_FIRST_MASK_WORD && j >= 32)) {
            sees[j] = 0;
        } else if (w->bug == WRONG_MASK_BIT_ORDER) {
            sees[j] = mirrored < nodes && q->visible[node * q->tokens + q->prefix + mirrored];
        } else if (w->bug == WRONG_TILE_EDGE && node % 32 == 0 && j == node - 1) {
            sees[j] = 1;
        }
    }
    if (w->bug == WRONG_DROPS_LAST_TOKEN && q->prefix > 0) {
        visible[q->prefix - 1] = 0;
    }
    int64_t count = 0;
    for (int64_t t = 0; t < q->tokens; t++) {
        count += visible[t];
    }
    int64_t drop = w->bug == WRONG_DROPS_LAST_SPLIT && count > 256 ? (count - 1) % 256 + 1 : 0;
    for (int64_t t = q->tokens - 1; drop > 0; t--) {
        drop -= visible[t];
        visible[t] = 0;
    }
}

/** Bugs in where a token stands. */
static int64_t plant_in_slot(const struct wrong_run *w, int64_t node, int64_t token,
                             const unsigned char *visible) {
    int64_t slot = w->q.slots[token];
    if (w->bug == WRONG_IGNORES_SLOTS) {
        return token;
    }
    if (w->bug == WRONG_IGNORES_PAGE_OFFSET) {
        return slot - slot % w->call->page_size;
    }
    if (w->bug == WRONG_PARENT_ROW && token == w->q.prefix + node) {
        for (int64_t t = token - 1; t >= w->q.prefix; t--) {
            if (visible[t]) {
                return w->q.slots[t];
            }
        }
    }
    return slot;
}

/** An element as a device that flushes denormals reads it. */
static double load(const struct wrong_run *w, const void *base, int32_t dtype, int64_t index) {
    float x = ref_load_f32(base, dtype, index);
    return w->bug == WRONG_FLUSHES_DENORMALS && fabsf(x) < FLT_MIN ? 0.0 : (double)x;
}

/** Score of a row and head with a slot. */
static double score_of(const struct wrong_run *w, int64_t row, int32_t head, int64_t slot) {
    const struct ref_attention *a = w->call;
    if (w->bug == WRONG_SWAPS_HEADS && (head ^ 1) < a->num_heads) {
        head ^= 1;
    }
    double sum = 0.0;
    for (int32_t k = 0; k < a->latent_dim; k++) {
        sum += load(w, a->q_latent, a->q_dtype,
                    row * a->q_latent_stride[0] + head * a->q_latent_stride[1] + k) *
               load(w, a->kv_latent, a->kv_dtype, slot * a->kv_latent_stride + k);
    }
    for (int32_t k = 0; k < a->rope_dim && w->bug != WRONG_FORGETS_ROPE; k++) {
        sum += load(w, a->q_rope, a->q_dtype,
                    row * a->q_rope_stride[0] + head * a->q_rope_stride[1] + k) *
               load(w, a->kv_rope, a->kv_dtype, slot * a->kv_rope_stride + k);
    }
    double score = sum * (w->bug == WRONG_SCALE ? 1.0 / 24.0 : (double)a->scale);
    return w->bug == WRONG_NAN_IS_MASKED && isnan(score) ? -INFINITY : score;
}

/** Stores one output element. */
static void store_o(const struct wrong_run *w, int64_t row, int32_t head, int32_t d, double x) {
    const struct ref_attention *a = w->call;
    int64_t at = row * a->o_stride[0] + head * a->o_stride[1] + d;
    if (w->bug == WRONG_IGNORES_STRIDES) {
        at = (row * a->num_heads + head) * a->latent_dim + d;
    }
    if (w->bug == WRONG_UNWRITTEN && row == 0 && head == 0 && d == 0) {
        return;
    }
    ref_store_f32(a->o, a->o_dtype, at, (float)x);
    if (w->bug == WRONG_TRUNCATES && a->o_dtype == REF_BF16 && isfinite(x)) {
        ((uint16_t *)a->o)[at] = (uint16_t)(ref_bits_from_f32((float)x) >> 16);
    }
}

/** Stores lse, given in natural logarithm. */
static void store_lse(const struct wrong_run *w, int64_t row, int32_t head, double lse) {
    const struct ref_attention *a = w->call;
    if (a->lse != NULL) {
        int base2 = (w->bug == WRONG_LSE_BASE) != a->lse_base2;
        a->lse[row * a->num_heads + head] =
            ref_canonical_f32((float)(base2 ? lse * TEST_LOG2_E : lse));
    }
}

/** Stores a row and head that has nothing to attend to, or NaN. */
static void store_special(const struct wrong_run *w, int64_t row, int32_t head, int is_nan) {
    double fill = is_nan || w->bug == WRONG_EMPTY_ROW_NAN ? NAN : 0.0;
    for (int32_t d = 0; d < w->call->latent_dim; d++) {
        store_o(w, row, head, d, fill);
    }
    store_lse(w, row, head, is_nan ? NAN : w->bug == WRONG_EMPTY_LSE ? INFINITY : -INFINITY);
}

/** Weight of a score. */
static double weight_of(const struct wrong_run *w, double score, double maximum) {
    if (w->bug == WRONG_NO_MAXIMUM) {
        return (double)expf((float)score);
    }
    float weight = (float)exp(score - maximum);
    return w->bug == WRONG_BF16_WEIGHTS ? (double)ref_f32_from_bf16(ref_bf16_from_f32(weight))
                                        : exp(score - maximum);
}

/** Weighted mean of the rows: the last step of a row and head. */
static void average(const struct wrong_run *w, int64_t node, int32_t head, double maximum,
                    const unsigned char *visible, const int64_t *slot, int64_t count) {
    const struct ref_attention *a = w->call;
    int64_t row = w->q.first_row + node;
    double sum = 0.0;
    double *o = test_calloc((size_t)a->latent_dim * sizeof *o);
    for (int64_t t = 0; t < count; t++) {
        int seen = t >= w->q.tokens || visible[t];
        double weight = seen ? weight_of(w, w->score[t], maximum) : 0.0;
        int multiplies = weight > 0.0 || (w->bug == WRONG_READS_POISON && !seen) ||
                         (w->bug == WRONG_ZERO_TIMES_INF && seen);
        sum += weight;
        for (int32_t d = 0; d < a->latent_dim && multiplies; d++) {
            o[d] += weight * load(w, a->kv_latent, a->kv_dtype, slot[t] * a->kv_latent_stride + d);
        }
    }
    int unnormalised = w->bug == WRONG_UNNORMALISED && node == w->q.nodes - 1;
    for (int32_t d = 0; d < a->latent_dim; d++) {
        int planted = w->bug == WRONG_WRITES_NAN && row == 0 && head == 0 && d == 0;
        store_o(w, row, head, d, planted ? NAN : unnormalised ? o[d] : o[d] / sum);
    }
    int no_maximum = w->bug == WRONG_NO_MAXIMUM || w->bug == WRONG_LSE_WITHOUT_MAX;
    store_lse(w, row, head, (no_maximum ? 0.0 : maximum) + log(sum));
    free(o);
}

/** One row, all heads. */
static void attend_row(struct wrong_run *w, int64_t node) {
    const struct truth_request *q = &w->q;
    int64_t row = q->first_row + node;
    unsigned char *visible = test_calloc((size_t)q->tokens + 1);
    int64_t *slot = test_calloc(((size_t)q->tokens + 1) * sizeof *slot);
    plant_in_mask(w, node, visible);
    for (int64_t t = 0; t < q->tokens; t++) {
        slot[t] = plant_in_slot(w, node, t, visible);
    }
    int64_t count = q->tokens;
    if (w->bug == WRONG_READS_PAST_PREFIX && q->prefix > 0) {
        int64_t last = q->slots[q->prefix - 1];
        visible[count] = 1;
        slot[count++] = last > 0 ? last - 1 : 1;
    }
    for (int32_t h = 0; h < w->call->num_heads; h++) {
        double maximum = -INFINITY;
        int is_nan = 0;
        for (int64_t t = 0; t < count; t++) {
            if (visible[t]) {
                w->score[t] = score_of(w, row, h, slot[t]);
                is_nan |= isnan(w->score[t]) || w->score[t] == INFINITY;
                maximum = fmax(maximum, w->score[t]);
            }
        }
        if (is_nan || maximum == -INFINITY) {
            store_special(w, row, h, is_nan);
        } else {
            average(w, node, h, maximum, visible, slot, count);
        }
    }
    free(visible);
    free(slot);
}

/** One request: status, then its rows. */
static void attend_request(const struct ref_attention *call, int32_t b, int32_t bug) {
    struct ref_attention unlimited = *call;
    struct wrong_run w = {call, bug, {0}, NULL};
    truth_request_decode(call, b, &w.q);
    if (call->device_status != NULL && bug != WRONG_NO_STATUS) {
        uint32_t before = bug == WRONG_SETS_STATUS ? 0 : call->device_status[b];
        call->device_status[b] = before | w.q.status;
    }
    if (bug == WRONG_OVER_LIMIT_RUNS) {
        truth_request_free(&w.q);
        unlimited.max_nodes = INT32_MAX;
        unlimited.max_prefix_len = INT64_MAX;
        truth_request_decode(&unlimited, b, &w.q);
    }
    if (bug == WRONG_REQUEST && b > 0 && w.q.active) {
        struct truth_request first;
        truth_request_decode(call, 0, &first);
        for (int64_t t = 0; t < w.q.prefix && t < first.prefix; t++) {
            w.q.slots[t] = first.slots[t];
        }
        truth_request_free(&first);
    }
    w.score = test_calloc(((size_t)w.q.tokens + 1) * sizeof *w.score);
    for (int64_t node = 0; node < w.q.nodes && w.q.active; node++) {
        if (!w.q.broken[node]) {
            attend_row(&w, node);
        }
    }
    free(w.score);
    truth_request_free(&w.q);
}

void attention_wrong_f32(const struct ref_attention *call, int32_t bug) {
    const struct wrong_run nobody = {call, bug, {0}, NULL};
    for (int64_t row = 0; row < call->row_capacity && bug != WRONG_SKIPS_EMPTY_ROWS; row++) {
        for (int32_t h = 0; h < call->num_heads; h++) {
            store_special(&nobody, row, h, 0);
        }
    }
    for (int32_t b = 0; b < call->batch; b++) {
        attend_request(call, b, bug);
    }
    if (bug == WRONG_WRITES_PAST_END) {
        int64_t end = (call->row_capacity - 1) * call->o_stride[0] +
                      (call->num_heads - 1) * call->o_stride[1] + call->latent_dim;
        ref_store_f32(call->o, call->o_dtype, end, 1.0f);
    }
    if (bug == WRONG_WRITES_INPUT) {
        ref_store_f32((void *)(uintptr_t)call->q_latent, call->q_dtype, 0, 0.0f);
    }
}
