// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Table of implementations, on the public ABI alone.
 */
#include "implementations.h"

#include <stdio.h>
#include <string.h>

#include "bounds.h"
#include "check_main.h"
#include "truth_f64.h"

#ifdef KDTR_TEST_CUDA
#include "kdtr_cuda.h"
#ifdef KDTR_TEST_EMULATED
#include "simt/simt_runtime.h"
#endif

/** The context of the first CUDA device, or of the emulator. */
static int32_t create_naive(kdtr_context **context, kdtr_error *error) {
#ifdef KDTR_TEST_EMULATED
    /* Threads in their natural order hide a missing barrier: thread 0 would always be first. */
    simt_set_seed(test_seed());
#endif
    return kdtr_cuda_context_create(0, context, error);
}
#endif

/** From the weakest to the strongest; the reference comes first. */
static const struct test_implementation implementations[] = {
    {"reference", kdtr_context_create_cpu, NULL, 0, 1, 0},
#ifdef KDTR_TEST_CUDA
#ifdef KDTR_TEST_EMULATED
    {"naive", create_naive, NULL, 0, 0, 1},
#else
    {"naive", create_naive, NULL, 0, 0, 0},
#endif
#endif
};

int32_t test_implementation_count(void) {
    return (int32_t)(sizeof implementations / sizeof implementations[0]);
}

const struct test_implementation *test_implementation_at(int32_t index) {
    return &implementations[index];
}

int test_affordable(const struct test_implementation *implementation,
                    const struct ref_attention *call) {
    if (!implementation->emulated) {
        return 1;
    }
    int64_t work = 0;
    for (int32_t b = 0; b < call->batch; b++) {
        struct truth_request q;
        truth_request_decode(call, b, &q);
        for (int64_t i = 0; i < q.nodes * q.tokens && q.active; i++) {
            work += q.visible[i];
        }
        truth_request_free(&q);
    }
    return work * call->num_heads <=
           (test_scale_is_small() ? TEST_EMULATED_WORK_SMALL : TEST_EMULATED_WORK);
}

int test_session_open(const struct test_implementation *implementation,
                      struct test_session *session) {
    memset(session, 0, sizeof *session);
    session->implementation = implementation;
    if (implementation->create == NULL) {
        return 0;
    }
    kdtr_error error;
    memset(&error, 0, sizeof error);
    int32_t status = implementation->create(&session->context, &error);
    if (status != KDTR_OK) {
        snprintf(session->text, sizeof session->text, "%s: no context: %s %s: %s",
                 implementation->name, kdtr_status_name(status), error.field, error.text);
        return 1;
    }
    return 0;
}

void test_session_close(struct test_session *session) {
    if (session->context != NULL) {
        kdtr_context_destroy(session->context);
        session->context = NULL;
    }
}
