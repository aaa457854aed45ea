// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What warp collectives do with the operands once all lanes of the mask have come. A new
 * collective (a tensor instruction, say) is one more operation here and its wrapper in simt.h.
 * Only columns of lanes in the mask may be written: others may be on their way elsewhere.
 */
#include "simt_runtime.h"

#include <string.h>

/** __syncwarp(). @param warp unused @param mask unused */
static void combine_sync(struct simt_warp *warp, uint32_t mask) {
    (void)warp;
    (void)mask;
}

/** Reports the first lane that reads a lane outside the mask. @param warp operands @param mask
 * lanes */
static void report_inactive(const struct simt_warp *warp, uint32_t mask) {
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        uint32_t source = warp->operand[2][lane];
        if (mask >> lane & 1 && !(mask >> source & 1)) {
            simt_fail(SIMT_INACTIVE_LANE, "shuffle at %s:%d: lane %u reads lane %u, mask %08x",
                      simt_self->file, simt_self->line, lane, source, mask);
        }
    }
}

/** One word of a shuffle. @param warp operands @param mask lanes @param word operand to move */
static inline void move_word(struct simt_warp *warp, uint32_t mask, int word) {
    uint32_t value[SIMT_LANES];
    uint32_t outside = 0;
    memcpy(value, warp->operand[word], sizeof(value));
    if (mask == UINT32_MAX) { // the usual case, without branches
        for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
            warp->operand[word][lane] = value[warp->operand[2][lane]];
        }
        return;
    }
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        if (mask >> lane & 1) {
            uint32_t source = warp->operand[2][lane];
            outside |= ~mask >> source & 1;
            warp->operand[word][lane] = value[source];
        }
    }
    if (outside != 0) {
        report_inactive(warp, mask);
    }
}

/** 32-bit shuffles. @param warp operands @param mask lanes */
static void combine_shuffle32(struct simt_warp *warp, uint32_t mask) {
    move_word(warp, mask, 0);
}

/** 64-bit shuffles. @param warp operands @param mask lanes */
static void combine_shuffle64(struct simt_warp *warp, uint32_t mask) {
    move_word(warp, mask, 0);
    move_word(warp, mask, 1);
}

/** Votes. @param warp operands @param mask lanes */
static void combine_ballot(struct simt_warp *warp, uint32_t mask) {
    uint32_t ballot = 0;
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        ballot |= (uint32_t)(warp->operand[0][lane] != 0) << lane;
    }
    for (uint32_t lane = 0; lane < SIMT_LANES; lane++) {
        if (mask >> lane & 1) {
            warp->operand[0][lane] = ballot & mask;
        }
    }
}

const struct simt_warp_op simt_op_sync = {"__syncwarp", combine_sync};
const struct simt_warp_op simt_op_shuffle32 = {"shuffle", combine_shuffle32};
const struct simt_warp_op simt_op_shuffle64 = {"64-bit shuffle", combine_shuffle64};
const struct simt_warp_op simt_op_ballot = {"vote", combine_ballot};
