// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Named barriers (bar.sync): numbers 1 to 15, each for whole warps.
 */
#include "simt_async.h"

#include <stdio.h>
#include <string.h>

/** Barriers of a block; number 0 is __syncthreads(). */
enum { NUM_NAMED = 16 };

/** A named barrier. */
struct named {
    uint32_t threads;               /**< that the first to come expects */
    uint32_t arrived;               /**< threads that have come */
    uint32_t phase;                 /**< times that all have come */
    bool any[2];                    /**< whether a predicate held, of a phase and the one before */
    uint32_t lanes[SIMT_MAX_WARPS]; /**< of each warp, those that have come */
    const char *file;               /**< where the first to come is */
    int line;                       /**< where the first to come is */
};

static struct named named[NUM_NAMED]; /**< of the block that runs */

void simt_named_begin(void) {
    memset(named, 0, sizeof(named));
}

bool simt_named_barrier(uint32_t number, uint32_t threads, bool predicate, const char *file,
                        int line) {
    if (number == 0 || number >= NUM_NAMED || threads == 0 || threads % SIMT_LANES != 0 ||
        threads > simt_geometry.threads) {
        simt_fail(SIMT_BAD_ARGUMENT, "named barrier %u of %u threads at %s:%d", number, threads,
                  file, line);
    }
    struct named *barrier = &named[number];
    if (barrier->arrived == 0) {
        barrier->threads = threads;
        barrier->file = file;
        barrier->line = line;
        barrier->any[barrier->phase % 2] = false;
    } else if (barrier->threads != threads) {
        simt_fail(SIMT_BARRIER_DIVERGENCE,
                  "named barrier %u of %u threads at %s:%d, of %u threads at %s:%d", number,
                  threads, file, line, barrier->threads, barrier->file, barrier->line);
    }
    barrier->lanes[simt_self->number / SIMT_LANES] |= 1U << simt_self->lane;
    // Nobody gets two phases ahead of a thread that has still to look.
    bool *any = &barrier->any[barrier->phase % 2];
    *any |= predicate;
    if (++barrier->arrived < threads) {
        simt_wait(SIMT_AT_NAMED, barrier, number, file, line);
        return *any;
    }
    for (uint32_t warp = 0; warp < SIMT_MAX_WARPS; warp++) {
        if (barrier->lanes[warp] != 0 && barrier->lanes[warp] != UINT32_MAX) {
            simt_fail(SIMT_BARRIER_DIVERGENCE,
                      "named barrier %u at %s:%d: only lanes %08x of warp %u have come", number,
                      file, line, barrier->lanes[warp], warp);
        }
    }
    barrier->arrived = 0;
    memset(barrier->lanes, 0, sizeof(barrier->lanes));
    barrier->phase++;
    simt_wake(SIMT_AT_NAMED, barrier);
    return *any;
}

const char *simt_named_describe(const void *object, char *text, size_t size) {
    const struct named *barrier = (const struct named *)object;
    snprintf(text, size, "named barrier %d, which has %u of %u threads", (int)(barrier - named),
             barrier->arrived, barrier->threads);
    return text;
}
