// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The value warps of a flash block: O = P V. Warp v owns columns 64 v to 64 v + 63 of all 64
 * rows: 128 accumulators a lane.
 */
#ifndef KERNELS_FLASH_VALUES_CUH
#define KERNELS_FLASH_VALUES_CUH

#include "flash_queries.cuh"
#include "flash_rows.cuh"

/** Whether the value warps lack registers, as the compiler allots them: then they load some things
 * again that they would keep. A build may say which: the emulator runs both. */
#ifndef FLASH_LOADS_AGAIN
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define FLASH_LOADS_AGAIN 1
#else
#define FLASH_LOADS_AGAIN 0
#endif
#endif

/** Clears the elements of two bf16 that are not finite. */
static __device__ __forceinline__ uint32_t flash_finite(uint32_t pair) {
    pair = (pair & 0x7f80u) == 0x7f80u ? pair & 0xffff0000u : pair;
    return (pair & 0x7f800000u) == 0x7f800000u ? pair & 0xffffu : pair;
}

/**
 * Clears what is not finite in this warp's columns of a key tile. A row that sees such a key has a
 * score, and so a weight, that says so; to the others it must not matter, and 0 * NaN is NaN.
 */
static __device__ __forceinline__ void flash_clear_columns(unsigned char *keys, int32_t warp) {
    int32_t lane = ptx_lane();
#pragma unroll 1
    for (int32_t key = 0; key < FLASH_KEYS; key++) {
        uint32_t *pair = (uint32_t *)(keys + key * FLASH_PITCH + warp * 128) + lane;
        *pair = flash_finite(*pair);
    }
    ptx_fence_async();
    __syncwarp();
}

/** Multiplies accumulators by the factors of their rows. */
static __device__ __forceinline__ void flash_rescale(const struct flash_weights *weights,
                                                     float value[4][8][4]) {
    int32_t row = ptx_lane() / 4;
#pragma unroll
    for (int32_t m = 0; m < 4; m++) {
        if ((weights->event[m] & FLASH_EVENT_FACTORS) != 0) {
            float low = weights->factor[16 * m + row];
            float high = weights->factor[16 * m + row + 8];
#pragma unroll
            for (int32_t n = 0; n < 8; n++) {
                value[m][n][0] *= low;
                value[m][n][1] *= low;
                value[m][n][2] *= high;
                value[m][n][3] *= high;
            }
        }
    }
}

/** What the events of a key tile ask for, of all its m16 tiles together. */
static __device__ __forceinline__ uint32_t flash_events(const struct flash_weights *weights) {
    const uint4 events = *(const uint4 *)weights->event;
    return events.x | events.y | events.z | events.w;
}

/** First of this lane's addresses of a key tile's values. */
static __device__ __forceinline__ const unsigned char *flash_value_row(const unsigned char *keys,
                                                                       int32_t warp, int32_t lane) {
    return keys + lane % 16 * FLASH_PITCH + (warp * 64 + lane / 16 * 8) * 2;
}

/** Loads what the products of a key tile begin with. */
static __device__ __forceinline__ void flash_load_places(const struct flash_weights *weights,
                                                         const unsigned char *row, int32_t lane,
                                                         uint32_t place[4][4]) {
    ptx_load_shared(place[2], &weights->fragment[0][lane]);
    ptx_ldmatrix_trans(place[0], row);
    ptx_ldmatrix_trans(place[1], row + 32);
}

/**
 * Loads what the products of a key tile begin with.
 *
 * @return whether the tile has events, to the whole warp
 */
static __device__ __forceinline__ bool flash_begin_tile(const struct flash_weights *weights,
                                                        const unsigned char *row, int32_t lane,
                                                        uint32_t place[4][4]) {
    uint32_t event[4];
    /* What most tiles need comes first, then the question whether this one needs more. */
    ptx_load_shared(event, weights->event);
    flash_load_places(weights, row, lane, place);
    return __any_sync(0xffffffffu, (event[0] | event[1] | event[2] | event[3]) != 0);
}

/**
 * O += P V for a key tile, by the first m16 tiles; the last of them may have no weights.
 *
 * Half of the columns at a time, and weights one m16 tile ahead: that is four fragments, and there
 * are registers for no more. The second half goes through the m16 tiles backwards, and so begins
 * with the weights that the first one ended with; its keys come in the place of weights then.
 *
 * @param weights the tile's
 * @param row     flash_value_row
 * @param lane    number of the lane
 * @param mark    ptx_opaque of an address
 * @param place   flash_load_places
 * @param value   accumulators
 */
template <int32_t m16>
static __device__ __forceinline__ void
flash_multiply_values(const struct flash_weights *weights, const unsigned char *row, int32_t lane,
                      uint32_t mark, uint32_t place[4][4], float value[4][8][4]) {
    static_assert(m16 % 2 == 0, "the places of weights alternate");
#pragma unroll
    for (int32_t i = 0; i < 2 * m16; i++) {
        int32_t half = i / m16;
        int32_t m = half == 0 ? i : 2 * m16 - 1 - i;
        /* Keys are in places 0 and 1, then 2 and 0; weights in the other two, in turn. */
        int32_t first = half * 2;
        int32_t second = 1 - half;
        int32_t weight = half == 0 ? 2 + i % 2 : 3 - i % 2 * 2;
        if (i + 1 == m16) {
            ptx_ldmatrix_trans(place[2], row + 64);
        } else if (i + 1 < 2 * m16) {
            ptx_load_shared(place[half == 0 ? 3 - i % 2 : 1 + i % 2 * 2],
                            &weights->fragment[half == 0 ? m + 1 : m - 1][lane]);
        }
        /* Keeps the loads ahead of the products: the compiler would sink them to their use. */
        ptx_keep_order(mark == 1u + (uint32_t)i);
        const uint32_t *a = place[weight];
        ptx_mma(value[m][4 * half], a, place[first][0], place[first][1]);
        ptx_mma(value[m][4 * half + 1], a, place[first][2], place[first][3]);
        if (i + 1 == m16) {
            ptx_ldmatrix_trans(place[0], row + 96);
        }
        ptx_mma(value[m][4 * half + 2], a, place[second][0], place[second][1]);
        ptx_mma(value[m][4 * half + 3], a, place[second][2], place[second][3]);
    }
}

/**
 * Values of a key tile, and its events. With `again` it loads again what it has no registers to
 * keep.
 *
 * @param weights the tile's
 * @param keys    slot of the ring
 * @param warp    number of the value warp
 * @param value   accumulators
 */
template <int32_t m16, bool again = FLASH_LOADS_AGAIN>
static __device__ __forceinline__ void flash_add_values(const struct flash_weights *weights,
                                                        unsigned char *keys, int32_t warp,
                                                        float value[4][8][4]) {
    int32_t lane = again ? ptx_lane() : (int32_t)threadIdx.x % 32;
    const unsigned char *row = flash_value_row(keys, warp, lane);
    uint32_t place[4][4];
    uint32_t mark = ptx_opaque(&weights->fragment[0][lane]);
    if (flash_begin_tile(weights, row, lane, place)) {
        flash_rescale(weights, value);
        if ((flash_events(weights) & FLASH_EVENT_ODD) != 0) {
            flash_clear_columns(keys, warp);
            if (!again) {
                ptx_ldmatrix_trans(place[0], row);
                ptx_ldmatrix_trans(place[1], row + 32);
            }
        }
        if (again) {
            flash_load_places(weights, row, ptx_lane(), place);
        }
    }
    flash_multiply_values<m16>(weights, row, lane, mark, place, value);
}

/**
 * A value warp's part of an item: its one or two, or three or four m16 tiles. An odd last one has
 * whatever weights there are, and what comes of it is not stored.
 *
 * @param launch the launch
 * @param shared of the block
 * @param warp   number of the value warp
 */
template <int32_t m16>
static __device__ __forceinline__ void flash_value_item(const struct flash_launch &launch,
                                                        struct flash_shared *shared, int32_t warp) {
    float value[4][8][4];
#pragma unroll
    for (int32_t i = 0; i < 128; i++) {
        value[i / 32][i / 4 % 8][i % 4] = 0.0f;
    }
    uint32_t step = (uint32_t)flash_uniform((int32_t)shared->work.step);
    uint32_t end = step + (uint32_t)flash_uniform(shared->work.end_tile - shared->work.first_tile);
    for (; step < end; step++) {
        const struct flash_weights *weights = &shared->weights[step % FLASH_WEIGHTS];
        unsigned char *keys = shared->keys[step % FLASH_SLOTS];
        ptx_mbarrier_wait(&shared->weighed[step % FLASH_WEIGHTS], step / FLASH_WEIGHTS % 2);
        flash_add_values<m16>(weights, keys, warp, value);
        flash_arrive(&shared->spent[step % FLASH_SLOTS]);
        if (FLASH_LOADS_AGAIN) {
            const struct flash_work &work = shared->work;
            end = work.step + (uint32_t)(work.end_tile - work.first_tile);
        }
    }
    float4 *partial = launch.partials + (int64_t)shared->work.slab * (FLASH_PARTIAL_BYTES / 16) +
                      warp * 1024 + shared->work.slab_row / FLASH_M16 * 256 + ptx_lane();
    int32_t used = flash_uniform(shared->work.m16);
#pragma unroll
    for (int32_t i = 0; i < 8 * m16; i++) {
        if (i / 8 >= used) {
            break;
        }
        float *v = value[i / 8][i % 8];
        partial[i * 32] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

/** Rows and row tiles of the run, by all value warps of the grid but the first of each block. */
static __device__ __forceinline__ void flash_prepare_rows(const struct flash_launch &launch,
                                                          int32_t warp) {
    int64_t count = launch.call.row_capacity + launch.row_tiles;
    int32_t warps = FLASH_VALUE_WARPS - 1;
#pragma unroll 1
    /* The last blocks first: their chunks are the shorter ones. */
    for (int64_t i = (int64_t)(gridDim.x - 1 - blockIdx.x) * warps + warp; i < count;
         i += (int64_t)gridDim.x * warps) {
        flash_prepare(launch, NULL, 0, i);
    }
}

/** A value warp's whole life; the first one also finds the block's items, each ahead of time. */
static __device__ __forceinline__ void
flash_value_items(const struct flash_launch &launch, struct flash_shared *shared, int32_t warp) {
    for (;;) {
        bool more = shared->work.slab >= 0;
        if (more) {
            flash_load_queries(launch, shared, warp);
        }
        if (warp > 0 && launch.prepares && shared->work.item == (int32_t)blockIdx.x) {
            /* Weights are not there for some time yet. */
            flash_prepare_rows(launch, warp - 1);
        }
        if (!more) {
            break;
        }
        if (warp == 0) {
            flash_find_next(launch, shared);
        }
        int32_t m16 = flash_uniform(shared->work.m16);
        if (m16 > 2) {
            flash_value_item<4>(launch, shared, warp);
        } else if (m16 > 0) {
            flash_value_item<2>(launch, shared, warp);
        }
        if (warp == 0) {
            flash_end_item(shared);
            flash_begin_item(shared);
        } else {
            flash_next_item(shared);
        }
    }
}

#endif
