// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Bundles and named cases of the ABI: files, memory and ownership around ref/bundle.h.
 */
#include "kdtr_bundle.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "bundle_internal.h"
#include "cases.h"
#include "error.h"
#include "fp_environment.h"

/** An open bundle: the file's bytes and the tensors found in them. */
struct kdtr_bundle {
    void *file;               /**< 64-byte aligned. */
    size_t bytes;             /**< Their number. */
    struct ref_bundle parsed; /**< Points into file. */
};

/** Takes over malloc'ed bytes; frees them on failure. */
static int32_t adopt(void *file, size_t bytes, kdtr_bundle **bundle, kdtr_error *error) {
    kdtr_bundle *created = calloc(1, sizeof *created);
    if (created == NULL) {
        free(file);
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for a bundle");
    }
    created->file = file;
    created->bytes = bytes;
    struct ref_error cause;
    if (ref_bundle_parse(file, bytes, &created->parsed, &cause) != REF_OK) {
        kdtr_bundle_close(created);
        return capi_fail_from_ref(error, &cause);
    }
    *bundle = created;
    return KDTR_OK;
}

static int32_t fail_io(kdtr_error *error, const char *what) {
    return capi_fail(error, KDTR_IO, "path", "%s: %s", what, strerror(errno));
}

/** Size of an open file that can seek, or -1. */
static long file_size(FILE *stream) {
    if (fseek(stream, 0, SEEK_END) != 0) {
        return -1;
    }
    long size = ftell(stream);
    return fseek(stream, 0, SEEK_SET) == 0 ? size : -1;
}

int32_t kdtr_bundle_open(const char *path, kdtr_bundle **bundle, kdtr_error *error) {
    if (bundle != NULL) {
        *bundle = NULL;
    }
    if (path == NULL || bundle == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, path == NULL ? "path" : "bundle",
                         "it is NULL");
    }
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return fail_io(error, "open");
    }
    long size = file_size(stream);
    if (size < 0 || size == LONG_MAX) { /* LONG_MAX: a folder */
        fclose(stream);
        return capi_fail(error, KDTR_IO, "path", "it is not a regular file");
    }
    void *file = aligned_alloc(64, ((size_t)size / 64 + 1) * 64);
    if (file == NULL) {
        fclose(stream);
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for %ld bytes", size);
    }
    size_t got = fread(file, 1, (size_t)size, stream);
    int failed = ferror(stream) || got != (size_t)size;
    fclose(stream);
    if (failed) {
        free(file);
        return fail_io(error, "read");
    }
    return adopt(file, (size_t)size, bundle, error);
}

int32_t kdtr_bundle_open_memory(const void *data, size_t bytes, kdtr_bundle **bundle,
                                kdtr_error *error) {
    if (bundle != NULL) {
        *bundle = NULL;
    }
    if (data == NULL || bundle == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, data == NULL ? "data" : "bundle",
                         "it is NULL");
    }
    void *file = bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (file == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for %zu bytes", bytes);
    }
    memcpy(file, data, bytes);
    return adopt(file, bytes, bundle, error);
}

void kdtr_bundle_close(kdtr_bundle *bundle) {
    if (bundle != NULL) {
        free(bundle->file);
        free(bundle);
    }
}

int32_t kdtr_bundle_write(const kdtr_bundle *bundle, const char *path, kdtr_error *error) {
    if (bundle == NULL || path == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, bundle == NULL ? "bundle" : "path",
                         "it is NULL");
    }
    size_t length = strlen(path);
    char *temporary = malloc(length + sizeof ".part");
    if (temporary == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for a name");
    }
    memcpy(temporary, path, length);
    memcpy(temporary + length, ".part", sizeof ".part");
    int32_t status = KDTR_OK;
    FILE *stream = fopen(temporary, "wb");
    if (stream == NULL) {
        status = fail_io(error, "create");
    } else {
        size_t written = fwrite(bundle->file, 1, bundle->bytes, stream);
        int failed = written != bundle->bytes;
        if (fclose(stream) != 0 || failed) {
            status = fail_io(error, "write");
        } else if (rename(temporary, path) != 0) {
            status = fail_io(error, "rename");
        }
        if (status != KDTR_OK) {
            remove(temporary);
        }
    }
    free(temporary);
    return status;
}

const char *kdtr_bundle_name(const kdtr_bundle *bundle) {
    return bundle == NULL ? "" : bundle->parsed.case_name;
}

const void *kdtr_bundle_data(const kdtr_bundle *bundle, size_t *bytes) {
    if (bytes != NULL) {
        *bytes = bundle == NULL ? 0 : bundle->bytes;
    }
    return bundle == NULL ? NULL : bundle->file;
}

int32_t kdtr_bundle_tensor_count(const kdtr_bundle *bundle) {
    return bundle == NULL ? 0 : bundle->parsed.tensor_count;
}

void capi_tensor_from_ref(const struct ref_tensor *source, kdtr_tensor *tensor) {
    memset(tensor, 0, sizeof *tensor);
    tensor->struct_size = sizeof *tensor;
    if (source != NULL) {
        tensor->dtype = source->dtype;
        tensor->rank = source->rank;
        memcpy(tensor->shape, source->shape, sizeof tensor->shape);
        tensor->bytes = source->bytes;
        tensor->data = source->data;
        memcpy(tensor->name, source->name, sizeof tensor->name);
    }
}

static int32_t check_tensor_args(const kdtr_bundle *bundle, const kdtr_tensor *tensor,
                                 kdtr_error *error) {
    if (bundle == NULL || tensor == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, bundle == NULL ? "bundle" : "tensor",
                         "it is NULL");
    }
    if (tensor->struct_size != sizeof *tensor) {
        return capi_fail(error, KDTR_STRUCT_SIZE, "struct_size", "%u, not %zu", tensor->struct_size,
                         sizeof *tensor);
    }
    return KDTR_OK;
}

int32_t kdtr_bundle_tensor(const kdtr_bundle *bundle, int32_t index, kdtr_tensor *tensor,
                           kdtr_error *error) {
    int32_t status = check_tensor_args(bundle, tensor, error);
    if (status != KDTR_OK) {
        return status;
    }
    if (index < 0 || index >= bundle->parsed.tensor_count) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "index", "%d is not 0 to %d", index,
                         bundle->parsed.tensor_count - 1);
    }
    capi_tensor_from_ref(&bundle->parsed.tensors[index], tensor);
    return KDTR_OK;
}

int32_t kdtr_bundle_find(const kdtr_bundle *bundle, const char *name, kdtr_tensor *tensor,
                         kdtr_error *error) {
    int32_t status = check_tensor_args(bundle, tensor, error);
    if (status != KDTR_OK) {
        return status;
    }
    if (name == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "name", "it is NULL");
    }
    const struct ref_tensor *found = ref_bundle_find(&bundle->parsed, name);
    if (found == NULL) {
        return capi_fail(error, KDTR_NOT_FOUND, "name", "the bundle has no tensor %s", name);
    }
    capi_tensor_from_ref(found, tensor);
    return KDTR_OK;
}

const struct ref_bundle *capi_bundle_parsed(const kdtr_bundle *bundle) {
    return &bundle->parsed;
}

int32_t kdtr_case_count(void) {
    return ref_case_count();
}

const char *kdtr_case_name(int32_t index) {
    return ref_case_name(index);
}

const char *kdtr_case_summary(int32_t index) {
    return ref_case_summary(index);
}

int32_t kdtr_case_generate(const char *name, kdtr_bundle **bundle, kdtr_error *error) {
    if (bundle != NULL) {
        *bundle = NULL;
    }
    if (name == NULL || bundle == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, name == NULL ? "name" : "bundle",
                         "it is NULL");
    }
    int32_t status = capi_check_fp_environment(error);
    if (status != KDTR_OK) {
        return status;
    }
    void *file;
    size_t bytes;
    struct ref_error cause;
    if (ref_case_generate(name, &file, &bytes, &cause) != REF_OK) {
        return capi_fail_from_ref(error, &cause);
    }
    return adopt(file, bytes, bundle, error);
}
