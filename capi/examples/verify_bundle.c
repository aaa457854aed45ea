// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Example: runs the problem of a bundle on the CPU and compares every bit of the result.
 *
 *     cc -Icapi capi/examples/verify_bundle.c -Lout -lkdtr -Wl,-rpath,out -o verify_bundle
 *     ./verify_bundle tests/data/tree-small.kdtr
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdtr_bundle.h"

/** Everything the example owns. */
struct example {
    kdtr_bundle *bundle;
    kdtr_context *context;
    kdtr_plan *plan;
    void *workspace;
    float *o;
};

static int32_t run(struct example *e, const char *path, kdtr_problem *problem, kdtr_error *error) {
    // [open]
    int32_t status = kdtr_bundle_open(path, &e->bundle, error);
    if (status == KDTR_OK) {
        problem->struct_size = sizeof *problem;
        status = kdtr_bundle_problem(e->bundle, problem, error); /* checks slots and trees too */
    }
    // [open]
    // [plan]
    if (status == KDTR_OK) {
        status = kdtr_context_create_cpu(&e->context, error);
    }
    if (status == KDTR_OK) {
        status = kdtr_plan_create(e->context, &problem->config, &e->plan, error);
    }
    size_t bytes = kdtr_plan_workspace_bytes(e->plan);
    if (status == KDTR_OK) {
        status = kdtr_memory_alloc(e->context, bytes, &e->workspace, error);
    }
    // [plan]
    // [run]
    if (status == KDTR_OK) {
        e->o = malloc(problem->o.bytes);
        problem->args.o = e->o; /* lse stays NULL: not wanted */
        status = kdtr_run(e->plan, &problem->args, e->workspace, bytes, NULL, error);
    }
    // [run]
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: verify_bundle FILE\n");
        return 2;
    }
    struct example e = {0};
    kdtr_problem problem = {0};
    kdtr_error error = {0};
    int code = 2;
    if (run(&e, argv[1], &problem, &error) == KDTR_OK) {
        // [compare]
        code = memcmp(e.o, problem.o.data, problem.o.bytes) == 0 ? 0 : 1;
        printf("%s: %s\n", kdtr_bundle_name(e.bundle), code == 0 ? "equal bits" : "differs");
        // [compare]
    } else {
        fprintf(stderr, "%s: %s: %s\n", kdtr_status_name(error.code), error.field, error.text);
    }
    // [close]
    free(e.o);
    kdtr_memory_free(e.context, e.workspace);
    kdtr_plan_destroy(e.plan);
    kdtr_context_destroy(e.context);
    kdtr_bundle_close(e.bundle);
    // [close]
    return code;
}
