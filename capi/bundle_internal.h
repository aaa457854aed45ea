// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the sources of the ABI share about bundles.
 */
#ifndef CAPI_BUNDLE_INTERNAL_H
#define CAPI_BUNDLE_INTERNAL_H

#include "bundle.h"
#include "kdtr_bundle.h"

/**
 * A tensor of ref/ as a public one.
 *
 * @param source tensor, or NULL for an empty one
 * @param tensor filled
 */
void capi_tensor_from_ref(const struct ref_tensor *source, kdtr_tensor *tensor);

/** The parsed bundle. @param bundle a bundle @return it, for ref/ */
const struct ref_bundle *capi_bundle_parsed(const kdtr_bundle *bundle);

#endif
