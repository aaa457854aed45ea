// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The canonical order of spec/numerics.md a second time, one scalar operation after the other. The
 * reference's loops are shaped for vector units; this one is shaped like the page.
 */
#ifndef TESTS_CANONICAL_F32_H
#define TESTS_CANONICAL_F32_H

#include "implementations.h"

/**
 * Attention of a whole call in the canonical order.
 *
 * @param call    host pointers; its outputs are not touched
 * @param outputs filled, lse and status too; test_outputs_free releases it
 */
void attention_canonical_f32(const struct ref_attention *call, struct test_outputs *outputs);

#endif
