// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr selftest`: every kernel of the card at hand against the CPU reference, on named cases.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kdtr_cuda.h"
#include "tool.h"

/**
 * What a weight's rounding to bfloat16 may cost, as a share of the largest value: 2^-8, twice, for
 * everything else on these short contexts (spec/numerics.md, eq-flash-o).
 */
#define FLASH_SHARE 0x1p-7
/** The same of the log-sum-exp: scores and their sum on matrix units (eq-flash-lse). */
#define FLASH_LSE 0x1p-10

/** Named cases that are run: every mask mode and addressing, none of them long. */
static const char *const cases[] = {"tree-small", "decode",   "mask-any", "masked-first",
                                    "ragged",     "table-1",  "table-64", "two-pools",
                                    "tree-4k",    "step-kimi"};

/** One kernel under test. */
struct candidate {
    const char *name;
    int32_t implementation;
    uint32_t flags;
    int32_t cases;  /* that it took */
    size_t count;   /* elements */
    size_t decoded; /* of these compared with a decode */
    size_t unequal; /* that have not a decode's bits */
    size_t beyond;  /* that differ, or are beyond their bound */
    double largest; /* error / bound */
};

/** Reads the arguments. */
static int parse_arguments(int argc, char **argv, struct tool_session *s) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--exact") != 0) {
            return tool_usage("selftest", "selftest does not take '%s'", argv[i]);
        }
        s->exact = 1;
    }
    s->naive = 1; /* a CUDA context */
    return TOOL_AGREE;
}

/** Largest finite magnitude of the cache's latent part. */
static double largest_value(const kdtr_problem *problem) {
    const kdtr_plan_config *c = &problem->config;
    double largest = 0.0;
    for (int64_t i = 0; i < problem->args.num_slots * c->latent_dim; i++) {
        int64_t at = i / c->latent_dim * problem->args.kv_latent_stride + i % c->latent_dim;
        float x;
        if (c->kv_dtype == KDTR_F32) {
            x = ((const float *)problem->args.kv_latent)[at];
        } else {
            uint32_t bits = (uint32_t)((const uint16_t *)problem->args.kv_latent)[at] << 16;
            memcpy(&x, &bits, sizeof x);
        }
        double size = fabs((double)x);
        largest = size > largest && size < (double)INFINITY ? size : largest;
    }
    return largest;
}

/** Whether two numbers have the same bits: NaN equals NaN, and zeros of two signs differ. */
static int same_bits(const float *a, const float *b) {
    uint32_t left;
    uint32_t right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left == right;
}

/** Compares with the expected tensor of that name: bound 0 asks for equal bits. */
static int32_t compare(struct candidate *candidate, const kdtr_bundle *bundle, const char *name,
                       const float *actual, double bound, kdtr_error *error) {
    kdtr_tensor tensor = {.struct_size = sizeof tensor};
    int32_t status = kdtr_bundle_find(bundle, name, &tensor, error);
    const float *expected = tensor.data;
    size_t count = status == KDTR_OK ? tensor.bytes / sizeof *expected : 0;
    for (size_t i = 0; i < count; i++) {
        int same = same_bits(&actual[i], &expected[i]);
        double difference = fabs((double)actual[i] - (double)expected[i]);
        candidate->beyond += !same && !(difference <= bound);
        if (!same && bound > 0.0 && difference / bound > candidate->largest) {
            candidate->largest = difference / bound;
        }
    }
    candidate->count += count;
    return status;
}

/** Plans a problem for a candidate. */
static int32_t make_plan(struct tool_session *s, const struct candidate *candidate,
                         kdtr_error *error) {
    kdtr_plan_config config = s->problem.config;
    config.implementation = candidate->implementation;
    config.flags = candidate->flags;
    return kdtr_plan_create(s->context, &config, &s->plan, error);
}

/** Runs a planned problem; o and lse are the session's until free_outputs. */
static int32_t run_plan(struct tool_session *s, kdtr_error *error) {
    const kdtr_plan_config *c = &s->problem.config;
    size_t pairs = (size_t)c->row_capacity * (size_t)c->num_heads;
    int32_t status = KDTR_OK;
    s->o = calloc(pairs * (size_t)c->latent_dim, sizeof *s->o);
    s->lse = calloc(pairs, sizeof *s->lse);
    if (s->o == NULL || s->lse == NULL) {
        snprintf(error->text, sizeof error->text, "no memory for %zu rows of output", pairs);
        status = error->code = KDTR_OUT_OF_MEMORY;
    }
    status = status != KDTR_OK ? status : tool_run(s, error);
    kdtr_plan_destroy(s->plan);
    s->plan = NULL;
    return status;
}

/** Releases the outputs of run_plan. */
static void free_outputs(struct tool_session *s) {
    free(s->o);
    free(s->lse);
    s->o = s->lse = NULL;
}

/** In exact mode: the nodes' decodes, run alone, must have the bits of the verify call. */
static int32_t compare_decodes(struct tool_session *s, struct candidate *candidate,
                               kdtr_error *error) {
    struct tool_session other = *s;
    struct tool_decodes decodes;
    int32_t status = tool_make_decodes(&s->problem, &decodes, error);
    if (status == KDTR_UNSUPPORTED) {
        return KDTR_OK; /* the nodes of this case are compared in others */
    }
    other.o = other.lse = NULL;
    other.problem = decodes.problem;
    memcpy(other.arrays, decodes.arrays, sizeof other.arrays);
    status = status != KDTR_OK ? status : make_plan(&other, candidate, error);
    status = status != KDTR_OK ? status : run_plan(&other, error);
    const kdtr_plan_config *c = &s->problem.config;
    size_t pairs = (size_t)c->row_capacity * (size_t)c->num_heads;
    size_t elements = status == KDTR_OK ? pairs * (size_t)c->latent_dim : 0;
    for (size_t i = 0; i < elements; i++) {
        candidate->unequal += !same_bits(&s->o[i], &other.o[i]);
    }
    for (size_t i = 0; i < (status == KDTR_OK ? pairs : 0); i++) {
        candidate->unequal += !same_bits(&s->lse[i], &other.lse[i]);
    }
    candidate->decoded += status == KDTR_OK ? elements + pairs : 0;
    free_outputs(&other);
    tool_free_decodes(&decodes);
    return status;
}

/** Runs a case with a candidate; one that does not take it is passed over. */
static int32_t run_case(struct tool_session *s, struct candidate *candidate, kdtr_error *error) {
    int equal = candidate->implementation == KDTR_IMPLEMENTATION_NAIVE;
    double bound = equal ? 0.0 : FLASH_SHARE * largest_value(&s->problem);
    int32_t status = make_plan(s, candidate, error);
    if (status == KDTR_UNSUPPORTED) {
        return KDTR_OK;
    }
    status = status != KDTR_OK ? status : run_plan(s, error);
    status = status != KDTR_OK ? status : compare(candidate, s->bundle, "o", s->o, bound, error);
    status = status != KDTR_OK
                 ? status
                 : compare(candidate, s->bundle, "lse", s->lse, equal ? 0.0 : FLASH_LSE, error);
    if (status == KDTR_OK && (candidate->flags & KDTR_PLAN_EXACT) != 0) {
        status = compare_decodes(s, candidate, error);
    }
    candidate->cases += status == KDTR_OK;
    free_outputs(s);
    return status;
}

/** All cases with one candidate, and a line about it. Returns an exit code. */
static int check_candidate(struct tool_session *s, struct candidate *candidate) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kdtr_error error = {0};
        s->problem.struct_size = sizeof s->problem;
        int32_t status = kdtr_case_generate(cases[i], &s->bundle, &error);
        status = status != KDTR_OK ? status : kdtr_bundle_problem(s->bundle, &s->problem, &error);
        status = status != KDTR_OK ? status : run_case(s, candidate, &error);
        kdtr_bundle_close(s->bundle);
        s->bundle = NULL;
        if (status != KDTR_OK) {
            return tool_fail(cases[i], &error);
        }
    }
    int failed = candidate->cases == 0 || candidate->beyond > 0;
    printf("  %s: %d cases, %zu of %zu elements ", candidate->name, candidate->cases,
           candidate->beyond, candidate->count);
    if (candidate->implementation == KDTR_IMPLEMENTATION_NAIVE) {
        printf("differ in bits: ");
    } else {
        printf("beyond, worst error/bound %.3g: ", candidate->largest);
    }
    printf("%s\n", failed ? "FAILED" : "ok");
    if ((candidate->flags & KDTR_PLAN_EXACT) != 0) {
        int unequal = candidate->decoded == 0 || candidate->unequal > 0;
        printf("  %s: %zu of %zu elements have not the bits of a decode: %s\n", candidate->name,
               candidate->unequal, candidate->decoded, unequal ? "FAILED" : "ok");
        failed |= unequal;
    }
    return failed ? TOOL_MISMATCH : TOOL_AGREE;
}

/** The verdict of the context on exact mode. */
static int check_exact(const struct tool_session *s) {
    static const char *const texts[] = {"not available on this device", "ok", "FAILED"};
    void *symbol = dlsym(s->cuda_library, "kdtr_cuda_context_exact");
    int32_t (*verdict)(const kdtr_context *) = NULL;
    memcpy(&verdict, &symbol, sizeof verdict);
    int32_t exact = verdict == NULL ? KDTR_EXACT_UNCHECKED : verdict(s->context);
    printf("  exact mode: rows of an mma do not depend on their neighbours: %s\n", texts[exact]);
    return exact == KDTR_EXACT_HOLDS ? TOOL_AGREE : TOOL_MISMATCH;
}

int tool_selftest(int argc, char **argv) {
    struct tool_session s = {0};
    kdtr_error error = {0};
    struct candidate candidates[] = {{.name = "naive", .implementation = KDTR_IMPLEMENTATION_NAIVE},
                                     {.name = "flash", .implementation = KDTR_IMPLEMENTATION_FLASH},
                                     {.name = "flash, exact mode",
                                      .implementation = KDTR_IMPLEMENTATION_FLASH,
                                      .flags = KDTR_PLAN_EXACT}};
    int code = parse_arguments(argc, argv, &s);
    if (code != TOOL_AGREE) {
        return code;
    }
    if (tool_open_context(&s, &error) != KDTR_OK) {
        return tool_fail("selftest", &error);
    }
    const char *device = kdtr_context_device_name(s.context);
    printf("%s: kdtr %d.%d.%d, numerics %u\n", device, KDTR_VERSION_MAJOR, KDTR_VERSION_MINOR,
           KDTR_VERSION_PATCH, kdtr_numerics_version());
    for (int i = 0; i < 2 + s.exact && code != TOOL_BAD_INPUT; i++) {
        int one = i == 2 ? check_exact(&s) : TOOL_AGREE;
        one = one == TOOL_AGREE ? check_candidate(&s, &candidates[i]) : one;
        code = one > code ? one : code;
    }
    if (code != TOOL_BAD_INPUT) {
        printf("%s: %s\n", device, code == TOOL_AGREE ? "passed" : "FAILED");
    }
    tool_close(&s);
    return code;
}
