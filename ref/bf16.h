// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Element types and the bfloat16 conversions, by integer code that is the same on host and device
 * (spec/numerics.md, section "bfloat16").
 */
#ifndef REF_BF16_H
#define REF_BF16_H

#include <stdint.h>
#include <string.h>

#include "inline.h"

/** Element types; the values are those of the bundle format (spec/bundle_format.md). */
enum ref_dtype {
    REF_U8 = 1,   /**< uint8 */
    REF_I32 = 2,  /**< int32 */
    REF_U32 = 3,  /**< uint32 */
    REF_I64 = 4,  /**< int64 */
    REF_BF16 = 5, /**< bfloat16, stored as uint16 */
    REF_F32 = 6,  /**< float */
    REF_F64 = 7   /**< double */
};

/** The bits of a float. @param x any value @return its IEEE 754 encoding */
REF_INLINE uint32_t ref_bits_from_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/** The float of these bits. @param bits an IEEE 754 encoding @return its value */
REF_INLINE float ref_f32_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** bfloat16 to float, exact. @param h encoding @return its value */
REF_INLINE float ref_f32_from_bf16(uint16_t h) {
    return ref_f32_from_bits((uint32_t)h << 16);
}

/**
 * float to bfloat16, round to nearest, ties to even; overflow goes to infinity; NaN is 0x7fc0;
 * zero is +0.
 *
 * @param x any value
 * @return the bfloat16 encoding
 */
REF_INLINE uint16_t ref_bf16_from_f32(float x) {
    uint32_t bits = ref_bits_from_f32(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fc0;
    }
    /* Adding half an ulp, less one where the kept part is even, rounds ties to even. */
    uint16_t h = (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    return (h & 0x7fffu) == 0 ? (uint16_t)0 : h;
}

/** A float as stored: NaN is 0x7fc00000, zero is +0. @param x any value @return stored form */
REF_INLINE float ref_canonical_f32(float x) {
    if (x != x) {
        return ref_f32_from_bits(0x7fc00000u);
    }
    return x == 0.0f ? 0.0f : x;
}

/**
 * Element of a float32 or bfloat16 array.
 *
 * @param base  the array
 * @param dtype REF_F32 or REF_BF16
 * @param index element number
 * @return its value as float
 */
REF_INLINE float ref_load_f32(const void *base, int32_t dtype, int64_t index) {
    return dtype == REF_BF16 ? ref_f32_from_bf16(((const uint16_t *)base)[index])
                             : ((const float *)base)[index];
}

/**
 * Stores a result in canonical form.
 *
 * @param base  the array
 * @param dtype REF_F32 or REF_BF16
 * @param index element number
 * @param x     value
 */
REF_INLINE void ref_store_f32(void *base, int32_t dtype, int64_t index, float x) {
    if (dtype == REF_BF16) {
        ((uint16_t *)base)[index] = ref_bf16_from_f32(x);
    } else {
        ((float *)base)[index] = ref_canonical_f32(x);
    }
}

/**
 * Element of an int32 or int64 array.
 *
 * @param base  the array
 * @param dtype REF_I32 or REF_I64
 * @param index element number
 * @return its value
 */
REF_INLINE int64_t ref_load_index(const void *base, int32_t dtype, int64_t index) {
    return dtype == REF_I64 ? ((const int64_t *)base)[index]
                            : (int64_t)((const int32_t *)base)[index];
}

#endif
