// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Mutations that know the format: most keep the file well-formed and change tensors; all but a few
 * end with a checksum that fits, so that the fuzzer gets beyond it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_bundle.h"
#include "problem.h"
#include "random.h"

#define KEPT 64 /**< Good problems that are kept to start from. */

/** libFuzzer's own mutations. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
/** What libFuzzer calls at the start. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
/** What libFuzzer calls for a mutation. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/** Random numbers of one mutation. */
struct draw {
    uint64_t seed;
    uint64_t count;
};

static struct ref_bundle bundle;
static uint8_t scratch[3][FUZZ_MAX_BYTES];
static uint8_t built[FUZZ_MAX_BYTES];

/** Problems that bound: most mutations of them do not, and few mutations lead back. */
static struct {
    uint8_t file[FUZZ_MAX_BYTES];
    size_t size;
} kept[KEPT];

static uint32_t below(struct draw *draw, uint32_t limit) {
    return (uint32_t)(ref_random(draw->seed, draw->count++) >> 32) % limit;
}

static const char *const names[] = {
    "scale",      "q_latent",      "q_rope",      "kv",           "kv_latent",
    "kv_rope",    "slots",         "indptr",      "row_table",    "prefix_len",
    "table_rows", "page_size",     "tree_slots",  "mask_mode",    "mask_words",
    "parents",    "node_indptr",   "o",           "lse",          "q_nope",
    "kv_b_proj",  "module_output", "draft_logp",  "draft_tokens", "root_tokens",
    "budget",     "target_ids",    "node_tokens", "vocab_size",   "unknown"};

static void set_name(struct ref_tensor *t, const char *name) {
    memset(t->name, 0, sizeof t->name);
    strcpy(t->name, name);
}

/** Integers at the edges of what the fields take. */
static uint64_t interesting(struct draw *draw) {
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      5,
                                      7,
                                      8,
                                      15,
                                      16,
                                      31,
                                      32,
                                      33,
                                      63,
                                      64,
                                      65,
                                      127,
                                      128,
                                      255,
                                      256,
                                      65535,
                                      65536,
                                      0x7ffffff0u,
                                      0x7fffffffu,
                                      0x80000000u,
                                      0xffffffffu,
                                      0x100000000u,
                                      0x7fffffffffffffffu,
                                      0x8000000000000000u,
                                      0xffffffffffffffffu,
                                      0xfffffffffffffffeu,
                                      0x3fffffffffffffffu,
                                      0x4000000000000000u,
                                      0x0080000000000000u,
                                      0x007fffffffffffffu,
                                      0x7fc00000u,
                                      0x7f800000u,
                                      0xff800000u,
                                      0x3f800000u,
                                      0x00800000u,
                                      0x00000001u,
                                      0x7fc07f80u,
                                      0x7f7fffffu};
    uint32_t count = sizeof values / sizeof values[0];
    uint32_t pick = below(draw, count + 8);
    return pick < count ? values[pick] : ref_random(draw->seed, draw->count++) >> (8 * (pick % 8));
}

static void put(uint8_t *p, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(value >> (8 * i));
    }
}

/** Changes one to four elements of a tensor in place. */
static void change_elements(uint8_t *file, struct draw *draw) {
    const struct ref_tensor *t = &bundle.tensors[below(draw, (uint32_t)bundle.tensor_count)];
    size_t width = ref_dtype_bytes(t->dtype);
    if (t->bytes == 0) {
        return;
    }
    uint8_t *data = file + ((const uint8_t *)t->data - file);
    for (uint32_t n = 1 + below(draw, 4); n > 0; n--) {
        uint8_t *p = data + width * below(draw, (uint32_t)(t->bytes / width));
        if (below(draw, 3) == 0) { /* a small step */
            uint64_t value = 0;
            memcpy(&value, p, width);
            put(p, width, value + below(draw, 5) - 2);
        } else {
            put(p, width, interesting(draw));
        }
    }
}

/** Gives a tensor data for its shape: the old bytes, repeated. Returns 0 where they do not fit. */
static int resize(struct ref_tensor *t, uint8_t *data) {
    uint64_t bytes = ref_dtype_bytes(t->dtype);
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0 || t->shape[i] > FUZZ_MAX_BYTES) {
            return 0;
        }
        bytes *= (uint64_t)t->shape[i];
        if (bytes > FUZZ_MAX_BYTES) {
            return 0;
        }
    }
    for (size_t i = 0; i < bytes; i++) {
        data[i] = t->bytes > 0 ? ((const uint8_t *)t->data)[i % t->bytes] : 0;
    }
    t->data = data;
    t->bytes = (size_t)bytes;
    return 1;
}

/** A dimension of one tensor, or of several at once where they have the same size. */
static int change_shape(struct draw *draw) {
    struct ref_tensor *t = &bundle.tensors[below(draw, (uint32_t)bundle.tensor_count)];
    if (t->rank == 0) {
        return 0;
    }
    uint32_t axis = below(draw, (uint32_t)t->rank);
    int64_t from = t->shape[axis];
    int64_t to = below(draw, 2) == 0 ? (int64_t)below(draw, 10) : from + below(draw, 5) - 2;
    if (to < 0 || below(draw, 3) == 0) {
        t->shape[axis] = to < 0 ? 0 : to;
        return resize(t, scratch[0]);
    }
    size_t used = 0;
    for (int32_t i = 0; i < bundle.tensor_count; i++) {
        int changed = 0;
        t = &bundle.tensors[i];
        for (int32_t k = 0; k < t->rank; k++) {
            /* The sizes that follow from this one move with it. */
            int64_t step = t->shape[k] - from;
            if (step == 0 || (step == 1 && below(draw, 2) == 0)) {
                t->shape[k] = to + step;
                changed = 1;
            }
        }
        if (changed && (used >= FUZZ_MAX_BYTES || !resize(t, scratch[1]))) {
            return 0;
        }
        if (changed) { /* moved behind what is there */
            if (used + t->bytes > FUZZ_MAX_BYTES) {
                return 0;
            }
            memcpy(scratch[2] + used, t->data, t->bytes);
            t->data = scratch[2] + used;
            used += t->bytes;
        }
    }
    return 1;
}

/** Drops, renames, adds, retypes or reorders tensors. */
static int change_tensors(struct draw *draw) {
    uint32_t count = (uint32_t)bundle.tensor_count;
    struct ref_tensor *t = &bundle.tensors[below(draw, count)];
    struct ref_tensor *other = &bundle.tensors[below(draw, count)];
    struct ref_tensor swap;
    switch (below(draw, 5)) {
    case 0:
        memmove(t, t + 1, (size_t)(&bundle.tensors[count - 1] - t) * sizeof *t);
        bundle.tensor_count--;
        return count > 1;
    case 1:
        set_name(t, names[below(draw, sizeof names / sizeof names[0])]);
        return 1;
    case 2:
        swap = *t;
        *t = *other;
        *other = swap;
        return 1;
    case 3:
        t->dtype = 1 + (int32_t)below(draw, 7);
        return resize(t, scratch[0]);
    default:
        if (count == REF_BUNDLE_MAX_TENSORS) {
            return 0;
        }
        bundle.tensors[count] = *t;
        bundle.tensor_count++;
        set_name(&bundle.tensors[count], names[below(draw, sizeof names / sizeof names[0])]);
        return 1;
    }
}

/** Overwrites a field of the preamble or of a table entry. */
static void change_header(uint8_t *file, size_t size, struct draw *draw) {
    static const uint8_t fields[] = {0, 1, 39, 40, 44, 48, 56, 64, 72, 80, 88, 96, 127};
    if (size < 64 + 128 || below(draw, 8) == 0) {
        static const uint8_t preamble[] = {0, 8, 12, 16, 32, 33, 63};
        size_t at = preamble[below(draw, sizeof preamble)];
        if (at + 8 <= size) {
            put(file + at, at < 16 ? 4 : 8, interesting(draw));
        }
        return;
    }
    uint32_t entries = (uint32_t)((size - 64) / 128);
    uint32_t count = file[12] > 0 && file[12] < entries ? file[12] : entries;
    uint8_t *p = file + 64 + 128 * (size_t)below(draw, count) + fields[below(draw, sizeof fields)];
    put(p, below(draw, 2) == 0 ? 1 : 4, interesting(draw));
}

/** One mutation that leaves a bundle; 0 where it came to nothing. */
static size_t mutate_bundle(uint8_t *file, size_t size, size_t max_size, struct draw *draw) {
    uint32_t kind = below(draw, 8);
    if (kind < 4) {
        change_elements(file, draw);
        return size;
    }
    size_t bytes = 0;
    if (!(kind < 6 ? change_shape(draw) : change_tensors(draw)) ||
        ref_bundle_file_bytes(&bundle, &bytes, NULL) != REF_OK || bytes > max_size ||
        bytes > sizeof built) {
        return 0;
    }
    ref_bundle_build(&bundle, built, bytes);
    memcpy(file, built, bytes);
    return bytes;
}

/** Keeps a bundle whose problem is good; in place of half of the others takes one that was kept. */
static size_t prefer_problems(uint8_t *data, size_t size, size_t limit, struct draw *draw) {
    static struct ref_problem problem;
    uint32_t place = below(draw, KEPT);
    if (ref_problem_bind(&bundle, &problem, NULL) == REF_OK) {
        memcpy(kept[place].file, data, size);
        kept[place].size = size;
    } else if (below(draw, 2) == 0 && kept[place].size > 0 && kept[place].size <= limit) {
        size = kept[place].size;
        memcpy(data, kept[place].file, size);
        ref_bundle_parse(data, size, &bundle, NULL);
    }
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    struct draw draw = {(uint64_t)seed << 4, 0};
    size_t limit = max_size < FUZZ_MAX_BYTES ? max_size : FUZZ_MAX_BYTES;
    size_t bytes = 0;
    uint32_t kind = below(&draw, 16);
    if (kind < 12 && size <= limit && ref_bundle_parse(data, size, &bundle, NULL) == REF_OK) {
        size = prefer_problems(data, size, limit, &draw);
        bytes = mutate_bundle(data, size, limit, &draw);
    }
    if (bytes == 0 && kind < 14) {
        change_header(data, size, &draw);
        bytes = size;
    } else if (bytes == 0) {
        bytes = LLVMFuzzerMutate(data, size, limit);
        if (bytes >= 32 && below(&draw, 2) == 0) {
            put(data + 16, 8, bytes);
        }
    }
    if (below(&draw, 64) != 0) {
        fuzz_seal(data, bytes);
    }
    return bytes;
}

static void print_reach(void) {
    const struct fuzz_reach *r = fuzz_reached();
    fprintf(stderr, "REACH inputs %llu bundles %llu problems %llu run %llu steps %llu\n", r->inputs,
            r->parsed, r->bound, r->run, r->steps);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    return atexit(print_reach);
}
