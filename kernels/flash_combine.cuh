// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The last kernel of a flash run: merges the chunks of a row tile and stores o and lse.
 *
 * Many chunks: a block takes 16 rows and 16 columns of a row tile, 64 float4 in fragment order; its
 * warps take every eighth chunk, and their sums are added in order. Few chunks: a thread takes one
 * float4 of all chunks, and the first 32 blocks of a row tile suffice.
 */
#ifndef KERNELS_FLASH_COMBINE_CUH
#define KERNELS_FLASH_COMBINE_CUH

#include "flash_block.cuh"

/** Warps of a block. */
#define FLASH_COMBINE_WARPS 8
/** Few chunks: up to so many. */
#define FLASH_COMBINE_FEW 8
/** Blocks of a row tile: [value warp][m16][pair of n8]. */
#define FLASH_COMBINE_BLOCKS 128
/** Chunks of a warp that are loaded at a time. */
#define FLASH_COMBINE_PARTS 4
/** Chunks of a block whose weights are in shared memory at a time. */
#define FLASH_COMBINE_CHUNKS (FLASH_COMBINE_WARPS * FLASH_COMBINE_PARTS)

/** Shared memory of a block. */
struct flash_combine_shared {
    float reference[16];                     /**< Of each row: largest of its chunks. */
    float weight[FLASH_COMBINE_CHUNKS][16];  /**< Of each chunk and row. */
    float4 sums[FLASH_COMBINE_WARPS][2][32]; /**< Of each warp. */
    float total[FLASH_COMBINE_WARPS][16];    /**< Sums of weights. */
};

/** Largest reference of the block's rows: two rows a warp, lanes over chunks. */
static __device__ __forceinline__ void flash_combine_reference(const float2 *states, int32_t chunks,
                                                               float reference[16]) {
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int32_t row = 2 * warp + lane / 16;
    float maximum = -INFINITY;
    for (int32_t chunk = lane % 16; chunk < chunks; chunk += 16) {
        maximum = fmaxf(maximum, states[(int64_t)chunk * FLASH_ROWS + row].x);
    }
    for (int32_t half = 8; half > 0; half /= 2) {
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, half));
    }
    if (lane % 16 == 0) {
        reference[row] = maximum;
    }
}

/** Stores two columns of a row, its total weight known. */
static __device__ __forceinline__ void flash_store(const struct ref_attention &a, int64_t row,
                                                   int32_t head, int32_t column, float x, float y,
                                                   float total) {
    /* Nothing was visible: the total is zero. */
    float low = total == 0.0f ? 0.0f : x / total;
    float high = total == 0.0f ? 0.0f : y / total;
    int64_t index = ref_output_index(&a, row, head, column);
    if (a.o_dtype == REF_BF16) {
        ((uint16_t *)a.o)[index] = ref_bf16_from_f32(low);
        ((uint16_t *)a.o)[index + 1] = ref_bf16_from_f32(high);
    } else {
        ((float *)a.o)[index] = ref_canonical_f32(low);
        ((float *)a.o)[index + 1] = ref_canonical_f32(high);
    }
}

/** Natural (or base 2) log-sum-exp of a row. */
static __device__ __forceinline__ float flash_lse(const struct ref_attention &a, float reference,
                                                  float total) {
    float lse = total == 0.0f ? -INFINITY : reference + log2f(total);
    return ref_canonical_f32(a.lse_base2 ? lse : lse * 0x1.62e43p-1f);
}

static_assert(sizeof(struct flash_combine_shared) <= 101376, "beyond a block of sm_120");

/** A block's rows and columns of a row tile. */
struct flash_piece {
    int32_t m;              /**< m16 tile of the row tile. */
    int32_t column;         /**< First of 16 columns. */
    int32_t chunks;         /**< Of the request. */
    const float2 *states;   /**< Of the first chunk: its 16 rows. */
    const float4 *partials; /**< Of the first chunk: this lane's first float4. */
};

/** Which piece a block has. */
static __device__ __forceinline__ struct flash_piece
flash_find_piece(const struct flash_launch &launch, const struct flash_place &place) {
    int32_t number = (int32_t)(blockIdx.x % FLASH_COMBINE_BLOCKS);
    int64_t item = place.base + place.index * place.cut.chunks;
    struct flash_piece piece;
    piece.m = number / 4 % 4;
    piece.column = number / 16 * 64 + number % 4 * 16;
    piece.chunks = place.cut.chunks;
    piece.states = launch.states + item * FLASH_ROWS + 16 * piece.m;
    piece.partials = launch.partials + item * (FLASH_PARTIAL_BYTES / 16) + number / 16 * 1024 +
                     (piece.m * 8 + number % 4 * 2) * 32 + threadIdx.x % 32;
    return piece;
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
    sum->x += low == 0.0f ? 0.0f : low * v.x;
    sum->y += low == 0.0f ? 0.0f : low * v.y;
    sum->z += high == 0.0f ? 0.0f : high * v.z;
    sum->w += high == 0.0f ? 0.0f : high * v.w;
}

/** Loads this lane's parts of up to 4 chunks of its warp: every eighth from `first`. */
static __device__ __forceinline__ void flash_load_parts(const struct flash_piece &piece,
                                                        int32_t first,
                                                        float4 part[FLASH_COMBINE_PARTS][2]) {
    int32_t warp = (int32_t)threadIdx.x / 32;
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_PARTS; k++) {
        int32_t chunk = first + warp + FLASH_COMBINE_WARPS * k;
        if (chunk < piece.chunks) {
            const float4 *partial = piece.partials + chunk * (FLASH_PARTIAL_BYTES / 16);
            part[k][0] = partial[0];
            part[k][1] = partial[32];
        }
    }
}

/** Weights of some chunks to shared memory; returns this thread's part of their weighted sums. */
static __device__ __forceinline__ float flash_combine_weights(const struct flash_piece &piece,
                                                              int32_t first, int32_t count,
                                                              struct flash_combine_shared *shared) {
    float total = 0.0f;
    for (int32_t i = (int32_t)threadIdx.x; i < count * 16; i += 32 * FLASH_COMBINE_WARPS) {
        float2 state = piece.states[(int64_t)(first + i / 16) * FLASH_ROWS + i % 16];
        float weight = flash_part_weight(state.x, shared->reference[i % 16]);
        shared->weight[i / 16][i % 16] = weight;
        /* A thread's i all have the same row: 256 is a multiple of 16. */
        total += weight * state.y;
    }
    return total;
}

/** Each warp's sum over its chunks, and of their weights, to shared memory. */
static __device__ __forceinline__ void flash_combine_chunks(const struct flash_piece &piece,
                                                            struct flash_combine_shared *shared) {
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    float4 part[FLASH_COMBINE_PARTS][2];
    float4 sum[2] = {make_float4(0, 0, 0, 0), make_float4(0, 0, 0, 0)};
    float total = 0.0f;
    /* On their way while the weights are made. */
    flash_load_parts(piece, 0, part);
    flash_combine_reference(piece.states, piece.chunks, shared->reference);
    __syncthreads();
    for (int32_t first = 0; first < piece.chunks; first += FLASH_COMBINE_CHUNKS) {
        int32_t count = min(piece.chunks - first, FLASH_COMBINE_CHUNKS);
        total += flash_combine_weights(piece, first, count, shared);
        __syncthreads();
#pragma unroll
        for (int32_t k = 0; k < FLASH_COMBINE_PARTS; k++) {
            int32_t chunk = warp + FLASH_COMBINE_WARPS * k;
            if (chunk < count) {
                float low = shared->weight[chunk][lane / 4];
                float high = shared->weight[chunk][lane / 4 + 8];
                flash_add_part(low, high, part[k][0], &sum[0]);
                flash_add_part(low, high, part[k][1], &sum[1]);
            }
        }
        flash_load_parts(piece, first + FLASH_COMBINE_CHUNKS, part);
        __syncthreads();
    }
    total += __shfl_xor_sync(0xffffffffu, total, 16);
    if (lane < 16) {
        shared->total[warp][lane] = total;
    }
    shared->sums[warp][0][lane] = sum[0];
    shared->sums[warp][1][lane] = sum[1];
}

/**
 * Stores a float4 of the merged output: two columns of rows `row` and `row` + 8 of the tile.
 *
 * @param launch    the launch
 * @param place     of the row tile
 * @param row       of the tile
 * @param column    the first
 * @param value     two columns of the first row, then of the second
 * @param totals    sums of the weights of both rows
 * @param reference of both rows
 */
static __device__ __forceinline__ void
flash_store_merged(const struct flash_launch &launch, const struct flash_place &place, int32_t row,
                   int32_t column, float4 value, const float totals[2], const float reference[2]) {
    const struct ref_attention &a = launch.call;
    for (int32_t r = 0; r < 2; r++) {
        int32_t pair = (place.first + place.index) * FLASH_ROWS + row + 8 * r;
        int32_t node = pair / a.num_heads;
        int32_t head = pair % a.num_heads;
        int64_t index = place.first_row + node;
        if (node >= place.nodes || launch.owners[index] != place.request) {
            continue;
        }
        flash_store(a, index, head, column, r ? value.z : value.x, r ? value.w : value.y,
                    totals[r]);
        if (column == 0 && a.lse != NULL) {
            a.lse[index * a.num_heads + head] = flash_lse(a, reference[r], totals[r]);
        }
    }
}

/** Adds the warps' sums, divides and stores. By two warps, an n8 each. */
static __device__ __forceinline__ void
flash_combine_store(const struct flash_launch &launch, const struct flash_piece &piece,
                    const struct flash_place &place, const struct flash_combine_shared *shared) {
    int32_t warp = (int32_t)threadIdx.x / 32;
    int32_t lane = (int32_t)threadIdx.x % 32;
    float4 all = shared->sums[0][warp][lane];
    float totals[2] = {shared->total[0][lane / 4], shared->total[0][lane / 4 + 8]};
    for (int32_t w = 1; w < FLASH_COMBINE_WARPS; w++) {
        float4 v = shared->sums[w][warp][lane];
        all.x += v.x;
        all.y += v.y;
        all.z += v.z;
        all.w += v.w;
        totals[0] += shared->total[w][lane / 4];
        totals[1] += shared->total[w][lane / 4 + 8];
    }
    float reference[2] = {shared->reference[lane / 4], shared->reference[lane / 4 + 8]};
    flash_store_merged(launch, place, piece.m * 16 + lane / 4,
                       piece.column + warp * 8 + lane % 4 * 2, all, totals, reference);
}

/** Few chunks: float4 number `number` of the row tile, by one thread. */
static __device__ __forceinline__ void flash_combine_few(const struct flash_launch &launch,
                                                         const struct flash_place &place,
                                                         int32_t number) {
    int32_t lane = number % 32;
    int32_t row = number / 256 % 4 * 16 + lane / 4;
    int32_t column = number / 1024 * 64 + number / 32 % 8 * 8 + lane % 4 * 2;
    int64_t item = place.base + place.index * place.cut.chunks;
    const float2 *states = launch.states + item * FLASH_ROWS + row;
    const float4 *partials = launch.partials + item * (FLASH_PARTIAL_BYTES / 16) + number;
    float4 part[FLASH_COMBINE_FEW];
    float reference[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_FEW; k++) {
        if (k < place.cut.chunks) {
            part[k] = partials[k * (FLASH_PARTIAL_BYTES / 16)];
            reference[0] = fmaxf(reference[0], states[k * FLASH_ROWS].x);
            reference[1] = fmaxf(reference[1], states[k * FLASH_ROWS + 8].x);
        }
    }
    float4 sum = make_float4(0, 0, 0, 0);
    float totals[2] = {0.0f, 0.0f};
#pragma unroll
    for (int32_t k = 0; k < FLASH_COMBINE_FEW; k++) {
        if (k < place.cut.chunks) {
            float2 upper = states[k * FLASH_ROWS];
            float2 lower = states[k * FLASH_ROWS + 8];
            float low = flash_part_weight(upper.x, reference[0]);
            float high = flash_part_weight(lower.x, reference[1]);
            flash_add_part(low, high, part[k], &sum);
            totals[0] += low * upper.y;
            totals[1] += high * lower.y;
        }
    }
    flash_store_merged(launch, place, row, column, sum, totals, reference);
}

/** Block (row tile, piece): see above. */
__global__ void __launch_bounds__(32 * FLASH_COMBINE_WARPS, 3)
    flash_combine(struct flash_launch launch) {
    KDTR_SHARED_ARRAY(struct flash_combine_shared, shared, 1);
    ptx_grid_wait();
    int32_t tile = launch.first_tile + (int32_t)(blockIdx.x / FLASH_COMBINE_BLOCKS);
    const struct flash_place place = launch.places[tile];
    if (place.request < 0) {
        return;
    }
    if (place.cut.chunks <= FLASH_COMBINE_FEW) {
        int32_t number = (int32_t)(blockIdx.x % FLASH_COMBINE_BLOCKS * blockDim.x + threadIdx.x);
        if (number < FLASH_PARTIAL_BYTES / 16) {
            flash_combine_few(launch, place, number);
        }
        return;
    }
    struct flash_piece piece = flash_find_piece(launch, place);
    flash_combine_chunks(piece, shared);
    __syncthreads();
    if (threadIdx.x < 64) {
        flash_combine_store(launch, piece, place, shared);
    }
}

#endif
