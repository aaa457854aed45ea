// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: what score and value warps do with an item. Scores, weights and values of a key tile
 * are those of default mode; here the fetch warps say when a chunk ends, and the item.
 */
#ifndef KERNELS_FLASH_EXACT_ITEMS_CUH
#define KERNELS_FLASH_EXACT_ITEMS_CUH

#include "flash_exact_paths.cuh"
#include "flash_fetch.cuh"
#include "flash_scores.cuh"
#include "flash_values.cuh"

/** What the fetch warps said of a key tile: loaded where this stands, which is ahead of its use. */
static __device__ __forceinline__ struct flash_exact_tile
flash_exact_said(const struct flash_exact_shared *shared, uint32_t step) {
    uint64_t bits = *(const volatile uint64_t *)&shared->tile[step % FLASH_EXACT_TILES];
    return {(int32_t)bits, (int16_t)(bits >> 32), (int16_t)(bits >> 48)};
}

/** What rows begin a chunk with. */
static __device__ __forceinline__ struct flash_rows flash_no_rows() {
    return {{-INFINITY, -INFINITY}, {0.0f, 0.0f}};
}

/**
 * Ends an item, by a score warp: the chunk that is open, and those of the run that none of its rows
 * reaches.
 *
 * @param launch   the launch
 * @param shared   of the block
 * @param step     number of the tile that ends the item
 * @param warp     number of the score warp
 * @param finishes whether the warp has rows
 * @param rows     references and sums
 */
static __device__ __forceinline__ void
flash_exact_end_rows(const struct flash_launch &launch, struct flash_exact_shared *shared,
                     uint32_t step, int32_t warp, bool finishes, const struct flash_rows &rows) {
    int32_t m = flash_own_m16(warp);
    int32_t ended = flash_exact_said(shared, step).ended;
    if (finishes) {
        if (ended >= 0) {
            flash_end_rows(launch, shared->common.work, shared->common.work.slab + ended, m, rows);
        }
        int32_t chunk = ended >= 0 ? ended + 1 : shared->item.first_chunk;
        for (; chunk < shared->item.end_chunk; chunk++) {
            flash_end_rows(launch, shared->common.work, shared->common.work.slab + chunk, m,
                           flash_no_rows());
        }
    }
    if (ptx_lane() == 0) {
        shared->common.weights[step % FLASH_WEIGHTS].event[m] =
            FLASH_EVENT_END | (ended >= 0 ? FLASH_EVENT_CHUNK : 0);
    }
    flash_arrive(&shared->common.weighed[step % FLASH_WEIGHTS]);
}

/**
 * Weights of a key tile, by a score warp; first the end of the chunk before it.
 *
 * @param launch the launch
 * @param shared of the block
 * @param step   number of the key tile in the block
 * @param tile   what was said of it
 * @param warp   number of the score warp
 * @param score  partial scores
 * @param rows   references and sums, brought forward
 */
static __device__ __forceinline__ void
flash_exact_weigh(const struct flash_launch &launch, struct flash_exact_shared *shared,
                  uint32_t step, const struct flash_exact_tile &tile, int32_t warp,
                  const float score[2][4], struct flash_rows *rows) {
    struct flash_weights *weights = &shared->common.weights[step % FLASH_WEIGHTS];
    int32_t m = flash_own_m16(warp);
    float raw[8];
    flash_receive(score, weights, warp, raw);
    bool odd = flash_odd(raw);
    uint32_t event = 0;
    if (tile.ended >= 0 || tile.path >= 0) { /* seldom: one question for most tiles */
        if (tile.ended >= 0) {
            flash_end_rows(launch, shared->common.work, shared->common.work.slab + tile.ended, m,
                           *rows);
            *rows = flash_no_rows();
            event = FLASH_EVENT_CHUNK;
        }
        if (tile.path >= 0) {
            flash_hide_path(shared, launch.call.num_heads, m, tile, raw);
        }
    }
    flash_weigh(launch.scale, 0.0f, m, odd, event, raw, weights, rows);
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
flash_exact_score_tiles(const struct flash_launch &launch, struct flash_exact_shared *shared,
                        int32_t warp, const uint32_t held[FLASH_HELD_STEPS][2][4]) {
    struct flash_shared *common = &shared->common;
    uint32_t step = (uint32_t)flash_uniform((int32_t)common->work.step);
    struct flash_rows rows = flash_no_rows();
    bool never = common->work.slab == INT32_MIN;
    bool finishes = m16 == 2 || warp % 2 == 0;
    bool full = false;
    bool later = false;
    bool end = false;
    for (;; step++) {
        struct flash_weights *weights = &common->weights[step % FLASH_WEIGHTS];
        float score[2][2][4];
        if (!full) {
            ptx_mbarrier_wait(&common->full[step % FLASH_SLOTS], step / FLASH_SLOTS % 2);
            end = flash_exact_said(shared, step).key < 0;
        }
        if (end) {
            break;
        }
        flash_multiply<m16, true>(common, step, warp, held, later, never, score);
        later = true;
        struct flash_exact_tile tile = flash_exact_said(shared, step);
        if (m16 == 2 || !finishes) {
            flash_send(score[m16 - 1], weights, warp);
        }
        full = ptx_mbarrier_test(&common->full[(step + 1) % FLASH_SLOTS],
                                 (step + 1) / FLASH_SLOTS % 2);
        ptx_named_barrier(FLASH_PAIR_BARRIER + (uint32_t)warp / 2, 64);
        if (full) {
            end = flash_exact_said(shared, step + 1).key < 0;
        }
        if (finishes) {
            flash_exact_weigh(launch, shared, step, tile, warp, score[0], &rows);
        } else if (threadIdx.x % 32 == 0) {
            weights->event[flash_own_m16(warp)] = 0;
        }
        __syncwarp();
    }
    if (later) {
        flash_arrive(&common->weighed[(step - 1) % FLASH_WEIGHTS]);
    }
    flash_exact_end_rows(launch, shared, step, warp, finishes, rows);
}

/** The key tiles of an item, by a score warp whose pair has no m16 tile. */
static __device__ __forceinline__ void flash_exact_skip_tiles(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    uint32_t step = (uint32_t)flash_uniform((int32_t)common->work.step);
    for (;; step++) {
        ptx_mbarrier_wait(&common->full[step % FLASH_SLOTS], step / FLASH_SLOTS % 2);
        if (flash_exact_said(shared, step).key < 0) {
            break;
        }
        if (threadIdx.x % 32 == 0) {
            common->weights[step % FLASH_WEIGHTS].event[flash_own_m16(warp)] = 0;
        }
        flash_arrive(&common->weighed[step % FLASH_WEIGHTS]);
    }
    flash_exact_end_rows(launch, shared, step, warp, false, flash_no_rows());
}

/** A score warp's part of an item. */
static __device__ __forceinline__ void flash_exact_score_item(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    int32_t m16 = flash_uniform(common->work.m16);
    uint32_t held[FLASH_HELD_STEPS][2][4];
    flash_take_queries(common, warp, held);
    if (m16 > warp / 2 + 2) {
        flash_exact_score_tiles<2>(launch, shared, warp, held);
    } else if (m16 > warp / 2) {
        flash_exact_score_tiles<1>(launch, shared, warp, held);
    } else if (m16 > 0) {
        flash_exact_skip_tiles(launch, shared, warp);
    }
}

/** Stores the accumulators of the chunk that has ended. */
static __device__ __forceinline__ void flash_end_chunk(const struct flash_launch &launch,
                                                       const struct flash_work &work, int32_t chunk,
                                                       int32_t warp, const float value[4][8][4]) {
    float4 *partial = launch.partials + (int64_t)(work.slab + chunk) * (FLASH_PARTIAL_BYTES / 16) +
                      warp * 1024 + work.slab_row / FLASH_M16 * 256 + ptx_lane();
    int32_t used = flash_uniform(work.m16);
#pragma unroll
    for (int32_t i = 0; i < 32; i++) {
        const float *v = value[i / 8][i % 8];
        if (i / 8 < used) {
            partial[i * 32] = make_float4(v[0], v[1], v[2], v[3]);
        }
    }
}

/** Waits for the weights of a key tile, and loads what its products begin with.
 * @return whether it has events */
static __device__ __forceinline__ bool flash_exact_await(struct flash_shared *common, uint32_t step,
                                                         int32_t warp, int32_t lane,
                                                         uint32_t place[4][4]) {
    ptx_mbarrier_wait(&common->weighed[step % FLASH_WEIGHTS], step / FLASH_WEIGHTS % 2);
    return flash_begin_tile(&common->weights[step % FLASH_WEIGHTS],
                            flash_value_row(common->keys[step % FLASH_SLOTS], warp, lane), lane,
                            place);
}

/**
 * The key tiles of a chunk, by a value warp, whose accumulators then go to the workspace.
 *
 * @param launch the launch
 * @param shared of the block
 * @param step   number of the chunk's first key tile in the block, whose weights are there
 * @param any    whether that has events
 * @param warp   number of the value warp
 * @param place  what its products begin with; not kept over the stores
 * @return number of the first one after the chunk
 */
template <int32_t m16>
static __device__ __forceinline__ uint32_t
flash_exact_value_chunk(const struct flash_launch &launch, struct flash_exact_shared *shared,
                        uint32_t step, bool any, int32_t warp, uint32_t place[4][4]) {
    struct flash_shared *common = &shared->common;
    const uint32_t stops = FLASH_EVENT_CHUNK | FLASH_EVENT_END;
    float value[4][8][4];
#pragma unroll
    for (int32_t i = 0; i < 128; i++) {
        value[i / 32][i / 4 % 8][i % 4] = 0.0f;
    }
    do {
        const struct flash_weights *weights = &common->weights[step % FLASH_WEIGHTS];
        unsigned char *keys = common->keys[step % FLASH_SLOTS];
        int32_t lane = (int32_t)threadIdx.x % 32;
        const unsigned char *row = flash_value_row(keys, warp, lane);
        uint32_t mark = ptx_opaque(&weights->fragment[0][lane]);
        if (any) {
            flash_rescale(weights, value);
            if ((flash_events(weights) & FLASH_EVENT_ODD) != 0) {
                flash_clear_columns(keys, warp);
            }
            flash_load_places(weights, row, lane, place);
        }
        flash_multiply_values<m16>(weights, row, lane, mark, place, value);
        flash_arrive(&common->spent[step % FLASH_SLOTS]);
        step++;
        any = flash_exact_await(common, step, warp, lane, place);
    } while (!any || (flash_events(&common->weights[step % FLASH_WEIGHTS]) & stops) == 0);
    flash_end_chunk(launch, common->work, flash_exact_said(shared, step).ended, warp, value);
    return step;
}

/** A value warp's part of an item: its one or two, or three or four m16 tiles. */
template <int32_t m16>
static __device__ __forceinline__ void flash_exact_value_item(const struct flash_launch &launch,
                                                              struct flash_exact_shared *shared,
                                                              int32_t warp) {
    struct flash_shared *common = &shared->common;
    uint32_t step = (uint32_t)flash_uniform((int32_t)common->work.step);
    for (;;) {
        uint32_t place[4][4];
        bool any = flash_exact_await(common, step, warp, ptx_lane(), place);
        if ((flash_events(&common->weights[step % FLASH_WEIGHTS]) & FLASH_EVENT_END) != 0) {
            break;
        }
        step = flash_exact_value_chunk<m16>(launch, shared, step, any, warp, place);
    }
    flash_arrive(&common->spent[step % FLASH_SLOTS]);
    if (warp == 0 && ptx_lane() == 0) {
        common->next.step = step + 1;
    }
}

#endif
