// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Comparing a result with what a bundle expects.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/** What a comparison of one tensor found. */
struct finding {
    size_t count;   /* elements */
    size_t beyond;  /* elements that fail */
    size_t worst;   /* element with the largest error; one that fails before one that passes */
    double error;   /* its error; infinite where the difference is NaN */
    double bound;   /* its bound */
    double ratio;   /* largest error / bound of all elements */
    double largest; /* largest expected magnitude */
};

/** Encoding of a float: equal values may differ in it, and NaN may be equal. */
static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/** bound NULL asks for equal bits. */
static struct finding compare(const float *actual, const float *expected, const double *bound,
                              size_t count) {
    struct finding f = {.count = count, .error = -1.0};
    int worst_passes = 1;
    for (size_t i = 0; i < count; i++) {
        int same = bits_of(actual[i]) == bits_of(expected[i]);
        double difference = fabs((double)actual[i] - (double)expected[i]);
        double allowed = bound == NULL ? 0.0 : bound[i];
        /* NaN is within no bound, and a bound that is not finite would let anything pass. */
        int pass = bound == NULL ? same : difference <= allowed && allowed < (double)INFINITY;
        double error = bound == NULL && same      ? 0.0
                       : difference == difference ? difference
                                                  : (double)INFINITY;
        f.beyond += pass ? 0 : 1;
        if (pass < worst_passes || (pass == worst_passes && error > f.error)) {
            worst_passes = pass;
            f.error = error;
            f.worst = i;
            f.bound = allowed;
        }
        double ratio = error > 0.0 ? error / allowed : 0.0;
        f.ratio = ratio > f.ratio ? ratio : f.ratio;
        double size = fabs((double)expected[i]);
        f.largest = size > f.largest ? size : f.largest; /* false for NaN */
    }
    return f;
}

static void print_finding(const kdtr_tensor *tensor, const struct finding *f, int exact,
                          const char *verdict) {
    int64_t at[3] = {0, 0, 0};
    size_t rest = f->worst;
    for (int32_t i = tensor->rank - 1; i >= 0; i--) {
        at[i] = (int64_t)(rest % (size_t)tensor->shape[i]);
        rest /= (size_t)tensor->shape[i];
    }
    char where[64];
    snprintf(where, sizeof where, tensor->rank == 2 ? "[%lld,%lld]" : "[%lld,%lld,%lld]",
             (long long)at[0], (long long)at[1], (long long)at[2]);
    char shape[96];
    int failed = f->beyond > 0 || strcmp(verdict, "ok") != 0;
    const char *colour = !tool_colour() ? "" : failed ? "\033[31m" : "\033[32m";
    printf("  %s %s: worst error %.3g at %s, ", tensor->name,
           tool_shape(tensor, shape, sizeof shape), f->error, where);
    if (exact) {
        printf("%zu of %zu elements differ in bits: ", f->beyond, f->count);
    } else {
        printf("bound %.3g there, worst error/bound %.3g, %zu of %zu elements beyond: ", f->bound,
               f->ratio, f->beyond, f->count);
    }
    printf("%s%s%s\n", colour, verdict, colour[0] != '\0' ? "\033[0m" : "");
}

/** A verify problem: every bit of o and lse. */
static int compare_exact(const struct tool_session *s) {
    const struct {
        const kdtr_tensor *tensor;
        const float *actual;
    } pairs[] = {{&s->problem.o, s->o}, {&s->problem.lse, s->lse}};
    int code = TOOL_AGREE;
    for (size_t i = 0; i < 2; i++) {
        const kdtr_tensor *tensor = pairs[i].tensor;
        struct finding f =
            compare(pairs[i].actual, tensor->data, NULL, tensor->bytes / sizeof(float));
        print_finding(tensor, &f, 1, f.beyond == 0 ? "ok" : "MISMATCH");
        code = f.beyond == 0 ? code : TOOL_MISMATCH;
    }
    return code;
}

/** Fails with one text. */
static int32_t fail(kdtr_error *error, int32_t code, const char *text) {
    snprintf(error->text, sizeof error->text, "%s", text);
    return error->code = code;
}

/** The bound of a module problem's output: absorption, attention and expansion, times 2. */
static int32_t module_bound(const struct tool_session *s, double *q_error, double *o_bound,
                            double *bound, kdtr_error *error) {
    const kdtr_problem *p = &s->problem;
    const kdtr_plan_config *c = &p->config;
    int32_t nope = (int32_t)p->q_nope.shape[2];
    int32_t value = (int32_t)p->module_output.shape[2];
    kdtr_context *context = NULL;
    kdtr_plan *plan = NULL;
    /* The bound is computed on the CPU, whatever the backend. */
    int32_t status = kdtr_context_create_cpu(&context, error);
    status = status != KDTR_OK ? status : kdtr_plan_create(context, c, &plan, error);
    if (status == KDTR_OK &&
        kdtr_absorb_query_bound(c->row_capacity, c->num_heads, nope, value, c->latent_dim,
                                p->q_nope.data, p->kv_b_proj.data, q_error) != KDTR_OK) {
        status = fail(error, KDTR_INVALID_ARGUMENT, "there is no bound for its absorption");
    }
    if (status == KDTR_OK) {
        status = kdtr_reference_bound(plan, &p->args, q_error, o_bound, NULL, error);
    }
    if (status == KDTR_OK &&
        kdtr_expand_value_bound(c->row_capacity, c->num_heads, nope, value, c->latent_dim, s->o,
                                o_bound, p->kv_b_proj.data, bound) != KDTR_OK) {
        status = fail(error, KDTR_INVALID_ARGUMENT, "there is no bound for its expansion");
    }
    kdtr_plan_destroy(plan);
    kdtr_context_destroy(context);
    /* The module's own softmax is float32 and obeys the same bound: the distance of the two is at
     * most twice it (spec/numerics.md, eq-bound-module). */
    for (size_t i = 0; status == KDTR_OK && i < p->module_output.bytes / sizeof(float); i++) {
        bound[i] *= 2.0;
    }
    return status;
}

/** A module problem: the expanded output within its bound. */
static int compare_module(const struct tool_session *s, kdtr_error *error) {
    const kdtr_problem *p = &s->problem;
    const kdtr_plan_config *c = &p->config;
    size_t latent = (size_t)c->row_capacity * (size_t)c->num_heads * (size_t)c->latent_dim;
    size_t count = p->module_output.bytes / sizeof(float);
    float *out = calloc(count, sizeof *out);
    double *q_error = calloc(latent, sizeof *q_error);
    double *o_bound = calloc(latent, sizeof *o_bound);
    double *bound = calloc(count, sizeof *bound);
    int32_t status = out != NULL && q_error != NULL && o_bound != NULL && bound != NULL
                         ? KDTR_OK
                         : fail(error, KDTR_OUT_OF_MEMORY, "no memory for the bounds");
    status = status != KDTR_OK ? status : module_bound(s, q_error, o_bound, bound, error);
    if (status == KDTR_OK &&
        kdtr_expand_value(c->row_capacity, c->num_heads, (int32_t)p->q_nope.shape[2],
                          (int32_t)p->module_output.shape[2], c->latent_dim, s->o,
                          p->kv_b_proj.data, out) != KDTR_OK) {
        status = fail(error, KDTR_INVALID_ARGUMENT, "its output cannot be expanded");
    }
    int code = TOOL_BAD_INPUT;
    if (status == KDTR_OK) {
        struct finding f = compare(out, p->module_output.data, bound, count);
        const char *verdict = f.beyond > 0         ? "MISMATCH"
                              : !(f.largest > 0.0) ? "MISMATCH: all zero, nothing was checked"
                                                   : "ok";
        print_finding(&p->module_output, &f, 0, verdict);
        code = strcmp(verdict, "ok") == 0 ? TOOL_AGREE : TOOL_MISMATCH;
    }
    free(out);
    free(q_error);
    free(o_bound);
    free(bound);
    return code;
}

int tool_compare(const struct tool_session *session, kdtr_error *error) {
    return session->problem.is_module ? compare_module(session, error) : compare_exact(session);
}
