// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Bundles and named cases of the ABI: files, memory and ownership around ref/bundle.h.
 */
#include "kdtr_bundle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/** Size of a regular file, or -1: a folder or a pipe would block or lie. */
static long long regular_size(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) {
        return -1;
    }
    errno = EINVAL; /* what is said of a file of another kind */
    return S_ISREG(status.st_mode) ? (long long)status.st_size : -1;
}

int32_t kdtr_bundle_open(const char *path, kdtr_bundle **bundle, kdtr_error *error) {
    if (bundle != NULL) {
        *bundle = NULL;
    }
    if (path == NULL || bundle == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, path == NULL ? "path" : "bundle",
                         "it is NULL");
    }
    long long size = regular_size(path);
    if (size < 0) {
        return fail_io(error, errno == EINVAL ? "it is not a regular file" : "open");
    }
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return fail_io(error, "open");
    }
    void *file = aligned_alloc(64, ((size_t)size / 64 + 1) * 64);
    if (file == NULL) {
        fclose(stream);
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for %lld bytes", size);
    }
    errno = EIO; /* where a file has shrunk, fread sets nothing */
    size_t got = fread(file, 1, (size_t)size, stream);
    int failed = got != (size_t)size;
    int32_t status = failed ? fail_io(error, "read") : KDTR_OK;
    fclose(stream);
    if (failed) {
        free(file);
        return status;
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

/** Creates a new file beside `path` for writing; its name is left in `temporary`. */
static FILE *create_beside(const char *path, char *temporary, size_t length) {
    FILE *stream = NULL;
    for (int i = 0; stream == NULL && i < 100; i++) {
        snprintf(temporary, length, "%s.part%d", path, i);
        stream = fopen(temporary, "wbx"); /* x: never somebody else's file, nor through a link */
        if (stream == NULL && errno != EEXIST) {
            return NULL;
        }
    }
    return stream;
}

int32_t kdtr_bundle_write(const kdtr_bundle *bundle, const char *path, kdtr_error *error) {
    if (bundle == NULL || path == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, bundle == NULL ? "bundle" : "path",
                         "it is NULL");
    }
    struct stat old;
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode)) {
        /* A rename would replace a device or a pipe by a file. */
        return capi_fail(error, KDTR_IO, "path", "it exists and is not a regular file");
    }
    size_t length = strlen(path) + sizeof ".part99";
    char *temporary = malloc(length);
    if (temporary == NULL) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "", "no memory for a name");
    }
    FILE *stream = create_beside(path, temporary, length);
    int32_t status = stream == NULL ? fail_io(error, "create") : KDTR_OK;
    if (stream != NULL) {
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
