// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * What gates that read committed result files share: which file, whether it is of the present
 * sources, and the lines of the log that say so where it is not.
 */
#ifndef TESTS_GATE_RESULTS_H
#define TESTS_GATE_RESULTS_H

#include "judge.h"

/** The card that the limits are for, as file names spell it. */
#define GATE_GPU "nvidia-h200"

/** What a gate is called with. */
struct gate_arguments {
    const char *folder;  /**< Of the result files. */
    const char *limits;  /**< File of limits. */
    const char *sources; /**< SHA-256 of the sources of this tree. */
};

/** A file and what is wrong with it. */
struct gate_file {
    struct result_file file;  /**< What was read. */
    int32_t found;            /**< enum result_found. */
    char error[RESULT_ERROR]; /**< Why it was not, if it was not found. */
};

/**
 * Takes a program's arguments: FOLDER LIMITS SHA256.
 *
 * @param count     of them, the program's name included
 * @param values    they
 * @param arguments filled
 * @return 0, or 1 with a line on stderr
 */
int gate_parse(int count, char **values, struct gate_arguments *arguments);

/**
 * Opens the newest file of a kind. Where there is none, or one of other sources, prints the line
 * "skip ..." or "stale ..." that the summary shows, which is neither a pass nor a failure.
 *
 * @param gate      ID
 * @param what      "bench" or "peers"
 * @param arguments of the program
 * @param out       where the line goes
 * @param opened    filled; result_free releases its file
 * @return 1 if the gate must run, also where the file is broken; 0 if it cannot
 */
int gate_open(const char *gate, const char *what, const struct gate_arguments *arguments, FILE *out,
              struct gate_file *opened);

/**
 * Reads a file of limits.
 *
 * @param path   file
 * @param limits BENCH_MAX_LIMITS entries
 * @return how many, or -1
 */
int32_t gate_limits(const char *path, struct bench_limit *limits);

/** A judgement: one of judge.h. */
typedef void gate_judge(const struct result_file *file, const struct bench_limit *limits,
                        int32_t count, struct judge_sheet *sheet);

/**
 * Judges an opened file and asserts that nothing was found: for a Check test.
 *
 * @param gate      ID
 * @param judge     which judgement
 * @param opened    by gate_open
 * @param arguments of the program
 */
void gate_assert(const char *gate, gate_judge *judge, const struct gate_file *opened,
                 const struct gate_arguments *arguments);

#endif
