// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Reader and writer of bundles (spec/bundle_format.md). Section names below are those of the page.
 */
#ifndef REF_BUNDLE_H
#define REF_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "bf16.h"
#include "status.h"

#define REF_BUNDLE_MAX_TENSORS 64 /**< Largest tensor_count. */
#define REF_BUNDLE_NAME_BYTES 40  /**< Bytes of a tensor name, NUL included. */
#define REF_BUNDLE_CASE_BYTES 32  /**< Bytes of a case name, NUL included. */

/** A named tensor. */
struct ref_tensor {
    char name[REF_BUNDLE_NAME_BYTES]; /**< NUL-terminated. */
    int32_t dtype;                    /**< enum ref_dtype. */
    int32_t rank;                     /**< 0 to 4. */
    int64_t shape[4];                 /**< Entries from rank on are 1. */
    size_t bytes;                     /**< Bytes of data. */
    const void *data;                 /**< Row-major; 64-byte aligned if the file's bytes are. */
};

/** A parsed or to-be-written bundle. The tensors point into memory that it does not own. */
struct ref_bundle {
    char case_name[REF_BUNDLE_CASE_BYTES];             /**< NUL-terminated. */
    int32_t tensor_count;                              /**< 1 to 64. */
    struct ref_tensor tensors[REF_BUNDLE_MAX_TENSORS]; /**< In file order. */
};

/** Bytes of an element. @param dtype enum ref_dtype @return bytes; 0 for an unknown dtype */
size_t ref_dtype_bytes(int32_t dtype);

/** Name of a dtype as on the page. @param dtype enum ref_dtype @return e.g. "bf16", or "?" */
const char *ref_dtype_name(int32_t dtype);

/**
 * CRC-64/XZ.
 * @param crc   0 to start, or the result for the bytes before
 * @param data  bytes
 * @param bytes how many
 * @return the checksum so far
 */
uint64_t ref_crc64(uint64_t crc, const void *data, size_t bytes);

/**
 * Checks a file's bytes in the page's order and finds its tensors.
 * @param data   the file's bytes; the tensors will point into them
 * @param bytes  how many
 * @param bundle filled on success
 * @param error  filled on failure, or NULL
 * @return REF_OK or a REF_BUNDLE_ code
 */
int32_t ref_bundle_parse(const void *data, size_t bytes, struct ref_bundle *bundle,
                         struct ref_error *error);

/**
 * Size of the file that holds these tensors.
 * @param bundle case_name, tensor_count and each tensor's name, dtype, rank and shape
 * @param bytes  set to the size
 * @param error  filled on failure, or NULL
 * @return REF_OK, or the REF_BUNDLE_ code that a reader would give
 */
int32_t ref_bundle_file_bytes(const struct ref_bundle *bundle, size_t *bytes,
                              struct ref_error *error);

/**
 * Builds the file in memory.
 * @param bundle  as for ref_bundle_file_bytes, with the tensors' data
 * @param file    ref_bundle_file_bytes() bytes to fill
 * @param bytes   ref_bundle_file_bytes()
 */
void ref_bundle_build(const struct ref_bundle *bundle, void *file, size_t bytes);

/**
 * A tensor by name.
 * @param bundle a bundle
 * @param name   tensor name
 * @return the tensor, or NULL
 */
const struct ref_tensor *ref_bundle_find(const struct ref_bundle *bundle, const char *name);

#endif
