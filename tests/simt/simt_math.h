// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Device intrinsics that need no other thread: rounded arithmetic, bit casts, bit counts, min and
 * max, atomics. Included by simt.h; C++. Names and meanings are CUDA's.
 *
 * The _rn functions are plain operators, right only with -ffp-contract=off.
 */
#ifndef SIMT_MATH_H
#define SIMT_MATH_H

#include <stdint.h>
#include <string.h>

/** @name Arithmetic, rounded to nearest even, one rounding each */
/**@{*/
/** Sum. @param a addend @param b addend @return a + b */
static inline float __fadd_rn(float a, float b) {
    return a + b;
}
/** Difference. @param a minuend @param b subtrahend @return a - b */
static inline float __fsub_rn(float a, float b) {
    return a - b;
}
/** Product. @param a factor @param b factor @return a * b */
static inline float __fmul_rn(float a, float b) {
    return a * b;
}
/** Quotient. @param a dividend @param b divisor @return a / b */
static inline float __fdiv_rn(float a, float b) {
    return a / b;
}
/** Square root. @param a not negative @return its root */
static inline float __fsqrt_rn(float a) {
    return __builtin_sqrtf(a);
}
/** Fused. @param a factor @param b factor @param c addend @return a * b + c, rounded once */
static inline float __fmaf_rn(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
/**@}*/

/**
 * Reinterprets the bytes of a value.
 * @param value any value
 * @return a value of another type with the same bytes
 */
template <class To, class From> static inline To simt_bit_cast(From value) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To result;
    memcpy(&result, &value, sizeof(result));
    return result;
}

/** @name Bit casts */
/**@{*/
/** Bits. @param a value @return its encoding */
static inline unsigned __float_as_uint(float a) {
    return simt_bit_cast<unsigned>(a);
}
/** Bits. @param a value @return its encoding */
static inline int __float_as_int(float a) {
    return simt_bit_cast<int>(a);
}
/** Value. @param a encoding @return the float */
static inline float __uint_as_float(unsigned a) {
    return simt_bit_cast<float>(a);
}
/** Value. @param a encoding @return the float */
static inline float __int_as_float(int a) {
    return simt_bit_cast<float>(a);
}
/**@}*/

/** @name Bit counts: __clz(0) is 32, __ffs(0) is 0 */
/**@{*/
/** Set bits. @param a word @return their number */
static inline int __popc(unsigned a) {
    return __builtin_popcount(a);
}
/** Set bits. @param a word @return their number */
static inline int __popcll(unsigned long long a) {
    return __builtin_popcountll(a);
}
/** Leading zeros. @param a word @return their number, 32 for 0 */
static inline int __clz(int a) {
    return a == 0 ? 32 : __builtin_clz((unsigned)a);
}
/** Lowest set bit. @param a word @return its place from 1 on, 0 for 0 */
static inline int __ffs(int a) {
    return __builtin_ffs(a);
}
/** Reverses. @param a word @return its bits in the opposite order */
static inline unsigned __brev(unsigned a) {
    unsigned result = 0;
    for (int bit = 0; bit < 32; bit++) {
        result |= (a >> bit & 1U) << (31 - bit);
    }
    return result;
}
/**@}*/

/**
 * A load through the read-only cache.
 * @param pointer device memory
 * @return its value
 */
template <class T> static inline T __ldg(const T *pointer) {
    return *pointer;
}

/** @name Minimum and maximum: for float and double a NaN loses against a number */
/**@{*/
/** Smaller. @param a value @param b value @return the smaller one */
static inline int min(int a, int b) {
    return a < b ? a : b;
}
/** Smaller. @param a value @param b value @return the smaller one */
static inline unsigned min(unsigned a, unsigned b) {
    return a < b ? a : b;
}
/** Smaller. @param a value @param b value @return the smaller one */
static inline long min(long a, long b) {
    return a < b ? a : b;
}
/** Smaller. @param a value @param b value @return the smaller one */
static inline long long min(long long a, long long b) {
    return a < b ? a : b;
}
/** Smaller. @param a value @param b value @return the smaller one */
static inline unsigned long min(unsigned long a, unsigned long b) {
    return a < b ? a : b;
}
/** Smaller. @param a value @param b value @return the smaller one */
static inline float min(float a, float b) {
    return __builtin_fminf(a, b);
}
/** Smaller. @param a value @param b value @return the smaller one */
static inline double min(double a, double b) {
    return __builtin_fmin(a, b);
}
/** Larger. @param a value @param b value @return the larger one */
static inline int max(int a, int b) {
    return a > b ? a : b;
}
/** Larger. @param a value @param b value @return the larger one */
static inline unsigned max(unsigned a, unsigned b) {
    return a > b ? a : b;
}
/** Larger. @param a value @param b value @return the larger one */
static inline long max(long a, long b) {
    return a > b ? a : b;
}
/** Larger. @param a value @param b value @return the larger one */
static inline long long max(long long a, long long b) {
    return a > b ? a : b;
}
/** Larger. @param a value @param b value @return the larger one */
static inline unsigned long max(unsigned long a, unsigned long b) {
    return a > b ? a : b;
}
/** Larger. @param a value @param b value @return the larger one */
static inline float max(float a, float b) {
    return __builtin_fmaxf(a, b);
}
/** Larger. @param a value @param b value @return the larger one */
static inline double max(double a, double b) {
    return __builtin_fmax(a, b);
}
/**@}*/

/** @name Atomics: threads never run at the same time, so plain operations; the old value returns.
 * Unsigned sums wrap as on the device. The order of float sums follows the seed. */
/**@{*/
/** Adds. @param address word @param value addend @return the old value */
static inline unsigned atomicAdd(unsigned *address, unsigned value) {
    unsigned old = *address;
    *address = old + value;
    return old;
}
/** Adds. @param address word @param value addend @return the old value */
static inline int atomicAdd(int *address, int value) {
    int old = *address;
    *address = (int)((unsigned)old + (unsigned)value);
    return old;
}
/** Adds. @param address word @param value addend @return the old value */
static inline unsigned long long atomicAdd(unsigned long long *address, unsigned long long value) {
    unsigned long long old = *address;
    *address = old + value;
    return old;
}
/** Adds. @param address word @param value addend @return the old value */
static inline float atomicAdd(float *address, float value) {
    float old = *address;
    *address = old + value;
    return old;
}
/** Maximum. @param address word @param value to compare @return the old value */
static inline unsigned atomicMax(unsigned *address, unsigned value) {
    unsigned old = *address;
    *address = max(old, value);
    return old;
}
/** Maximum. @param address word @param value to compare @return the old value */
static inline int atomicMax(int *address, int value) {
    int old = *address;
    *address = max(old, value);
    return old;
}
/** Or. @param address word @param value bits to set @return the old value */
static inline unsigned atomicOr(unsigned *address, unsigned value) {
    unsigned old = *address;
    *address = old | value;
    return old;
}
/** Or. @param address word @param value bits to set @return the old value */
static inline int atomicOr(int *address, int value) {
    int old = *address;
    *address = old | value;
    return old;
}
/**@}*/

#endif
