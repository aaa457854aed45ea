// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The last kernel of a flash run: merges the chunks of a row tile and stores o and lse.
 *
 * Many chunks: a block takes pieces of 16 rows and 8, 16 or 32 columns of a row tile, whose partial
 * outputs lie there as float4 in fragment order; its warps take every eighth chunk, and their sums
 * are added in order. Few chunks: a block takes 32 columns of all rows, a thread two float4.
 *
 * A block runs its code once, and waits longer for instructions than it takes to run them: so what
 * can be a loop is one.
 */
#ifndef KERNELS_FLASH_COMBINE_CUH
#define KERNELS_FLASH_COMBINE_CUH

#include "flash_output.cuh"

/** Warps of a block. */
#define FLASH_COMBINE_WARPS 8
/** Threads of a block. */
#define FLASH_COMBINE_THREADS (32 * FLASH_COMBINE_WARPS)
/** Few chunks: up to so many. */
#define FLASH_COMBINE_FEW 8
/** A row tile's float4, and those of them that a thread takes where chunks are few: n8 tiles. */
#define FLASH_COMBINE_FLOAT4 ((int32_t)(FLASH_PARTIAL_BYTES / 16))
#define FLASH_COMBINE_PAIR 2 /**< See FLASH_COMBINE_FLOAT4. */
/** Of few chunks, those of a thread that are on their way at a time. */
#define FLASH_COMBINE_AHEAD 4
/** Columns of a block where chunks are few. */
#define FLASH_COMBINE_COLUMNS 32
/** Blocks an SM of a launch, about, at most: a block takes more row tiles where there are more. */
#define FLASH_COMBINE_BLOCKS 8
/** Of many chunks, those of a thread that are on their way at a time: what registers allow. */
#define FLASH_COMBINE_LOADS(width) ((width) == 4 ? 2 : (width) == 2 ? 4 : 7)
/** Widest piece in n8 tiles: 8 columns each. */
#define FLASH_COMBINE_WIDEST 4
/** States of a thread: of 16 rows and all chunks, or of 64 and few. */
#define FLASH_COMBINE_STATES(rows) \
    (((rows) == FLASH_ROWS ? FLASH_COMBINE_FEW : FLASH_CHUNKS) * (rows) / FLASH_COMBINE_THREADS)

/** Shared memory of a block. */
struct flash_combine_shared {
    float2 state[FLASH_CHUNKS * FLASH_M16]; /**< [chunk][row] Reference, then weight; sum. */
    float4 sums[FLASH_COMBINE_WARPS][FLASH_COMBINE_WIDEST][32]; /**< Of each warp. */
    float maximum[FLASH_COMBINE_THREADS]; /**< References: largest of each thread's chunks. */
    float total[FLASH_COMBINE_THREADS];   /**< Sums of weights, likewise. */
};

static_assert(sizeof(struct flash_combine_shared) <= 49152, "beyond static shared memory");
static_assert(FLASH_COMBINE_FEW * FLASH_ROWS <= FLASH_CHUNKS * FLASH_M16, "states of few chunks");

/** How many blocks a row tile has in a launch, and how wide pieces are: so that one row tile keeps
 * all SMs busy, and many do not make more blocks than that. */
struct flash_combine_grid {
    int32_t width;  /**< Of a piece, in n8 tiles: 1, 2 or 4. */
    int32_t blocks; /**< Of a row tile. */
};

/**
 * The grid of a wave. It fits the requests that the plan expects; with others it takes longer.
 *
 * @param tiles  row tiles of the wave
 * @param chunks of a request at the plan's limits
 * @return the grid
 */
static inline struct flash_combine_grid flash_combine_grid_of(int32_t tiles, int32_t chunks) {
    struct flash_combine_grid grid;
    grid.width = tiles <= 2 ? 1 : tiles <= 4 ? 2 : FLASH_COMBINE_WIDEST;
    grid.blocks = tiles <= 4 ? 256 / grid.width : tiles <= 16 ? 64 : tiles <= 32 ? 32 : 8;
    /* Few chunks keep no more blocks busy than this. */
    grid.blocks = chunks <= FLASH_COMBINE_FEW
                      ? FLASH_LATENT / FLASH_COMBINE_COLUMNS / (tiles > 32 ? 2 : 1)
                      : grid.blocks;
    return grid;
}

/** Weight of a chunk: its reference against the largest. */
static __device__ __forceinline__ float flash_part_weight(float own, float largest) {
    float weight = ptx_exp2(own - largest); /* exactly 1 where they are equal */
    return own == -INFINITY ? 0.0f : own == largest ? 1.0f : weight;
}

/** Adds v, if it counts at all: a chunk in which nothing is visible may hold anything. */
static __device__ __forceinline__ void flash_add_part(float low, float high, float4 v,
                                                      float4 *sum) {
    sum->x = low == 0.0f ? sum->x : fmaf(low, v.x, sum->x);
    sum->y = low == 0.0f ? sum->y : fmaf(low, v.y, sum->y);
    sum->z = high == 0.0f ? sum->z : fmaf(high, v.z, sum->z);
    sum->w = high == 0.0f ? sum->w : fmaf(high, v.w, sum->w);
}

/**
 * States of a thread: of `rows` rows of a row tile row t mod rows, and of the chunks every
 * (threads / rows)th from t / rows.
 *
 * @param states of the first row in the first chunk
 * @param chunks of the request
 * @param state  `count` of them, filled; -inf where there is no chunk
 */
template <int32_t rows, int32_t count>
static __device__ __forceinline__ void flash_load_states(const float2 *states, int32_t chunks,
                                                         float2 state[count]) {
    const int32_t stride = FLASH_COMBINE_THREADS / rows;
    int32_t first = (int32_t)threadIdx.x / rows;
    states += first * FLASH_ROWS + (int32_t)threadIdx.x % rows;
#pragma unroll
    for (int32_t i = 0; i < count; i++) {
        state[i] = make_float2(-INFINITY, 0.0f);
        if (first + stride * i < chunks) {
            state[i] = states[stride * i * FLASH_ROWS];
        }
    }
}

/** Largest of the threads' references of a row. */
template <int32_t rows, class shared_of_block>
static __device__ __forceinline__ float flash_row_reference(const shared_of_block *shared,
                                                            int32_t row) {
    float maximum = -INFINITY;
#pragma unroll
    for (int32_t i = 0; i < FLASH_COMBINE_THREADS; i += rows) {
        maximum = fmaxf(maximum, shared->maximum[i + row]);
    }
    return maximum;
}

/** Sum of the threads' weights of a row. */
template <int32_t rows, class shared_of_block>
static __device__ __forceinline__ float flash_row_total(const shared_of_block *shared,
                                                        int32_t row) {
    float total = 0.0f;
#pragma unroll
    for (int32_t i = 0; i < FLASH_COMBINE_THREADS; i += rows) {
        total += shared->total[i + row];
    }
    return total;
}

/** Weights of all chunks and their sums, to shared memory, of so many states of a thread. */
template <int32_t rows, int32_t states, class shared_of_block>
static __device__ __forceinline__ void
flash_combine_weights(int32_t chunks, const float2 state[states], shared_of_block *shared) {
    int32_t row = (int32_t)threadIdx.x % rows;
    float maximum = -INFINITY;
#pragma unroll
    for (int32_t i = 0; i < states; i++) {
        /* [chunk][row] is [i][thread]. */
        shared->state[i * FLASH_COMBINE_THREADS + threadIdx.x] = state[i];
        maximum = fmaxf(maximum, state[i].x);
    }
    shared->maximum[threadIdx.x] = maximum;
    __syncthreads();
    maximum = flash_row_reference<rows>(shared, row);
    float total = 0.0f;
#pragma unroll 1
    for (int32_t i = (int32_t)threadIdx.x; i < chunks * rows; i += FLASH_COMBINE_THREADS) {
        float2 own = shared->state[i];
        own.x = flash_part_weight(own.x, maximum);
        shared->state[i].x = own.x;
        total += own.x * own.y;
    }
    shared->total[threadIdx.x] = total;
    __syncthreads();
}

/** Loads this lane's part of its warp's chunk k, if there is one: `stride` chunks apart. */
template <int32_t width>
static __device__ __forceinline__ void flash_load_part(const float4 *partial, int32_t k,
                                                       int32_t count, int32_t stride,
                                                       float4 part[width]) {
    if (k < count) {
#pragma unroll
        for (int32_t n = 0; n < width; n++) {
            part[n] = partial[k * stride * FLASH_COMBINE_FLOAT4 + n * 32];
        }
    }
}

/** Adds a warp's chunks of a piece, every eighth from its first one; `part` has the first ones. */
template <int32_t width>
static __device__ __forceinline__ void
flash_add_chunks(const float4 *partial, const float2 *weight, int32_t count,
                 float4 part[FLASH_COMBINE_LOADS(width)][width], float4 sum[width]) {
    const int32_t ahead = FLASH_COMBINE_LOADS(width);
#pragma unroll
    for (int32_t n = 0; n < width; n++) {
        sum[n] = make_float4(0, 0, 0, 0);
    }
#pragma unroll 1
    for (; count > 0; count -= ahead) {
        partial += ahead * FLASH_COMBINE_WARPS * FLASH_COMBINE_FLOAT4;
#pragma unroll
        for (int32_t k = 0; k < ahead; k++) {
            if (k < count) {
                float low = weight[k * FLASH_COMBINE_WARPS * FLASH_M16].x;
                float high = weight[k * FLASH_COMBINE_WARPS * FLASH_M16 + 8].x;
#pragma unroll
                for (int32_t n = 0; n < width; n++) {
                    flash_add_part(low, high, part[k][n], &sum[n]);
                }
            }
            flash_load_part<width>(partial, k, count - ahead, FLASH_COMBINE_WARPS, part[k]);
        }
        weight += ahead * FLASH_COMBINE_WARPS * FLASH_M16;
    }
}

/** Adds the warps' sums of two columns of a row, and stores them. By 32 threads a row half and n8
 * tile: warp w has n8 tile w / 2 and rows lane / 4 + 8 (w % 2). */
static __device__ __forceinline__ void
flash_combine_store(const struct ref_attention &a, const struct flash_output &output,
                    int32_t column, const struct flash_combine_shared *shared) {
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    float2 all = make_float2(0, 0);
#pragma unroll
    for (int32_t w = 0; w < FLASH_COMBINE_WARPS; w++) {
        float2 v = ((const float2 *)&shared->sums[w][warp / 2][lane])[warp % 2];
        all.x += v.x;
        all.y += v.y;
    }
    int32_t row = lane / 4 + 8 * (warp % 2);
    flash_store(a, output, column + warp / 2 * 8 + lane % 4 * 2, all,
                flash_row_total<FLASH_M16>(shared, row),
                flash_row_reference<FLASH_M16>(shared, row));
}

/**
 * Many chunks: piece number `number` of a row tile, [value warp][m16][n8 tiles], by the block.
 */
template <int32_t width>
static __device__ __forceinline__ void
flash_combine_many(const struct flash_launch &launch, const struct flash_place &place,
                   int32_t number, struct flash_combine_shared *shared) {
    int32_t chunks = place.cut.chunks;
    int32_t slab = place.base + place.index * chunks;
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t n8 = number % (8 / width) * width;
    int32_t m = number / (8 / width) % 4;
    int32_t value_warp = number / (32 / width);
    const float4 *partial = launch.partials + (int64_t)(slab + warp) * FLASH_COMBINE_FLOAT4 +
                            value_warp * 1024 + (m * 8 + n8) * 32 + lane;
    int32_t count = (chunks - warp + FLASH_COMBINE_WARPS - 1) / FLASH_COMBINE_WARPS;
    float4 part[FLASH_COMBINE_LOADS(width)][width];
    float2 state[FLASH_COMBINE_STATES(FLASH_M16)];
    /* Everything that depends on nothing else is asked for first, what is needed first before. */
    flash_load_states<FLASH_M16, FLASH_COMBINE_STATES(FLASH_M16)>(
        launch.states + (int64_t)slab * FLASH_ROWS + m * FLASH_M16, chunks, state);
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_LOADS(width); k++) {
        flash_load_part<width>(partial, k, count, FLASH_COMBINE_WARPS, part[k]);
    }
    struct flash_output output = {};
    if (warp < 2 * width) {
        output = flash_find_output(launch, place, m * FLASH_M16 + lane / 4 + 8 * (warp % 2));
    }
    flash_combine_weights<FLASH_M16, FLASH_COMBINE_STATES(FLASH_M16)>(chunks, state, shared);
    float4 sum[width];
    flash_add_chunks<width>(partial, shared->state + warp * FLASH_M16 + lane / 4, count, part, sum);
#pragma unroll
    for (int32_t n = 0; n < width; n++) {
        shared->sums[warp][n][lane] = sum[n];
    }
    __syncthreads();
    if (warp < 2 * width) {
        flash_combine_store(launch.call, output, value_warp * 64 + n8 * 8, shared);
    }
    __syncthreads(); /* before the next piece */
}

/** Few chunks: the columns from 32 `number`, all rows, by the block; warp w has m16 tile w / 2, and
 * of the four n8 tiles two from 2 (w % 2). */
static __device__ __forceinline__ void flash_combine_few(const struct flash_launch &launch,
                                                         const struct flash_place &place,
                                                         int32_t number, int32_t m16,
                                                         struct flash_combine_shared *shared) {
    int32_t chunks = place.cut.chunks;
    int32_t slab = place.base + place.index * chunks;
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    const float4 *partial =
        launch.partials + (int64_t)slab * FLASH_COMBINE_FLOAT4 + number / 2 * 1024 +
        (warp / 2 * 8 + number % 2 * 4 + warp % 2 * FLASH_COMBINE_PAIR) * 32 + lane;
    int32_t count = warp / 2 < m16 ? chunks : 0;
    float4 part[FLASH_COMBINE_AHEAD][FLASH_COMBINE_PAIR];
    float2 state[FLASH_COMBINE_STATES(FLASH_ROWS)];
    flash_load_states<FLASH_ROWS, FLASH_COMBINE_STATES(FLASH_ROWS)>(
        launch.states + (int64_t)slab * FLASH_ROWS, chunks, state);
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_AHEAD; k++) {
        flash_load_part<FLASH_COMBINE_PAIR>(partial, k, count, 1, part[k]);
    }
    flash_combine_weights<FLASH_ROWS, FLASH_COMBINE_STATES(FLASH_ROWS)>(chunks, state, shared);
    int32_t row = warp / 2 * FLASH_M16 + lane / 4;
    float4 sum[FLASH_COMBINE_PAIR];
#pragma unroll
    for (int32_t n = 0; n < FLASH_COMBINE_PAIR; n++) {
        sum[n] = make_float4(0, 0, 0, 0);
    }
#pragma unroll 1
    for (int32_t first = 0; first < count; first += FLASH_COMBINE_AHEAD) {
#pragma unroll
        for (int32_t k = 0; k < FLASH_COMBINE_AHEAD; k++) {
            if (first + k < count) {
                float low = shared->state[(first + k) * FLASH_ROWS + row].x;
                float high = shared->state[(first + k) * FLASH_ROWS + row + 8].x;
#pragma unroll
                for (int32_t n = 0; n < FLASH_COMBINE_PAIR; n++) {
                    flash_add_part(low, high, part[k][n], &sum[n]);
                }
            }
            flash_load_part<FLASH_COMBINE_PAIR>(partial, first + k + FLASH_COMBINE_AHEAD, count, 1,
                                                part[k]);
        }
    }
    int32_t column = number * FLASH_COMBINE_COLUMNS + warp % 2 * 16 + lane % 4 * 2;
#pragma unroll 1
    for (int32_t r = 0; r < 2 && count > 0; r++) {
        struct flash_output output = flash_find_output(launch, place, row + 8 * r);
        float total = flash_row_total<FLASH_ROWS>(shared, row + 8 * r);
        float reference = flash_row_reference<FLASH_ROWS>(shared, row + 8 * r);
#pragma unroll
        for (int32_t n = 0; n < FLASH_COMBINE_PAIR; n++) {
            flash_store(launch.call, output, column + n * 8,
                        r == 0 ? make_float2(sum[n].x, sum[n].y) : make_float2(sum[n].z, sum[n].w),
                        total, reference);
        }
    }
    __syncthreads(); /* before the next piece */
}

/** Block `block` of `blocks` of a row tile. */
template <int32_t width>
static __device__ __forceinline__ void
flash_combine_tile(const struct flash_launch &launch, const struct flash_place &place,
                   int32_t block, int32_t blocks, struct flash_combine_shared *shared) {
    int32_t m16 = flash_m16(place.nodes * launch.call.num_heads, 1, place.first + place.index);
    bool few = place.cut.chunks <= FLASH_COMBINE_FEW;
#pragma unroll 1
    for (int32_t number = block;
         number < (few ? FLASH_LATENT / FLASH_COMBINE_COLUMNS : 256 / width); number += blocks) {
        if (few) {
            flash_combine_few(launch, place, number, m16, shared);
        } else if (number / (8 / width) % 4 < m16) {
            flash_combine_many<width>(launch, place, number, shared);
        }
    }
}

/**
 * Blocks of row y of the grid walk over row tiles y, ... Of the row tiles that the plan has room
 * for, those in use come first.
 */
template <int32_t width>
__global__ void __launch_bounds__(FLASH_COMBINE_THREADS, 2)
    flash_combine(struct flash_launch launch) {
    KDTR_SHARED_ARRAY(struct flash_combine_shared, shared, 1);
    int32_t tile = launch.first_tile + (int32_t)blockIdx.y;
    ptx_grid_wait();
    struct flash_place place = launch.places[tile]; /* a first row tile there is */
    while (place.request >= 0) {
        flash_combine_tile<width>(launch, place, (int32_t)blockIdx.x, (int32_t)gridDim.x, shared);
        tile += (int32_t)gridDim.y;
        if (tile >= launch.end_tile) {
            break;
        }
        place = launch.places[tile];
    }
}

#endif
