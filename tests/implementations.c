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
#include "flash_model.h"
#include "truth_f64.h"

#ifdef KDTR_TEST_CUDA
#include "kdtr_cuda.h"
#ifdef KDTR_TEST_EMULATED
#include "simt/simt_runtime.h"
#endif

/** The context of the first CUDA device, or of the emulator. */
static int32_t create_cuda(kdtr_context **context, kdtr_error *error) {
#ifdef KDTR_TEST_EMULATED
    /* Threads in their natural order hide a missing barrier: thread 0 would always be first. */
    simt_set_seed(test_seed());
#endif
    return kdtr_cuda_context_create(0, context, error);
}

/** The same, for plans in exact mode. */
static int32_t create_exact(kdtr_context **context, kdtr_error *error) {
#ifdef KDTR_TEST_EMULATED
    simt_set_seed(test_seed());
#endif
    return kdtr_cuda_context_create_flags(0, KDTR_CUDA_CONTEXT_EXACT, context, error);
}
#endif

#ifdef KDTR_TEST_EMULATED
#define CUDA_EMULATED 1
#else
#define CUDA_EMULATED 0
#endif

/** The reference comes first. */
static const struct test_implementation implementations[] = {
    {"reference", kdtr_context_create_cpu, NULL, 0, 1, 0, KDTR_IMPLEMENTATION_REFERENCE,
     TEST_CLASS_EQUAL_BITS, 0},
#ifdef KDTR_TEST_CUDA
    {"naive", create_cuda, NULL, 0, 0, CUDA_EMULATED, KDTR_IMPLEMENTATION_NAIVE,
     TEST_CLASS_EQUAL_BITS, 0},
    {"flash", create_cuda, NULL, 0, 0, CUDA_EMULATED, KDTR_IMPLEMENTATION_FLASH, TEST_CLASS_BOUND,
     0},
    {"flash exact", create_exact, NULL, 0, 0, CUDA_EMULATED, KDTR_IMPLEMENTATION_FLASH,
     TEST_CLASS_BOUND, KDTR_PLAN_EXACT},
#else
    {"flash model", NULL, flash_model_run, FLASH_OPTION(3, 0, FLASH_RIGHT), 0, 0,
     KDTR_IMPLEMENTATION_FLASH, TEST_CLASS_BOUND, 0},
#endif
};

static int32_t selected = TEST_CLASS_EQUAL_BITS;

void test_select_class(int32_t comparison) {
    selected = comparison;
}

int32_t test_selected_class(void) {
    return selected;
}

void test_fit_record(struct test_case *record) {
    if (selected == TEST_CLASS_BOUND) {
        record->latent_dim = 512;
        record->rope_dim = 64;
        record->bf16_q = record->bf16_kv = 1;
        record->padding *= 8;
    }
}

/** The index-th implementation of the selected class, or NULL. */
static const struct test_implementation *find(int32_t index) {
    for (size_t i = 0; i < sizeof implementations / sizeof implementations[0]; i++) {
        if (implementations[i].comparison == selected && index-- == 0) {
            return &implementations[i];
        }
    }
    return NULL;
}

int32_t test_implementation_count(void) {
    int32_t count = 0;
    while (find(count) != NULL) {
        count++;
    }
    return count;
}

const struct test_implementation *test_implementation_at(int32_t index) {
    return find(index);
}

int test_takes(const struct test_implementation *implementation, const struct ref_attention *call) {
    int any =
        implementation->host_run != NULL || implementation->comparison == TEST_CLASS_EQUAL_BITS;
    return any || (call->latent_dim == 512 && call->rope_dim == 64 && call->q_dtype == REF_BF16 &&
                   call->kv_dtype == REF_BF16);
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

void test_poison(int32_t poison, unsigned char *memory, size_t bytes) {
    static uint64_t runs = 0;
    uint32_t words[1021]; /* a prime: no structure has such a period */
    int nan = poison == TEST_POISON_IN_TURN ? runs % 2 == 0 : poison == TEST_POISON_NAN;
    uint64_t most = 2 + runs / 2 % 3;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        words[i] = nan ? UINT32_MAX : (uint32_t)(test_hash(test_seed(), 8, runs, i) % most);
    }
    for (size_t at = 0; at < bytes; at += sizeof words) {
        memcpy(memory + at, words, bytes - at < sizeof words ? bytes - at : sizeof words);
    }
    runs++;
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
