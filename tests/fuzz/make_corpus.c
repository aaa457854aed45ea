// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Writes the seeds of the fuzzer's corpus: make_corpus FOLDER. Small problems of every mode, a
 * module problem, and a file for each kind of fault that the format has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "case_builder.h"
#include "fuzz_bundle.h"
#include "random.h"

// clang-format off
static const struct ref_case cases[] = {
    {"none", "", 1, {3}, {2}, 1, 4, 2, REF_MASK_NONE, REF_F32, .window = 2},
    {"chain", "", 1, {3}, {4}, 2, 4, 2, REF_MASK_CHAIN, REF_BF16, .window = 2},
    {"parents", "", 1, {5}, {6}, 2, 8, 2, REF_MASK_PARENTS, REF_F32, .window = 3},
    {"packed", "", 1, {2}, {5}, 1, 4, 2, REF_MASK_PACKED, REF_BF16, .window = 3, .q_bf16 = 1},
    {"any", "", 2, {2, 1}, {3, 3}, 1, 4, 2, REF_MASK_PACKED, REF_F32, .any_mask = 1},
    {"masked", "", 3, {0, 3, 1}, {2, 2, 1}, 1, 4, 2, REF_MASK_PACKED, REF_F32, .any_mask = 2},
    {"empty-prefix", "", 1, {0}, {3}, 1, 4, 2, REF_MASK_PARENTS, REF_F32, .window = 2},
    {"no-rope", "", 1, {2}, {3}, 1, 4, 0, REF_MASK_PARENTS, REF_F32, .window = 2},
    {"ragged", "", 4, {3, 2, 0, 1}, {2, 0, 3, 1}, 1, 4, 2, REF_MASK_PARENTS, REF_BF16,
     .q_bf16 = 1, .wide = 1, .spare_rows = 2},
    {"table-1", "", 2, {3, 1}, {2, 2}, 1, 4, 2, REF_MASK_PARENTS, REF_F32, .page_size = 1},
    {"table-16", "", 2, {17, 0}, {2, 1}, 1, 4, 2, REF_MASK_CHAIN, REF_BF16, .page_size = 16,
     .wide = 1},
    {"table-tree", "", 2, {2, 3}, {2, 2}, 1, 4, 2, REF_MASK_PARENTS, REF_F32, .page_size = 1,
     .tree_list = 1},
    {"two-pools", "", 1, {3}, {3}, 1, 4, 2, REF_MASK_PARENTS, REF_F32, .two_pools = 1,
     .tree_list = 1},
    {"nodes-33", "", 1, {1}, {33}, 1, 4, 2, REF_MASK_PACKED, REF_BF16, .window = 9},
    {"step", "", 2, {2, 1}, {7, 4}, 1, 4, 2, REF_MASK_PARENTS, REF_F32, .draft_positions = 3,
     .draft_ranks = 4, .vocab_size = 50},
    {"step-packed", "", 3, {1, 2, 1}, {1, 0, 5}, 1, 4, 2, REF_MASK_PACKED, REF_BF16,
     .spare_rows = 1, .draft_positions = 2, .draft_ranks = 3, .vocab_size = 9},
    {"heads-3", "", 1, {1}, {2}, 3, 4, 2, REF_MASK_CHAIN, REF_F32, .window = 1},
};

/** A module problem: name, type, rank, shape. */
static const struct ref_tensor module_tensors[] = {
    {"scale", REF_F32, 0, {1, 1, 1, 1}, 0, NULL},
    {"q_nope", REF_F32, 3, {3, 2, 3, 1}, 0, NULL},
    {"q_rope", REF_F32, 3, {3, 2, 2, 1}, 0, NULL},
    {"kv_b_proj", REF_F32, 2, {10, 4, 1, 1}, 0, NULL},
    {"kv", REF_F32, 2, {6, 6, 1, 1}, 0, NULL},
    {"node_indptr", REF_I32, 1, {2, 1, 1, 1}, 0, NULL},
    {"slots", REF_I32, 1, {5, 1, 1, 1}, 0, NULL},
    {"indptr", REF_I32, 1, {2, 1, 1, 1}, 0, NULL},
    {"mask_mode", REF_I32, 0, {1, 1, 1, 1}, 0, NULL},
    {"parents", REF_I32, 1, {3, 1, 1, 1}, 0, NULL},
    {"module_output", REF_F32, 3, {3, 2, 2, 1}, 0, NULL},
    {"note", REF_F64, 4, {1, 0, 2, 1}, 0, NULL},
};

/** One fault: bytes written over a good file, its checksum made to fit. */
static const struct fault {
    const char *name;
    size_t offset;
    const char *bytes;
    size_t length;
    int sealed;
} faults[] = {
    {"bad-magic", 0, "X", 1, 1},
    {"bad-version", 8, "\2", 1, 1},
    {"bad-count", 12, "\0", 1, 1},
    {"bad-count-64", 12, "\100", 1, 1},
    {"bad-file-bytes", 16, "\377\377\377\377\377\377\377\377", 8, 1},
    {"bad-checksum", 24, "\0\0", 2, 0},
    {"bad-case-name", 32, "/", 1, 1},
    {"bad-tensor-name", 192, "Q", 1, 1},
    {"bad-duplicate", 192, "scale\0\0\0", 8, 1},
    {"bad-dtype", 232, "\11", 1, 1},
    {"bad-rank", 236, "\5", 1, 1},
    {"bad-shape-overflow", 240, "\0\0\0\0\0\0\0\20", 8, 1},
    {"bad-shape-sign", 240, "\0\0\0\0\0\0\0\200", 8, 1},
    {"bad-offset", 272, "\300\377\377\377\377\377\377\377", 8, 1},
    {"bad-bytes", 280, "\1", 1, 1},
    {"bad-reserved", 319, "\1", 1, 1},
};
// clang-format on

static void fail(const char *what) {
    fprintf(stderr, "make_corpus: %s\n", what);
    exit(EXIT_FAILURE);
}

static void save(const char *folder, const char *name, const void *data, size_t bytes) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.kdtr", folder, name);
    FILE *stream = fopen(path, "wb");
    if (stream == NULL || fwrite(data, 1, bytes, stream) != bytes || fclose(stream) != 0) {
        fail(path);
    }
}

static void save_faults(const char *folder, const uint8_t *good, size_t bytes) {
    static uint8_t file[FUZZ_MAX_BYTES];
    if (bytes + 64 > sizeof file) {
        fail("the good file is too large");
    }
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        memcpy(file, good, bytes);
        memcpy(file + faults[i].offset, faults[i].bytes, faults[i].length);
        if (faults[i].sealed) {
            fuzz_seal(file, bytes);
        }
        save(folder, faults[i].name, file, bytes);
    }
    save(folder, "bad-truncated", good, bytes - 1);
    save(folder, "bad-preamble", good, 63);
    memset(file, 0, sizeof file);
    memcpy(file, good, bytes);
    for (int i = 0; i < 8; i++) {
        file[16 + i] = (uint8_t)((bytes + 64) >> (8 * i));
    }
    fuzz_seal(file, bytes + 64);
    save(folder, "bad-trailing", file, bytes + 64);
}

/** Values of a module problem: small ones for floats; what the lists need for integers. */
static void fill(struct ref_tensor *t, unsigned char *data) {
    static const int32_t slots[] = {4, 0, 2, 5, 1};
    static const int32_t parents[] = {-1, 0, 0};
    int64_t count = t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
    for (int64_t i = 0; t->dtype == REF_F32 && i < count; i++) {
        float value = ref_random_normal(77, (uint64_t)i);
        value = strcmp(t->name, "scale") == 0 ? 0.5f : value;
        memcpy(data + i * 4, &value, sizeof value);
    }
    const int32_t nodes[] = {0, 3};
    const int32_t tokens[] = {0, 5};
    const int32_t mode[] = {REF_MASK_PARENTS};
    const void *list = strcmp(t->name, "slots") == 0         ? slots
                       : strcmp(t->name, "parents") == 0     ? parents
                       : strcmp(t->name, "node_indptr") == 0 ? nodes
                       : strcmp(t->name, "indptr") == 0      ? tokens
                                                             : mode;
    if (t->dtype == REF_I32) {
        memcpy(data, list, (size_t)count * sizeof(int32_t));
    }
    t->data = data;
}

static void save_module(const char *folder) {
    static unsigned char values[sizeof module_tensors / sizeof module_tensors[0]][1024];
    static unsigned char file[FUZZ_MAX_BYTES];
    struct ref_bundle bundle = {.case_name = "module"};
    for (size_t i = 0; i < sizeof module_tensors / sizeof module_tensors[0]; i++) {
        bundle.tensors[i] = module_tensors[i];
        fill(&bundle.tensors[i], values[i]);
        bundle.tensor_count++;
    }
    size_t bytes = 0;
    if (ref_bundle_file_bytes(&bundle, &bytes, NULL) != REF_OK || bytes > sizeof file) {
        fail("the module problem");
    }
    ref_bundle_build(&bundle, file, bytes);
    save(folder, "module", file, bytes);
}

/** A row table without table_rows and with fewer rows than requests. */
static void save_short_table(const char *folder, const void *good, size_t bytes) {
    static unsigned char file[FUZZ_MAX_BYTES];
    static struct ref_bundle bundle;
    if (ref_bundle_parse(good, bytes, &bundle, NULL) != REF_OK) {
        fail("the short table");
    }
    for (int32_t i = 0; i < bundle.tensor_count; i++) {
        struct ref_tensor *t = &bundle.tensors[i];
        if (strcmp(t->name, "table_rows") == 0) {
            strcpy(t->name, "table_note");
        }
        t->shape[0] -= strcmp(t->name, "row_table") == 0;
    }
    size_t size = 0;
    if (ref_bundle_file_bytes(&bundle, &size, NULL) != REF_OK || size > sizeof file) {
        fail("the short table");
    }
    ref_bundle_build(&bundle, file, size);
    save(folder, "short-table", file, size);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fail("usage: make_corpus FOLDER");
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *file;
        size_t bytes;
        struct ref_error error = {0};
        if (ref_case_build(&cases[i], &file, &bytes, &error) != REF_OK) {
            fail(error.text);
        }
        save(argv[1], cases[i].name, file, bytes);
        if (i == 0) {
            save_faults(argv[1], file, bytes);
        }
        if (strcmp(cases[i].name, "table-tree") == 0) {
            save_short_table(argv[1], file, bytes);
        }
        free(file);
    }
    save_module(argv[1]);
    return EXIT_SUCCESS;
}
