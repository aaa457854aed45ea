// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The error record.
 */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

int32_t ref_fail(struct ref_error *error, int32_t code, const char *field, const char *format,
                 ...) {
    if (error != NULL) {
        error->code = code;
        snprintf(error->field, sizeof error->field, "%s", field);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return code;
}
