// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr gen`.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool.h"

/** A bundle is renamed over its file: over a device or a pipe that would destroy it. */
static int32_t check_target(const char *path, kdtr_error *error) {
    struct stat target;
    if (stat(path, &target) == 0 && !S_ISREG(target.st_mode)) {
        snprintf(error->field, sizeof error->field, "path");
        snprintf(error->text, sizeof error->text, "it is there and not a regular file");
        error->code = KDTR_IO;
    }
    return error->code;
}

int tool_gen(int argc, char **argv) {
    const char *name = NULL;
    const char *path = NULL;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            for (int32_t k = 0; k < kdtr_case_count(); k++) {
                printf("%-14s %s\n", kdtr_case_name(k), kdtr_case_summary(k));
            }
            return TOOL_AGREE;
        }
        if (strcmp(argv[i], "-o") == 0) {
            if (++i == argc) {
                return tool_usage("gen", "-o needs a file name");
            }
            path = argv[i];
        } else if (argv[i][0] == '-') {
            return tool_usage("gen", "there is no option '%s'", argv[i]);
        } else if (name != NULL) {
            return tool_usage("gen", "one case at a time, not also '%s'", argv[i]);
        } else {
            name = argv[i];
        }
    }
    if (name == NULL || path == NULL) {
        return tool_usage("gen", name == NULL ? "a case is missing" : "-o FILE is missing");
    }
    kdtr_error error = {0};
    kdtr_bundle *bundle = NULL;
    if (check_target(path, &error) != KDTR_OK) {
        return tool_fail(path, &error);
    }
    if (kdtr_case_generate(name, &bundle, &error) != KDTR_OK) {
        return tool_fail(name, &error);
    }
    int32_t status = kdtr_bundle_write(bundle, path, &error);
    kdtr_bundle_close(bundle);
    return status == KDTR_OK ? TOOL_AGREE : tool_fail(path, &error);
}
