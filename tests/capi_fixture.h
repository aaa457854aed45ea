// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the tests of the C ABI share: a named case ready to run on the CPU, outputs and workspace
 * poisoned; the check of a refusal; and small plans.
 */
#ifndef TESTS_CAPI_FIXTURE_H
#define TESTS_CAPI_FIXTURE_H

#include "kdtr_bundle.h"

#define CAPI_POISON 0xa5 /**< Every byte of memory that a refused call must leave alone. */

/** A named case with a plan, arguments, outputs and a workspace. */
struct capi_fixture {
    kdtr_context *context;   /**< CPU context. */
    kdtr_bundle *bundle;     /**< The case. */
    kdtr_problem problem;    /**< Its problem. */
    kdtr_plan_config config; /**< Its configuration, to be changed before capi_replan. */
    kdtr_plan *plan;         /**< A plan of config. */
    kdtr_run_args args;      /**< Its arguments, o and lse set, device_status NULL. */
    unsigned char *o;        /**< o_bytes. */
    size_t o_bytes;          /**< R * H * L float32, and as much again for padded strides. */
    float *lse;              /**< [R,H] */
    size_t lse_bytes;        /**< R * H * 4. */
    void *workspace;         /**< workspace_bytes. */
    size_t workspace_bytes;  /**< What the plan asks for. */
};

/** One field of a struct that is set to something else. */
struct capi_mutation {
    const char *what;  /**< For the message. */
    const char *field; /**< Expected kdtr_error.field. */
    int32_t code;      /**< Expected status. */
    size_t offset;     /**< Of the field. */
    size_t size;       /**< Of the field: 4 or 8. */
    int add;           /**< 1: value is added to the field instead. */
    int64_t value;     /**< New value; its low bytes where size is 4. */
};

/** Mutation of a member: CAPI_SET(struct, member, value, field, code). */
#define CAPI_SET(type, member, value, field, code)                                                 \
    {                                                                                              \
#member " = " #value, field, code, offsetof(type, member), sizeof(((type *)0)->member), 0, \
            value                                                                                  \
    }
/** Mutation of a pointer: moved by some bytes. */
#define CAPI_MOVE(type, member, by, field)                                        \
    {                                                                             \
#member " moved by " #by, field, KDTR_MISALIGNED, offsetof(type, member), \
            sizeof(((type *)0)->member), 1, by                                    \
    }

/** Changes one field. @param target the struct @param mutation what */
void capi_mutate(void *target, const struct capi_mutation *mutation);

/** A plan of two heads, four rows and a chain, which is none of flash. @return it */
kdtr_plan_config capi_small_config(void);

/** The same in the sizes and types of the flash kernel. @return it */
kdtr_plan_config capi_flash_config(void);

/**
 * Generates a case and prepares it.
 * @param f       to fill
 * @param name    name of the case
 * @param threads of the plan
 */
void capi_open(struct capi_fixture *f, const char *name, int32_t threads);

/** Makes plan and workspace anew from f->config and poisons outputs and workspace. @param f it */
void capi_replan(struct capi_fixture *f);

/** Poisons outputs and workspace. @param f it */
void capi_poison(struct capi_fixture *f);

/** Runs f->args and asserts success. @param f it */
void capi_run(struct capi_fixture *f);

/** Releases everything. @param f it */
void capi_close(struct capi_fixture *f);

/** Fills memory with CAPI_POISON. @param memory it @param bytes its size */
void capi_fill(void *memory, size_t bytes);

/** Whether every byte is CAPI_POISON. @param memory it @param bytes its size @return 1 if so */
int capi_untouched(const void *memory, size_t bytes);

/**
 * Asserts that a call was refused with this code, and that its error record says so on one line.
 *
 * @param what   for the message
 * @param status what the call returned
 * @param error  what it filled
 * @param code   expected
 * @param field  expected
 */
void capi_refused(const char *what, int32_t status, const kdtr_error *error, int32_t code,
                  const char *field);

#endif
