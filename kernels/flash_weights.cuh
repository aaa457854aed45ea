// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What a score warp of a flash block does with the dot products of an m16 tile: mask, references,
 * P. In an m16 fragment a lane has rows lane / 4 and lane / 4 + 8, and keys 2 (lane % 4), + 1, + 8,
 * + 9.
 */
#ifndef KERNELS_FLASH_WEIGHTS_CUH
#define KERNELS_FLASH_WEIGHTS_CUH

#include "flash_block.cuh"

/** A reference moves only if a score is so much larger: weights are at most 2^8. */
#define FLASH_LAZY 8.0f
/** A lane's four weights of a row that sum to no more have not moved it: below 2^8 by more than ex2
 * errs. */
#define FLASH_CALM 255.0f
/** Key tiles of a short chunk, and of a shortest one, at most. */
#define FLASH_SHORT_CHUNK 64
#define FLASH_SHORTEST_CHUNK 40 /**< See FLASH_SHORT_CHUNK. */
/** Key tiles of prefix rows of a request whose chunks may be shortest ones, at most. */
#define FLASH_SHORT_PREFIX 512

/** A chunk and its request, as far as laziness depends on them. */
struct flash_length {
    int32_t chunk;  /**< Key tiles. */
    int32_t prefix; /**< Of the request: key tiles that hold prefix rows only. */
};

/**
 * By how much a reference that moves stays below the score that moved it, in base 2: the weight of
 * that score is 2^lead, which bfloat16 has exactly. Of few keys the rounding of the largest weights
 * is much of the whole error. With a lead references move at scores that are larger by 8 - lead
 * only, and so at more of the large ones. In long chunks that costs more time than it is worth.
 *
 * @param length of chunk and request
 * @param single whether a pair of score warps has one m16 tile; then chunks are shorter still
 * @return the lead
 */
static __device__ __forceinline__ float flash_lead(const struct flash_length &length, bool single) {
    return length.chunk > FLASH_SHORT_CHUNK ? 0.0f
           : length.chunk > FLASH_SHORTEST_CHUNK || length.prefix > FLASH_SHORT_PREFIX
               ? 2.0f
               : (single ? 4.0f : 5.0f);
}

/** What a lane keeps of the two rows that it finishes. */
struct flash_rows {
    float reference[2]; /**< Base 2: what is subtracted from scores. */
    float sum[2];       /**< Of this lane's weights. */
};

/** Which of the 16 keys from `key` a node sees, a bit each; some are tree rows or absent. */
static __device__ __forceinline__ uint32_t flash_visible(const struct ref_attention &a,
                                                         const struct flash_work &work, int32_t key,
                                                         int32_t node) {
    int32_t present = work.keys - key;
    uint32_t bits = present >= FLASH_KEYS ? 0xffffu : (1u << present) - 1;
    if (node < 0) {
        return bits;
    }
    int32_t shift = key - work.prefix;
    int32_t first = shift > 0 ? shift : 0;
    uint64_t nodes = 0;
    if (a.mask_mode == REF_MASK_CHAIN) {
        int32_t count = node + 1 - first;
        nodes = count <= 0 ? 0 : count >= FLASH_KEYS ? 0xffffu : (1u << count) - 1;
    } else if (a.mask_mode != REF_MASK_NONE) {
        const uint32_t *words = a.mask_words + (work.first_row + node) * a.mask_stride_words;
        int32_t word = first / 32;
        nodes = words[word];
        if (first % 32 > 16 && (word + 1) * 32 < work.nodes) {
            nodes |= (uint64_t)words[word + 1] << 32;
        }
        nodes >>= first % 32;
    }
    if (shift < 0) {
        nodes = nodes << -shift | ((1u << -shift) - 1);
    }
    return bits & (uint32_t)nodes;
}

/** Moves references up where a score asks for it. Writes the factors of both rows. */
static __device__ __forceinline__ uint32_t flash_move_references(const float raw[8], float scale,
                                                                 float lead,
                                                                 struct flash_rows *rows,
                                                                 float *factor) {
    int32_t lane = ptx_lane();
    uint32_t moved = 0;
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        float maximum =
            fmaxf(fmaxf(raw[2 * r], raw[2 * r + 1]), fmaxf(raw[4 + 2 * r], raw[4 + 2 * r + 1]));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 2));
        maximum *= scale;
        float change = 1.0f;
        /* The same difference as a weight's, so that whoever would move has asked for it itself. */
        if (maximum - rows->reference[r] > FLASH_LAZY) {
            float moved_to = maximum - lead;
            change = ptx_exp2(rows->reference[r] - moved_to);
            rows->reference[r] = moved_to;
            rows->sum[r] *= change;
            moved = 1;
        }
        if (lane % 4 == 0) {
            factor[lane / 4 + 8 * r] = change;
        }
    }
    return __any_sync(0xffffffffu, moved != 0) ? FLASH_EVENT_FACTORS : 0;
}

/** Whether a dot product is not finite: 0 * x is NaN then. */
static __device__ __forceinline__ bool flash_odd(const float raw[8]) {
    float low = fmaf(raw[0], 0.0f, fmaf(raw[1], 0.0f, fmaf(raw[4], 0.0f, raw[5] * 0.0f)));
    float high = fmaf(raw[2], 0.0f, fmaf(raw[3], 0.0f, fmaf(raw[6], 0.0f, raw[7] * 0.0f)));
    return low + high != 0.0f;
}

/** Weights of dot products against references, and this lane's sum of each row. */
static __device__ __forceinline__ void flash_exponentiate(const float raw[8], float scale,
                                                          const float reference[2], float weight[8],
                                                          float sum[2]) {
#pragma unroll
    for (int32_t i = 0; i < 8; i++) {
        /* The product is rounded: a reference is one of these products, however large. */
        weight[i] = ptx_exp2(raw[i] * scale - reference[i / 2 % 2]);
    }
    sum[0] = (weight[0] + weight[1]) + (weight[4] + weight[5]);
    sum[1] = (weight[2] + weight[3]) + (weight[6] + weight[7]);
}

/** Stores a lane's weights, rounded to bf16. */
static __device__ __forceinline__ void flash_store_weights(const float weight[8], uint4 *target) {
    *target = make_uint4(ptx_pack_bf16(weight[0], weight[1]), ptx_pack_bf16(weight[2], weight[3]),
                         ptx_pack_bf16(weight[4], weight[5]), ptx_pack_bf16(weight[6], weight[7]));
}

/** Sets what rows do not see to -inf. Lane l knows which of the 16 keys row l % 16 sees, a bit
 * each. */
static __device__ __forceinline__ void flash_hide(uint32_t visible, float raw[8]) {
    int32_t lane = ptx_lane();
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        uint32_t bits = __shfl_sync(0xffffffffu, visible, lane / 4 + 8 * r) >> (lane % 4 * 2);
#pragma unroll
        for (int32_t i = 0; i < 4; i++) {
            int32_t place = i % 2 + 2 * r + i / 2 * 4;
            raw[place] = bits >> (i % 2 + i / 2 * 8) & 1 ? raw[place] : -INFINITY;
        }
    }
}

/** Sets what a row does not see to -inf; some keys of the tile are tree rows or absent. */
static __device__ __forceinline__ void flash_mask(const struct flash_launch &launch,
                                                  const struct flash_work &work, int32_t m,
                                                  int32_t key, float raw[8]) {
    if (launch.call.mask_mode == REF_MASK_PARENTS) {
        ptx_grid_wait(); /* flash_own_rows makes the mask */
    }
    int32_t row = work.first_pair + m * FLASH_M16 + ptx_lane() % 16;
    int32_t node = row / launch.call.num_heads;
    flash_hide(flash_visible(launch.call, work, key, node < work.nodes ? node : -1), raw);
}

/**
 * Dot products to weights (place i is row i / 2 % 2), which go to the value warps. Weights are made
 * against the references as they are; only what that shows to be wrong is made again.
 *
 * @param scale   of scores, to base 2
 * @param lead    flash_lead()
 * @param m       the m16 tile
 * @param odd     whether a dot product was not finite, before masks
 * @param event   what there is for the value warps beside what is found here
 * @param raw     dot products; -inf where a row does not see the key
 * @param weights the tile's
 * @param rows    references and sums, brought forward
 */
static __device__ __forceinline__ void flash_weigh(float scale, float lead, int32_t m, bool odd,
                                                   uint32_t event, const float raw[8],
                                                   struct flash_weights *weights,
                                                   struct flash_rows *rows) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    float weight[8];
    float sum[2];
    /* Against a reference of -inf they are +inf or NaN, and so not calm. */
    flash_exponentiate(raw, scale, rows->reference, weight, sum);
    bool calm = sum[0] <= FLASH_CALM && sum[1] <= FLASH_CALM && !odd;
    /* Before the vote, whose answer takes a while. */
    flash_store_weights(weight, &weights->fragment[m][lane]);
    if (__any_sync(0xffffffffu, !calm)) {
        event |= flash_move_references(raw, scale, lead, rows, weights->factor + m * 16);
        event |= __any_sync(0xffffffffu, odd) ? FLASH_EVENT_ODD : 0;
        /* A row that has seen nothing has dot products of -inf only. */
        const float reference[2] = {rows->reference[0] == -INFINITY ? 0.0f : rows->reference[0],
                                    rows->reference[1] == -INFINITY ? 0.0f : rows->reference[1]};
        flash_exponentiate(raw, scale, reference, weight, sum);
        flash_store_weights(weight, &weights->fragment[m][lane]);
    }
    if (lane == 0) {
        weights->event[m] = event;
    }
    rows->sum[0] += sum[0];
    rows->sum[1] += sum[1];
}

/** Adds the lanes' sums of a row and stores reference and sum, as state of a slab. */
static __device__ __forceinline__ void flash_end_rows(const struct flash_launch &launch,
                                                      const struct flash_work &work, int32_t slab,
                                                      int32_t m, const struct flash_rows &rows) {
    int32_t lane = ptx_lane();
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        float sum = rows.sum[r];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (lane % 4 == 0) {
            int32_t row = work.slab_row + m * FLASH_M16 + lane / 4 + 8 * r;
            launch.states[(int64_t)slab * FLASH_ROWS + row] = make_float2(rows.reference[r], sum);
        }
    }
}

#endif
