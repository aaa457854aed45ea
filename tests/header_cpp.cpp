// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The public headers alone in C++, and the layout of their structs.
 */
#include "kdtr_step.h"

#include "kdtr_cuda.h"

#include "kdtr_bundle.h"

#include "kdtr.h"

#include "abi_layout.h"

#include <cstdio>
#include <type_traits>

#define ASSERT_SIZE(type, size)                                                     \
    static_assert(sizeof(type) == (size) && std::is_standard_layout<type>::value && \
                      std::is_trivial<type>::value,                                 \
                  #type);
#define ASSERT_FIELD(type, field, offset, size)                                       \
    static_assert(offsetof(type, field) == (offset) && sizeof(type::field) == (size), \
                  #type "." #field);

ABI_LAYOUT(ASSERT_SIZE, ASSERT_FIELD)

int main() {
    bool same = kdtr_numerics_version() == KDTR_NUMERICS_VERSION && kdtr_case_count() > 0;
    std::printf("%s header_cpp: layout of the structs\n", same ? "ok" : "not ok");
    return same ? 0 : 1;
}
