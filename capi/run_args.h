// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * From a run's arguments to a call.
 */
#ifndef CAPI_RUN_ARGS_H
#define CAPI_RUN_ARGS_H

#include "backend.h"

/**
 * Checks a run's arguments without reading what they point to, and merges them with the plan.
 *
 * @param plan         a plan
 * @param args         arguments
 * @param with_outputs 0: o and lse are not looked at
 * @param call         set to the whole call
 * @param error        filled on failure, or NULL
 * @return KDTR_OK, INVALID_ARGUMENT, STRUCT_SIZE, RESERVED_NOT_ZERO, UNSUPPORTED or MISALIGNED
 */
int32_t capi_bind_args(const kdtr_plan *plan, const kdtr_run_args *args, int with_outputs,
                       struct ref_attention *call, kdtr_error *error);

#endif
