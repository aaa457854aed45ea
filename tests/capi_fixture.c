// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the tests of the C ABI share.
 */
#include "capi_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "check_main.h"

void capi_mutate(void *target, const struct capi_mutation *mutation) {
    unsigned char *at = (unsigned char *)target + mutation->offset;
    ck_assert(mutation->size == 4 || mutation->size == 8);
    if (mutation->size == 4) {
        int32_t value = (int32_t)mutation->value;
        memcpy(at, &value, sizeof value);
        return;
    }
    int64_t value = 0;
    if (mutation->add) {
        memcpy(&value, at, sizeof value);
    }
    value += mutation->value;
    memcpy(at, &value, sizeof value);
}

void capi_fill(void *memory, size_t bytes) {
    memset(memory, CAPI_POISON, bytes);
}

int capi_untouched(const void *memory, size_t bytes) {
    const unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != CAPI_POISON) {
            return 0;
        }
    }
    return 1;
}

void capi_refused(const char *what, int32_t status, const kdtr_error *error, int32_t code,
                  const char *field) {
    ck_assert_msg(status == code, "%s: %s, not %s (%s: %s)", what, kdtr_status_name(status),
                  kdtr_status_name(code), status != KDTR_OK ? error->field : "-",
                  status != KDTR_OK ? error->text : "-");
    ck_assert_msg(error->code == code, "%s: the record has code %d", what, error->code);
    ck_assert_msg(memchr(error->field, '\0', sizeof error->field) != NULL &&
                      strcmp(error->field, field) == 0,
                  "%s: the field is %.40s, not %s", what, error->field, field);
    ck_assert_msg(memchr(error->text, '\0', sizeof error->text) != NULL && error->text[0] != '\0' &&
                      strchr(error->text, '\n') == NULL,
                  "%s: the text is not one line", what);
}

kdtr_plan_config capi_small_config(void) {
    return (kdtr_plan_config){.struct_size = sizeof(kdtr_plan_config),
                              .batch = 1,
                              .num_heads = 2,
                              .latent_dim = 32,
                              .rope_dim = 8,
                              .max_nodes = 4,
                              .mask_mode = KDTR_MASK_CHAIN,
                              .q_dtype = KDTR_F32,
                              .kv_dtype = KDTR_F32,
                              .o_dtype = KDTR_F32,
                              .length_dtype = KDTR_I32,
                              .slot_dtype = KDTR_I32,
                              .row_capacity = 4,
                              .max_prefix_len = 10,
                              .scale = 1.0f};
}

kdtr_plan_config capi_flash_config(void) {
    kdtr_plan_config config = capi_small_config();
    config.latent_dim = 512;
    config.rope_dim = 64;
    config.q_dtype = config.kv_dtype = KDTR_BF16;
    return config;
}

void capi_open(struct capi_fixture *f, const char *name, int32_t threads) {
    memset(f, 0, sizeof *f);
    kdtr_error error = {0};
    ck_assert_msg(kdtr_case_generate(name, &f->bundle, &error) == KDTR_OK, "%s: %s", name,
                  error.text);
    f->problem.struct_size = sizeof f->problem;
    ck_assert_int_eq(kdtr_bundle_problem(f->bundle, &f->problem, &error), KDTR_OK);
    ck_assert_int_eq(kdtr_context_create_cpu(&f->context, &error), KDTR_OK);
    f->config = f->problem.config;
    f->config.num_threads = threads;
    f->args = f->problem.args;
    size_t pairs = (size_t)f->config.row_capacity * (size_t)f->config.num_heads;
    f->o_bytes = 2 * pairs * (size_t)f->config.latent_dim * sizeof(float);
    f->lse_bytes = pairs * sizeof(float);
    f->o = malloc(f->o_bytes);
    f->lse = malloc(f->lse_bytes);
    ck_assert(f->o != NULL && f->lse != NULL);
    f->args.o = f->o;
    f->args.lse = f->lse;
    capi_replan(f);
}

void capi_replan(struct capi_fixture *f) {
    kdtr_error error = {0};
    kdtr_memory_free(f->context, f->workspace);
    kdtr_plan_destroy(f->plan);
    ck_assert_msg(kdtr_plan_create(f->context, &f->config, &f->plan, &error) == KDTR_OK, "%s: %s",
                  error.field, error.text);
    f->workspace_bytes = kdtr_plan_workspace_bytes(f->plan);
    ck_assert_int_eq(kdtr_memory_alloc(f->context, f->workspace_bytes, &f->workspace, &error),
                     KDTR_OK);
    capi_poison(f);
}

void capi_poison(struct capi_fixture *f) {
    capi_fill(f->o, f->o_bytes);
    capi_fill(f->lse, f->lse_bytes);
    capi_fill(f->workspace, f->workspace_bytes);
}

void capi_run(struct capi_fixture *f) {
    kdtr_error error;
    capi_fill(&error, sizeof error);
    int32_t status = kdtr_run(f->plan, &f->args, f->workspace, f->workspace_bytes, NULL, &error);
    ck_assert_msg(status == KDTR_OK, "%s: %s", error.field, error.text);
    ck_assert_msg(capi_untouched(&error, sizeof error), "success changed the error record");
}

void capi_close(struct capi_fixture *f) {
    kdtr_memory_free(f->context, f->workspace);
    kdtr_plan_destroy(f->plan);
    kdtr_context_destroy(f->context);
    kdtr_bundle_close(f->bundle);
    free(f->o);
    free(f->lse);
}
