// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The score warps of a flash block: S = Q K^T; then P (flash_weights.cuh).
 *
 * Warp 2 p + h multiplies m16 tiles p and p + 2 of the row tile by dimensions 288 h to 288 h + 287;
 * its queries stay in registers. The two warps of a pair then exchange halves of their partial
 * scores, and warp 2 p + h finishes m16 tile p + 2 h, which is tile 0 of its product. Where the
 * row tile has no m16 tile p + 2, both warps multiply m16 tile p, and warp 2 p finishes it; where
 * it has no p either, the pair keeps time. In an m16 fragment a lane has rows lane / 4 and
 * lane / 4 + 8, and keys 2 (lane % 4), + 1, + 8, + 9.
 */
#ifndef KERNELS_FLASH_SCORES_CUH
#define KERNELS_FLASH_SCORES_CUH

#include "flash_weights.cuh"

/** k16 steps whose queries are in registers. */
#define FLASH_HELD_STEPS (FLASH_STEPS - FLASH_SHARED_STEPS)
/** Steps by which keys are loaded ahead of their products, of two m16 tiles and of one. */
#define FLASH_AHEAD(m16) ((m16) == 2 ? 2 : 3)
/** Step of a tile's products at which the weights of the tile before are released. */
#define FLASH_RELEASE_STEP 13

/** The m16 tile of the row tile that a score warp finishes, if there is one. */
static __device__ __forceinline__ int32_t flash_own_m16(int32_t warp) {
    return warp / 2 + warp % 2 * 2;
}

/** A fragments of one m16 tile of a warp, number m of its product: to registers, of the last step
 * to shared memory. */
template <int32_t m>
static __device__ __forceinline__ void flash_take_tile(const unsigned char *row,
                                                       uint4 queries[FLASH_SHARED_STEPS][2][32],
                                                       uint32_t held[FLASH_HELD_STEPS][2][4]) {
#pragma unroll
    for (int32_t step = 0; step < FLASH_HELD_STEPS; step++) {
        ptx_ldmatrix(held[step][m], row + step * 32);
    }
#pragma unroll
    for (int32_t step = 0; step < FLASH_SHARED_STEPS; step++) {
        uint32_t last[4];
        ptx_ldmatrix(last, row + (FLASH_HELD_STEPS + step) * 32);
        queries[step][m][ptx_lane()] = make_uint4(last[0], last[1], last[2], last[3]);
    }
}

/** Takes the queries of an item from the ring, where value warps put them (flash_load_queries). */
static __device__ __forceinline__ void flash_take_queries(struct flash_shared *shared, int32_t warp,
                                                          uint32_t held[FLASH_HELD_STEPS][2][4]) {
    int32_t lane = ptx_lane();
    int32_t m16 = flash_uniform(shared->work.m16);
    uint32_t turn = (uint32_t)flash_uniform((int32_t)shared->work.turn);
    /* The tile that the warp finishes comes first; of a single one, both warps have it there. */
    int32_t swap = m16 > warp / 2 + 2 ? warp % 2 : 0;
    const unsigned char *row = flash_query_slot(shared, warp / 2) + lane % 16 * FLASH_PITCH +
                               (warp % 2 * FLASH_STEPS * 16 + lane / 16 * 8) * 2;
#pragma unroll 1
    for (int32_t round = 0; round < 2; round++) {
        ptx_mbarrier_wait(&shared->loaded[round], turn % 2);
        if (m16 > warp / 2 + round * 2) {
            if (round == swap) {
                flash_take_tile<0>(row, shared->queries[warp], held);
            } else {
                flash_take_tile<1>(row, shared->queries[warp], held);
            }
        }
        flash_arrive(&shared->taken[round]);
    }
}

/**
 * The warp's partial scores of a key tile, of one m16 tile or both.
 *
 * @param shared of the block
 * @param number of the key tile in the block
 * @param warp   number of the score warp
 * @param held   queries
 * @param later  whether there is a tile before it, whose weights are released meanwhile
 * @param never  false, as for ptx_keep_order
 * @param score  [m16][n8] accumulators, filled
 *
 * With `exact`, a score does not depend on how many m16 tiles the warp has: one chain each.
 */
template <int32_t m16, bool exact = false>
static __device__ __forceinline__ void
flash_multiply(struct flash_shared *shared, uint32_t number, int32_t warp,
               const uint32_t held[FLASH_HELD_STEPS][2][4], bool later, bool never,
               float score[2][2][4]) {
    int32_t lane = (int32_t)threadIdx.x % 32;
    const unsigned char *row = shared->keys[number % FLASH_SLOTS] +
                               (lane % 8 + lane / 16 * 8) * FLASH_PITCH +
                               (warp % 2 * FLASH_STEPS * 16 + lane / 8 % 2 * 8) * 2;
#pragma unroll
    for (int32_t i = 0; i < 16; i++) {
        score[i / 8][i / 4 % 2][i % 4] = 0.0f;
    }
    const int32_t ahead = FLASH_AHEAD(m16);
    uint32_t key[ahead + 1][4];
    uint32_t query[2][4];
#pragma unroll
    for (int32_t step = 0; step < ahead; step++) {
        ptx_ldmatrix(key[step], row + step * 32);
    }
#pragma unroll
    for (int32_t step = 0; step < FLASH_STEPS; step++) {
        if (step + ahead < FLASH_STEPS) {
            ptx_ldmatrix(key[(step + ahead) % (ahead + 1)], row + (step + ahead) * 32);
        }
#pragma unroll
        for (int32_t m = 0; m < m16; m++) {
            /* One step ahead, in the registers of keys that are no longer loaded ahead. */
            if (step + 1 >= FLASH_HELD_STEPS && step + 1 < FLASH_STEPS) {
                ptx_load_shared(query[m],
                                &shared->queries[warp][step + 1 - FLASH_HELD_STEPS][m][lane]);
            }
        }
        /* Keeps the loads ahead of the products: the compiler would sink them to their use. */
        ptx_keep_order(never);
        if (step == FLASH_RELEASE_STEP && later && (FLASH_EVERY_LANE || lane == 0)) {
            ptx_mbarrier_arrive(&shared->weighed[(number - 1) % FLASH_WEIGHTS]);
        }
        const uint32_t *b = key[step % (ahead + 1)];
#pragma unroll
        for (int32_t m = 0; m < m16; m++) {
            const uint32_t *q =
                step < FLASH_HELD_STEPS ? held[step % FLASH_HELD_STEPS][m] : query[m];
            /* Of one m16 tile, even and odd steps: four chains keep the tensor cores busy. */
            int32_t chain = m16 == 2 || exact ? m : step % 2;
            ptx_mma(score[chain][0], q, b[0], b[1]);
            ptx_mma(score[chain][1], q, b[2], b[3]);
        }
    }
    if (m16 == 1 && !exact) {
#pragma unroll
        for (int32_t i = 0; i < 8; i++) {
            score[0][i / 4][i % 4] += score[1][i / 4][i % 4];
        }
    }
}

/** Sends the partner partial scores of the m16 tile that it finishes. */
static __device__ __forceinline__ void flash_send(const float score[2][4],
                                                  struct flash_weights *weights, int32_t warp) {
    float4 *target =
        (float4 *)weights->fragment[flash_own_m16(warp ^ 1)] + (int32_t)threadIdx.x % 32;
    target[0] = make_float4(score[0][0], score[0][1], score[0][2], score[0][3]);
    target[32] = make_float4(score[1][0], score[1][1], score[1][2], score[1][3]);
}

/** Adds what the partner sent to the half that is kept; its places are [n8][4]. */
static __device__ __forceinline__ void flash_receive(const float score[2][4],
                                                     const struct flash_weights *weights,
                                                     int32_t warp, float raw[8]) {
    const float4 *source =
        (const float4 *)weights->fragment[flash_own_m16(warp)] + (int32_t)threadIdx.x % 32;
#pragma unroll
    for (int32_t n = 0; n < 2; n++) {
        float4 other = source[n * 32];
        raw[4 * n] = score[n][0] + other.x;
        raw[4 * n + 1] = score[n][1] + other.y;
        raw[4 * n + 2] = score[n][2] + other.z;
        raw[4 * n + 3] = score[n][3] + other.w;
    }
}

/**
 * The key tiles of an item, by a score warp whose pair has one m16 tile or two.
 *
 * @param launch the launch
 * @param shared of the block
 * @param warp   number of the score warp
 * @param held   queries
 */
template <int32_t m16>
static __device__ __forceinline__ void
flash_score_tiles(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp,
                  const uint32_t held[FLASH_HELD_STEPS][2][4]) {
    const struct flash_work &work = shared->work;
    uint32_t step = (uint32_t)flash_uniform((int32_t)work.step);
    struct flash_rows rows = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
    int32_t end = flash_uniform(work.end_tile);
    int32_t first = flash_uniform(work.first_tile);
    /* Key tiles that hold prefix rows only. */
    int32_t whole = flash_uniform(work.prefix / FLASH_KEYS);
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t m = flash_own_m16(warp);
    bool never = work.slab == INT32_MIN;
    bool finishes = m16 == 2 || warp % 2 == 0;
    bool full = false;
    for (int32_t tile = first; tile < end; tile++, step++) {
        struct flash_weights *weights = &shared->weights[step % FLASH_WEIGHTS];
        float score[2][2][4];
        if (!full) {
            ptx_mbarrier_wait(&shared->full[step % FLASH_SLOTS], step / FLASH_SLOTS % 2);
        }
        /* The values of a tile begin when most of the scores of the next are made: so they use the
         * tensor cores while these warps make weights. */
        flash_multiply<m16>(shared, step, warp, held, tile > first, never, score);
        if (m16 == 2 || !finishes) {
            flash_send(score[m16 - 1], weights, warp);
        }
        /* Asked before the weights are made: the answer takes a while. */
        full = ptx_mbarrier_test(&shared->full[(step + 1) % FLASH_SLOTS],
                                 (step + 1) / FLASH_SLOTS % 2);
        ptx_named_barrier(FLASH_PAIR_BARRIER + (uint32_t)warp / 2, 64);
        if (finishes) {
            float raw[8];
            flash_receive(score[0], weights, warp, raw);
            bool odd = flash_odd(raw);
            if (tile >= whole) {
                flash_mask(launch, work, m, tile * FLASH_KEYS, raw);
            }
            const struct flash_length length = {end - first, whole};
            flash_weigh(launch.scale, flash_lead(length, m16 == 1), m, odd, 0, raw, weights, &rows);
        } else if (lane == 0) {
            weights->event[m] = 0;
        }
        __syncwarp();
    }
    if (work.end_tile > work.first_tile) { /* there are items without keys */
        flash_arrive(&shared->weighed[(step - 1) % FLASH_WEIGHTS]);
    }
    if (finishes) {
        flash_end_rows(launch, work, work.slab, m, rows);
    }
}

/** The key tiles of an item, by a score warp whose pair has no m16 tile. */
static __device__ __forceinline__ void flash_skip_tiles(struct flash_shared *shared, int32_t warp) {
    uint32_t step = (uint32_t)flash_uniform((int32_t)shared->work.step);
    uint32_t count = (uint32_t)flash_uniform(shared->work.end_tile - shared->work.first_tile);
    for (uint32_t end = step + count; step < end; step++) {
        ptx_mbarrier_wait(&shared->full[step % FLASH_SLOTS], step / FLASH_SLOTS % 2);
        if (threadIdx.x % 32 == 0) {
            shared->weights[step % FLASH_WEIGHTS].event[flash_own_m16(warp)] = 0;
        }
        flash_arrive(&shared->weighed[step % FLASH_WEIGHTS]);
    }
}

/** A score warp's part of an item. */
static __device__ __forceinline__ void flash_score_item(const struct flash_launch &launch,
                                                        struct flash_shared *shared, int32_t warp) {
    int32_t m16 = flash_uniform(shared->work.m16) - warp / 2;
    uint32_t held[FLASH_HELD_STEPS][2][4];
    flash_take_queries(shared, warp, held);
    if (m16 <= 0) {
        flash_skip_tiles(shared, warp);
    } else if (m16 > 2) {
        flash_score_tiles<2>(launch, shared, warp, held);
    } else {
        flash_score_tiles<1>(launch, shared, warp, held);
    }
}

/** A score warp's whole life. */
static __device__ __forceinline__ void
flash_score_items(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp) {
    while (shared->work.slab >= 0) {
        flash_score_item(launch, shared, warp);
        flash_next_item(shared);
    }
}

#endif
