// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * When no thread is ready: copies land, polling threads go on; if that is no help, what to say.
 */
#include "simt_async.h"

#include <stdio.h>

/** Times that all polling threads are let go on without anything having happened in between. */
enum { MAX_ROUNDS = 1000 };

static uint32_t rounds; /**< since something happened */

void simt_progress(void) {
    rounds = 0;
}

bool simt_idle(void) {
    if (simt_copy_land_one()) {
        return true;
    }
    return rounds++ < MAX_ROUNDS && simt_wake(SIMT_POLLING, NULL) > 0;
}

/** Where a thread is, for messages. @param thread any @param text [128] output @return text */
static const char *describe(const struct simt_thread *thread, char *text) {
    if (thread->number >= simt_geometry.threads) {
        snprintf(text, 128, "does not exist");
    } else if (thread->state == SIMT_EXITED) {
        snprintf(text, 128, "has exited");
    } else {
        snprintf(text, 128, "waits at %s:%d", thread->file, thread->line);
    }
    return text;
}

/** Reports a wait at a barrier object. @param thread that waits */
static void report_object(const struct simt_thread *thread) {
    char text[200];
    if (thread->state == SIMT_AT_NAMED) {
        simt_fail(SIMT_ENDLESS_WAIT, "thread %u waits at %s:%d for %s", thread->number,
                  thread->file, thread->line,
                  simt_named_describe(thread->object, text, sizeof(text)));
        return;
    }
    const struct simt_mbarrier *barrier = (const struct simt_mbarrier *)thread->object;
    simt_fail(SIMT_ENDLESS_WAIT, "thread %u waits at %s:%d for parity %u of %s", thread->number,
              thread->file, thread->line, thread->mask,
              simt_mbarrier_describe(barrier, text, sizeof(text)));
}

/** Reports a wait at the block's barrier. @param thread that waits */
static void report_barrier(const struct simt_thread *thread) {
    char text[128];
    uint32_t number = 0;
    while (simt_thread_at(number)->state == SIMT_AT_BARRIER) {
        number++;
    }
    simt_fail(SIMT_BARRIER_DIVERGENCE, "barrier at %s:%d waits for thread %u, which %s",
              thread->file, thread->line, number, describe(simt_thread_at(number), text));
}

/** The first lane that a collective lacks. @param thread that waits there @return the lane */
static const struct simt_thread *missing_lane(const struct simt_thread *thread) {
    uint32_t arrived = 0;
    for (uint32_t i = 0; i < thread->warp->meetings; i++) {
        if (thread->warp->meeting[i].mask == thread->mask) {
            arrived = thread->warp->meeting[i].arrived;
        }
    }
    uint32_t lane = (uint32_t)__builtin_ctz(thread->mask & ~arrived);
    return simt_thread_at(thread->warp->number * SIMT_LANES + lane);
}

/** Whether a thread waits at a barrier object. @param thread any @return whether */
static bool at_object(const struct simt_thread *thread) {
    return thread->state == SIMT_AT_MBARRIER || thread->state == SIMT_POLLING ||
           thread->state == SIMT_AT_NAMED;
}

/** How telling a wait is. @param thread any @return more is better, 0 if it does not wait */
static int telling(const struct simt_thread *thread) {
    switch (thread->state) {
    case SIMT_AT_COLLECTIVE: {
        // Lanes that wait for one that waits at an object say nothing new.
        const struct simt_thread *other = missing_lane(thread);
        return other->number < simt_geometry.threads && at_object(other) ? 1 : 5;
    }
    case SIMT_AT_MBARRIER:
    case SIMT_POLLING:
        return 4;
    case SIMT_AT_NAMED:
        return 3;
    case SIMT_AT_BARRIER:
        return 2;
    default:
        return 0;
    }
}

void simt_report_deadlock(void) {
    const struct simt_thread *waiting = simt_thread_at(0);
    for (uint32_t i = 1; i < simt_geometry.threads; i++) {
        if (telling(simt_thread_at(i)) > telling(waiting)) {
            waiting = simt_thread_at(i);
        }
    }
    simt_blame(waiting);
    if (waiting->state == SIMT_AT_BARRIER) {
        report_barrier(waiting);
    } else if (waiting->state == SIMT_AT_COLLECTIVE) {
        char text[128];
        const struct simt_thread *other = missing_lane(waiting);
        simt_fail(SIMT_WARP_DIVERGENCE, "mask %08x at %s:%d waits for lane %u, which %s",
                  waiting->mask, waiting->file, waiting->line, other->number % SIMT_LANES,
                  describe(other, text));
    } else {
        report_object(waiting);
    }
}
