// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The score warps of a flash block: S = Q K^T, mask, references, P.
 *
 * Warp 2 p + h multiplies rows 32 p to 32 p + 31 by dimensions 288 h to 288 h + 287; its queries
 * stay in registers. The two warps of a pair then exchange halves of their partial scores, and warp
 * 2 p + h finishes rows 32 p + 16 h to 32 p + 16 h + 15, which are m16 tile 0 of its product. In an
 * m16 fragment a lane has rows lane / 4 and lane / 4 + 8, and keys 2 (lane % 4), + 1, + 8, + 9.
 */
#ifndef KERNELS_FLASH_SCORES_CUH
#define KERNELS_FLASH_SCORES_CUH

#include "flash_block.cuh"

/** A reference moves only if a score is so much larger: weights are at most 2^8. */
#define FLASH_LAZY 8.0f

/** k16 steps whose queries are in registers. */
#define FLASH_HELD_STEPS (FLASH_STEPS - FLASH_SHARED_STEPS)
/** Steps by which keys are loaded ahead of their products. */
#define FLASH_AHEAD 2

/** What a lane keeps of the two rows that it finishes. */
struct flash_rows {
    float reference[2]; /**< Base 2: what is subtracted from scores. */
    float sum[2];       /**< Of this lane's weights. */
};

/** A fragments of a warp's 32 rows: the first steps to registers, the others to shared memory. */
static __device__ __forceinline__ void flash_load_queries(const struct ref_attention &a,
                                                          struct flash_shared *shared, int32_t warp,
                                                          uint32_t held[FLASH_HELD_STEPS][2][4]) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t half = warp % 2;
    /* Each lane finds one of the 32 rows; then they are handed round. */
    int32_t pair = shared->work.row_tile * FLASH_ROWS + warp / 2 * 32 + lane;
    int32_t pairs = shared->work.nodes * a.num_heads;
    /* Past the last pair it is repeated: what comes of it is not stored. */
    pair = pair < pairs ? pair : pairs - 1;
    int64_t row = shared->work.first_row + pair / a.num_heads;
    int64_t head = pair % a.num_heads;
    const uint16_t *latent =
        (const uint16_t *)a.q_latent + row * a.q_latent_stride[0] + head * a.q_latent_stride[1];
    const uint16_t *rope =
        (const uint16_t *)a.q_rope + row * a.q_rope_stride[0] + head * a.q_rope_stride[1];
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        int32_t m = i / 2;
        int32_t high = i % 2;
        int32_t source = (m ^ half) * 16 + high * 8 + lane / 4;
        const uint16_t *q = (const uint16_t *)__shfl_sync(0xffffffffu, (uint64_t)latent, source);
        const uint16_t *r = (const uint16_t *)__shfl_sync(0xffffffffu, (uint64_t)rope, source);
        q += half * FLASH_STEPS * 16 + lane % 4 * 2;
        r += lane % 4 * 2;
#pragma unroll
        for (int32_t step = 0; step < FLASH_STEPS; step++) {
            /* Only the upper half of the dimensions reaches into rope, at its step 14. */
            int32_t rope_step = step - (FLASH_LATENT / 16 - FLASH_STEPS);
            bool is_rope = rope_step >= 0 && half == 1;
            const uint16_t *from = is_rope ? r : q;
            int32_t dimension = is_rope ? rope_step * 16 : step * 16;
            uint32_t near = *(const uint32_t *)(from + dimension);
            uint32_t far = *(const uint32_t *)(from + dimension + 8);
            if (step >= FLASH_SHARED_STEPS) {
                held[step - FLASH_SHARED_STEPS][m][high] = near;
                held[step - FLASH_SHARED_STEPS][m][high + 2] = far;
            } else {
                uint32_t *words = (uint32_t *)&shared->queries[warp][step][m][lane];
                words[high] = near;
                words[high + 2] = far;
            }
        }
    }
}

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

/** Queries of the steps that are in shared memory. */
static __device__ __forceinline__ void
flash_fetch_queries(const struct flash_shared *shared, int32_t warp,
                    uint32_t query[FLASH_SHARED_STEPS][2][4]) {
    int32_t lane = (int32_t)threadIdx.x % 32;
#pragma unroll
    for (int32_t i = 0; i < 2 * FLASH_SHARED_STEPS; i++) {
        uint4 fragment = shared->queries[warp][i / 2][i % 2][lane];
        query[i / 2][i % 2][0] = fragment.x;
        query[i / 2][i % 2][1] = fragment.y;
        query[i / 2][i % 2][2] = fragment.z;
        query[i / 2][i % 2][3] = fragment.w;
    }
}

/** The warp's partial scores of a key tile, [m16][n8]. */
static __device__ __forceinline__ void
flash_multiply(const unsigned char *keys, int32_t warp, const uint32_t held[FLASH_HELD_STEPS][2][4],
               const uint32_t query[FLASH_SHARED_STEPS][2][4], bool never, float score[2][2][4]) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    const unsigned char *row = keys + (lane % 8 + lane / 16 * 8) * FLASH_PITCH +
                               (warp % 2 * FLASH_STEPS * 16 + lane / 8 % 2 * 8) * 2;
#pragma unroll
    for (int32_t i = 0; i < 16; i++) {
        score[i / 8][i / 4 % 2][i % 4] = 0.0f;
    }
    uint32_t key[FLASH_AHEAD + 1][4];
#pragma unroll
    for (int32_t step = 0; step < FLASH_AHEAD; step++) {
        ptx_ldmatrix(key[step], row + step * 32);
    }
#pragma unroll
    for (int32_t step = 0; step < FLASH_STEPS; step++) {
        if (step + FLASH_AHEAD < FLASH_STEPS) {
            ptx_ldmatrix(key[(step + FLASH_AHEAD) % (FLASH_AHEAD + 1)],
                         row + (step + FLASH_AHEAD) * 32);
        }
        /* Keeps the load ahead of the products: the compiler would sink it to its use. */
        ptx_keep_order(never);
        const uint32_t *b = key[step % (FLASH_AHEAD + 1)];
#pragma unroll
        for (int32_t m = 0; m < 2; m++) {
            const uint32_t *q = step < FLASH_SHARED_STEPS ? query[step % FLASH_SHARED_STEPS][m]
                                                          : held[step - FLASH_SHARED_STEPS][m];
            ptx_mma(score[m][0], q, b[0], b[1]);
            ptx_mma(score[m][1], q, b[2], b[3]);
        }
    }
}

/** Sends the partner its half of the partial scores. */
static __device__ __forceinline__ void flash_send(const float score[2][4],
                                                  struct flash_weights *weights, int32_t warp) {
    float4 *target = (float4 *)weights->fragment[warp ^ 1] + (int32_t)threadIdx.x % 32;
    target[0] = make_float4(score[0][0], score[0][1], score[0][2], score[0][3]);
    target[32] = make_float4(score[1][0], score[1][1], score[1][2], score[1][3]);
}

/** Adds what the partner sent to the half that is kept; its places are [n8][4]. */
static __device__ __forceinline__ void flash_receive(const float score[2][4],
                                                     const struct flash_weights *weights,
                                                     int32_t warp, float raw[8]) {
    ptx_named_barrier(FLASH_PAIR_BARRIER + (uint32_t)warp / 2, 64);
    const float4 *source = (const float4 *)weights->fragment[warp] + (int32_t)threadIdx.x % 32;
#pragma unroll
    for (int32_t n = 0; n < 2; n++) {
        float4 other = source[n * 32];
        raw[4 * n] = score[n][0] + other.x;
        raw[4 * n + 1] = score[n][1] + other.y;
        raw[4 * n + 2] = score[n][2] + other.z;
        raw[4 * n + 3] = score[n][3] + other.w;
    }
}

/** Moves references up where a score asks for it. Writes the factors of both rows. */
static __device__ __forceinline__ uint32_t flash_move_references(const float score[8],
                                                                 struct flash_rows *rows,
                                                                 float *factor, int32_t lane) {
    uint32_t moved = 0;
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        float maximum = fmaxf(fmaxf(score[2 * r], score[2 * r + 1]),
                              fmaxf(score[4 + 2 * r], score[4 + 2 * r + 1]));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 2));
        float scale = 1.0f;
        if (maximum > rows->reference[r] + FLASH_LAZY) {
            scale = ptx_exp2(rows->reference[r] - maximum);
            rows->reference[r] = maximum;
            rows->sum[r] *= scale;
            moved = 1;
        }
        if (lane % 4 == 0) {
            factor[lane / 4 + 8 * r] = scale;
        }
    }
    return __any_sync(0xffffffffu, moved != 0) ? 1 : 0;
}

/** Whether a score is not finite, and by how much scores exceed their references. */
static __device__ __forceinline__ bool flash_eventful(const float raw[8], const float score[8],
                                                      const struct flash_rows *rows, bool *odd) {
    /* 0 * x is NaN if x is not finite. */
    float low = fmaf(raw[0], 0.0f, fmaf(raw[1], 0.0f, fmaf(raw[4], 0.0f, raw[5] * 0.0f)));
    float high = fmaf(raw[2], 0.0f, fmaf(raw[3], 0.0f, fmaf(raw[6], 0.0f, raw[7] * 0.0f)));
    float above =
        fmaxf(fmaxf(fmaxf(score[0], score[1]), fmaxf(score[4], score[5])) - rows->reference[0],
              fmaxf(fmaxf(score[2], score[3]), fmaxf(score[6], score[7])) - rows->reference[1]);
    *odd = low + high != 0.0f;
    return !(above <= FLASH_LAZY) || *odd;
}

/** Sets what a row does not see to -inf; some keys of the tile are tree rows or absent. */
static __device__ __forceinline__ void flash_mask(const struct flash_launch &launch,
                                                  const struct flash_work &work, int32_t warp,
                                                  int32_t key, float score[8]) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    if (launch.call.mask_mode == REF_MASK_PARENTS) {
        ptx_grid_wait(); /* flash_own_rows makes the mask */
    }
    /* Each lane looks at one of the 16 rows; then they are handed round. */
    int32_t node = (work.row_tile * FLASH_ROWS + warp * 16 + lane % 16) / launch.call.num_heads;
    uint32_t visible = flash_visible(launch.call, work, key, node < work.nodes ? node : -1);
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        uint32_t bits = __shfl_sync(0xffffffffu, visible, lane / 4 + 8 * r) >> (lane % 4 * 2);
#pragma unroll
        for (int32_t i = 0; i < 4; i++) {
            int32_t place = i % 2 + 2 * r + i / 2 * 4;
            score[place] = bits >> (i % 2 + i / 2 * 8) & 1 ? score[place] : -INFINITY;
        }
    }
}

/**
 * Dot products to weights (place i is row i / 2 % 2), which go to the value warps.
 *
 * @param launch  the launch
 * @param work    the item
 * @param warp    number of the score warp
 * @param tile    number of the key tile in the request
 * @param masked  some keys of the tile are tree rows or absent
 * @param raw     dot products
 * @param weights the tile's
 * @param rows    references and sums, brought forward
 */
static __device__ __forceinline__ void flash_weigh(const struct flash_launch &launch,
                                                   const struct flash_work &work, int32_t warp,
                                                   int32_t tile, bool masked, const float raw[8],
                                                   struct flash_weights *weights,
                                                   struct flash_rows *rows) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    float score[8];
#pragma unroll
    for (int32_t i = 0; i < 8; i++) {
        score[i] = raw[i] * launch.scale;
    }
    if (masked) {
        flash_mask(launch, work, warp, tile * FLASH_KEYS, score);
    }
    uint32_t event = 0;
    bool odd;
    if (__any_sync(0xffffffffu, flash_eventful(raw, score, rows, &odd))) {
        event = flash_move_references(score, rows, weights->factor + warp * 16, lane);
        event |= __any_sync(0xffffffffu, odd) ? 2 : 0;
    }
    float weight[8];
#pragma unroll
    for (int32_t i = 0; i < 8; i++) {
        /* A row that has seen nothing has scores of -inf only. */
        float reference = rows->reference[i / 2 % 2];
        weight[i] = ptx_exp2(score[i] - (reference == -INFINITY ? 0.0f : reference));
    }
    weights->fragment[warp][lane] =
        make_uint4(ptx_pack_bf16(weight[0], weight[1]), ptx_pack_bf16(weight[2], weight[3]),
                   ptx_pack_bf16(weight[4], weight[5]), ptx_pack_bf16(weight[6], weight[7]));
    if (lane == 0) {
        weights->event[warp] = event;
    }
    rows->sum[0] += (weight[0] + weight[1]) + (weight[4] + weight[5]);
    rows->sum[1] += (weight[2] + weight[3]) + (weight[6] + weight[7]);
}

/** Adds the lanes' sums of a row and stores reference and sum. */
static __device__ __forceinline__ void flash_end_rows(const struct flash_launch &launch,
                                                      const struct flash_work &work, int32_t warp,
                                                      struct flash_rows *rows) {
    int32_t lane = (int32_t)threadIdx.x % 32;
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        float sum = rows->sum[r];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (lane % 4 == 0) {
            launch.states[(int64_t)work.partial * FLASH_ROWS + warp * 16 + lane / 4 + 8 * r] =
                make_float2(rows->reference[r], sum);
        }
    }
}

/** A score warp's part of an item; `step` counts the key tiles of the block so far. */
static __device__ __forceinline__ void flash_score_item(const struct flash_launch &launch,
                                                        struct flash_shared *shared, int32_t warp,
                                                        uint32_t step) {
    const struct flash_work &work = shared->work;
    uint32_t held[FLASH_HELD_STEPS][2][4];
    struct flash_rows rows = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
    flash_load_queries(launch.call, shared, warp, held);
    __syncwarp();
    int32_t end = flash_uniform(work.end_tile);
    int32_t first = flash_uniform(work.first_tile);
    bool never = work.partial == INT32_MIN;
    /* Key tiles that hold prefix rows only. */
    int32_t whole = flash_uniform(work.prefix / FLASH_KEYS);
    int32_t lane = (int32_t)threadIdx.x % 32;
    for (int32_t tile = first; tile < end; tile++, step++) {
        struct flash_weights *weights = &shared->weights[step % FLASH_WEIGHTS];
        float score[2][2][4];
        float raw[8];
        uint32_t query[FLASH_SHARED_STEPS][2][4];
        flash_fetch_queries(shared, warp, query);
        ptx_mbarrier_wait(&shared->full[step % FLASH_SLOTS], step / FLASH_SLOTS % 2);
        flash_multiply(shared->keys[step % FLASH_SLOTS], warp, held, query, never, score);
        /* The values of a tile begin when the scores of the next are made: so they use the tensor
         * cores while these warps make weights. */
        if (tile > first && lane == 0) {
            ptx_mbarrier_arrive(&shared->weighed[(step - 1) % FLASH_WEIGHTS]);
        }
        flash_send(score[1], weights, warp);
        flash_receive(score[0], weights, warp, raw);
        flash_weigh(launch, work, warp, tile, tile >= whole, raw, weights, &rows);
        __syncwarp();
    }
    if (lane == 0 && end > first) { /* there are items without keys */
        ptx_mbarrier_arrive(&shared->weighed[(step - 1) % FLASH_WEIGHTS]);
    }
    flash_end_rows(launch, work, warp, &rows);
}

/** A score warp's whole life. */
static __device__ __forceinline__ void
flash_score_items(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp) {
    uint32_t step = 0;
    for (;;) {
        flash_meet();
        if (shared->work.partial < 0) {
            break;
        }
        flash_score_item(launch, shared, warp, step);
        step += (uint32_t)flash_uniform(shared->work.end_tile - shared->work.first_tile);
        flash_meet();
    }
}

#endif
