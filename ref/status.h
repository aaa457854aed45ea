// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Status codes and the error record of ref/. The public codes in capi/kdtr.h have equal values,
 * which capi/context.c asserts; spec/c_abi.md lists them.
 */
#ifndef REF_STATUS_H
#define REF_STATUS_H

#include <stdint.h>

/** What a fallible function of ref/ returns. 0 is success. */
enum ref_status {
    REF_OK = 0,                /**< Success. */
    REF_INVALID_ARGUMENT = 1,  /**< A pointer or value that the contract forbids. */
    REF_STRUCT_SIZE = 2,       /**< struct_size is not one this library knows. */
    REF_RESERVED_NOT_ZERO = 3, /**< A reserved field or flag is set. */
    REF_UNSUPPORTED = 4,       /**< Meaningful, but this backend or version cannot do it. */
    REF_SIZE_OVERFLOW = 5,     /**< A size does not fit its type. */
    REF_MISALIGNED = 6,        /**< A pointer or stride breaks its alignment. */
    REF_WORKSPACE = 7,         /**< The workspace is too small. */
    REF_OUT_OF_MEMORY = 8,     /**< An allocation failed. */
    REF_NO_DEVICE = 9,         /**< There is no CUDA device or no usable driver. */
    REF_DEVICE_ERROR = 10,     /**< The device or its runtime reported an error. */
    REF_FP_ENVIRONMENT = 11,   /**< Rounding mode, FTZ or DAZ would change result bits. */
    REF_IO = 12,               /**< A file could not be opened, read or written. */
    REF_VERSION_MISMATCH = 13, /**< Two parts of the library are of different versions. */
    REF_NOT_FOUND = 14,        /**< No tensor or case of that name. */
    REF_BUNDLE_MAGIC = 32,     /**< Not a bundle. */
    REF_BUNDLE_VERSION = 33,   /**< A bundle of another version. */
    REF_BUNDLE_TRUNCATED = 34, /**< The file ends too early. */
    REF_BUNDLE_TRAILING = 35,  /**< Bytes follow the end. */
    REF_BUNDLE_HEADER = 36,    /**< Preamble, reserved bytes or padding. */
    REF_BUNDLE_CHECKSUM = 37,  /**< The checksum does not fit the bytes. */
    REF_BUNDLE_NAME = 38,      /**< A tensor name that is not allowed. */
    REF_BUNDLE_DUPLICATE = 39, /**< Two tensors of one name. */
    REF_BUNDLE_DTYPE = 40,     /**< Unknown or unfitting dtype. */
    REF_BUNDLE_SHAPE = 41,     /**< Rank, shape or byte count. */
    REF_BUNDLE_OFFSET = 42,    /**< Data that do not stand where they must. */
    REF_BUNDLE_MISSING = 43,   /**< A tensor that the problem needs is not there. */
    REF_BAD_SCALE = 64,        /**< scale is not a finite number above 0. */
    REF_BAD_INDPTR = 65,       /**< node_indptr or indptr: order, start or end. */
    REF_BAD_TREE = 66,         /**< parents: a cycle, a forward reference or no root. */
    REF_BAD_SLOT = 67,         /**< A slot outside the pool. */
    REF_BAD_LENGTH = 68        /**< A prefix or node count outside what the plan allows. */
};

/** Where a failure is described. Owned by the caller; never needs release. */
struct ref_error {
    int32_t code;   /**< enum ref_status. */
    char field[40]; /**< The argument, tensor or header field at fault; "" if none. */
    char text[212]; /**< One line for people. */
};

/**
 * Fills an error record and returns its code, so that a caller can write
 * `return ref_fail(error, REF_BAD_SLOT, "slots", "slot %lld is outside", slot)`.
 *
 * @param error  record to fill, or NULL
 * @param code   enum ref_status, not REF_OK
 * @param field  name of what is at fault, or ""
 * @param format printf format of the one-line text
 * @return code
 */
int32_t ref_fail(struct ref_error *error, int32_t code, const char *field, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;

#endif
