// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Model of the flash kernel's arithmetic.
 */
#include "flash_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bound_flash.h"
#include "make_problem.h"
#include "rows.h"

#define LOG2_E 0x1.715476p+0f /**< log2 e in float32. */
#define LN_2 0x1.62e43p-1f    /**< ln 2 in float32. */
#define LAZY 8.0f             /**< See spec/numerics.md. */
#define LEAD 5.0f             /**< The largest of those there, of short chunks. */
#define SHORT_CHUNK 64        /**< Tiles of one. */

/** One row and head in progress. */
struct model {
    const struct ref_attention *a;
    int32_t block;  /* products that an mma adds at once */
    int32_t extra;  /* bits that it keeps below float32's */
    int32_t chains; /* of half a score */
    int32_t bug;
    float factor; /* fl(scale log2 e) */
    float lead;
    float reference;
    float sum;
    float *o; /* [L] of the chunk */
};

/** State of a chunk, unnormalised. */
struct chunk {
    float reference;
    float sum;
    float *o; /* [L] */
};

static const char *const names[FLASH_BUG_COUNT] = {
    "nothing",          "truncates P",   "scale off by 1/1000",       "drops a key",
    "does not rescale", "sums coarse P", "chunks without references", "lse in base 2",
    "forgets a chain"};

const char *flash_bug_name(int32_t bug) {
    return names[bug];
}

/** x towards zero to a multiple of a power of two. */
static double truncate_to(double x, double unit, double inverse) {
    return trunc(x * inverse) * unit;
}

static int lowest_bit(int exponent) {
    return exponent > -149 ? exponent : -149;
}

/** Adds products to an accumulator as tensor cores do: aligned to the largest, cut off. */
static float mma_add(const struct model *m, float accumulator, const double *products,
                     int32_t count) {
    for (int32_t first = 0; first < count; first += m->block) {
        int32_t end = first + m->block < count ? first + m->block : count;
        double largest = fabs((double)accumulator);
        double plain = (double)accumulator;
        for (int32_t k = first; k < end; k++) {
            largest = fmax(largest, fabs(products[k]));
            plain += products[k];
        }
        if (!(fabs(plain) < INFINITY)) {
            return (float)plain;
        }
        if (largest == 0.0) {
            continue;
        }
        int bit = lowest_bit(ilogb(largest) - 23 - m->extra);
        double unit = ldexp(1.0, bit);
        double inverse = ldexp(1.0, -bit);
        double total = truncate_to((double)accumulator, unit, inverse);
        for (int32_t k = first; k < end; k++) {
            total += truncate_to(products[k], unit, inverse);
        }
        bit = total == 0.0 ? 0 : lowest_bit(ilogb(total) - 23);
        accumulator = (float)truncate_to(total, ldexp(1.0, bit), ldexp(1.0, -bit));
    }
    return accumulator;
}

/** ex2.approx.ftz: flushes, and errs upwards or downwards. */
static float model_ex2(float x) {
    double y = exp2((double)x);
    y *= ((int)floorf(x * 1024.0f) & 1) ? 1.0 + 0x1.8p-23 : 1.0 - 0x1.8p-23;
    return y < 0x1p-126 ? 0.0f : (float)y;
}

/** A score in log2 units. */
static float model_score(const struct model *m, int64_t index, int32_t head, int64_t slot) {
    int32_t width = m->a->latent_dim + m->a->rope_dim;
    int32_t half = ((width + FLASH_TILE - 1) / FLASH_TILE + 1) / 2 * FLASH_TILE;
    float chains[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}}; /* of halves; of even and odd steps */
    for (int32_t first = 0; first < width; first += FLASH_TILE) {
        double products[FLASH_TILE];
        int32_t count = 0;
        for (int32_t k = first; k < first + FLASH_TILE && k < width; k++) {
            products[count++] = (double)ref_query_element(m->a, index, head, k) *
                                (double)ref_cache_element(m->a, slot, k);
        }
        int32_t step = first % half / FLASH_TILE;
        float *chain = &chains[first >= half][step % m->chains];
        *chain = mma_add(m, *chain, products, count);
    }
    float one = chains[0][0] + chains[0][1];
    float other = chains[1][0] + chains[1][1];
    return (m->bug == FLASH_FORGETS_CHAIN ? one : one + other) * m->factor;
}

static float to_bf16(const struct model *m, float p, int truncates) {
    uint32_t bits = ref_bits_from_f32(p);
    (void)m;
    return truncates ? ref_f32_from_bits(bits & 0xffff0000u)
                     : ref_f32_from_bits((uint32_t)ref_bf16_from_f32(p) << 16);
}

/** Takes in the keys of a tile. */
static void model_tile(struct model *m, const float *t, const int64_t *slots, int32_t count) {
    float p[FLASH_TILE];
    float maximum = -INFINITY;
    for (int32_t j = 0; j < count; j++) {
        maximum = t[j] > maximum ? t[j] : maximum;
    }
    if (!(maximum > -INFINITY)) {
        return;
    }
    if (maximum - m->reference > LAZY) {
        float moved = maximum - m->lead;
        float factor = m->reference > -INFINITY ? model_ex2(m->reference - moved) : 0.0f;
        m->reference = moved;
        m->sum *= factor;
        for (int32_t d = 0; d < m->a->latent_dim && m->bug != FLASH_NO_RESCALE; d++) {
            m->o[d] *= factor;
        }
    }
    for (int32_t j = 0; j < count; j++) {
        float weight = model_ex2(t[j] - m->reference);
        m->sum += m->bug == FLASH_COARSE_SUM ? to_bf16(m, weight, 1) : weight;
        p[j] = to_bf16(m, weight, m->bug == FLASH_TRUNCATES_P);
    }
    for (int32_t d = 0; d < m->a->latent_dim; d++) {
        double products[FLASH_TILE];
        int32_t terms = 0;
        for (int32_t j = 0; j < count; j++) {
            if (t[j] > -INFINITY) {
                products[terms++] = (double)p[j] * (double)ref_cache_element(m->a, slots[j], d);
            }
        }
        m->o[d] = mma_add(m, m->o[d], products, terms);
    }
}

/** Number of the tile of a visible token: tiles of the prefix, then tiles of the tree. */
static int64_t tile_of(const struct ref_row *row, const int32_t *nodes, int64_t v) {
    return v < row->prefix_len ? v / FLASH_TILE
                               : (row->prefix_len + FLASH_TILE - 1) / FLASH_TILE +
                                     nodes[v - row->prefix_len] / FLASH_TILE;
}

/** Combines chunks and stores the result. */
static void model_combine(const struct model *m, const struct chunk *chunks, int64_t count,
                          int64_t index, int32_t head) {
    const struct ref_attention *a = m->a;
    float maximum = -INFINITY;
    float sum = 0.0f;
    for (int64_t k = 0; k < count; k++) {
        maximum = chunks[k].reference > maximum ? chunks[k].reference : maximum;
    }
    memset(m->o, 0, (size_t)a->latent_dim * sizeof *m->o);
    for (int64_t k = 0; k < count && maximum > -INFINITY; k++) {
        float weight =
            m->bug == FLASH_EQUAL_CHUNKS ? 1.0f : model_ex2(chunks[k].reference - maximum);
        sum += weight * chunks[k].sum;
        for (int32_t d = 0; d < a->latent_dim; d++) {
            m->o[d] += weight * chunks[k].o[d];
        }
    }
    float lse = maximum > -INFINITY ? maximum + log2f(sum) : maximum;
    if (maximum > -INFINITY && !a->lse_base2 && m->bug != FLASH_LSE_BASE) {
        lse *= LN_2;
    }
    for (int32_t d = 0; d < a->latent_dim; d++) {
        ref_store_f32(a->o, a->o_dtype, ref_output_index(a, index, head, d),
                      ref_output_value(lse, m->o[d], sum));
    }
    if (a->lse != NULL) {
        ref_store_f32(a->lse, REF_F32, index * a->num_heads + head, lse);
    }
}

/** One row and head. */
static void model_row(struct model *m, int64_t index, int32_t head, const struct ref_row *row,
                      const int32_t *nodes, int64_t tokens, int64_t chunk_tiles) {
    int64_t capacity = tokens / FLASH_TILE + m->a->max_nodes + 2;
    struct chunk *chunks = test_calloc((size_t)capacity * sizeof *chunks);
    float *sums = test_calloc((size_t)m->a->latent_dim * sizeof *sums);
    int64_t count = 0;
    int64_t v = 0;
    int not_a_number = 0;
    m->o = sums;
    m->lead = chunk_tiles > SHORT_CHUNK ? 0.0f : LEAD;
    while (v < tokens) {
        int64_t first = tile_of(row, nodes, v) / chunk_tiles;
        m->reference = -INFINITY;
        m->sum = 0.0f;
        m->o = test_calloc((size_t)m->a->latent_dim * sizeof *m->o);
        while (v < tokens && tile_of(row, nodes, v) / chunk_tiles == first) {
            int64_t tile = tile_of(row, nodes, v);
            float t[FLASH_TILE];
            int64_t slots[FLASH_TILE];
            int32_t keys = 0;
            for (; v < tokens && tile_of(row, nodes, v) == tile; v++) {
                slots[keys] = ref_visible_slot(m->a, row, nodes, v);
                t[keys] = model_score(m, index, head, slots[keys]);
                not_a_number |= !(t[keys] < INFINITY);
                keys++;
            }
            model_tile(m, t, slots, keys);
        }
        chunks[count++] = (struct chunk){m->reference, m->sum, m->o};
    }
    m->o = sums;
    if (not_a_number) {
        chunks[0].reference = NAN;
        chunks[0].sum = NAN;
        count = 1;
    }
    model_combine(m, chunks, count, index, head);
    if (not_a_number) {
        for (int32_t d = 0; d < m->a->latent_dim; d++) {
            ref_store_f32(m->a->o, m->a->o_dtype, ref_output_index(m->a, index, head, d), NAN);
        }
        if (m->a->lse != NULL) {
            ref_store_f32(m->a->lse, REF_F32, index * m->a->num_heads + head, NAN);
        }
    }
    for (int64_t k = 0; k < capacity; k++) {
        free(chunks[k].o);
    }
    free(chunks);
    free(sums);
}

void flash_model_run(const struct ref_attention *call, int32_t option) {
    struct model m = {.a = call, .bug = option % 32};
    int32_t ways = option / 32 % 4;
    m.block = ways & FLASH_OLD_MMA ? 4 : FLASH_TILE;
    m.extra = ways & FLASH_OLD_MMA ? 0 : 2;
    m.chains = ways & FLASH_FOUR_CHAINS ? 2 : 1;
    m.factor = call->scale * LOG2_E * (m.bug == FLASH_SCALE ? 1.0f + 1.0f / 1000.0f : 1.0f);
    int32_t *nodes = test_calloc((size_t)call->max_nodes * sizeof *nodes);
    for (int64_t index = 0; index < call->row_capacity; index++) {
        struct ref_row row = ref_find_row(call, index);
        int32_t visible = row.request < 0 ? -1 : ref_visible_nodes(call, &row, nodes);
        int64_t tokens = visible < 0 ? 0 : row.prefix_len + visible;
        tokens -= tokens > 1 && m.bug == FLASH_DROPS_KEY;
        for (int32_t head = 0; head < call->num_heads; head++) {
            model_row(&m, index, head, &row, nodes, tokens, option / 128);
        }
    }
    free(nodes);
    for (int32_t b = 0; call->device_status != NULL && b < call->batch; b++) {
        call->device_status[b] |= ref_request_status(call, b);
    }
}
