// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Contexts and their memory: checks arguments and dispatches to the backend.
 */
#include "backend.h"

void kdtr_context_destroy(kdtr_context *context) {
    if (context != NULL) {
        context->backend->destroy(context);
    }
}

const char *kdtr_context_device_name(const kdtr_context *context) {
    return context == NULL ? "" : context->device_name;
}

int32_t kdtr_memory_alloc(kdtr_context *context, size_t bytes, void **pointer, kdtr_error *error) {
    if (pointer != NULL) {
        *pointer = NULL;
    }
    if (context == NULL || pointer == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, context == NULL ? "context" : "pointer",
                         "it is NULL");
    }
    if (bytes > SIZE_MAX / 2) {
        return capi_fail(error, KDTR_OUT_OF_MEMORY, "bytes", "%zu bytes", bytes);
    }
    return context->backend->alloc(context, bytes, pointer, error);
}

void kdtr_memory_free(kdtr_context *context, void *pointer) {
    if (context != NULL && pointer != NULL) {
        context->backend->release(context, pointer);
    }
}

/** CPU contexts have no streams. */
static int32_t check_stream(const kdtr_context *context, kdtr_stream stream, kdtr_error *error) {
    if (context->backend->is_host && stream != NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "stream", "a CPU context takes NULL only");
    }
    return KDTR_OK;
}

int32_t kdtr_memory_copy(kdtr_context *context, void *target, const void *source, size_t bytes,
                         int32_t direction, kdtr_stream stream, kdtr_error *error) {
    if (context == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "context", "it is NULL");
    }
    if (direction != KDTR_COPY_TO_DEVICE && direction != KDTR_COPY_TO_HOST) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "direction", "%d is not a kdtr_copy",
                         direction);
    }
    if (bytes > 0 && (target == NULL || source == NULL)) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, target == NULL ? "target" : "source",
                         "it is NULL");
    }
    int32_t status = check_stream(context, stream, error);
    if (status != KDTR_OK || bytes == 0) {
        return status;
    }
    return context->backend->copy(context, target, source, bytes, direction, stream, error);
}

int32_t kdtr_synchronize(kdtr_context *context, kdtr_stream stream, kdtr_error *error) {
    if (context == NULL) {
        return capi_fail(error, KDTR_INVALID_ARGUMENT, "context", "it is NULL");
    }
    int32_t status = check_stream(context, stream, error);
    return status != KDTR_OK ? status : context->backend->synchronize(context, stream, error);
}
