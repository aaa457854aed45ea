// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Errors of ref/ as errors of the ABI.
 */
#ifndef CAPI_ERROR_H
#define CAPI_ERROR_H

#include "kdtr.h"
#include "status.h"

/**
 * Copies an error of ref/.
 *
 * @param error record, or NULL
 * @param cause what ref/ filled
 * @return its code
 */
int32_t capi_fail_from_ref(kdtr_error *error, const struct ref_error *cause);

#endif
