// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * ldmatrix and mma: what happens once all lanes of the warp have come.
 */
#include "simt_async.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Rows of the a of an mma, its columns (which are the rows of b), and the columns of b. */
enum { MMA_M = 16, MMA_K = 16, MMA_N = 8 };

/** Four floats that are computed with at once; every compiler and architecture has them. */
typedef float float_x4 __attribute__((vector_size(16)));

/** ldmatrix. @param warp operands 0 to 3: 16 bytes of a row in, one word of each matrix out
 * @param transposed whether each matrix is */
static void distribute(struct simt_warp *warp, bool transposed) {
    uint16_t element[SIMT_LANES][8]; // row of all four matrices one after another
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t word = warp->operand[i][lane];
            element[lane][2 * i] = (uint16_t)word;
            element[lane][2 * i + 1] = (uint16_t)(word >> 16);
        }
    }
    for (uint32_t matrix = 0; matrix < 4; matrix++) {
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            uint32_t row = lane / 4;
            uint32_t column = lane % 4 * 2;
            uint32_t first = matrix * 8;
            uint32_t low = transposed ? element[first + column][row] : element[first + row][column];
            uint32_t high =
                transposed ? element[first + column + 1][row] : element[first + row][column + 1];
            warp->operand[matrix][lane] = low | high << 16;
        }
    }
}

/** As the hardware's. @param warp operands @param mask all lanes */
static void combine_ldmatrix(struct simt_warp *warp, uint32_t mask) {
    (void)mask;
    distribute(warp, false);
}

/** As the hardware's. @param warp operands @param mask all lanes */
static void combine_ldmatrix_trans(struct simt_warp *warp, uint32_t mask) {
    (void)mask;
    distribute(warp, true);
}

/** The operands of an mma, unpacked: written as bits, read as floats. */
struct mma_operands {
    union {
        uint32_t bits[MMA_M][MMA_K];
        float value[MMA_M][MMA_K];
    } a; /**< row by row */
    union {
        uint32_t bits[MMA_K][MMA_N];
        float_x4 value[MMA_K][MMA_N / 4];
    } b; /**< row by row */
};

/** Two bf16. @param word low and high @param first gets the low one
 * @param stride distance to where the high one goes */
static inline void unpack(uint32_t word, uint32_t *first, int stride) {
    first[0] = word << 16;
    first[stride] = word & 0xffff0000U;
}

/** Unpacks fragments. @param warp operands @param to matrices */
static inline void unpack_all(const struct simt_warp *warp, struct mma_operands *to) {
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t group = lane / 4;
        uint32_t pair = lane % 4 * 2;
        unpack(warp->operand[8][lane], &to->b.bits[pair][group], MMA_N);
        unpack(warp->operand[9][lane], &to->b.bits[pair + 8][group], MMA_N);
        unpack(warp->operand[4][lane], &to->a.bits[group][pair], 1);
        unpack(warp->operand[5][lane], &to->a.bits[group + 8][pair], 1);
        unpack(warp->operand[6][lane], &to->a.bits[group][pair + 8], 1);
        unpack(warp->operand[7][lane], &to->a.bits[group + 8][pair + 8], 1);
    }
}

static bool leaks; /**< simt_leak_rows() */

void simt_leak_rows(bool leak) {
    leaks = leak;
}

static enum simt_mma_fault fault; /**< simt_set_mma_fault() */

void simt_set_mma_fault(enum simt_mma_fault chosen) {
    fault = chosen;
}

/** A program that knows nothing of the emulator can be given the fault by its environment. */
__attribute__((constructor)) static void leak_by_environment(void) {
    leaks = getenv("SIMT_LEAK_ROWS") != NULL;
}

/** Whether a row of a holds a NaN. @param from operands @param row the row */
static bool has_nan(const struct mma_operands *from, int row) {
    for (int k = 0; k < MMA_K; k++) {
        if (from->a.value[row][k] != from->a.value[row][k]) {
            return true;
        }
    }
    return false;
}

/** Changes the last bit of each row whose neighbour holds a NaN. @param from operands
 * @param sum changed */
static void leak_rows(const struct mma_operands *from, float sum[MMA_M][MMA_N]) {
    for (int m = 0; m < MMA_M; m++) {
        for (int n = 0; n < MMA_N && has_nan(from, m ^ 1); n++) {
            uint32_t bits;
            memcpy(&bits, &sum[m][n], sizeof(bits));
            bits ^= 1;
            memcpy(&sum[m][n], &bits, sizeof(bits));
        }
    }
}

/** Whether a sum has the fault. @param from operands @param m the row @param n the column */
static bool is_faulty(const struct mma_operands *from, int m, int n) {
    int zeros = 0;
    bool large = false; // where a is 0
    bool nan = false;
    for (int k = 0; k < MMA_K; k++) {
        float neighbour = from->b.value[k][n / 4][n % 4 ^ 1];
        bool zero = from->a.value[m][k] == 0.0f;
        zeros += zero;
        large = large || (zero && fabsf(from->b.value[k][n / 4][n % 4]) > 0x1p60f);
        nan = nan || neighbour != neighbour;
    }
    switch (fault) {
    case SIMT_MMA_ZERO_ROWS:
        return large && zeros == MMA_K;
    case SIMT_MMA_ZERO_ELEMENTS:
        return large && zeros < MMA_K;
    case SIMT_MMA_COLUMNS:
        return nan;
    default:
        return m == 4;
    }
}

/** The sum of 16 products in ascending order of k is added to c. Nothing is skipped: 0 * NaN is
 * NaN. @param warp operands @param mask all lanes */
static void combine_mma(struct simt_warp *warp, uint32_t mask) {
    enum { ROWS = 4 }; // at a time: their sums fill the registers and hide the latency
    struct mma_operands from;
    float sum[MMA_M][MMA_N];
    (void)mask;
    unpack_all(warp, &from);
    for (int first = 0; first < MMA_M; first += ROWS) {
        float_x4 low[ROWS];
        float_x4 high[ROWS];
#pragma GCC unroll 4
        for (int m = 0; m < ROWS; m++) {
            low[m] = from.a.value[first + m][0] * from.b.value[0][0];
            high[m] = from.a.value[first + m][0] * from.b.value[0][1];
        }
        for (int k = 1; k < MMA_K; k++) {
#pragma GCC unroll 4
            for (int m = 0; m < ROWS; m++) {
                low[m] += from.a.value[first + m][k] * from.b.value[k][0];
                high[m] += from.a.value[first + m][k] * from.b.value[k][1];
            }
        }
#pragma GCC unroll 4
        for (int m = 0; m < ROWS; m++) {
            memcpy(&sum[first + m][0], &low[m], sizeof(low[m]));
            memcpy(&sum[first + m][4], &high[m], sizeof(high[m]));
        }
    }
    if (leaks) {
        leak_rows(&from, sum);
    }
    for (uint32_t i = 0; i < 4; i++) {
        float c[SIMT_LANES];
        memcpy(c, warp->operand[i], sizeof(c));
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            int m = (int)(lane / 4 + i / 2 * 8);
            int n = (int)(lane % 4 * 2 + i % 2);
            c[lane] += sum[m][n];
            if (fault != SIMT_MMA_RIGHT && is_faulty(&from, m, n)) {
                c[lane] = nextafterf(c[lane], 0.0f);
            }
        }
        memcpy(warp->operand[i], c, sizeof(c));
    }
}

/** Registers are not counted. @param warp operands @param mask all lanes */
static void combine_registers(struct simt_warp *warp, uint32_t mask) {
    (void)warp;
    (void)mask;
}

const struct simt_warp_op simt_op_ldmatrix = {"ldmatrix", combine_ldmatrix};
const struct simt_warp_op simt_op_ldmatrix_trans = {"ldmatrix.trans", combine_ldmatrix_trans};
const struct simt_warp_op simt_op_mma = {"mma", combine_mma};
const struct simt_warp_op simt_op_registers = {"setmaxnreg", combine_registers};
