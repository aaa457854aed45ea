// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Where the combination of a flash run stores o and lse, and how.
 */
#ifndef KERNELS_FLASH_OUTPUT_CUH
#define KERNELS_FLASH_OUTPUT_CUH

#include "flash_block.cuh"

/** Two rows of a row tile, r and r + 8, in the output. */
struct flash_output {
    int32_t request;  /**< Whose rows they are to be. */
    int32_t row[2];   /**< Query row; -1 past the request's last. */
    int32_t head[2];  /**< Head. */
    int32_t owner[2]; /**< Request that owns the row. */
};

/** Where rows `row` and `row` + 8 of a row tile go. The owners are only asked for. */
static __device__ __forceinline__ struct flash_output
flash_find_output(const struct flash_launch &launch, const struct flash_place &place, int32_t row) {
    const struct ref_attention &a = launch.call;
    struct flash_output output;
    output.request = place.request;
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        int32_t pair = (place.first + place.index) * FLASH_ROWS + row + 8 * r;
        int32_t node = pair / a.num_heads;
        output.head[r] = pair % a.num_heads;
        output.row[r] = node < place.nodes ? place.first_row + node : -1;
        output.owner[r] = output.row[r] < 0 ? -1 : launch.owners[output.row[r]];
    }
    return output;
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

/**
 * Stores a float4 of the merged output: two columns of two rows.
 *
 * @param a         the call
 * @param output    where the rows go
 * @param column    the first
 * @param value     two columns of the first row, then of the second
 * @param totals    sums of the weights of both rows
 * @param reference of both rows
 */
static __device__ __forceinline__ void
flash_store_merged(const struct ref_attention &a, const struct flash_output &output, int32_t column,
                   float4 value, const float totals[2], const float reference[2]) {
#pragma unroll
    for (int32_t r = 0; r < 2; r++) {
        if (output.row[r] < 0 || output.owner[r] != output.request) {
            continue;
        }
        flash_store(a, output.row[r], output.head[r], column, r ? value.z : value.x,
                    r ? value.w : value.y, totals[r]);
        if (column == 0 && a.lse != NULL) {
            a.lse[(int64_t)output.row[r] * a.num_heads + output.head[r]] =
                flash_lse(a, reference[r], totals[r]);
        }
    }
}

#endif
