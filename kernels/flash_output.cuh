// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Where the combination of a flash run stores o and lse, and how.
 */
#ifndef KERNELS_FLASH_OUTPUT_CUH
#define KERNELS_FLASH_OUTPUT_CUH

#include "flash_block.cuh"

/** A row of a row tile in the output. */
struct flash_output {
    int32_t request; /**< Whose row it is to be. */
    int32_t row;     /**< Query row; -1 past the request's last. */
    int32_t head;    /**< Head. */
    int32_t owner;   /**< Request that owns the row. */
    int64_t index;   /**< Its first column in o. */
};

/** Where row `row` of a row tile goes. The owner is only asked for. */
static __device__ __forceinline__ struct flash_output
flash_find_output(const struct flash_launch &launch, const struct flash_place &place, int32_t row) {
    const struct ref_attention &a = launch.call;
    int32_t pair = (place.first + place.index) * FLASH_ROWS + row;
    int32_t node = flash_quotient(pair, a.num_heads);
    struct flash_output output;
    output.request = place.request;
    output.head = pair - node * a.num_heads;
    output.row = node < place.nodes ? place.first_row + node : -1;
    output.owner = output.row < 0 ? -1 : launch.owners[output.row];
    output.index = ref_output_index(&a, output.row, output.head, 0);
    return output;
}

/** Natural (or base 2) log-sum-exp of a row. */
static __device__ __forceinline__ float flash_lse(const struct ref_attention &a, float reference,
                                                  float total) {
    float lse = total == 0.0f ? -INFINITY : reference + log2f(total);
    return ref_canonical_f32(a.lse_base2 ? lse : lse * 0x1.62e43p-1f);
}

/**
 * Stores two columns of the merged output of a row, and with the first its lse.
 *
 * @param a         the call
 * @param output    where the row goes
 * @param column    the first
 * @param value     the columns, not yet divided
 * @param total     sum of the weights
 * @param reference of the row
 */
static __device__ __forceinline__ void flash_store(const struct ref_attention &a,
                                                   const struct flash_output &output,
                                                   int32_t column, float2 value, float total,
                                                   float reference) {
    if (output.row < 0 || output.owner != output.request) {
        return;
    }
    /* Nothing was visible: the total is zero. */
    float low = total == 0.0f ? 0.0f : value.x / total;
    float high = total == 0.0f ? 0.0f : value.y / total;
    int64_t index = output.index + column;
    if (a.o_dtype == REF_BF16) {
        ((uint16_t *)a.o)[index] = ref_bf16_from_f32(low);
        ((uint16_t *)a.o)[index + 1] = ref_bf16_from_f32(high);
    } else {
        ((float *)a.o)[index] = ref_canonical_f32(low);
        ((float *)a.o)[index + 1] = ref_canonical_f32(high);
    }
    if (column == 0 && a.lse != NULL) {
        a.lse[(int64_t)output.row * a.num_heads + output.head] = flash_lse(a, reference, total);
    }
}

#endif
