// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Named cases: problems generated to the bit (spec/bundle_format.md, "Named cases").
 */
#ifndef REF_CASES_H
#define REF_CASES_H

#include "bundle.h"

/** Number of named cases. @return the number */
int32_t ref_case_count(void);
/** Name of a case. @param index its number @return static string, NULL outside */
const char *ref_case_name(int32_t index);
/** What a case is for. @param index its number @return static string, NULL outside */
const char *ref_case_summary(int32_t index);

/**
 * Generates a case as a bundle file in memory, its expected o and lse by the reference.
 * @param name  name of a case
 * @param file  set to malloc'ed bytes, 64-byte aligned, released with free; NULL on failure
 * @param bytes set to their number
 * @param error filled on failure, or NULL
 * @return REF_OK, REF_NOT_FOUND or REF_OUT_OF_MEMORY
 */
int32_t ref_case_generate(const char *name, void **file, size_t *bytes, struct ref_error *error);

#endif
