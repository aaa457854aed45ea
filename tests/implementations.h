// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * The implementations under test, and one run of one of them: arrays are copied to the memory of
 * its context, outputs and workspace are poisoned, and whatever a run must not touch is checked
 * afterwards.
 */
#ifndef TESTS_IMPLEMENTATIONS_H
#define TESTS_IMPLEMENTATIONS_H

#include "kdtr.h"
#include "make_problem.h"

/** Attention of a whole call on host memory, for implementations outside the ABI. */
typedef void test_host_run(const struct ref_attention *call, int32_t option);

/** What its results are compared with. */
enum test_class {
    TEST_CLASS_EQUAL_BITS = 0, /**< The reference, bit for bit; so the reference's bound holds. */
    TEST_CLASS_BOUND = 1       /**< Truth, with the bound of the flash kernel. */
};

/** An implementation. It has either `create` or `host_run`. */
struct test_implementation {
    const char *name; /**< For messages. */
    /** Creates its context. */
    int32_t (*create)(kdtr_context **context, kdtr_error *error);
    test_host_run *host_run; /**< Called on host memory. */
    int32_t option;          /**< Argument of host_run. */
    int32_t num_threads;     /**< num_threads of the plan. */
    int32_t emulated;        /**< 1: slow; see test_affordable. */
    int32_t id;              /**< kdtr_implementation that its plans ask for. */
    int32_t comparison;      /**< enum test_class. */
    uint32_t flags;          /**< kdtr_plan_flag bits of its plans. */
};

/**
 * Selects the class of implementations that count and at give. Without a call it is EQUAL_BITS.
 * A suite calls it once, in main.
 *
 * @param comparison enum test_class
 */
void test_select_class(int32_t comparison);

/** The class that is selected. @return enum test_class */
int32_t test_selected_class(void);

/**
 * Makes a record one that the implementations of the selected class take: for BOUND a latent of
 * 512, a rope key of 64, bfloat16 queries and cache, strides of multiples of 8.
 *
 * @param record parameters, changed in place
 */
void test_fit_record(struct test_case *record);

/** Number of implementations that suites iterate, of the selected class. @return the number */
int32_t test_implementation_count(void);

/**
 * An implementation of the table.
 *
 * @param index 0 to test_implementation_count() - 1; 0 of EQUAL_BITS is the reference
 * @return the implementation
 */
const struct test_implementation *test_implementation_at(int32_t index);

/**
 * Whether a case is small enough for an implementation: an emulated one is slow.
 *
 * @param implementation the implementation
 * @param call           a call
 * @return 1 if it should be run
 */
int test_affordable(const struct test_implementation *implementation,
                    const struct ref_attention *call);

/**
 * Whether an implementation takes the dimensions and types of a call.
 *
 * @param implementation the implementation
 * @param call           a call
 * @return 1 if so
 */
int test_takes(const struct test_implementation *implementation, const struct ref_attention *call);

/** What the workspace holds before a run, which must not matter. */
enum test_poison {
    TEST_POISON_IN_TURN = 0, /**< The two below, from run to run of a process. */
    TEST_POISON_NAN = 1,     /**< 0xff: every float is a NaN, every integer -1. */
    TEST_POISON_COUNTS = 2   /**< Integers of 0 to 3, others in each run: what is taken for a number
                                  of requests, rows or items looks right. */
};

/** An implementation with its context. Open it inside a test: CUDA does not survive a fork. */
struct test_session {
    const struct test_implementation *implementation; /**< What runs. */
    kdtr_context *context;                            /**< NULL for host_run. */
    int32_t poison;                                   /**< enum test_poison, of the next runs. */
    char text[300];                                   /**< Why the last call failed. */
};

/**
 * Opens a session.
 *
 * @param implementation what to run
 * @param session        filled; test_session_close releases it
 * @return 0, or 1 with session->text set
 */
int test_session_open(const struct test_implementation *implementation,
                      struct test_session *session);

/** Closes a session. @param session an open session */
void test_session_close(struct test_session *session);

/**
 * Poisons a workspace.
 *
 * @param poison enum test_poison
 * @param memory the workspace, on the host
 * @param bytes  its size
 */
void test_poison(int32_t poison, unsigned char *memory, size_t bytes);

/** What a run gave, widened to float32 and without strides. */
struct test_outputs {
    int64_t rows;     /**< R. */
    int64_t heads;    /**< H. */
    int64_t columns;  /**< L. */
    int64_t batch;    /**< B. */
    float *o;         /**< [R,H,L]; bfloat16 is widened, which keeps its bits. */
    float *lse;       /**< [R,H], or NULL if the problem omits it. */
    uint32_t *status; /**< [B] bits that the run set, or NULL. */
};

/**
 * Runs a problem.
 *
 * Fails also if the run wrote outside its outputs (guards before and after, gaps of strides), into
 * an input or beyond its workspace, or cleared a bit of device_status.
 *
 * @param session an open session
 * @param problem the problem
 * @param outputs filled on success; test_outputs_free releases it
 * @return 0, or 1 with session->text set
 */
int test_run(struct test_session *session, const struct test_problem *problem,
             struct test_outputs *outputs);

/** Releases outputs. @param outputs outputs; may be zeroed */
void test_outputs_free(struct test_outputs *outputs);

#endif
