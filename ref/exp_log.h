// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * exp and log of the canonical arithmetic (spec/numerics.md, "exp and log"): explicit fmaf, + and *
 * and integer operations only, so that gcc, clang, x86, Arm and the GPU give the same bits.
 *
 * The coefficients are weighted least-maximum fits on the reduced ranges, each rounded to float32
 * before the next was fitted. Worst errors over all inputs are in spec/numerics.md.
 */
#ifndef REF_EXP_LOG_H
#define REF_EXP_LOG_H

#include <math.h>

#include "bf16.h"

/** Weights at and below this argument are +0: the float32 nearest to ln 2^-126. */
#define REF_EXP_UNDERFLOW (-0x1.5d58ap+6f)
/** Above this argument the result overflows: the largest float32 not above ln FLT_MAX. */
#define REF_EXP_OVERFLOW 0x1.62e42ep+6f

/** 2^k. @param k -126 to 127 @return 2^k */
REF_INLINE float ref_power_of_two(int32_t k) {
    return ref_f32_from_bits((uint32_t)(k + 127) << 23);
}

/**
 * e^x. Below REF_EXP_UNDERFLOW the result is +0; NaN gives NaN.
 *
 * @param x any value
 * @return e^x within 1 ulp
 */
REF_INLINE float ref_exp_f32(float x) {
    if (x != x) {
        return x;
    }
    if (x < REF_EXP_UNDERFLOW) {
        return 0.0f;
    }
    if (x > REF_EXP_OVERFLOW) {
        return ref_f32_from_bits(0x7f800000u);
    }
    /* x = n ln 2 + r: adding and taking off 1.5 * 2^23 rounds x log2(e) to an integer. */
    const float round_to_integer = 0x1.8p23f;
    float n = fmaf(x, 0x1.715476p+0f, round_to_integer) - round_to_integer;
    float r = fmaf(n, -0x1.62e4p-1f, x);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.6a524ep-10f;
    p = fmaf(p, r, 0x1.12396ep-7f);
    p = fmaf(p, r, 0x1.5558aap-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r, 1.0f);
    float e = fmaf(p, r, 1.0f);
    /* 2^n in two factors: n reaches 128, which one float32 factor does not hold. */
    int32_t k = (int32_t)n;
    int32_t half = k / 2;
    return (e * ref_power_of_two(half)) * ref_power_of_two(k - half);
}

/**
 * Natural logarithm. 0 gives -inf, a negative number or NaN gives NaN, +inf gives +inf.
 *
 * @param x any value
 * @return ln x within 1 ulp
 */
REF_INLINE float ref_log_f32(float x) {
    if (!(x > 0.0f)) {
        return ref_f32_from_bits(x == 0.0f ? 0xff800000u : 0x7fc00000u);
    }
    int32_t bits = (int32_t)ref_bits_from_f32(x);
    int32_t e = 0;
    if (bits == 0x7f800000) {
        return x;
    }
    if (bits < 0x00800000) { /* denormal: scale by 2^23 first */
        bits = (int32_t)ref_bits_from_f32(x * 0x1p23f);
        e = -23;
    }
    /* x = 2^e m with m in [sqrt(1/2), sqrt(2)); 0x3f3504f3 is sqrt(1/2). */
    int32_t k = (bits - 0x3f3504f3) >> 23;
    e += k;
    float f = ref_f32_from_bits((uint32_t)(bits - (int32_t)((uint32_t)k << 23))) - 1.0f;
    float f_squared = f * f;
    float p = -0x1.38c9d4p-4f;
    p = fmaf(p, f, 0x1.055ec4p-3f);
    p = fmaf(p, f, -0x1.0d8242p-3f);
    p = fmaf(p, f, 0x1.22d92ep-3f);
    p = fmaf(p, f, -0x1.54728ap-3f);
    p = fmaf(p, f, 0x1.99a01cp-3f);
    p = fmaf(p, f, -0x1.000226p-2f);
    p = fmaf(p, f, 0x1.555554p-2f);
    float y = (f * f_squared) * p;
    float exponent = (float)e;
    y = fmaf(exponent, 0x1.7f7d1cp-20f, y);
    y = fmaf(-0.5f, f_squared, y);
    return fmaf(exponent, 0x1.62e4p-1f, f + y);
}

#endif
