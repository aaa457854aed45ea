// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: what the warps of a block do with an item, of main and of the tail. Scores, weights
 * and values of a key tile are those of default mode; here are segments in place of one chunk, and
 * states that are stored whole, so that a chain of accumulation goes on where it ended.
 */
#ifndef KERNELS_FLASH_EXACT_ITEMS_CUH
#define KERNELS_FLASH_EXACT_ITEMS_CUH

#include "flash_exact.cuh"
#include "flash_fetch.cuh"
#include "flash_scores.cuh"
#include "flash_values.cuh"

/** A segment of the item. */
static __device__ __forceinline__ const struct flash_segment *
flash_segment_at(const struct flash_exact_shared *shared, int32_t index) {
    return &shared->segment[shared->item.table][index];
}

/** This lane's place among the states of a chunk of the item's row tile. */
static __device__ __forceinline__ float2 *flash_exact_state(const struct flash_launch &launch,
                                                            const struct flash_work &work,
                                                            int32_t chunk, int32_t row) {
    return launch.states + (int64_t)(work.slab + chunk) * FLASH_EXACT_STATES +
           (work.slab_row + row) * 4 + ptx_lane() % 4;
}

/** References and sums that a segment begins with. */
template <bool tail>
static __device__ __forceinline__ struct flash_rows
flash_begin_rows(const struct flash_launch &launch, const struct flash_exact_shared *shared,
                 int32_t segment, int32_t m) {
    struct flash_rows rows = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
    if (tail && flash_segment_at(shared, segment)->resumes) {
        int32_t chunk = flash_segment_at(shared, segment)->chunk;
#pragma unroll
        for (int32_t r = 0; r < 2; r++) {
            int32_t row = m * FLASH_M16 + ptx_lane() / 4 + 8 * r;
            if (flash_own_pair<tail>(shared, row)) {
                float2 state = *flash_exact_state(launch, shared->common.work, chunk, row);
                rows.reference[r] = state.x;
                rows.sum[r] = state.y;
            }
        }
    }
    return rows;
}

/** Stores references, and the lanes' sums as they are. */
template <bool tail>
static __device__ __forceinline__ void
flash_store_rows(const struct flash_launch &launch, const struct flash_exact_shared *shared,
                 int32_t chunk, int32_t m, const struct flash_rows *rows) {
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        int32_t row = m * FLASH_M16 + ptx_lane() / 4 + 8 * r;
        if (flash_own_pair<tail>(shared, row)) {
            *flash_exact_state(launch, shared->common.work, chunk, row) =
                make_float2(rows->reference[r], rows->sum[r]);
        }
    }
}

/** Weights of a key tile of a segment: in the tail, keys past the last are absent. */
template <bool tail>
static __device__ __forceinline__ void
flash_exact_weigh(const struct flash_launch &launch, const struct flash_exact_shared *shared,
                  int32_t m, int32_t tile, float raw[8], struct flash_weights *weights,
                  struct flash_rows *rows) {
    struct flash_work work = shared->common.work;
    work.nodes = 0; /* no row is a node's: what there is, is visible */
    bool masked = tail && (tile + 1) * FLASH_KEYS > work.keys;
    flash_weigh(launch, work, m, tile, masked, raw, weights, rows);
}

/**
 * The segments of an item, by a score warp whose pair has one m16 tile or two.
 *
 * @param launch the launch
 * @param shared of the block
 * @param warp   number of the score warp
 * @param held   queries
 */
template <bool tail, int32_t m16>
static __device__ __forceinline__ void
flash_exact_score_tiles(const struct flash_launch &launch, struct flash_exact_shared *shared,
                        int32_t warp, const uint32_t held[FLASH_HELD_STEPS][2][4]) {
    struct flash_shared *common = &shared->common;
    uint32_t step = (uint32_t)flash_uniform((int32_t)common->work.step);
    int32_t m = flash_own_m16(warp);
    bool never = common->work.slab == INT32_MIN;
    bool finishes = m16 == 2 || warp % 2 == 0;
    bool full = false;
    for (int32_t segment = 0; segment < shared->item.segments; segment++) {
        struct flash_rows rows = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
        if (finishes) {
            rows = flash_begin_rows<tail>(launch, shared, segment, m);
        }
        uint32_t end =
            common->work.step + (uint32_t)flash_uniform(flash_segment_at(shared, segment)->end);
        for (; step < end; step++) {
            struct flash_weights *weights = &common->weights[step % FLASH_WEIGHTS];
            float score[2][2][4];
            if (!full) {
                ptx_mbarrier_wait(&common->full[step % FLASH_SLOTS], step / FLASH_SLOTS % 2);
            }
            flash_multiply<m16, true>(common, step, warp, held, step > common->work.step, never,
                                      score);
            if (m16 == 2 || !finishes) {
                flash_send(score[m16 - 1], weights, warp);
            }
            full = ptx_mbarrier_test(&common->full[(step + 1) % FLASH_SLOTS],
                                     (step + 1) / FLASH_SLOTS % 2);
            ptx_named_barrier(FLASH_PAIR_BARRIER + (uint32_t)warp / 2, 64);
            if (finishes) {
                float raw[8];
                flash_receive(score[0], weights, warp, raw);
                int32_t tile = common->work.first_tile + (int32_t)(step - common->work.step);
                flash_exact_weigh<tail>(launch, shared, m, tile, raw, weights, &rows);
            } else if (threadIdx.x % 32 == 0) {
                weights->event[m] = 0;
            }
            __syncwarp();
        }
        if (finishes) {
            flash_store_rows<tail>(launch, shared, flash_segment_at(shared, segment)->chunk, m,
                                   &rows);
        }
    }
    if (step > common->work.step) {
        flash_arrive(&common->weighed[(step - 1) % FLASH_WEIGHTS]);
    }
}

/** In the chunks that a node's rows do not reach they have seen nothing. */
template <bool tail>
static __device__ __forceinline__ void flash_end_chunks(const struct flash_launch &launch,
                                                        const struct flash_exact_shared *shared,
                                                        int32_t m) {
    if (tail) {
        const struct flash_rows nothing = {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
        int32_t end = shared->item.chunks;
        for (int32_t chunk = flash_exact_chunks(shared->common.work.end_tile); chunk < end;
             chunk++) {
            flash_store_rows<tail>(launch, shared, chunk, m, &nothing);
        }
    }
}

/** A score warp's part of an item. */
template <bool tail>
static __device__ __forceinline__ void flash_exact_score_item(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    int32_t m16 = flash_uniform(common->work.m16) - warp / 2;
    uint32_t held[FLASH_HELD_STEPS][2][4];
    flash_take_queries(common, warp, held);
    if (m16 <= 0) {
        flash_skip_tiles(common, warp);
        return;
    }
    if (m16 > 2) {
        flash_exact_score_tiles<tail, 2>(launch, shared, warp, held);
    } else {
        flash_exact_score_tiles<tail, 1>(launch, shared, warp, held);
    }
    if (m16 > 2 || warp % 2 == 0) {
        flash_end_chunks<tail>(launch, shared, flash_own_m16(warp));
    }
}

/** First float4 of this lane among the partial outputs of a chunk. */
static __device__ __forceinline__ float4 *flash_exact_partial(const struct flash_launch &launch,
                                                              const struct flash_work &work,
                                                              int32_t chunk, int32_t warp) {
    return launch.partials + (int64_t)(work.slab + chunk) * (FLASH_PARTIAL_BYTES / 16) +
           warp * 1024 + work.slab_row / FLASH_M16 * 256 + ptx_lane();
}

/** Accumulators that a segment begins with: those of m16 tiles without a row are 0. */
template <bool tail, int32_t m16>
static __device__ __forceinline__ void
flash_begin_values(const struct flash_launch &launch, const struct flash_exact_shared *shared,
                   int32_t segment, int32_t warp, float value[4][8][4]) {
#pragma unroll
    for (int32_t i = 0; i < 128; i++) {
        value[i / 32][i / 4 % 8][i % 4] = 0.0f;
    }
    if (tail && flash_segment_at(shared, segment)->resumes) {
        const float4 *partial = flash_exact_partial(launch, shared->common.work,
                                                    flash_segment_at(shared, segment)->chunk, warp);
        int32_t row = ptx_lane() / 4;
#pragma unroll
        for (int32_t i = 0; i < 8 * m16; i++) {
            float *v = value[i / 8][i % 8];
            if (flash_own_pair<tail>(shared, i / 8 * FLASH_M16 + row)) {
                float2 low = *(const float2 *)&partial[i * 32].x;
                v[0] = low.x;
                v[1] = low.y;
            }
            if (flash_own_pair<tail>(shared, i / 8 * FLASH_M16 + row + 8)) {
                float2 high = *(const float2 *)&partial[i * 32].z;
                v[2] = high.x;
                v[3] = high.y;
            }
        }
    }
}

/** Stores accumulators: in the tail, of the node's rows only. */
template <bool tail, int32_t m16>
static __device__ __forceinline__ void
flash_store_values(const struct flash_launch &launch, const struct flash_exact_shared *shared,
                   int32_t chunk, int32_t warp, const float value[4][8][4]) {
    float4 *partial = flash_exact_partial(launch, shared->common.work, chunk, warp);
    int32_t used = flash_uniform(shared->common.work.m16);
    int32_t row = ptx_lane() / 4;
#pragma unroll
    for (int32_t i = 0; i < 8 * m16; i++) {
        if (i / 8 >= used) {
            break;
        }
        const float *v = value[i / 8][i % 8];
        if (!tail) {
            partial[i * 32] = make_float4(v[0], v[1], v[2], v[3]);
            continue;
        }
        if (flash_own_pair<tail>(shared, i / 8 * FLASH_M16 + row)) {
            *(float2 *)&partial[i * 32].x = make_float2(v[0], v[1]);
        }
        if (flash_own_pair<tail>(shared, i / 8 * FLASH_M16 + row + 8)) {
            *(float2 *)&partial[i * 32].z = make_float2(v[2], v[3]);
        }
    }
}

/** The segment of the block's key tile `step`: searched, since the value warps have no register to
 * keep its number. */
static __device__ __forceinline__ int32_t flash_segment_of(const struct flash_exact_shared *shared,
                                                           uint32_t step) {
    int32_t tile = (int32_t)(step - shared->common.work.step);
    int32_t segment = 0;
#pragma unroll 1
    while (flash_segment_at(shared, segment)->end <= tile) {
        segment++;
    }
    return segment;
}

/** The segments of an item, by a value warp: one or two, or three or four m16 tiles. */
template <bool tail, int32_t m16>
static __device__ __forceinline__ void flash_exact_value_item(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    const struct flash_work &work = common->work;
    uint32_t step = (uint32_t)flash_uniform((int32_t)work.step);
    while (step != work.step + (uint32_t)(work.end_tile - work.first_tile)) {
        int32_t segment = flash_segment_of(shared, step);
        float value[4][8][4];
        flash_begin_values<tail, m16>(launch, shared, segment, warp, value);
        __syncwarp();
        shared->end[ptx_thread() / 32 - FLASH_SCORE_WARPS] =
            work.step + (uint32_t)flash_segment_at(shared, segment)->end;
        __syncwarp();
        for (; step != shared->end[ptx_thread() / 32 - FLASH_SCORE_WARPS]; step++) {
            const struct flash_weights *weights = &common->weights[step % FLASH_WEIGHTS];
            unsigned char *keys = common->keys[step % FLASH_SLOTS];
            ptx_mbarrier_wait(&common->weighed[step % FLASH_WEIGHTS], step / FLASH_WEIGHTS % 2);
            flash_add_values<m16, true>(weights, keys, warp, value);
            flash_arrive(&common->spent[ptx_anew(step) % FLASH_SLOTS]);
        }
        segment = flash_segment_of(shared, step - 1);
        flash_store_values<tail, m16>(launch, shared, flash_segment_at(shared, segment)->chunk,
                                      warp, value);
        step = *(const volatile uint32_t *)&shared
                    ->end[ptx_thread() / 32 - FLASH_SCORE_WARPS]; /* so that it need not be kept */
    }
}

/** Number of the n-th of the nodes that a node sees, ascending, of which there are more. */
static __device__ __forceinline__ int32_t flash_nth_node(const struct ref_attention &a, int64_t row,
                                                         int32_t n) {
    if (a.mask_mode == REF_MASK_CHAIN) {
        return n;
    }
    const uint32_t *words = a.mask_words + row * a.mask_stride_words;
    const uint32_t *word = words;
    for (; n >= __popc(*word); word++) {
        n -= __popc(*word);
    }
    uint32_t bits = *word;
    for (; n > 0; n--) {
        bits &= bits - 1;
    }
    return (int32_t)(word - words) * 32 + __ffs((int32_t)bits) - 1;
}

/** Slot of this lane's key of two key tiles; 0 for an absent key. */
template <bool tail>
static __device__ __forceinline__ uint32_t flash_exact_slot(const struct ref_attention &a,
                                                            const struct flash_exact_shared *shared,
                                                            int32_t tile) {
    const struct flash_work &work = shared->common.work;
    int32_t key = tile * FLASH_KEYS + (int32_t)threadIdx.x % 32;
    if (key >= work.keys) {
        return 0;
    }
    if (tail && key >= work.prefix) {
        key =
            work.prefix + flash_nth_node(a, work.first_row + shared->item.node, key - work.prefix);
    }
    return flash_slot(a, work, key);
}

/** Fetches two key tiles from `tile` on, or one; their keys' slots are known. */
static __device__ __forceinline__ void flash_exact_fetch(const struct flash_launch &launch,
                                                         struct flash_exact_shared *shared,
                                                         int32_t warp, int32_t tile, uint32_t step,
                                                         uint32_t slot, bool two) {
    struct flash_shared *common = &shared->common;
    uint32_t runs = 0;
    if (launch.call.kv_latent_stride * 2 == FLASH_PITCH && flash_joined(launch.call)) {
        int32_t lane = (int32_t)threadIdx.x % 32;
        uint32_t first = __shfl_sync(0xffffffffu, slot, lane & 16);
        runs = __ballot_sync(0xffffffffu, tile * FLASH_KEYS + lane < common->work.keys &&
                                              slot == first + (uint32_t)(lane % 16));
    }
    flash_fetch(launch, common, warp, tile, step, slot, 0, (runs & 0xffffu) == 0xffffu);
    if (two) {
        flash_fetch(launch, common, warp, tile + 1, step + 1, slot, 16, runs >> 16 == 0xffffu);
    }
}

/** A fetch warp's part of an item. Pages have even numbers of key tiles: two are neighbours. */
template <bool tail>
static __device__ __forceinline__ void flash_exact_fetch_item(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    int32_t at = 0; /* of the item's key tiles */
    bool waited = false;
    for (int32_t i = 0; i < shared->item.segments; i++) {
        int32_t first = tail ? common->work.first_tile + at
                             : flash_exact_page_begin(flash_segment_at(shared, i)->chunk);
        int32_t count = flash_uniform(flash_segment_at(shared, i)->end) - at;
        uint32_t next = flash_exact_slot<tail>(launch.call, shared, first);
        for (int32_t k = 0; k < count; k += 2) {
            uint32_t slot = next;
            int32_t tile = tail ? first + k : first + flash_exact_leap(k);
            int32_t later = tail ? first + k + 2 : first + flash_exact_leap(k + 2);
            next = flash_exact_slot<tail>(launch.call, shared, later);
            if (!waited && at + k > 0) { /* the second of two may be the third */
                flash_wait_queries(common);
                waited = true;
            }
            flash_exact_fetch(launch, shared, warp, tile, common->work.step + (uint32_t)(at + k),
                              slot, k + 1 < count);
        }
        at += count;
    }
    if (!waited) {
        flash_wait_queries(common); /* no phase of a barrier passes unseen */
    }
}

#endif
