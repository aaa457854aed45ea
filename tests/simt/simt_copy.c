// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Bulk copies in flight: when they land, when their data appears, and what may not happen before.
 */
#include "simt_async.h"

#include <stdlib.h>
#include <string.h>

/** Alignment of both ends and of the length. */
enum { COPY_ALIGN = 16 };

/** Never due: lands when no thread can run on. */
#define NOT_DUE UINT64_MAX

/** A copy whose data is not visible yet. */
struct copy {
    unsigned char *target;         /**< in shared memory; NaN until the data appears */
    const unsigned char *source;   /**< in global memory */
    unsigned char *staged;         /**< what the source held when the copy was started */
    struct simt_mbarrier *barrier; /**< that its bytes count into */
    uint64_t due;                  /**< moment at which it lands */
    const char *file;              /**< of the call */
    int line;                      /**< of the call */
    uint32_t bytes;                /**< length */
    bool landed;                   /**< its bytes have been counted */
};

static struct copy *copies;   /**< in the order of their starts; kept from block to block */
static size_t capacity;       /**< of copies */
static size_t num_copies;     /**< in flight or landed */
static size_t num_flying;     /**< not landed */
static uint64_t now;          /**< moments since the block began */
static uint64_t next_due;     /**< earliest moment at which a copy lands */
static bool landing_shuffled; /**< the seed draws the moments */

/** Forgets all copies. */
static void drop_copies(void) {
    for (size_t i = 0; i < num_copies; i++) {
        free(copies[i].staged);
    }
    num_copies = 0;
    num_flying = 0;
}

void simt_copy_begin(bool shuffled) {
    drop_copies();
    now = 0;
    next_due = NOT_DUE;
    landing_shuffled = shuffled;
}

void simt_copy_end(bool failed) {
    if (!failed && num_copies > 0) {
        simt_fail(SIMT_BAD_COPY, "the block has ended and a bulk copy of %s:%d has not",
                  copies[0].file, copies[0].line);
    }
    drop_copies();
}

/** Overlap. @param copy any @param memory first byte @param bytes length @return whether */
static bool overlaps(const struct copy *copy, const void *memory, size_t bytes) {
    uintptr_t low = (uintptr_t)memory;
    uintptr_t target = (uintptr_t)copy->target;
    return target < low + bytes && low < target + copy->bytes;
}

bool simt_copy_within(const void *memory, size_t bytes) {
    for (size_t i = 0; i < num_copies; i++) {
        if (overlaps(&copies[i], memory, bytes)) {
            return true;
        }
    }
    return false;
}

/** Lands a copy. @param copy that has not landed */
static void land(struct copy *copy) {
    if (memcmp(copy->source, copy->staged, copy->bytes) != 0) {
        simt_fail(SIMT_BAD_COPY, "the source of the bulk copy of %s:%d changed under way",
                  copy->file, copy->line);
    }
    copy->landed = true;
    num_flying--;
    simt_mbarrier_landed(copy->barrier, copy->bytes); // may end the copy, and move others
}

void simt_copy_tick(void) {
    now++;
    while (next_due <= now) {
        struct copy *due = NULL;
        next_due = NOT_DUE;
        for (size_t i = 0; i < num_copies; i++) {
            if (!copies[i].landed && copies[i].due <= now && due == NULL) {
                due = &copies[i];
            } else if (!copies[i].landed && copies[i].due < next_due) {
                next_due = copies[i].due;
            }
        }
        if (due != NULL) {
            land(due);
        }
    }
}

bool simt_copy_land_one(void) {
    if (num_flying == 0) {
        return false;
    }
    uint64_t skip = landing_shuffled ? simt_random() % num_flying : 0;
    struct copy *copy = copies;
    while (copy->landed || skip-- > 0) { // a landed one is passed without counting
        copy++;
    }
    land(copy);
    return true;
}

/** Checks that nothing was written to the target. @param copy that has landed */
static void check_target(const struct copy *copy) {
    const unsigned char *target = copy->target;
    if (target[0] == 0xff && memcmp(target, target + 1, copy->bytes - 1) == 0) {
        return; // each byte equals the one before it
    }
    uint32_t at = 0;
    while (target[at] == 0xff) {
        at++;
    }
    simt_fail(SIMT_BAD_COPY,
              "byte %u of the target of the bulk copy of %s:%d was written while "
              "the copy was in flight",
              at, copy->file, copy->line);
}

void simt_copy_reveal(struct simt_mbarrier *barrier) {
    for (size_t i = 0; i < num_copies; i++) {
        if (copies[i].landed && copies[i].barrier == barrier) {
            check_target(&copies[i]); // all of them first: it may not return
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < num_copies; i++) {
        if (copies[i].landed && copies[i].barrier == barrier) {
            barrier->in_flight--;
            barrier->unseen = true;
            memcpy(copies[i].target, copies[i].staged, copies[i].bytes);
            free(copies[i].staged);
        } else {
            copies[kept++] = copies[i];
        }
    }
    num_copies = kept;
}

/** Makes room for one more copy. @return false if there is no memory */
static bool reserve(void) {
    if (num_copies == capacity) {
        size_t larger = capacity == 0 ? 64 : 2 * capacity;
        struct copy *moved = (struct copy *)realloc(copies, larger * sizeof(*copies));
        if (moved == NULL) {
            return false;
        }
        copies = moved;
        capacity = larger;
    }
    return true;
}

/** The moment at which a new copy lands. @return at once, soon, later, or as late as possible */
static uint64_t draw_due(void) {
    if (!landing_shuffled) {
        return NOT_DUE;
    }
    uint64_t random = simt_random();
    static const uint64_t range[] = {1, 16, 256};
    return (random & 3) == 3 ? NOT_DUE : now + 1 + (random >> 2) % range[random & 3];
}

/** Reports what is wrong with a copy to start. @param copy all but staged and due set */
static void check_copy(const struct copy *copy) {
    if (((uintptr_t)copy->source | copy->bytes) % COPY_ALIGN != 0) {
        simt_fail(SIMT_MISALIGNED, "bulk copy of %u bytes from %p at %s:%d", copy->bytes,
                  (const void *)copy->source, copy->file, copy->line);
    }
    if (copy->bytes == 0) {
        simt_fail(SIMT_BAD_ARGUMENT, "bulk copy of no bytes at %s:%d", copy->file, copy->line);
    }
    if (!copy->barrier->fenced) {
        simt_fail(SIMT_BAD_BARRIER,
                  "bulk copy at %s:%d: no ptx_fence_async after the "
                  "initialisation of its barrier at %s:%d",
                  copy->file, copy->line, copy->barrier->file, copy->barrier->line);
    }
    const struct simt_mbarrier *hit = simt_mbarrier_within(copy->target, copy->bytes);
    if (hit != NULL) {
        simt_fail(SIMT_BAD_COPY, "bulk copy at %s:%d over the barrier initialised at %s:%d",
                  copy->file, copy->line, hit->file, hit->line);
    }
    size_t offset = 0;
    if (simt_shared_name(copy->source, 1, &offset) != NULL) {
        simt_fail(SIMT_BAD_ARGUMENT, "bulk copy at %s:%d from shared memory", copy->file,
                  copy->line);
    }
    for (size_t i = 0; i < num_copies; i++) {
        if (overlaps(&copies[i], copy->target, copy->bytes)) {
            simt_fail(SIMT_BAD_COPY,
                      "bulk copy at %s:%d into the target of that of %s:%d, which "
                      "is in flight",
                      copy->file, copy->line, copies[i].file, copies[i].line);
        }
    }
}

void simt_bulk_load(void *target, const void *source, uint32_t bytes, uint64_t *barrier,
                    const char *file, int line) {
    struct copy copy = {0};
    copy.barrier = simt_mbarrier_find(barrier, "bulk copy", file, line);
    copy.target = (unsigned char *)target;
    copy.source = (const unsigned char *)source;
    copy.bytes = bytes;
    copy.file = file;
    copy.line = line;
    simt_check_shared("target", target, bytes, COPY_ALIGN, file, line);
    check_copy(&copy);
    copy.staged = (unsigned char *)malloc(bytes);
    if (copy.staged == NULL || !reserve()) {
        free(copy.staged);
        simt_fail(SIMT_OUT_OF_MEMORY, "no memory for a bulk copy at %s:%d", file, line);
    }
    memcpy(copy.staged, source, bytes); // AddressSanitizer checks the range here
    memset(target, 0xff, bytes);
    copy.due = draw_due();
    next_due = copy.due < next_due ? copy.due : next_due;
    copy.barrier->in_flight++;
    copies[num_copies++] = copy;
    num_flying++;
    simt_progress();
    simt_copy_tick();
}
