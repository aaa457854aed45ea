// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * A library to load before a program: plans in exact mode get another scale, so that their outputs
 * are wrong and everything else is right; with WRONG_PLAN_F32 in the environment only those of
 * float32 outputs, as `kdtr selftest` has and `kdtr bench` has not. For the scripts that test them.
 */
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "kdtr.h"

/** The signature of kdtr_plan_create. */
typedef int32_t plan_create(kdtr_context *, const kdtr_plan_config *, kdtr_plan **, kdtr_error *);

int32_t kdtr_plan_create(kdtr_context *context, const kdtr_plan_config *config, kdtr_plan **plan,
                         kdtr_error *error) {
    void *symbol = dlsym(RTLD_NEXT, "kdtr_plan_create");
    plan_create *create;
    memcpy(&create, &symbol, sizeof create); /* ISO C has no cast from object to function pointer */
    kdtr_plan_config changed = *config;
    int chosen = getenv("WRONG_PLAN_F32") == NULL || changed.o_dtype == KDTR_F32;
    if (chosen && (changed.flags & KDTR_PLAN_EXACT) != 0) {
        changed.scale *= 1.25f;
    }
    return create(context, &changed, plan, error);
}
