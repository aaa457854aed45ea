// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr bench`: loads libkdtr_bench, which is there where the CUDA library was built, and calls it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

/** How the loader begins if it does not find the library itself, in every locale but the cause. */
static const char absent[] = "libkdtr_bench.so.0: cannot open shared object file";

/** What is said then. */
static const char not_built[] =
    "libkdtr_bench.so.0 is not there; it is built with the CUDA library, where there is an nvcc "
    "(ninja cuda)";

int tool_bench(int argc, char **argv) {
    /* Not linked: the tool must build and start without any of CUDA. It is not unloaded either,
     * since threads of the CUDA runtime inside it may outlive the call. */
    void *library = dlopen("libkdtr_bench.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        /* A library that is there and does not load has a text that says why. */
        const char *cause = dlerror();
        int missing = cause == NULL || strncmp(cause, absent, strlen(absent)) == 0;
        fprintf(stderr, "kdtr: bench: %s\n", missing ? not_built : cause);
        return TOOL_BAD_INPUT;
    }
    void *symbol = dlsym(library, "kdtr_bench_main");
    int (*bench)(int, char **) = NULL;
    memcpy(&bench, &symbol, sizeof bench); /* ISO C has no cast from object to function pointer */
    if (bench == NULL) {
        fprintf(stderr, "kdtr: bench: libkdtr_bench.so.0 has no kdtr_bench_main\n");
        return TOOL_BAD_INPUT;
    }
    return bench(argc, argv);
}
