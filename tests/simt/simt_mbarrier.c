// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * mbarrier objects: phases, arrivals, bytes. State is kept beside shared memory; the object's own
 * word holds a token, so that a store over it is seen at its next use.
 */
#include "simt_async.h"

#include <inttypes.h>
#include <stdio.h>

/** Most objects of a block, and the largest count of arrivals or bytes that one can hold. */
enum { MAX_BARRIERS = 256, MAX_COUNT = (1 << 20) - 1 };

static struct simt_mbarrier barriers[MAX_BARRIERS]; /**< of the block that runs */
static uint32_t num_barriers;                       /**< of barriers */
static uint32_t latest;                             /**< found last: most uses come in runs */

void simt_mbarrier_begin(void) {
    num_barriers = 0;
    latest = 0;
}

void simt_mbarrier_end(void) {
    for (uint32_t i = 0; i < num_barriers; i++) {
        if (barriers[i].unseen) {
            simt_fail(SIMT_BAD_COPY,
                      "the block has ended without a wait for the copies of the barrier "
                      "initialised at %s:%d",
                      barriers[i].file, barriers[i].line);
        }
    }
}

/** Looks an object up. @param word where it is @return NULL if there is none */
static struct simt_mbarrier *look_up(const uint64_t *word) {
    if (latest < num_barriers && barriers[latest].word == word) {
        return &barriers[latest];
    }
    for (uint32_t i = 0; i < num_barriers; i++) {
        if (barriers[i].word == word) {
            latest = i;
            return &barriers[i];
        }
    }
    return NULL;
}

const struct simt_mbarrier *simt_mbarrier_within(const void *memory, size_t bytes) {
    uintptr_t low = (uintptr_t)memory;
    for (uint32_t i = 0; i < num_barriers; i++) {
        uintptr_t word = (uintptr_t)barriers[i].word;
        if (word < low + bytes && low < word + sizeof(uint64_t)) {
            return &barriers[i];
        }
    }
    return NULL;
}

struct simt_mbarrier *simt_mbarrier_find(uint64_t *barrier, const char *what, const char *file,
                                         int line) {
    struct simt_mbarrier *found = look_up(barrier);
    if (found == NULL) {
        simt_check_shared("barrier", barrier, sizeof(*barrier), sizeof(*barrier), file, line);
        simt_fail(SIMT_BAD_BARRIER, "%s at %s:%d: the barrier is not initialised", what, file,
                  line);
    } else if (*barrier != found->token) {
        simt_fail(SIMT_BAD_BARRIER, "%s at %s:%d: the barrier initialised at %s:%d was overwritten",
                  what, file, line, found->file, found->line);
    }
    return found;
}

void simt_mbarrier_init(uint64_t *barrier, uint32_t arrivals, const char *file, int line) {
    simt_check_shared("barrier", barrier, sizeof(*barrier), sizeof(*barrier), file, line);
    const struct simt_mbarrier *old = simt_mbarrier_within(barrier, sizeof(*barrier));
    if (old != NULL) {
        simt_fail(SIMT_BAD_BARRIER, "initialisation at %s:%d of the barrier initialised at %s:%d",
                  file, line, old->file, old->line);
    }
    if (arrivals == 0 || arrivals > MAX_COUNT) {
        simt_fail(SIMT_BAD_ARGUMENT, "barrier of %u arrivals at %s:%d", arrivals, file, line);
    }
    if (num_barriers == MAX_BARRIERS) {
        simt_fail(SIMT_OUT_OF_MEMORY, "more than %d barriers at %s:%d", MAX_BARRIERS, file, line);
    }
    if (simt_copy_within(barrier, sizeof(*barrier))) {
        simt_fail(SIMT_BAD_COPY, "barrier at %s:%d in the target of a bulk copy in flight", file,
                  line);
    }
    struct simt_mbarrier *made = &barriers[num_barriers++];
    made->word = barrier;
    made->token = 0x6d62617272696572U ^ ((uint64_t)num_barriers << 24);
    made->count = arrivals;
    made->pending = arrivals;
    made->bytes = 0;
    made->phase = 0;
    made->owner = simt_self->number;
    made->fenced = false;
    made->file = file;
    made->line = line;
    made->in_flight = 0;
    made->unseen = false;
    *barrier = made->token;
}

void simt_fence_async(void) {
    for (uint32_t i = 0; i < num_barriers; i++) {
        barriers[i].fenced |= barriers[i].owner == simt_self->number;
    }
}

/** Completes the running phase if nothing is missing. @param barrier object */
static void advance(struct simt_mbarrier *barrier) {
    simt_progress();
    if (barrier->pending == 0 && barrier->bytes == 0) {
        barrier->phase++;
        barrier->pending = barrier->count;
        if (barrier->in_flight > 0) {
            simt_copy_reveal(barrier);
        }
        simt_wake(SIMT_AT_MBARRIER, barrier);
    }
}

/** Adds to the bytes. @param barrier object @param bytes to add @param file @param line of call */
static void count_bytes(struct simt_mbarrier *barrier, int64_t bytes, const char *file, int line) {
    barrier->bytes += bytes;
    if (barrier->bytes > MAX_COUNT || barrier->bytes < -(int64_t)MAX_COUNT) {
        simt_fail(SIMT_BAD_BARRIER, "%" PRId64 " bytes at %s:%d are more than a barrier can count",
                  barrier->bytes, file, line);
    }
}

void simt_mbarrier_arrive(uint64_t *barrier, uint32_t bytes, const char *file, int line) {
    struct simt_mbarrier *found = simt_mbarrier_find(barrier, "arrival", file, line);
    count_bytes(found, bytes, file, line);
    if (found->pending == 0) {
        simt_fail(SIMT_BAD_BARRIER,
                  "arrival at %s:%d: phase %u of the barrier initialised at %s:%d has had all its "
                  "%u arrivals",
                  file, line, found->phase, found->file, found->line, found->count);
    }
    found->pending--;
    advance(found);
    simt_copy_tick();
}

void simt_mbarrier_landed(struct simt_mbarrier *barrier, uint32_t bytes) {
    count_bytes(barrier, -(int64_t)bytes, barrier->file, barrier->line);
    advance(barrier);
}

/** Whether a phase is complete, which the thread now knows. @param barrier object
 * @param parity of the phase @return whether */
static bool complete(struct simt_mbarrier *barrier, uint32_t parity) {
    bool is = (barrier->phase & 1) != parity;
    barrier->unseen &= !is;
    return is;
}

/** Finds the object to wait for. @param barrier its address @param parity checked
 * @param file of the call @param line of the call @return never NULL */
static struct simt_mbarrier *find_to_wait(uint64_t *barrier, uint32_t parity, const char *file,
                                          int line) {
    if (parity > 1) {
        simt_fail(SIMT_BAD_ARGUMENT, "parity %u at %s:%d", parity, file, line);
    }
    simt_copy_tick();
    return simt_mbarrier_find(barrier, "wait", file, line);
}

bool simt_mbarrier_test(uint64_t *barrier, uint32_t parity, const char *file, int line) {
    struct simt_mbarrier *found = find_to_wait(barrier, parity, file, line);
    if (complete(found, parity)) {
        return true;
    }
    simt_wait(SIMT_POLLING, found, parity, file, line);
    return false;
}

void simt_mbarrier_wait(uint64_t *barrier, uint32_t parity, const char *file, int line) {
    struct simt_mbarrier *found = find_to_wait(barrier, parity, file, line);
    while (!complete(found, parity)) {
        simt_wait(SIMT_AT_MBARRIER, found, parity, file, line);
        // A thread that comes back after the next phase too has missed its own, as on hardware.
        found = simt_mbarrier_find(barrier, "wait", file, line);
    }
}

const char *simt_mbarrier_describe(const struct simt_mbarrier *barrier, char *text, size_t size) {
    size_t offset = 0;
    const char *array = simt_shared_name(barrier->word, sizeof(uint64_t), &offset);
    snprintf(text, size,
             "barrier %s+%zu (%s:%d), whose phase %u lacks %u of %u arrivals and %" PRId64 " bytes",
             array != NULL ? array : "?", offset, barrier->file, barrier->line, barrier->phase,
             barrier->pending, barrier->count, barrier->bytes);
    return text;
}
