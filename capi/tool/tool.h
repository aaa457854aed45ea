// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What the sources of the command-line tool share. The tool is written on the public ABI alone.
 */
#ifndef CAPI_TOOL_TOOL_H
#define CAPI_TOOL_TOOL_H

#include "kdtr_bundle.h"

/** Exit codes. */
enum tool_exit {
    TOOL_AGREE = 0,    /**< Everything agrees, or the command did its work. */
    TOOL_MISMATCH = 1, /**< A result is not what was expected. */
    TOOL_BAD_INPUT = 2 /**< Bad input or usage. */
};

/** A command: its arguments follow its name. @param argc count @param argv them @return exit */
typedef int tool_command(int argc, char **argv);

tool_command tool_gen;      /**< `kdtr gen` */
tool_command tool_info;     /**< `kdtr info` */
tool_command tool_verify;   /**< `kdtr verify` */
tool_command tool_step;     /**< `kdtr step` */
tool_command tool_selftest; /**< `kdtr selftest` */
tool_command tool_bench;    /**< `kdtr bench` */
tool_command tool_report;   /**< `kdtr report` */
tool_command tool_help;     /**< `kdtr help` */

/**
 * Reports an error of the library on one line.
 * @param subject file or case that it is about
 * @param error   what the library filled
 * @return TOOL_BAD_INPUT
 */
int tool_fail(const char *subject, const kdtr_error *error);

/**
 * Reports wrong usage on one line and points to the help.
 * @param command command, or NULL
 * @param format  printf format
 * @return TOOL_BAD_INPUT
 */
int tool_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Prints the help of a command. @param command its name, or NULL @return 1 if there is none */
int tool_print_help(const char *command);

/** Host memory that a run reads and that is not of the bundle. */
struct tool_array {
    const void *data; /**< Its begin; NULL where there is none. */
    size_t bytes;     /**< Its size. */
};

/** Most of them in a run. */
#define TOOL_ARRAYS 3

/** A problem with its bundle, bound to a context: what `verify` works on. */
struct tool_session {
    const char *path;                      /**< File name. */
    kdtr_bundle *bundle;                   /**< The bundle. */
    kdtr_problem problem;                  /**< Its problem. */
    kdtr_context *context;                 /**< Where it runs. */
    kdtr_plan *plan;                       /**< Plan of the run. */
    int32_t threads;                       /**< --threads, 0 if not given. */
    int naive;                             /**< 1: --backend naive. */
    int exact;                             /**< 1: the CUDA context checks for exact mode. */
    void *cuda_library;                    /**< Handle of libkdtr_cuda, or NULL. */
    float *o;                              /**< [R,H,L] our output. */
    float *lse;                            /**< [R,H] our output. */
    float *q_latent;                       /**< Module problem: [R,H,L] absorbed queries. */
    struct tool_array arrays[TOOL_ARRAYS]; /**< What the run reads besides the bundle. */
};

/** Plain decodes of the nodes of a problem: a request a node, all that it sees in its prefix. */
struct tool_decodes {
    kdtr_problem problem;                  /**< The decodes, with the rows of the nodes. */
    int32_t *node_indptr;                  /**< [nodes+1] a row each. */
    int64_t *indptr;                       /**< [nodes+1] */
    int64_t *slots;                        /**< What each node sees, in order. */
    struct tool_array arrays[TOOL_ARRAYS]; /**< These three. */
};

/**
 * Makes the decodes of a problem.
 * @param problem a problem of a bundle, which must outlive the decodes
 * @param decodes filled, for tool_free_decodes; empty on failure
 * @param error   filled on failure
 * @return OK, UNSUPPORTED (a row table) or OUT_OF_MEMORY
 */
int32_t tool_make_decodes(const kdtr_problem *problem, struct tool_decodes *decodes,
                          kdtr_error *error);

/** Releases decodes. @param decodes decodes; may be empty */
void tool_free_decodes(struct tool_decodes *decodes);

/**
 * Opens the context: the CPU's, or the first CUDA device through libkdtr_cuda.
 * @param session naive and exact are read; context and cuda_library are set
 * @param error   filled on failure
 * @return kdtr_status
 */
int32_t tool_open_context(struct tool_session *session, kdtr_error *error);

/**
 * Copies the arguments to the context's memory, runs, and copies o and lse back.
 * @param session o, lse and plan are set
 * @param error   filled on failure
 * @return kdtr_status
 */
int32_t tool_run(struct tool_session *session, kdtr_error *error);

/** What a step shows of a request's nodes. */
struct tool_columns {
    const int64_t *tokens;         /**< [Q] token of each node. */
    const float *score;            /**< [Q] score of each node. */
    const unsigned char *accepted; /**< [Q] 1: on the accepted path. */
};

/**
 * Opens bundle, problem and context of a session.
 * @param session path is set; naive is read
 * @param error   filled on failure
 * @return kdtr_status
 */
int32_t tool_open(struct tool_session *session, kdtr_error *error);

/**
 * Plans and runs an open session, telling a terminal about it meanwhile, and prints a line.
 * @param session after tool_open
 * @param error   filled on failure
 * @return kdtr_status
 */
int32_t tool_execute(struct tool_session *session, kdtr_error *error);

/** Releases what a session holds. @param session a session, opened or not */
void tool_close(struct tool_session *session);

/**
 * Draws the trees of the first requests with each node's lse: by the bundle's parents or, without
 * them, by the mask. A mask that is no tree is said to be none, and its nodes are listed.
 * @param session after tool_run
 * @param columns [B] what is shown beside the lse, or NULL
 */
void tool_draw_trees(const struct tool_session *session, const struct tool_columns *columns);

/**
 * Compares with the bundle's expected tensors and prints a line for each.
 * @param session after tool_run
 * @param error   filled on failure
 * @return TOOL_AGREE, TOOL_MISMATCH, or TOOL_BAD_INPUT with `error` filled
 */
int tool_compare(const struct tool_session *session, kdtr_error *error);

/**
 * Writes a shape as text, such as "[12,4,512]".
 * @param tensor a tensor
 * @param text   where to; 96 bytes hold any shape
 * @param size   bytes of text
 * @return text
 */
const char *tool_shape(const kdtr_tensor *tensor, char *text, size_t size);

/**
 * Takes paths out of a line: what begins with one of some folders, or with a '/' at the start of a
 * word. A '(path)' stands for each.
 * @param line    a line
 * @param folders absolute folders, whose names may have blanks; an empty one counts for nothing
 * @param count   how many
 * @return the line without paths, to be freed by the caller; NULL without memory
 */
char *tool_hide_paths(const char *line, const char *const *folders, int count);

/** Whether standard output takes colours. @return 1 on a terminal without NO_COLOR */
int tool_colour(void);

#endif
