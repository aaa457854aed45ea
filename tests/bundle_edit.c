// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Makes bundles that are wrong on purpose, for the tests of the tool:
 *
 *     bundle_edit IN OUT TENSOR INDEX VALUE   changes an element; the checksum fits again
 *     bundle_edit empty IN OUT TENSOR         makes its last dimension 0; the checksum fits
 *     bundle_edit zero IN OUT TENSOR          makes its elements 0; the checksum fits
 *     bundle_edit truncate IN OUT BYTES       keeps the first bytes, as they are
 *     bundle_edit flip IN OUT OFFSET          inverts a byte; the checksum no longer fits
 *
 * INDEX counts elements in row-major order. VALUE is a number, for floats also nan or inf; ^N flips
 * bit N of the element instead. Exit 0, or 2 with a line on standard error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"

/** Bytes of a file. */
struct bytes {
    unsigned char *data; /**< 64-byte aligned. */
    size_t count;        /**< How many. */
};

static int fail(const char *subject, const char *text) {
    fprintf(stderr, "bundle_edit: %s: %s\n", subject, text);
    return 2;
}

static int read_file(const char *path, struct bytes *bytes) {
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return fail(path, strerror(errno));
    }
    long size = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
    int failed = size < 0 || fseek(stream, 0, SEEK_SET) != 0;
    bytes->count = failed ? 0 : (size_t)size;
    bytes->data = aligned_alloc(64, (bytes->count / 64 + 1) * 64);
    failed = failed || bytes->data == NULL ||
             fread(bytes->data, 1, bytes->count, stream) != bytes->count;
    fclose(stream);
    return failed ? fail(path, "it cannot be read") : 0;
}

static int write_file(const char *path, const void *data, size_t count) {
    FILE *stream = fopen(path, "wb");
    if (stream == NULL) {
        return fail(path, strerror(errno));
    }
    int failed = fwrite(data, 1, count, stream) != count;
    failed = fclose(stream) != 0 || failed;
    return failed ? fail(path, "it cannot be written") : 0;
}

/** Reads a number that must be below a limit. */
static int parse_below(const char *text, size_t limit, size_t *value) {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || number >= limit) {
        return fail(text, "not a number in range");
    }
    *value = (size_t)number;
    return 0;
}

/** Stores a float element. */
static int set_float(unsigned char *element, int32_t dtype, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0') {
        return fail(text, "not a number");
    }
    float narrow = (float)value;
    uint16_t half = ref_bf16_from_f32(narrow);
    if (dtype == REF_F64) {
        memcpy(element, &value, sizeof value);
    } else if (dtype == REF_F32) {
        memcpy(element, &narrow, sizeof narrow);
    } else {
        memcpy(element, &half, sizeof half);
    }
    return 0;
}

/** Stores an integer element. */
static int set_integer(unsigned char *element, size_t width, const char *text) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0') {
        return fail(text, "not a number");
    }
    for (size_t i = 0; i < width; i++) { /* little-endian, as the file is */
        element[i] = (unsigned char)((unsigned long long)value >> (8 * i));
    }
    return 0;
}

static int set_element(unsigned char *element, int32_t dtype, const char *text) {
    size_t width = ref_dtype_bytes(dtype);
    if (text[0] == '^') {
        size_t bit;
        int code = parse_below(text + 1, 8 * width, &bit);
        if (code == 0) {
            element[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        }
        return code;
    }
    if (dtype == REF_F32 || dtype == REF_F64 || dtype == REF_BF16) {
        return set_float(element, dtype, text);
    }
    return set_integer(element, width, text);
}

/** Builds a file of these tensors, with a checksum that fits. */
static int write_bundle(const struct ref_bundle *bundle, const char *path) {
    struct ref_error error;
    size_t count;
    if (ref_bundle_file_bytes(bundle, &count, &error) != REF_OK) {
        return fail(path, error.text);
    }
    unsigned char *file = malloc(count);
    if (file == NULL) {
        return fail(path, "no memory");
    }
    ref_bundle_build(bundle, file, count);
    int code = write_file(path, file, count);
    free(file);
    return code;
}

/** Changes one element, or with `index` NULL all of a tensor as `value` says: empty or zero. */
static int edit(struct bytes *in, const char *path, const char *name, const char *index,
                const char *value) {
    struct ref_bundle bundle;
    struct ref_error error;
    if (ref_bundle_parse(in->data, in->count, &bundle, &error) != REF_OK) {
        return fail(name, error.text);
    }
    int32_t number = 0;
    while (number < bundle.tensor_count && strcmp(bundle.tensors[number].name, name) != 0) {
        number++;
    }
    struct ref_tensor *tensor = &bundle.tensors[number];
    if (number == bundle.tensor_count || (index == NULL && tensor->rank == 0)) {
        return fail(name, "there is no such tensor, or it is a scalar");
    }
    unsigned char *data = in->data + ((const unsigned char *)tensor->data - in->data);
    size_t width = ref_dtype_bytes(tensor->dtype);
    size_t at;
    int code = 0;
    if (index != NULL) {
        code = parse_below(index, tensor->bytes / width, &at);
        code = code != 0 ? code : set_element(data + at * width, tensor->dtype, value);
    } else if (strcmp(value, "zero") == 0) {
        memset(data, 0, tensor->bytes);
    } else {
        tensor->shape[tensor->rank - 1] = 0;
    }
    return code != 0 ? code : write_bundle(&bundle, path);
}

/** truncate and flip. */
static int damage(struct bytes *in, int flip, char **argv) {
    size_t number;
    int code = parse_below(argv[4], in->count, &number);
    if (code != 0) {
        return code;
    }
    if (flip) {
        in->data[number] = (unsigned char)~in->data[number];
    }
    return write_file(argv[3], in->data, flip ? in->count : number);
}

int main(int argc, char **argv) {
    const char *mode = argc == 5 ? argv[1] : "";
    int flip = strcmp(mode, "flip") == 0;
    int whole = strcmp(mode, "empty") == 0 || strcmp(mode, "zero") == 0;
    if (argc != 6 && !flip && !whole && strcmp(mode, "truncate") != 0) {
        return fail("usage", "IN OUT TENSOR INDEX VALUE | empty IN OUT TENSOR | "
                             "zero IN OUT TENSOR | truncate IN OUT BYTES | flip IN OUT OFFSET");
    }
    struct bytes in = {NULL, 0};
    int code = read_file(argc == 6 ? argv[1] : argv[2], &in);
    if (code == 0 && argc == 6) {
        code = edit(&in, argv[2], argv[3], argv[4], argv[5]);
    } else if (code == 0) {
        code = whole ? edit(&in, argv[3], argv[4], NULL, mode) : damage(&in, flip, argv);
    }
    free(in.data);
    return code;
}
