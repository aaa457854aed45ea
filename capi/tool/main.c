// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * kdtr: the command-line tool.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

int tool_fail(const char *subject, const kdtr_error *error) {
    fprintf(stderr, "kdtr: %s: %s%s%s (%s)\n", subject, error->field,
            error->field[0] != '\0' ? ": " : "", error->text, kdtr_status_name(error->code));
    return TOOL_BAD_INPUT;
}

int tool_usage(const char *command, const char *format, ...) {
    va_list arguments;
    fputs("kdtr: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; try 'kdtr help%s%s'\n", command != NULL ? " " : "",
            command != NULL ? command : "");
    return TOOL_BAD_INPUT;
}

int tool_colour(void) {
    const char *no_colour = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0');
}

const char *tool_shape(const kdtr_tensor *tensor, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (int32_t i = 0; i < tensor->rank && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? "," : "",
                                 (long long)tensor->shape[i]);
    }
    if (used < size) {
        snprintf(text + used, size - used, "]");
    }
    return text;
}

static const struct {
    const char *name;
    tool_command *run;
} commands[] = {{"gen", tool_gen},       {"info", tool_info},         {"verify", tool_verify},
                {"step", tool_step},     {"selftest", tool_selftest}, {"bench", tool_bench},
                {"report", tool_report}, {"help", tool_help}};

static int is_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        return tool_usage(NULL, "a command is missing");
    }
    if (is_help(argv[1])) {
        return tool_print_help(NULL);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("kdtr %d.%d.%d, numerics %u\n", KDTR_VERSION_MAJOR, KDTR_VERSION_MINOR,
               KDTR_VERSION_PATCH, kdtr_numerics_version());
        return TOOL_AGREE;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            for (int k = 2; k < argc; k++) {
                if (is_help(argv[k])) {
                    return tool_print_help(argv[1]);
                }
            }
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    return tool_usage(NULL, "there is no command '%s'", argv[1]);
}

int main(int argc, char **argv) {
    int code = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("kdtr: standard output");
        return TOOL_BAD_INPUT;
    }
    return code;
}
