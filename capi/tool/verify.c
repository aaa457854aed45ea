// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * `kdtr verify`.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

/** Reads --threads. */
static int parse_threads(const char *text, int32_t *threads) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > 256) {
        return tool_usage("verify", "--threads takes 1 to 256, not '%s'", text);
    }
    *threads = (int32_t)value;
    return TOOL_AGREE;
}

static int parse_arguments(int argc, char **argv, struct tool_session *s) {
    for (int i = 0; i < argc; i++) {
        int backend = strcmp(argv[i], "--backend") == 0;
        int threads = strcmp(argv[i], "--threads") == 0;
        if ((backend || threads) && ++i == argc) {
            return tool_usage("verify", "%s needs a value", argv[i - 1]);
        }
        if (backend) {
            s->naive = strcmp(argv[i], "naive") == 0;
            if (!s->naive && strcmp(argv[i], "reference") != 0) {
                return tool_usage("verify", "there is no backend '%s'", argv[i]);
            }
        } else if (threads) {
            int code = parse_threads(argv[i], &s->threads);
            if (code != TOOL_AGREE) {
                return code;
            }
        } else if (argv[i][0] == '-') {
            return tool_usage("verify", "there is no option '%s'", argv[i]);
        } else if (s->path != NULL) {
            return tool_usage("verify", "one file at a time, not also '%s'", argv[i]);
        } else {
            s->path = argv[i];
        }
    }
    if (s->path == NULL) {
        return tool_usage("verify", "a file is missing");
    }
    if (s->naive && s->threads != 0) {
        return tool_usage("verify", "--threads is for the reference");
    }
    return TOOL_AGREE;
}

/** Output buffers, and the absorbed queries of a module problem. */
static int32_t prepare(struct tool_session *s, kdtr_error *error) {
    const kdtr_plan_config *c = &s->problem.config;
    size_t pairs = (size_t)c->row_capacity * (size_t)c->num_heads;
    size_t bytes = pairs * (size_t)c->latent_dim * sizeof(float);
    s->o = malloc(bytes);
    s->lse = malloc(pairs * sizeof *s->lse);
    s->q_latent = s->problem.is_module ? malloc(bytes) : NULL;
    if (s->o == NULL || s->lse == NULL || (s->problem.is_module && s->q_latent == NULL)) {
        snprintf(error->text, sizeof error->text, "no memory for %zu bytes of output", bytes);
        return error->code = KDTR_OUT_OF_MEMORY;
    }
    if (!s->problem.is_module) {
        return KDTR_OK;
    }
    s->problem.args.q_latent = s->q_latent;
    s->problem.args.q_latent_stride[0] = (int64_t)c->num_heads * c->latent_dim;
    s->problem.args.q_latent_stride[1] = c->latent_dim;
    int32_t status =
        kdtr_absorb_query(c->row_capacity, c->num_heads, (int32_t)s->problem.q_nope.shape[2],
                          (int32_t)s->problem.module_output.shape[2], c->latent_dim,
                          s->problem.q_nope.data, s->problem.kv_b_proj.data, s->q_latent);
    if (status != KDTR_OK) {
        snprintf(error->text, sizeof error->text, "its sizes are beyond what can be absorbed");
        snprintf(error->field, sizeof error->field, "kv_b_proj");
        error->code = status;
    }
    return status;
}

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec / 1000000000.0;
}

int32_t tool_open(struct tool_session *s, kdtr_error *error) {
    int32_t status = kdtr_bundle_open(s->path, &s->bundle, error);
    s->problem.struct_size = sizeof s->problem;
    status = status != KDTR_OK ? status : kdtr_bundle_problem(s->bundle, &s->problem, error);
    return status != KDTR_OK ? status : tool_open_context(s, error);
}

int32_t tool_execute(struct tool_session *s, kdtr_error *error) {
    int32_t status = prepare(s, error);
    if (status != KDTR_OK) {
        return status;
    }
    kdtr_plan_config config = s->problem.config;
    config.implementation = s->naive ? KDTR_IMPLEMENTATION_NAIVE : KDTR_IMPLEMENTATION_REFERENCE;
    config.num_threads = s->threads;
    status = kdtr_plan_create(s->context, &config, &s->plan, error);
    if (status != KDTR_OK) {
        return status;
    }
    int terminal = isatty(STDERR_FILENO);
    if (terminal) {
        fprintf(stderr, "verifying %lld rows x %d heads x up to %lld tokens ...",
                (long long)config.row_capacity, config.num_heads,
                (long long)config.max_prefix_len + config.max_nodes);
        fflush(stderr);
    }
    double start = now();
    status = tool_run(s, error);
    if (terminal) {
        fprintf(stderr, "\r\033[K");
    }
    if (status == KDTR_OK) {
        printf("%s: case %s on %s, %.3f s\n", s->path, kdtr_bundle_name(s->bundle),
               kdtr_context_device_name(s->context), now() - start);
    }
    return status;
}

void tool_close(struct tool_session *s) {
    free(s->o);
    free(s->lse);
    free(s->q_latent);
    kdtr_plan_destroy(s->plan);
    kdtr_context_destroy(s->context);
    kdtr_bundle_close(s->bundle);
}

int tool_verify(int argc, char **argv) {
    struct tool_session s = {0};
    kdtr_error error = {0};
    int code = parse_arguments(argc, argv, &s);
    if (code != TOOL_AGREE) {
        return code;
    }
    if (tool_open(&s, &error) == KDTR_OK && tool_execute(&s, &error) == KDTR_OK) {
        tool_draw_trees(&s, NULL);
        code = tool_compare(&s, &error);
    } else {
        code = TOOL_BAD_INPUT;
    }
    if (code == TOOL_BAD_INPUT) {
        tool_fail(s.path, &error);
    }
    tool_close(&s);
    return code;
}
