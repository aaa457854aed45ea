// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Versions and status names; the public codes against those of ref/.
 */
#include "status.h"

#include "accept.h"
#include "backend.h"
#include "draft_tree.h"
#include "error.h"
#include "kdtr_step.h"

// clang-format off
/** Every status once: checks its value against ref/ and gives its name. */
#define STATUSES(X)                                                                               \
    X(INVALID_ARGUMENT) X(STRUCT_SIZE) X(RESERVED_NOT_ZERO) X(UNSUPPORTED) X(SIZE_OVERFLOW)       \
    X(MISALIGNED) X(WORKSPACE) X(OUT_OF_MEMORY) X(NO_DEVICE) X(DEVICE_ERROR) X(FP_ENVIRONMENT)    \
    X(IO) X(VERSION_MISMATCH) X(NOT_FOUND) X(BUNDLE_MAGIC) X(BUNDLE_VERSION) X(BUNDLE_TRUNCATED)  \
    X(BUNDLE_TRAILING) X(BUNDLE_HEADER) X(BUNDLE_CHECKSUM) X(BUNDLE_NAME) X(BUNDLE_DUPLICATE)     \
    X(BUNDLE_DTYPE) X(BUNDLE_SHAPE) X(BUNDLE_OFFSET) X(BUNDLE_MISSING) X(BAD_SCALE) X(BAD_INDPTR) \
    X(BAD_TREE) X(BAD_SLOT) X(BAD_LENGTH)
// clang-format on

/** A status has the same number on both sides. */
#define ASSERT_STATUS(name) \
    _Static_assert((int)KDTR_##name == (int)REF_##name, "ref/status.h and kdtr.h differ");
STATUSES(ASSERT_STATUS)
_Static_assert((int)KDTR_OK == (int)REF_OK, "ref/status.h and kdtr.h differ");
_Static_assert((int)KDTR_U8 == (int)REF_U8 && (int)KDTR_I32 == (int)REF_I32 &&
                   (int)KDTR_U32 == (int)REF_U32 && (int)KDTR_I64 == (int)REF_I64 &&
                   (int)KDTR_BF16 == (int)REF_BF16 && (int)KDTR_F32 == (int)REF_F32 &&
                   (int)KDTR_F64 == (int)REF_F64,
               "ref/bf16.h and kdtr.h differ");
_Static_assert((int)KDTR_MASK_NONE == (int)REF_MASK_NONE &&
                   (int)KDTR_MASK_CHAIN == (int)REF_MASK_CHAIN &&
                   (int)KDTR_MASK_PARENTS == (int)REF_MASK_PARENTS &&
                   (int)KDTR_MASK_PACKED == (int)REF_MASK_PACKED &&
                   (int)KDTR_ADDRESSING_CSR == (int)REF_ADDRESSING_CSR &&
                   (int)KDTR_ADDRESSING_TABLE == (int)REF_ADDRESSING_TABLE &&
                   (int)KDTR_REQUEST_ROWS == (int)REF_REQUEST_ROWS &&
                   (int)KDTR_REQUEST_NODES == (int)REF_REQUEST_NODES &&
                   (int)KDTR_REQUEST_PREFIX == (int)REF_REQUEST_PREFIX &&
                   (int)KDTR_REQUEST_TREE == (int)REF_REQUEST_TREE,
               "ref/attention.h and kdtr.h differ");
_Static_assert((int)KDTR_DRAFT_NOT_FINITE == (int)REF_DRAFT_NOT_FINITE &&
                   (int)KDTR_DRAFT_POSITIVE == (int)REF_DRAFT_POSITIVE &&
                   (int)KDTR_DRAFT_TOKEN == (int)REF_DRAFT_TOKEN &&
                   (int)KDTR_DRAFT_ORDER == (int)REF_DRAFT_ORDER &&
                   (int)KDTR_DRAFT_DUPLICATE == (int)REF_DRAFT_DUPLICATE &&
                   (int)KDTR_ACCEPT_LINK == (int)REF_ACCEPT_LINK,
               "ref/draft_tree.h or ref/accept.h and kdtr_step.h differ");
_Static_assert(sizeof(((kdtr_error *)0)->text) == sizeof(((struct ref_error *)0)->text) &&
                   sizeof(((kdtr_error *)0)->field) == sizeof(((struct ref_error *)0)->field),
               "the error records differ");

uint32_t kdtr_version(void) {
    return KDTR_VERSION_MAJOR * 1000000u + KDTR_VERSION_MINOR * 1000u + KDTR_VERSION_PATCH;
}

uint32_t kdtr_numerics_version(void) {
    return KDTR_NUMERICS_VERSION;
}

/** The name of a status, as a case of a switch. */
#define NAME_STATUS(name) \
    case KDTR_##name:     \
        return #name;

const char *kdtr_status_name(int32_t status) {
    switch (status) {
    case KDTR_OK:
        return "OK";
        STATUSES(NAME_STATUS)
    default:
        return "UNKNOWN";
    }
}

int32_t capi_fail_from_ref(kdtr_error *error, const struct ref_error *cause) {
    return capi_fail(error, cause->code, cause->field, "%s", cause->text);
}
