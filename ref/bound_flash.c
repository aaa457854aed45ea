// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The bound of the flash kernel (spec/numerics.md, "Bound of the flash kernel"): eq-flash-score,
 * eq-flash-weight, eq-flash-o and eq-flash-lse, evaluated in double for each row and head.
 */
#include "bound_flash.h"

#include <math.h>
#include <stdlib.h>

#include "canonical.h"
#include "rows.h"

#define U32 0x1p-24                 /**< Unit roundoff of float32. */
#define U16 0x1p-8                  /**< Unit roundoff of bfloat16. */
#define P_ERROR (U16 / (1.0 + U16)) /**< Rounding a normal value to nearest in bfloat16. */
#define LOG2_E 0x1.71547652b82fep+0 /**< log2 e */
#define LN_2 0x1.62e42fefa39efp-1   /**< ln 2 */
#define LAZY 8.0                    /**< A row's maximum may exceed its reference by this. */
#define LEAST_MOVE 3.0              /**< What a reference moves by, at least. */
#define APPROX 0x1p-22              /**< ex2.approx, lg2.approx. */
#define FLUSHED 0x1p-115            /**< A weight that a flush may take away. */
#define EXACT_SUM 0x1p20            /**< Below this r + 8 is rounded by at most 1/16. */
#define LANE_COLUMNS 4.0            /**< Weights that a lane adds in a tile. */
#define SUM_SHUFFLES 10.0           /**< Additions between lanes and warps, and slack. */
/** An ex2 and the product with its result, as an exponent: log(1 + x) and -log(1 - x). */
#define FACTOR_ERROR (APPROX + U32 + 0x1p-42)

/** Working arrays of a row. */
struct flash_scratch {
    int32_t *nodes; /* [max_nodes] */
    double *score;  /* [tokens] t = scale log2 e q c */
    double *error;  /* [tokens] its error, then eta */
    double *sum;    /* [L] sum of w c */
    double *size;   /* [L] sum of w |c| */
    double *spread; /* [L] sum of errors of weights times |c| */
};

/** A chain of mma, exactly, and its error. */
struct flash_chain {
    double sum;
    double error;
};

/** eq-flash-score: adds a step to a chain. */
static void flash_step(double sum, double size, struct flash_chain *chain) {
    chain->error += FLASH_MMA_ERROR * (size + fabs(chain->sum) + chain->error) + FLASH_MMA_TINY;
    chain->sum += sum;
}

/**
 * One half of a score's k16 steps and the larger error: of one chain, or of one for even and one
 * for odd steps and their addition. Two chains are shorter, but their sums may cancel.
 */
static struct flash_chain flash_half(const struct ref_attention *a, int64_t index, int32_t head,
                                     int64_t slot, int32_t begin, int32_t end) {
    struct flash_chain whole = {0.0, 0.0};
    struct flash_chain split[2] = {{0.0, 0.0}, {0.0, 0.0}};
    for (int32_t first = begin; first < end; first += FLASH_TILE) {
        double sum = 0.0;
        double size = 0.0;
        for (int32_t k = first; k < first + FLASH_TILE && k < end; k++) {
            double term = (double)ref_query_element(a, index, head, k) *
                          (double)ref_cache_element(a, slot, k);
            sum += term;
            size += fabs(term);
        }
        flash_step(sum, size, &whole);
        flash_step(sum, size, &split[(first - begin) / FLASH_TILE % 2]);
    }
    double error = split[0].error + split[1].error;
    error += U32 * (fabs(whole.sum) + error);
    whole.error = fmax(whole.error, error);
    return whole;
}

/** Score in log2 units and its error (eq-flash-score): two halves of the row. */
static void flash_score(const struct ref_attention *a, int64_t index, int32_t head, int64_t slot,
                        double *score, double *error) {
    int32_t width = a->latent_dim + a->rope_dim;
    int32_t half = ((width + FLASH_TILE - 1) / FLASH_TILE + 1) / 2 * FLASH_TILE;
    struct flash_chain first = flash_half(a, index, head, slot, 0, half < width ? half : width);
    struct flash_chain second = flash_half(a, index, head, slot, half, width);
    double dot = first.sum + second.sum;
    double factor = (double)a->scale * LOG2_E;
    double gamma = canonical_gamma(3.0);
    double dot_error = (first.error + second.error) * (1.0 + U32) + U32 * fabs(dot);
    *score = factor * dot;
    *error = factor * (dot_error * (1.0 + gamma) + gamma * fabs(dot)) + CANONICAL_TINY;
}

/** eq-flash-weight: the error of t of each token becomes eta of its weight. */
static void flash_weights(const struct flash_bound_limits *limits, int64_t tokens, double maximum,
                          const struct flash_scratch *s) {
    double top = 0.0;
    for (int64_t v = 0; v < tokens; v++) {
        if (s->score[v] > -INFINITY) {
            top = fmax(top, s->score[v] + s->error[v] - maximum);
        }
    }
    for (int64_t v = 0; v < tokens; v++) {
        if (!(s->score[v] > -INFINITY)) {
            s->error[v] = 0.0;
            continue;
        }
        double span = maximum - s->score[v] + 2.0 * (LAZY + top + s->error[v]);
        double changes = (double)limits->tiles;
        if (fabs(maximum) + span < EXACT_SUM) {
            changes = fmin(changes, span / LEAST_MOVE);
        }
        s->error[v] = expm1(LN_2 * (s->error[v] + U32 * span) + (changes + 2.0) * FACTOR_ERROR);
    }
}

/** Adds the weighted rows of every token to the three sums over columns. */
static void flash_columns(const struct ref_attention *a, const struct ref_row *row, int64_t tokens,
                          double maximum, const struct flash_scratch *s) {
    for (int32_t d = 0; d < a->latent_dim; d++) {
        s->sum[d] = s->size[d] = s->spread[d] = 0.0;
    }
    for (int64_t v = 0; v < tokens; v++) {
        if (!(s->score[v] > -INFINITY)) {
            continue; /* whatever its row holds */
        }
        double weight = exp2(s->score[v] - maximum);
        double eta = s->error[v];
        double error = weight * (eta + P_ERROR + eta * P_ERROR) + FLUSHED * (1.0 + P_ERROR);
        int64_t slot = ref_visible_slot(a, row, s->nodes, v);
        for (int32_t d = 0; d < a->latent_dim; d++) {
            double c = (double)ref_cache_element(a, slot, d);
            s->sum[d] += weight * c;
            s->size[d] += weight * fabs(c);
            s->spread[d] += error * fabs(c);
        }
    }
}

/** eq-flash-o and eq-flash-lse for one head, from t and its errors. */
static void flash_head(const struct ref_attention *a, const struct flash_bound_limits *limits,
                       const struct ref_row *row, int64_t tokens, double maximum,
                       const struct flash_scratch *s, double *o_bound, double *lse_bound) {
    flash_weights(limits, tokens, maximum, s);
    double total = 0.0;
    double eta_total = 0.0;
    for (int64_t v = 0; v < tokens; v++) {
        double weight = exp2(s->score[v] - maximum);
        total += weight;
        eta_total += s->score[v] > -INFINITY ? weight * s->error[v] + FLUSHED : 0.0;
    }
    double tiles = (double)limits->tiles;
    double chunks = (double)limits->chunks;
    double gamma = canonical_gamma(LANE_COLUMNS * tiles + SUM_SHUFFLES + chunks + 1.0);
    double rho = eta_total / total * (1.0 + gamma) + gamma;
    double slack = rho < 1.0 ? 1.0 / (1.0 - rho) : INFINITY;
    double chain = expm1(tiles * log1p(FLASH_MMA_ERROR));
    chain += (1.0 + chain) * canonical_gamma(chunks + 1.0);
    double tiny = (tiles * FLASH_MMA_TINY + 2.0 * CANONICAL_TINY) * chunks;
    double gamma3 = canonical_gamma(3.0);
    flash_columns(a, row, tokens, maximum, s);
    for (int32_t d = 0; d < a->latent_dim; d++) {
        double o = fabs(s->sum[d]) / total;
        double alpha = (s->spread[d] * (1.0 + chain) + chain * s->size[d] + tiny) / total;
        double bound = (alpha + o * rho) * slack;
        bound += gamma3 * (o + bound) + CANONICAL_TINY;
        if (a->o_dtype == REF_BF16) {
            bound += U16 * (o + bound) + 0x1p-133;
        }
        o_bound[d] = bound;
    }
    double lse = fabs(maximum + log2(total));
    double bound = rho < 1.0 ? -log1p(-rho) / LN_2 : INFINITY;
    bound += APPROX * fmax(1.0, fabs(log2(total)) + LAZY + bound);
    bound += gamma3 * (lse + bound);
    *lse_bound = (a->lse_base2 ? bound : bound * LN_2) + CANONICAL_TINY;
}

/** Tiles of a request: prefix and tree may each end in one that is not full. */
static int64_t tiles_of(int64_t prefix, int64_t nodes) {
    return (prefix + FLASH_TILE - 1) / FLASH_TILE + (nodes + FLASH_TILE - 1) / FLASH_TILE;
}

/** One owned row, every head. */
static void flash_row(const struct ref_attention *a, const struct flash_bound_limits *most,
                      int64_t index, const struct ref_row *row, int32_t visible,
                      const struct flash_scratch *s, double *o_bound, double *lse_bound) {
    int64_t tokens = row->prefix_len + visible;
    int64_t tiles = tiles_of(row->prefix_len, row->num_nodes);
    const struct flash_bound_limits limits = {most->chunks,
                                              tiles < most->tiles ? tiles : most->tiles};
    for (int32_t h = 0; h < a->num_heads; h++) {
        double maximum = -INFINITY;
        int not_a_number = 0;
        for (int64_t v = 0; v < tokens; v++) {
            int64_t slot = ref_visible_slot(a, row, s->nodes, v);
            flash_score(a, index, h, slot, &s->score[v], &s->error[v]);
            double natural = s->score[v] / LOG2_E;
            not_a_number |= !(natural <= FLT_MAX);
            s->score[v] = natural < -FLT_MAX ? -INFINITY : s->score[v];
            maximum = s->score[v] > maximum ? s->score[v] : maximum;
        }
        if (!not_a_number && maximum > -INFINITY) {
            flash_head(a, &limits, row, tokens, maximum, s, o_bound + (int64_t)h * a->latent_dim,
                       lse_bound + h);
        }
    }
}

struct flash_bound_limits flash_bound_limits_of(const struct ref_attention *call) {
    int64_t tiles = tiles_of(call->max_prefix_len, call->max_nodes);
    return (struct flash_bound_limits){FLASH_MAX_CHUNKS, tiles};
}

int32_t attention_bound_flash_f64(const struct ref_attention *call,
                                  const struct flash_bound_limits *limits, const int64_t *rows,
                                  int64_t row_count, double *o_bound, double *lse_bound) {
    size_t tokens = (size_t)(call->max_prefix_len + call->max_nodes);
    size_t latent = (size_t)call->latent_dim;
    int32_t *nodes = malloc((size_t)call->max_nodes * sizeof *nodes);
    double *numbers = malloc((2 * tokens + 3 * latent) * sizeof *numbers);
    if (nodes == NULL || numbers == NULL) {
        free(nodes);
        free(numbers);
        return REF_OUT_OF_MEMORY;
    }
    double *columns = numbers + 2 * tokens;
    const struct flash_scratch s = {nodes,   numbers,          numbers + tokens,
                                    columns, columns + latent, columns + 2 * latent};
    for (int64_t i = 0; i < row_count; i++) {
        int64_t index = rows != NULL ? rows[i] : i;
        double *o = o_bound + i * call->num_heads * call->latent_dim;
        double *lse = lse_bound + i * call->num_heads;
        for (int64_t k = 0; k < (int64_t)call->num_heads * call->latent_dim; k++) {
            o[k] = 0.0;
        }
        for (int32_t h = 0; h < call->num_heads; h++) {
            lse[h] = 0.0;
        }
        struct ref_row row = ref_find_row(call, index);
        int32_t visible = row.request < 0 ? -1 : ref_visible_nodes(call, &row, nodes);
        if (visible >= 0) {
            flash_row(call, limits, index, &row, visible, &s, o, lse);
        }
    }
    free(nodes);
    free(numbers);
    return REF_OK;
}
