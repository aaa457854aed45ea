// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Runs one block: ready queue, block barrier, warp collectives.
 */
#include "simt_async.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct simt_thread *simt_self;
struct simt_geometry simt_geometry;

/** Everything about the block that runs. Stacks stay mapped from block to block. */
static struct {
    struct simt_report report; /**< of the latest launch */
    struct simt_thread thread[SIMT_MAX_THREADS];
    struct simt_warp warp[SIMT_MAX_WARPS];
    struct simt_fiber main;             /**< the stack of the launch */
    const struct simt_launch *launch;   /**< body and argument */
    uint16_t order[SIMT_MAX_THREADS];   /**< order of threads; rotated at each use */
    uint8_t lane_order[2 * SIMT_LANES]; /**< order of lanes, twice: rotation without modulo */
    uint16_t ready[SIMT_MAX_THREADS];   /**< ring of threads that can run */
    uint32_t first_ready;               /**< next to run, if first in first out */
    uint32_t num_ready;                 /**< length of the ring */
    uint32_t live;                      /**< threads that have not exited */
    uint32_t at_barrier;                /**< threads that have reached the barrier */
    uint32_t predicates;                /**< of them, with a nonzero predicate */
    uint32_t barrier_result;            /**< predicates of the barrier passed last */
    const char *barrier_file;           /**< where the first to reach it is */
    int barrier_line;                   /**< where the first to reach it is */
    bool depth_first;                   /**< a warp runs on while it can; else warps take turns */
    bool shuffled;                      /**< seed was not 0 */
    bool failed;                        /**< a detector fired */
    uint64_t random;                    /**< state of simt_random() */
} block;

uint64_t simt_random(void) {
    // splitmix64: a counter and a mixing function, so that every seed starts a good sequence.
    uint64_t z = block.random += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

void simt_schedule_begin(uint64_t seed, uint32_t threads) {
    block.main.size = 0; // another host thread has another stack
    block.random = seed;
    block.shuffled = seed != 0;
    block.depth_first = block.shuffled && (simt_random() & 1) != 0;
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t j = block.shuffled ? (uint32_t)(simt_random() % (i + 1)) : i;
        block.order[i] = block.order[j];
        block.order[j] = (uint16_t)i;
    }
    for (uint32_t i = 0; i < SIMT_LANES; i++) {
        uint32_t j = block.shuffled ? (uint32_t)(simt_random() % (i + 1)) : i;
        block.lane_order[i] = block.lane_order[j];
        block.lane_order[j] = (uint8_t)i;
    }
    memcpy(block.lane_order + SIMT_LANES, block.lane_order, SIMT_LANES);
}

/** Appends to the ring. @param number thread that can run */
static inline void push_ready(uint32_t number) {
    uint32_t end = (block.first_ready + block.num_ready) % SIMT_MAX_THREADS;
    block.ready[end] = (uint16_t)number;
    block.num_ready++;
}

/** Takes from the ring. @return thread to run, or NULL if all wait or have exited */
static inline struct simt_thread *pop_ready(void) {
    if (block.num_ready == 0) {
        return NULL;
    }
    block.num_ready--;
    uint32_t place = block.first_ready;
    if (block.depth_first) {
        place = (place + block.num_ready) % SIMT_MAX_THREADS;
    } else {
        block.first_ready = (place + 1) % SIMT_MAX_THREADS;
    }
    return &block.thread[block.ready[place]];
}

/** Makes all threads but one ready. @param except thread to leave out, or any larger number */
static void push_block(uint32_t except) {
    uint32_t threads = simt_geometry.threads;
    uint32_t at = block.shuffled ? (uint32_t)(simt_random() % threads) : 0;
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t number = block.order[at];
        if (number != except) {
            push_ready(number);
        }
        at = at + 1 == threads ? 0 : at + 1;
    }
}

/** The thread to run next, after whatever makes one ready. @return NULL if all wait in vain */
static inline struct simt_thread *next_thread(void) {
    struct simt_thread *next = pop_ready();
    while (next == NULL && simt_idle()) {
        next = pop_ready();
    }
    return next;
}

/** Suspends a thread until another makes it ready. @param self the running one @param state why */
static inline void wait_here(struct simt_thread *self, enum simt_state state) {
    self->state = state;
    struct simt_thread *next = next_thread();
    simt_self = next;
    if (next != self) {
        // With nobody ready the launch's stack takes over and finds out why.
        simt_fiber_switch(&self->fiber, next != NULL ? &next->fiber : &block.main);
    }
    self->state = SIMT_RUNNING;
}

void simt_wait(enum simt_state state, const void *object, uint32_t detail, const char *file,
               int line) {
    struct simt_thread *self = simt_self;
    self->file = file;
    self->line = line;
    self->object = object;
    self->mask = detail;
    wait_here(self, state);
}

uint32_t simt_wake(enum simt_state state, const void *object) {
    uint32_t threads = simt_geometry.threads;
    uint32_t at = block.shuffled ? (uint32_t)(simt_random() % threads) : 0;
    uint32_t woken = 0;
    for (uint32_t i = 0; i < threads; i++) {
        struct simt_thread *thread = &block.thread[block.order[at]];
        if (thread->state == state && (object == NULL || thread->object == object)) {
            thread->state = SIMT_RUNNING;
            push_ready(thread->number);
            woken++;
        }
        at = at + 1 == threads ? 0 : at + 1;
    }
    return woken;
}

struct simt_thread *simt_thread_at(uint32_t number) {
    return &block.thread[number];
}

/** Whether two places are the same: copies of one header may have copies of the file's name. */
static inline bool same_place(const char *file, int line, const char *file2, int line2) {
    return line == line2 && (file == file2 || strcmp(file, file2) == 0);
}

uint32_t simt_barrier(int predicate, const char *file, int line) {
    struct simt_thread *self = simt_self;
    self->file = file;
    self->line = line;
    if (block.at_barrier == 0) {
        block.barrier_file = file;
        block.barrier_line = line;
        block.predicates = 0;
    } else if (!same_place(file, line, block.barrier_file, block.barrier_line)) {
        simt_fail(SIMT_BARRIER_DIVERGENCE, "barrier at %s:%d while %u threads wait at %s:%d", file,
                  line, block.at_barrier, block.barrier_file, block.barrier_line);
    }
    block.predicates += predicate != 0;
    if (++block.at_barrier < simt_geometry.threads) {
        wait_here(self, SIMT_AT_BARRIER);
    } else {
        block.at_barrier = 0;
        block.barrier_result = block.predicates;
        push_block(self->number);
    }
    return block.barrier_result; // the next barrier cannot complete before all have read it
}

/** Makes the other lanes of a completed meeting ready. @param warp the warp @param mask lanes */
static inline void push_lanes(const struct simt_warp *warp, uint32_t mask) {
    const uint8_t *order = block.lane_order;
    uint32_t first = warp->number * SIMT_LANES;
    uint32_t end = block.first_ready + block.num_ready;
    if (block.shuffled) {
        block.random = block.random * 6364136223846793005U + 1442695040888963407U;
        order += block.random >> 59; // cheaper than simt_random(): this runs at every collective
    }
    block.num_ready += (uint32_t)__builtin_popcount(mask);
    for (uint32_t i = 0; i < SIMT_LANES; i++) {
        block.ready[end % SIMT_MAX_THREADS] = (uint16_t)(first + order[i]);
        end += mask >> order[i] & 1; // no branch: the next lane overwrites one outside the mask
    }
}

/** The meeting of a mask, a new one if need be. @param warp of the caller @param mask lanes
 * @return never NULL: a lane is in one meeting at a time */
static inline struct simt_meeting *find_meeting(struct simt_warp *warp, uint32_t mask) {
    struct simt_meeting *meeting = warp->meeting;
    for (uint32_t i = 0; i < warp->meetings; i++, meeting++) {
        if (meeting->mask == mask) {
            return meeting;
        }
    }
    warp->meetings++;
    meeting->mask = mask;
    meeting->arrived = 0;
    return meeting;
}

void simt_meet(const struct simt_warp_op *op, uint32_t mask, const char *file, int line) {
    struct simt_thread *self = simt_self;
    struct simt_warp *warp = self->warp;
    uint32_t bit = 1U << self->lane;
    self->file = file;
    self->line = line;
    if ((mask & bit) == 0) {
        simt_fail(SIMT_BAD_ARGUMENT, "%s at %s:%d: lane %u is not in its own mask %08x", op->name,
                  file, line, self->lane, mask);
    }
    struct simt_meeting *meeting = find_meeting(warp, mask);
    if (meeting->arrived == 0) {
        meeting->op = op;
        meeting->file = file;
        meeting->line = line;
    } else if (op != meeting->op || !same_place(file, line, meeting->file, meeting->line)) {
        simt_fail(SIMT_WARP_DIVERGENCE, "%s at %s:%d while lanes %08x wait in %s at %s:%d",
                  op->name, file, line, meeting->arrived, meeting->op->name, meeting->file,
                  meeting->line);
    }
    meeting->arrived |= bit;
    if (meeting->arrived != mask) {
        self->mask = mask;
        wait_here(self, SIMT_AT_COLLECTIVE);
        return;
    }
    *meeting = warp->meeting[--warp->meetings];
    op->combine(warp, mask);
    push_lanes(warp, mask & ~bit);
}

void simt_blame(const struct simt_thread *thread) {
    block.report.thread = thread->index;
}

void simt_report_begin(const char *kernel) {
    memset(&block.report, 0, sizeof(block.report));
    snprintf(block.report.kernel, sizeof(block.report.kernel), "%s", kernel);
}

const struct simt_report *simt_last_report(void) {
    return &block.report;
}

void simt_fail(enum simt_code code, const char *format, ...) {
    struct simt_thread *self = simt_self;
    if (block.report.code == SIMT_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(block.report.text, sizeof(block.report.text), format, arguments);
        va_end(arguments);
        block.report.code = code;
        block.report.block = simt_geometry.block_index;
        if (self != NULL) {
            block.report.thread = self->index;
        }
    }
    block.failed = true;
    if (self != NULL) {
        simt_self = NULL;
        simt_fiber_switch(&self->fiber, &block.main); // never continued: see simt_run_block()
    }
}

/** First function of every fibre: runs the kernel for one thread, then the next fibre. */
static void thread_entry(void) {
    simt_fiber_arrive(&block.main);
    struct simt_thread *self = simt_self;
    block.launch->body(block.launch->argument);
    simt_progress();
    struct simt_thread *next = --block.live > 0 ? next_thread() : NULL;
    self->state = SIMT_EXITED; // not before: a copy that lands may end the launch
    simt_self = next;
    simt_fiber_exit(&self->fiber, next != NULL ? &next->fiber : &block.main);
}

void simt_report_overflow(const void *address) {
    const struct simt_thread *self = simt_self;
    if (self == NULL) {
        return;
    }
    uintptr_t low = (uintptr_t)self->fiber.low;
    if ((uintptr_t)address < low && (uintptr_t)address >= low - SIMT_GUARD_BYTES) {
        simt_fail(SIMT_STACK_OVERFLOW, "a thread used more than its stack of %zu bytes",
                  SIMT_STACK_BYTES);
    }
}

/** Sets up all threads of a block. @return false if there is no memory for a stack */
static bool prepare_threads(void) {
    uint3 index = {0, 0, 0};
    for (uint32_t i = 0; i < SIMT_MAX_WARPS; i++) {
        block.warp[i].number = i;
        block.warp[i].meetings = 0;
    }
    for (uint32_t i = 0; i < SIMT_MAX_THREADS; i++) {
        block.thread[i].number = i;
    }
    for (uint32_t i = 0; i < simt_geometry.threads; i++) {
        struct simt_thread *thread = &block.thread[i];
        if (!simt_fiber_prepare(&thread->fiber, i, thread_entry)) {
            simt_fail(SIMT_OUT_OF_MEMORY, "no memory for the stack of thread %u", i);
            return false;
        }
        thread->index = index;
        thread->lane = i % SIMT_LANES;
        thread->warp = &block.warp[i / SIMT_LANES];
        thread->state = SIMT_RUNNING;
        if (++index.x == simt_geometry.block.x) {
            index.x = 0;
            if (++index.y == simt_geometry.block.y) {
                index.y = 0;
                index.z++;
            }
        }
    }
    return true;
}

bool simt_run_block(const struct simt_launch *launch) {
    block.failed = false;
    if (!prepare_threads()) {
        return false;
    }
    block.launch = launch;
    block.live = simt_geometry.threads;
    block.at_barrier = 0;
    block.first_ready = 0;
    block.num_ready = 0;
    simt_mbarrier_begin();
    simt_copy_begin(block.shuffled);
    simt_named_begin();
    simt_progress();
    push_block(SIMT_MAX_THREADS);
    simt_self = pop_ready();
    simt_fiber_switch(&block.main, &simt_self->fiber);
    simt_self = NULL;
    if (!block.failed && block.live > 0) {
        simt_report_deadlock();
    }
    simt_copy_end(block.failed);
    if (!block.failed) {
        simt_mbarrier_end();
    }
    if (block.failed) {
        for (uint32_t i = 0; i < simt_geometry.threads; i++) {
            if (block.thread[i].state != SIMT_EXITED) {
                simt_fiber_discard(&block.thread[i].fiber, &block.main);
            }
        }
    }
    return !block.failed;
}
