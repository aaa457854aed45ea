// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The public headers alone in C, and the layout of their structs.
 */
#include "kdtr_step.h"

#include "kdtr_cuda.h"

#include "kdtr_bundle.h"

#include "kdtr.h"

#include "abi_layout.h"

#include <stdio.h>

#define ASSERT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type);
#define ASSERT_FIELD(type, field, offset, size)                                               \
    _Static_assert(offsetof(type, field) == (offset) && sizeof(((type *)0)->field) == (size), \
                   #type "." #field);

ABI_LAYOUT(ASSERT_SIZE, ASSERT_FIELD)
_Static_assert(sizeof(kdtr_stream) == sizeof(void *) && sizeof(int) == sizeof(int32_t),
               "not an LP64 machine");

int main(void) {
    int same = kdtr_numerics_version() == KDTR_NUMERICS_VERSION && kdtr_case_count() > 0;
    printf("%s header_c: layout of the structs\n", same ? "ok" : "not ok");
    return same ? 0 : 1;
}
