// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Exact mode: the check of its condition E8. A row of an mma must have the same bits whatever
 * stands in the other rows, and in whichever of the 16 rows it stands itself; a row of zeros must
 * leave its sums as they are; and a sum must not depend on the other columns, nor on what a zero of
 * its row is multiplied by.
 */
#ifndef KERNELS_FLASH_EXACT_CHECK_CUH
#define KERNELS_FLASH_EXACT_CHECK_CUH

#include "flash_block.cuh"
#include "random.h"

/** What the other rows hold, in turn: NaN, infinities, huge, denormal and other numbers, 0. */
#define FLASH_CHECK_KINDS 6
/** mma that follow each other, each adding to the sums of the one before. */
#define FLASH_CHECK_CHAIN 3

/** A bf16 of the check: sign, exponent around that of 1, or far from it, and mantissa; or 0. */
static __device__ __forceinline__ uint32_t flash_check_value(uint64_t bits) {
    uint32_t spread = bits >> 32 & 1 ? 7 : 63;
    uint32_t exponent = 127 - spread / 2 + (uint32_t)(bits >> 8) % spread;
    uint32_t value = (uint32_t)(bits & 0x807f) | exponent << 7;
    return bits >> 40 & 7 ? value : 0;
}

/** A bf16 of the rows that are not looked at. */
static __device__ __forceinline__ uint32_t flash_check_other(int32_t kind, uint64_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000);
    switch (kind) {
    case 0:
        return sign | 0x7fc0u;
    case 1:
        return sign | 0x7f80u;
    case 2:
        return sign | 0x7f7fu;
    case 3:
        return sign | (uint32_t)(bits & 0x7f);
    case 4:
        return flash_check_value(bits);
    default:
        return sign;
    }
}

/** One variant of the check, of one warp: numbers, which rows stay, and where they stand. */
struct flash_check {
    uint64_t seed;  /**< Of the numbers. */
    uint32_t stays; /**< Bit q: row q is as in the first variant. */
    int32_t shift;  /**< Row q stands in place (q - shift) mod 16. */
    int32_t kind;   /**< What the other rows hold. */
};

/** Element of a at place `row` of the tile, in mma `step`. */
static __device__ __forceinline__ uint32_t flash_check_a(const struct flash_check &check,
                                                         int32_t step, int32_t row,
                                                         int32_t column) {
    int32_t q = (row + check.shift) % FLASH_M16;
    uint64_t bits = ref_random(check.seed + (uint64_t)step, (uint64_t)(q * 16 + column));
    return check.stays >> q & 1 ? flash_check_value(bits) : flash_check_other(check.kind, bits);
}

/** The sums of a variant, as the lane has them. */
static __device__ __forceinline__ void flash_check_multiply(const struct flash_check &check,
                                                            float sum[4]) {
    int32_t row = ptx_lane() / 4;
    int32_t column = ptx_lane() % 4 * 2;
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        int32_t q = (row + i / 2 * 8 + check.shift) % FLASH_M16;
        bool stays = check.stays >> q & 1;
        uint64_t bits = ref_random(check.seed + 100, (uint64_t)(q * 8 + column + i % 2));
        uint32_t high = stays ? flash_check_value(bits) : flash_check_other(check.kind, bits);
        sum[i] = ref_f32_from_bits(high << 16 | (uint32_t)(stays ? bits >> 48 : 0));
    }
#pragma unroll 1
    for (int32_t step = 0; step < FLASH_CHECK_CHAIN; step++) {
        uint32_t a[4];
        uint32_t b[2];
#pragma unroll
        for (int32_t i = 0; i < 4; i++) {
            int32_t r = row + i % 2 * 8;
            int32_t k = column + i / 2 * 8;
            a[i] = flash_check_a(check, step, r, k) | flash_check_a(check, step, r, k + 1) << 16;
        }
#pragma unroll
        for (int32_t i = 0; i < 2; i++) {
            uint64_t bits =
                ref_random(check.seed + 200 + (uint64_t)step, (uint64_t)(ptx_lane() * 2 + i));
            b[i] = flash_check_value(bits) | flash_check_value(ref_random(bits, 1)) << 16;
        }
        ptx_mma(sum, a, b[0], b[1]);
    }
}

/** Counts the sums of rows that stay and differ from `first`, in this lane. */
static __device__ __forceinline__ uint32_t flash_check_compare(const struct flash_check &check,
                                                               const float first[4],
                                                               const float sum[4]) {
    int32_t lane = ptx_lane();
    uint32_t differing = 0;
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        int32_t q = (lane / 4 + i / 2 * 8 + check.shift) % FLASH_M16;
        int32_t source = q % 8 * 4 + lane % 4;
        float low = __shfl_sync(0xffffffffu, first[i % 2], source);
        float high = __shfl_sync(0xffffffffu, first[i % 2 + 2], source);
        uint32_t want = ref_bits_from_f32(q < 8 ? low : high);
        differing += (check.stays >> q & 1) && ref_bits_from_f32(sum[i]) != want ? 1 : 0;
    }
    return differing;
}

/** A sum of the check, of any exponent: finite. */
static __device__ __forceinline__ uint32_t flash_check_sum(uint64_t bits) {
    uint32_t value = (uint32_t)(bits >> 8);
    return (value & 0x7f800000u) == 0x7f800000u ? value ^ 0x00800000u : value;
}

/** A finite bf16 of the check, of any exponent. */
static __device__ __forceinline__ uint32_t flash_check_finite(uint64_t bits) {
    return flash_check_sum(bits) >> 16;
}

/** Counts the sums that an mma by rows of zeros has changed, in this lane: b has numbers of any
 * exponent, a zero may change its sign. */
static __device__ __forceinline__ uint32_t flash_check_idle(uint64_t seed) {
    float sum[4];
    float before[4];
    uint32_t b[2];
    uint32_t differing = 0;
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        uint64_t bits = ref_random(seed, (uint64_t)(ptx_lane() * 4 + i));
        sum[i] = before[i] = ref_f32_from_bits(flash_check_sum(bits));
    }
#pragma unroll
    for (int32_t i = 0; i < 2; i++) {
        uint64_t bits = ref_random(seed + 1, (uint64_t)(ptx_lane() * 2 + i));
        b[i] = flash_check_finite(bits) | flash_check_finite(ref_random(bits, 2)) << 16;
    }
    const uint32_t zeros[4] = {0, 0, 0, 0};
    ptx_mma(sum, zeros, b[0], b[1]);
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        differing += sum[i] != before[i] ? 1 : 0;
    }
    return differing;
}

/** An element of b, at row k and column n: of one column the first variant's, but where a is 0;
 * of the others anything. */
static __device__ __forceinline__ uint32_t flash_check_b(uint64_t seed, bool first, uint32_t zeros,
                                                         int32_t kept, int32_t k, int32_t n) {
    uint64_t own = ref_random(seed + 1, (uint64_t)(k * 8 + n));
    uint64_t other = ref_random(seed + 2, (uint64_t)(k * 8 + n));
    if (first || (n == kept && (zeros >> k & 1) == 0)) {
        return flash_check_value(own);
    }
    return n == kept ? flash_check_finite(other)
                     : flash_check_other((int32_t)(seed % FLASH_CHECK_KINDS), other);
}

/** Sums of an mma whose a is 0 at the same places of all rows. */
static __device__ __forceinline__ void flash_check_column(uint64_t seed, bool first, uint32_t zeros,
                                                          int32_t kept, float sum[4]) {
    uint32_t a[4];
    uint32_t b[2];
    int32_t k = ptx_lane() % 4 * 2;
    int32_t row = ptx_lane() / 4;
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        sum[i] = ref_f32_from_bits(
            flash_check_value(ref_random(seed + 3, (uint64_t)(ptx_lane() * 4 + i))) << 16);
        a[i] = 0;
#pragma unroll
        for (int32_t e = 0; e < 2; e++) {
            int32_t at = k + e + i / 2 * 8;
            uint64_t bits = ref_random(seed + 4, (uint64_t)((row + i % 2 * 8) * 16 + at));
            a[i] |= (zeros >> at & 1 ? 0 : flash_check_value(bits)) << 16 * e;
        }
    }
#pragma unroll
    for (int32_t i = 0; i < 2; i++) {
        b[i] = flash_check_b(seed, first, zeros, kept, k + 8 * i, row) |
               flash_check_b(seed, first, zeros, kept, k + 8 * i + 1, row) << 16;
    }
    ptx_mma(sum, a, b[0], b[1]);
}

/** Counts the sums of one column that depend on the others, or on what a zero is multiplied by. */
static __device__ __forceinline__ uint32_t flash_check_columns(uint64_t seed) {
    float first[4];
    float sum[4];
    uint32_t differing = 0;
    uint64_t bits = ref_random(seed, 0);
    uint32_t zeros = (uint32_t)(bits >> 8) & 0xffffu;
    int32_t kept = (int32_t)(bits % 8);
    flash_check_column(seed, true, zeros, kept, first);
    flash_check_column(seed, false, zeros, kept, sum);
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        bool counts = ptx_lane() % 4 * 2 + i % 2 == kept;
        differing += counts && sum[i] != first[i] ? 1 : 0;
    }
    return differing;
}

/** A warp a block: all kinds of neighbours and all places of a row, with the block's numbers. */
__global__ void flash_exact_check(uint32_t *differing) {
    float first[4];
    uint32_t count = 0;
    struct flash_check check = {1000 * (uint64_t)(blockIdx.x + 1), 0xffffu, 0, 0};
    flash_check_multiply(check, first);
#pragma unroll 1
    for (int32_t i = 0; i < FLASH_M16 * FLASH_CHECK_KINDS; i++) {
        float sum[4];
        check.shift = i % FLASH_M16;
        check.kind = i / FLASH_M16;
        check.stays = (uint32_t)ref_random(check.seed + 300, (uint64_t)i) & 0xffffu;
        check.stays |= 1u << (i % 7);
        flash_check_multiply(check, sum);
        count += flash_check_compare(check, first, sum);
        count += flash_check_idle(check.seed + 400 + (uint64_t)(2 * i));
        count += flash_check_columns(1000 * check.seed + 10 * (uint64_t)i);
    }
    if (count > 0) {
        atomicAdd(differing, count);
    }
}

#endif
