// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The check that the processor computes as spec/numerics.md says.
 */
#ifndef CAPI_FP_ENVIRONMENT_H
#define CAPI_FP_ENVIRONMENT_H

#include "kdtr.h"

/**
 * Checks rounding to nearest and the handling of denormals in this thread.
 *
 * @param error filled on failure, or NULL
 * @return KDTR_OK or KDTR_FP_ENVIRONMENT
 */
int32_t capi_check_fp_environment(kdtr_error *error);

#endif
