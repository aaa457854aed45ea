// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The last kernel of a flash run: merges the chunks of a row tile and stores o and lse.
 *
 * Many chunks: a block takes pieces of 16 rows and 8, 16 or 32 columns of a row tile, whose partial
 * outputs lie there as float4 in fragment order; its warps take every eighth chunk, and their sums
 * are added in order. Few chunks: a thread takes four float4 of all chunks.
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
/** A row tile's float4, and those of them that a thread takes where chunks are few. */
#define FLASH_COMBINE_FLOAT4 ((int32_t)(FLASH_PARTIAL_BYTES / 16))
#define FLASH_COMBINE_QUAD 4 /**< See FLASH_COMBINE_FLOAT4. */
/** Of few chunks, those of a thread that are on their way at a time. */
#define FLASH_COMBINE_AHEAD 2
/** Blocks an SM of a launch, about, at most: a block takes more row tiles where there are more. */
#define FLASH_COMBINE_BLOCKS 8
/** Of many chunks, those of a thread that are on their way at a time: what registers allow. */
#define FLASH_COMBINE_LOADS(width) ((width) == 4 ? 2 : 7 / (width))
/** Widest piece in n8 tiles: 8 columns each. */
#define FLASH_COMBINE_WIDEST 4
/** Chunks that the threads of a row look at at a time: 16 rows, FLASH_COMBINE_THREADS threads. */
#define FLASH_COMBINE_STRIDE (FLASH_COMBINE_THREADS / FLASH_M16)
/** Chunks of a thread whose states it keeps. */
#define FLASH_COMBINE_STATES ((FLASH_CHUNKS + FLASH_COMBINE_STRIDE - 1) / FLASH_COMBINE_STRIDE)

/** Shared memory of a block. */
struct flash_combine_shared {
    float weight[FLASH_CHUNKS][FLASH_M16];                      /**< Of each chunk and row. */
    float4 sums[FLASH_COMBINE_WARPS][FLASH_COMBINE_WIDEST][32]; /**< Of each warp. */
    float maximum[FLASH_COMBINE_WARPS][FLASH_M16]; /**< References: largest of each warp's. */
    float total[FLASH_COMBINE_WARPS][FLASH_M16];   /**< Sums of weights. */
};

static_assert(sizeof(struct flash_combine_shared) <= 101376, "beyond a block of sm_120");

/** How many blocks a row tile has in a launch, and how wide pieces are: so that one row tile keeps
 * all SMs busy, and many do not make more blocks than that. */
struct flash_combine_grid {
    int32_t width;  /**< Of a piece, in n8 tiles: 1, 2 or 4. */
    int32_t blocks; /**< Of a row tile. */
};

/** @param tiles row tiles of the wave. @return the grid */
static inline struct flash_combine_grid flash_combine_grid_of(int32_t tiles) {
    struct flash_combine_grid grid;
    grid.width = tiles <= 2 ? 1 : tiles <= 4 ? 2 : FLASH_COMBINE_WIDEST;
    grid.blocks = tiles <= 4 ? 256 / grid.width : tiles <= 16 ? 64 : tiles <= 32 ? 32 : 8;
    return grid;
}

/** Weight of a chunk: its reference against the largest. */
static __device__ __forceinline__ float flash_part_weight(float own, float largest) {
    if (own == -INFINITY) {
        return 0.0f;
    }
    return own == largest ? 1.0f : ptx_exp2(own - largest);
}

/** Adds v, if it counts at all: a chunk in which nothing is visible may hold anything. */
static __device__ __forceinline__ void flash_add_part(float low, float high, float4 v,
                                                      float4 *sum) {
    sum->x = low == 0.0f ? sum->x : fmaf(low, v.x, sum->x);
    sum->y = low == 0.0f ? sum->y : fmaf(low, v.y, sum->y);
    sum->z = high == 0.0f ? sum->z : fmaf(high, v.z, sum->z);
    sum->w = high == 0.0f ? sum->w : fmaf(high, v.w, sum->w);
}

/** A block's rows and columns of a row tile. */
struct flash_piece {
    int32_t row;            /**< First of 16 rows. */
    int32_t column;         /**< First column. */
    int32_t chunks;         /**< Of the request. */
    const float2 *states;   /**< Of this thread's first chunk: its row. */
    const float4 *partials; /**< Of this warp's first chunk: this lane's first float4. */
};

/** Piece number `number` of a row tile: [value warp][m16][n8 tiles]. */
template <int32_t width>
static __device__ __forceinline__ struct flash_piece
flash_find_piece(const struct flash_launch &launch, const struct flash_place &place,
                 int32_t number) {
    int64_t item = place.base + place.index * place.cut.chunks;
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t n8 = number % (8 / width) * width;
    int32_t m = number / (8 / width) % 4;
    int32_t value_warp = number / (32 / width);
    struct flash_piece piece;
    piece.row = m * FLASH_M16;
    piece.column = value_warp * 64 + n8 * 8;
    piece.chunks = place.cut.chunks;
    piece.states = launch.states + (item + threadIdx.x / FLASH_M16) * FLASH_ROWS + piece.row +
                   lane % FLASH_M16;
    piece.partials = launch.partials + (item + warp) * FLASH_COMBINE_FLOAT4 + value_warp * 1024 +
                     (m * 8 + n8) * 32 + lane;
    return piece;
}

/** States of the chunks of a thread: row t mod 16 and every sixteenth chunk from t / 16. */
static __device__ __forceinline__ void flash_load_states(const struct flash_piece &piece,
                                                         float2 state[FLASH_COMBINE_STATES]) {
    int32_t first = (int32_t)threadIdx.x / FLASH_M16;
#pragma unroll
    for (int32_t i = 0; i < FLASH_COMBINE_STATES; i++) {
        state[i] = make_float2(-INFINITY, 0.0f);
        if (first + FLASH_COMBINE_STRIDE * i < piece.chunks) {
            state[i] = piece.states[FLASH_COMBINE_STRIDE * FLASH_ROWS * i];
        }
    }
}

/** Weights of all chunks and their sums, to shared memory. */
static __device__ __forceinline__ void
flash_combine_weights(const struct flash_piece &piece, const float2 state[FLASH_COMBINE_STATES],
                      struct flash_combine_shared *shared) {
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t row = lane % FLASH_M16;
    int32_t first = (int32_t)threadIdx.x / FLASH_M16;
    float maximum = -INFINITY;
#pragma unroll
    for (int32_t i = 0; i < FLASH_COMBINE_STATES; i++) {
        maximum = fmaxf(maximum, state[i].x);
    }
    maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, 16));
    if (lane < FLASH_M16) {
        shared->maximum[warp][row] = maximum;
    }
    __syncthreads();
#pragma unroll
    for (int32_t w = 0; w < FLASH_COMBINE_WARPS; w++) {
        maximum = fmaxf(maximum, shared->maximum[w][row]);
    }
    float total = 0.0f;
#pragma unroll
    for (int32_t i = 0; i < FLASH_COMBINE_STATES; i++) {
        int32_t chunk = first + FLASH_COMBINE_STRIDE * i;
        if (chunk < piece.chunks) {
            float weight = flash_part_weight(state[i].x, maximum);
            shared->weight[chunk][row] = weight;
            total += weight * state[i].y;
        }
    }
    total += __shfl_xor_sync(0xffffffffu, total, 16);
    if (lane < FLASH_M16) {
        shared->total[warp][row] = total;
    }
    __syncthreads();
}

/** Adds the warps' sums, divides and stores. By as many warps as a piece has n8 tiles, one each. */
static __device__ __forceinline__ void
flash_combine_store(const struct ref_attention &a, const struct flash_piece &piece,
                    const struct flash_output &output, const struct flash_combine_shared *shared) {
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    float4 all = make_float4(0, 0, 0, 0);
    float totals[2] = {0.0f, 0.0f};
    float reference[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int32_t w = 0; w < FLASH_COMBINE_WARPS; w++) {
        float4 v = shared->sums[w][warp][lane];
        all.x += v.x;
        all.y += v.y;
        all.z += v.z;
        all.w += v.w;
#pragma unroll
        for (int32_t r = 0; r < 2; r++) {
            totals[r] += shared->total[w][lane / 4 + 8 * r];
            reference[r] = fmaxf(reference[r], shared->maximum[w][lane / 4 + 8 * r]);
        }
    }
    flash_store_merged(a, output, piece.column + warp * 8 + lane % 4 * 2, all, totals, reference);
}

/** Loads this lane's part of its warp's chunk k, if there is one. */
template <int32_t width>
static __device__ __forceinline__ void flash_load_part(const float4 *partial, int32_t k,
                                                       int32_t count, float4 part[width]) {
    if (k < count) {
#pragma unroll
        for (int32_t n = 0; n < width; n++) {
            part[n] = partial[k * FLASH_COMBINE_WARPS * FLASH_COMBINE_FLOAT4 + n * 32];
        }
    }
}

/** Many chunks: one piece, by the block. */
template <int32_t width>
static __device__ __forceinline__ void
flash_combine_many(const struct flash_launch &launch, const struct flash_place &place,
                   int32_t number, struct flash_combine_shared *shared) {
    const int32_t ahead = FLASH_COMBINE_LOADS(width);
    struct flash_piece piece = flash_find_piece<width>(launch, place, number);
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t count = (piece.chunks - warp + FLASH_COMBINE_WARPS - 1) / FLASH_COMBINE_WARPS;
    const float4 *partial = piece.partials;
    float4 part[ahead][width];
    float2 state[FLASH_COMBINE_STATES];
    /* Everything that depends on nothing else is asked for first, what is needed first before. */
    flash_load_states(piece, state);
#pragma unroll
    for (int32_t k = 0; k < ahead; k++) {
        flash_load_part<width>(partial, k, count, part[k]);
    }
    struct flash_output output = flash_find_output(launch, place, piece.row + lane / 4);
    flash_combine_weights(piece, state, shared);
    float4 sum[width];
#pragma unroll
    for (int32_t n = 0; n < width; n++) {
        sum[n] = make_float4(0, 0, 0, 0);
    }
    const float *weight = shared->weight[warp] + lane / 4;
    for (; count > 0; count -= ahead) {
        partial += ahead * FLASH_COMBINE_WARPS * FLASH_COMBINE_FLOAT4;
#pragma unroll
        for (int32_t k = 0; k < ahead; k++) {
            if (k < count) {
                float low = weight[k * FLASH_COMBINE_WARPS * FLASH_M16];
                float high = weight[k * FLASH_COMBINE_WARPS * FLASH_M16 + 8];
#pragma unroll
                for (int32_t n = 0; n < width; n++) {
                    flash_add_part(low, high, part[k][n], &sum[n]);
                }
            }
            flash_load_part<width>(partial, k, count - ahead, part[k]);
        }
        weight += ahead * FLASH_COMBINE_WARPS * FLASH_M16;
    }
#pragma unroll
    for (int32_t n = 0; n < width; n++) {
        shared->sums[warp][n][lane] = sum[n];
    }
    __syncthreads();
    if (warp < width) {
        flash_combine_store(launch.call, piece, output, shared);
    }
    __syncthreads(); /* before the next piece */
}

/** Few chunks: four float4 of the row tile, 32 apart from `number`, by one thread. */
static __device__ __forceinline__ void flash_combine_few(const struct flash_launch &launch,
                                                         const struct flash_place &place,
                                                         int32_t number) {
    int32_t lane = number % 32;
    int32_t row = number / 256 % 4 * FLASH_M16 + lane / 4;
    int32_t column = number / 1024 * 64 + number / 32 % 8 * 8 + lane % 4 * 2;
    int64_t item = place.base + place.index * place.cut.chunks;
    const float2 *states = launch.states + item * FLASH_ROWS + row;
    const float4 *partials = launch.partials + item * FLASH_COMBINE_FLOAT4 + number;
    const int32_t ahead = FLASH_COMBINE_AHEAD;
    float4 part[ahead][FLASH_COMBINE_QUAD];
    float reference[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_FEW; k++) {
        if (k < place.cut.chunks) {
#pragma unroll
            for (int32_t n = 0; n < FLASH_COMBINE_QUAD && k < ahead; n++) {
                part[k][n] = partials[k * FLASH_COMBINE_FLOAT4 + n * 32];
            }
            reference[0] = fmaxf(reference[0], states[k * FLASH_ROWS].x);
            reference[1] = fmaxf(reference[1], states[k * FLASH_ROWS + 8].x);
        }
    }
    struct flash_output output = flash_find_output(launch, place, row);
    float4 sum[FLASH_COMBINE_QUAD];
#pragma unroll
    for (int32_t n = 0; n < FLASH_COMBINE_QUAD; n++) {
        sum[n] = make_float4(0, 0, 0, 0);
    }
    float totals[2] = {0.0f, 0.0f};
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_FEW; k++) {
        if (k >= place.cut.chunks) {
            break;
        }
        float2 upper = states[k * FLASH_ROWS];
        float2 lower = states[k * FLASH_ROWS + 8];
        float low = flash_part_weight(upper.x, reference[0]);
        float high = flash_part_weight(lower.x, reference[1]);
        totals[0] += low * upper.y;
        totals[1] += high * lower.y;
#pragma unroll
        for (int32_t n = 0; n < FLASH_COMBINE_QUAD; n++) {
            flash_add_part(low, high, part[k % ahead][n], &sum[n]);
            if (k + ahead < FLASH_COMBINE_FEW && k + ahead < place.cut.chunks) {
                part[k % ahead][n] = partials[(k + ahead) * FLASH_COMBINE_FLOAT4 + n * 32];
            }
        }
    }
#pragma unroll
    for (int32_t n = 0; n < FLASH_COMBINE_QUAD; n++) {
        flash_store_merged(launch.call, output, column + n * 8, sum[n], totals, reference);
    }
}

/** Block `block` of `blocks` of a row tile. */
template <int32_t width>
static __device__ __forceinline__ void
flash_combine_tile(const struct flash_launch &launch, const struct flash_place &place,
                   int32_t block, int32_t blocks, struct flash_combine_shared *shared) {
    int32_t m16 = flash_m16(place.nodes * launch.call.num_heads, 1, place.first + place.index);
    if (place.cut.chunks <= FLASH_COMBINE_FEW) {
        int32_t first = block * FLASH_COMBINE_THREADS + (int32_t)threadIdx.x;
        int32_t number = first / 32 * 32 * FLASH_COMBINE_QUAD + first % 32;
#pragma unroll 1
        for (; number < FLASH_COMBINE_FLOAT4;
             number += blocks * FLASH_COMBINE_THREADS * FLASH_COMBINE_QUAD) {
            if (number / 256 % 4 < m16) {
                flash_combine_few(launch, place, number);
            }
        }
        return;
    }
#pragma unroll 1
    for (int32_t number = block; number < 256 / width; number += blocks) {
        if (number / (8 / width) % 4 < m16) {
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
#pragma unroll 1
    for (; tile < launch.end_tile; tile += (int32_t)gridDim.y) {
        const struct flash_place place = launch.places[tile];
        if (place.request < 0) {
            break;
        }
        flash_combine_tile<width>(launch, place, (int32_t)blockIdx.x, (int32_t)gridDim.x, shared);
    }
}

#endif
