// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What a backend gives the C ABI: the contexts and plans behind kdtr.h, and a table of functions.
 *
 * libkdtr_cuda sees only libkdtr's public symbols, so nothing here needs a hidden one.
 */
#ifndef CAPI_BACKEND_H
#define CAPI_BACKEND_H

#include <stdarg.h>
#include <stdio.h>

#include "attention.h"
#include "kdtr.h"

/** A context; a backend fills it and frees it in destroy. */
struct kdtr_context {
    uint32_t version;                   /**< kdtr_version() of the library that made it. */
    const struct kdtr_backend *backend; /**< Its functions. */
    int32_t device;                     /**< CUDA device number; 0 on the CPU. */
    int32_t sm_count;                   /**< Multiprocessors; 0 on the CPU. */
    uint32_t loaded;                    /**< Bit i: entry i of the table of a CUDA context. */
    int32_t exact;                      /**< kdtr_exact_verdict of a CUDA context; 0 on the CPU. */
    char device_name[128];              /**< NUL-terminated. */
};

/** A plan: the configuration and what follows from it. */
struct kdtr_plan {
    const kdtr_context *context; /**< The context it was made from. */
    kdtr_plan_config config;     /**< As given, defaults filled in. */
    struct ref_attention call;   /**< Shapes, limits and scale; pointers NULL. */
    size_t workspace_bytes;      /**< Of one run. */
    int32_t implementation;      /**< What AUTO became. */
};

/** Functions of a backend. Arguments have been checked, but for what only the backend knows. */
struct kdtr_backend {
    /** Sets implementation and workspace_bytes, or refuses the plan. */
    int32_t (*plan)(const kdtr_context *context, struct kdtr_plan *plan, kdtr_error *error);
    /** Runs or enqueues a call. */
    int32_t (*run)(const struct kdtr_plan *plan, const struct ref_attention *call, void *workspace,
                   kdtr_stream stream, kdtr_error *error);
    /** kdtr_memory_alloc. */
    int32_t (*alloc)(const kdtr_context *context, size_t bytes, void **pointer, kdtr_error *error);
    /** kdtr_memory_free. */
    void (*release)(const kdtr_context *context, void *pointer);
    /** kdtr_memory_copy. */
    int32_t (*copy)(const kdtr_context *context, void *target, const void *source, size_t bytes,
                    int32_t direction, kdtr_stream stream, kdtr_error *error);
    /** kdtr_synchronize. */
    int32_t (*synchronize)(const kdtr_context *context, kdtr_stream stream, kdtr_error *error);
    /** Frees the context. */
    void (*destroy)(kdtr_context *context);
    /** 1: the context's memory is host memory. */
    int32_t is_host;
};

/**
 * Fills an error record and returns its code.
 *
 * @param error  record, or NULL
 * @param code   kdtr_status
 * @param field  what is at fault, or ""
 * @param format printf format of the one-line text
 * @return code
 */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static inline int32_t
capi_fail(kdtr_error *error, int32_t code, const char *field, const char *format, ...) {
    if (error != NULL) {
        error->code = code;
        snprintf(error->field, sizeof error->field, "%s", field);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return code;
}

#endif
