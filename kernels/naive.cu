// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The naive CUDA kernel, in the canonical order of spec/numerics.md: every bit of o and lse equals
 * the reference's. It is an oracle, not a fast kernel: one list and three passes, scores in
 * workspace. Built with -fmad=false, so that products are rounded before they are added.
 *
 * list     for each query row: its owner, visible nodes, and the slot of every visible token
 * scores   one warp a token: lane k accumulates elements k, k + 32, ... (eq-dot)
 * weights  one block a row and head: maximum, exp, block sums of 256 (eq-block-sum)
 * output   one thread a column: block sums of 256 weighted rows, then the division
 */
#include "device.cuh"

#include "exp_log.h"
#include "naive.h"
#include "rows.h"

/** Threads of every block. */
#define BLOCK_THREADS 128
/** Tokens of a block sum (eq-block-sum); the score pass has a block for each as many tokens. */
#define BLOCK_TOKENS 256
/** Largest grid.y. */
#define MAX_GRID_Y 65535

/** The workspace, cut into its arrays; T = max_prefix_len + max_nodes. */
struct naive_workspace {
    int64_t *slots;     /**< [R, T] slot of each visible token. */
    float *weights;     /**< [R, H, T] scores, then weights. */
    float *block_sums;  /**< [R, H, ceil(T / 256)] sums of blocks of weights. */
    float *lse;         /**< [R, H] natural log-sum-exp. */
    float *weight_sums; /**< [R, H] sums of weights. */
    int64_t *tokens;    /**< [R] number of visible tokens; -1: the row is empty. */
    int32_t *nodes;     /**< [R, max_nodes] visible nodes. */
};

static int64_t token_capacity(const struct ref_attention *a) {
    return a->max_prefix_len + a->max_nodes;
}

/** Offsets of the arrays of naive_workspace, and the whole size as the last. */
static int32_t workspace_layout(const struct ref_attention *a, size_t offset[8]) {
    uint64_t rows = (uint64_t)a->row_capacity;
    uint64_t heads = rows * (uint64_t)a->num_heads;
    uint64_t tokens = (uint64_t)token_capacity(a);
    uint64_t blocks = (tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    const uint64_t counts[7][3] = {{rows, tokens, 8},
                                   {heads, tokens, 4},
                                   {heads, blocks, 4},
                                   {heads, 1, 4},
                                   {heads, 1, 4},
                                   {rows, 1, 8},
                                   {rows, (uint64_t)a->max_nodes, 4}};
    offset[0] = 0;
    for (int i = 0; i < 7; i++) {
        uint64_t limit = (uint64_t)SIZE_MAX / 16;
        if (counts[i][0] > limit / counts[i][2] / counts[i][1]) {
            return REF_SIZE_OVERFLOW;
        }
        uint64_t bytes = counts[i][0] * counts[i][1] * counts[i][2];
        offset[i + 1] = offset[i] + (size_t)((bytes + 255) / 256 * 256);
    }
    return REF_OK;
}

extern "C" int32_t attention_naive_cuda_workspace(const struct ref_attention *a, size_t *bytes) {
    size_t offset[8];
    int32_t status = workspace_layout(a, offset);
    *bytes = status == REF_OK ? offset[7] : 0;
    return status;
}

// [list]
/** Block r: owner, visible nodes and slots of query row r; and the status of request r, r + R... */
__global__ void naive_list(struct ref_attention a, struct naive_workspace w) {
    KDTR_SHARED_ARRAY(struct ref_row, shared_row, 1);
    KDTR_SHARED_ARRAY(int64_t, shared_tokens, 1);
    int64_t index = blockIdx.x;
    int32_t *nodes = w.nodes + index * a.max_nodes;
    if (threadIdx.x == 0) {
        struct ref_row row = ref_find_row(&a, index);
        int32_t visible = row.request < 0 ? -1 : ref_visible_nodes(&a, &row, nodes);
        shared_row[0] = row;
        shared_tokens[0] = visible < 0 ? -1 : row.prefix_len + visible;
        w.tokens[index] = shared_tokens[0];
        for (int64_t b = index; a.device_status != NULL && b < a.batch; b += gridDim.x) {
            atomicOr(&a.device_status[b], ref_request_status(&a, (int32_t)b));
        }
    }
    __syncthreads();
    struct ref_row row = shared_row[0];
    int64_t capacity = a.max_prefix_len + a.max_nodes;
    for (int64_t v = threadIdx.x; v < shared_tokens[0]; v += BLOCK_THREADS) {
        w.slots[index * capacity + v] = ref_visible_slot(&a, &row, nodes, v);
    }
}
// [list]

// [scores]
/** Block (r * H + h, y): scores of every gridDim.y-th group of 4 tokens, a warp each (eq-dot). */
__global__ void naive_scores(struct ref_attention a, struct naive_workspace w) {
    int64_t index = blockIdx.x / (unsigned)a.num_heads;
    int32_t head = (int32_t)(blockIdx.x % (unsigned)a.num_heads);
    int64_t capacity = a.max_prefix_len + a.max_nodes;
    int32_t lane = (int32_t)threadIdx.x % 32;
    int64_t warps = (int64_t)gridDim.y * (BLOCK_THREADS / 32);
    int64_t first = (int64_t)blockIdx.y * (BLOCK_THREADS / 32) + threadIdx.x / 32;
    for (int64_t v = first; v < w.tokens[index]; v += warps) {
        int64_t slot = w.slots[index * capacity + v];
        float sum = 0.0f;
        for (int32_t k = lane; k < a.latent_dim + a.rope_dim; k += 32) {
            sum = __fadd_rn(sum, __fmul_rn(ref_query_element(&a, index, head, k),
                                           ref_cache_element(&a, slot, k)));
        }
        for (int32_t half = 16; half > 0; half /= 2) {
            sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, half));
        }
        if (lane == 0) {
            w.weights[(int64_t)blockIdx.x * capacity + v] = __fmul_rn(a.scale, sum);
        }
    }
}
// [scores]

// [weights]
/** Largest score of a row and head by all threads, NaN if a score is NaN or +inf. */
static __device__ float block_maximum(const float *scores, int64_t tokens, float *shared) {
    const float infinity = ref_f32_from_bits(0x7f800000u);
    float maximum = -infinity;
    int not_a_number = 0;
    for (int64_t v = threadIdx.x; v < tokens; v += BLOCK_THREADS) {
        not_a_number |= !(scores[v] < infinity);
        maximum = scores[v] > maximum ? scores[v] : maximum;
    }
    shared[threadIdx.x] = maximum;
    not_a_number = __syncthreads_or(not_a_number);
    for (int32_t half = BLOCK_THREADS / 2; half > 0; half /= 2) {
        if ((int32_t)threadIdx.x < half) {
            float other = shared[threadIdx.x + half];
            shared[threadIdx.x] = other > shared[threadIdx.x] ? other : shared[threadIdx.x];
        }
        __syncthreads();
    }
    return not_a_number ? ref_f32_from_bits(0x7fc00000u) : shared[0];
}

/** Block r * H + h: weights exp(score - maximum), their sum, the log-sum-exp (eq-block-sum). */
__global__ void naive_weights(struct ref_attention a, struct naive_workspace w) {
    KDTR_SHARED_ARRAY(float, shared, BLOCK_THREADS);
    int64_t capacity = a.max_prefix_len + a.max_nodes;
    int64_t blocks = (capacity + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    int64_t tokens = w.tokens[blockIdx.x / (unsigned)a.num_heads];
    float *weights = w.weights + (int64_t)blockIdx.x * capacity;
    float *block_sums = w.block_sums + (int64_t)blockIdx.x * blocks;
    float maximum = block_maximum(weights, tokens, shared);
    float lse = maximum;
    float sum = 0.0f;
    if (maximum == maximum && ref_bits_from_f32(maximum) != 0xff800000u) {
        for (int64_t block = threadIdx.x; block * BLOCK_TOKENS < tokens; block += BLOCK_THREADS) {
            float block_sum = 0.0f;
            for (int64_t v = block * BLOCK_TOKENS; v < tokens && v < (block + 1) * BLOCK_TOKENS;
                 v++) {
                weights[v] = ref_exp_f32(__fsub_rn(weights[v], maximum));
                block_sum = __fadd_rn(block_sum, weights[v]);
            }
            block_sums[block] = block_sum;
        }
        __syncthreads();
        for (int64_t block = 0; threadIdx.x == 0 && block * BLOCK_TOKENS < tokens; block++) {
            sum = __fadd_rn(sum, block_sums[block]);
        }
        lse = __fadd_rn(maximum, ref_log_f32(sum));
    }
    if (threadIdx.x == 0) {
        w.weight_sums[blockIdx.x] = sum;
        w.lse[blockIdx.x] = lse;
        if (a.lse != NULL) {
            a.lse[blockIdx.x] = ref_stored_lse(&a, lse);
        }
    }
}
// [weights]

// [output]
/** Block (r * H + h, y): columns 128 y to 128 y + 127 of o, a thread each (eq-block-sum). */
__global__ void naive_output(struct ref_attention a, struct naive_workspace w) {
    int64_t index = blockIdx.x / (unsigned)a.num_heads;
    int32_t head = (int32_t)(blockIdx.x % (unsigned)a.num_heads);
    int64_t capacity = a.max_prefix_len + a.max_nodes;
    const float *weights = w.weights + (int64_t)blockIdx.x * capacity;
    const int64_t *slots = w.slots + index * capacity;
    float lse = w.lse[blockIdx.x];
    /* NaN and empty rows have no weights to add. */
    int64_t tokens = lse == lse && ref_bits_from_f32(lse) != 0xff800000u ? w.tokens[index] : 0;
    int32_t d = (int32_t)(blockIdx.y * BLOCK_THREADS + threadIdx.x);
    if (d >= a.latent_dim) {
        return;
    }
    float total = 0.0f;
    for (int64_t first = 0; first < tokens; first += BLOCK_TOKENS) {
        float block_sum = 0.0f;
        for (int64_t v = first; v < tokens && v < first + BLOCK_TOKENS; v++) {
            if (weights[v] != 0.0f) { /* a weight of zero contributes nothing */
                block_sum =
                    __fadd_rn(block_sum, __fmul_rn(weights[v], ref_cache_element(&a, slots[v], d)));
            }
        }
        total = __fadd_rn(total, block_sum);
    }
    ref_store_f32(a.o, a.o_dtype, ref_output_index(&a, index, head, d),
                  ref_output_value(lse, total, w.weight_sums[blockIdx.x]));
}
// [output]

extern "C" cudaError_t attention_naive_cuda(const struct ref_attention *a, void *workspace,
                                            cudaStream_t stream) {
    size_t offset[8];
    if (workspace_layout(a, offset) != REF_OK) {
        return cudaErrorInvalidValue;
    }
    unsigned char *base = (unsigned char *)workspace;
    struct naive_workspace w;
    w.slots = (int64_t *)(base + offset[0]);
    w.weights = (float *)(base + offset[1]);
    w.block_sums = (float *)(base + offset[2]);
    w.lse = (float *)(base + offset[3]);
    w.weight_sums = (float *)(base + offset[4]);
    w.tokens = (int64_t *)(base + offset[5]);
    w.nodes = (int32_t *)(base + offset[6]);
    unsigned rows = (unsigned)a->row_capacity;
    unsigned heads = rows * (unsigned)a->num_heads;
    int64_t chunks = (token_capacity(a) + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    unsigned score_blocks = (unsigned)(chunks < MAX_GRID_Y ? chunks : MAX_GRID_Y);
    unsigned column_blocks = ((unsigned)a->latent_dim + BLOCK_THREADS - 1) / BLOCK_THREADS;
    cudaError_t error = KDTR_LAUNCH(naive_list, rows, BLOCK_THREADS, 0, stream, *a, w);
    if (error == cudaSuccess) {
        error =
            KDTR_LAUNCH(naive_scores, dim3(heads, score_blocks), BLOCK_THREADS, 0, stream, *a, w);
    }
    if (error == cudaSuccess) {
        error = KDTR_LAUNCH(naive_weights, heads, BLOCK_THREADS, 0, stream, *a, w);
    }
    if (error == cudaSuccess) {
        error =
            KDTR_LAUNCH(naive_output, dim3(heads, column_blocks), BLOCK_THREADS, 0, stream, *a, w);
    }
    return error;
}

extern "C" cudaError_t attention_naive_cuda_load(void) {
    const void *const kernels[] = {(const void *)naive_list, (const void *)naive_scores,
                                   (const void *)naive_weights, (const void *)naive_output};
    for (const void *kernel : kernels) {
        struct cudaFuncAttributes attributes;
        cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
        if (error != cudaSuccess) {
            return error;
        }
    }
    return cudaSuccess;
}
