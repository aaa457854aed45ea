// SPDX-License-Identifier: Apache-2.0
/**
 * @file
 * Reader of result files of schema 1 (spec/measurement.md). What it returns has passed every check
 * of that page, so that gates, model and charts need none of their own.
 */
#ifndef BENCH_RESULT_FILE_H
#define BENCH_RESULT_FILE_H

#include <stddef.h>

#include "gpu_points.h"
#include "gpu_statistics.h"

/** Bytes of a short name with its end: op, implementation, mask. */
#define RESULT_NAME 32
/** Bytes of a fact of the environment with its end. */
#define RESULT_TEXT 160
/** Bytes of a longer text with its end: method, versions, a note. */
#define RESULT_LONG_TEXT 2048
/** Bytes of a path with its end. */
#define RESULT_PATH 512
/** Bytes of the text of an error with its end. */
#define RESULT_ERROR 768
/** Most rows of a file. */
#define RESULT_MOST_ROWS 4096

/** One row of a file. What its op does not have is empty, 0 or, where it says so, below 0. */
struct result_row {
    char op[RESULT_NAME];             /**< "verify", "served" or "accuracy". */
    char implementation[RESULT_NAME]; /**< E.g. "kdtr_flash". */
    char mask[RESULT_NAME];           /**< "tree", "tree_parents", "causal" or "none". */
    char layout[RESULT_NAME];         /**< "random" or "contiguous". */
    char set[RESULT_NAME];            /**< "table", "sweep_n", ...; empty in older files. */
    char note[RESULT_LONG_TEXT];      /**< Limits of a peer. */
    struct bench_point point;         /**< B, H, Q, N. */
    int32_t row_stride_bytes;         /**< From cache row to cache row. */
    int32_t page_size;                /**< Rows of a page; 0 where it is not said. */
    int32_t budget;                   /**< Of the draft tree; 0 where it is not said. */
    int32_t layers;                   /**< Calls of a captured graph. */
    int32_t seed;                     /**< Of the inputs of an accuracy row. */
    struct bench_summary time;        /**< Microseconds, and how many samples. */
    double floor_us;                  /**< 0 where it is unknown. */
    double max_abs_error;             /**< Against float64; below 0 where it is not said. */
    double relative_error;            /**< Relative L2, against float64. */
    double lse_error;                 /**< Below 0 where it is not said. */
    double workspace_bytes;           /**< Below 0 where it is not said. */
    double accepted_length;           /**< Tokens that a verify call is assumed to accept. */
    double tokens_per_s;              /**< accepted_length by the time of all layers. */
};

/** A file that was read. */
struct result_file {
    char path[RESULT_PATH];           /**< Where it was read from. */
    char gpu[RESULT_TEXT];            /**< Name of the card. */
    char driver[RESULT_TEXT];         /**< Version of its driver. */
    char commit[RESULT_TEXT];         /**< Of the tree that was measured. */
    char sources_sha256[RESULT_TEXT]; /**< Of its sources, 64 digits. */
    char date[RESULT_TEXT];           /**< YYYY-MM-DD. */
    char method[RESULT_LONG_TEXT];    /**< How it was measured. */
    char peers[RESULT_LONG_TEXT];     /**< Versions of the peers; empty without any. */
    int32_t sms;                      /**< Multiprocessors. */
    double sm_clock_mhz;              /**< Their highest clock. */
    int32_t has_ceilings;             /**< 1 if the ceilings are there. */
    struct bench_ceilings ceilings;   /**< Of the same run. */
    struct result_row *rows;          /**< [count] */
    int32_t count;                    /**< Rows. */
};

/** What result_open_newest found. */
enum result_found {
    RESULT_FOUND = 0, /**< A file, which was read. */
    RESULT_NONE = 1,  /**< No file of that name. */
    RESULT_BAD = 2    /**< A file or folder that cannot be read, or that breaks a rule. */
};

/**
 * Reads a file.
 *
 * @param path  file
 * @param file  filled; result_free releases it, also after a failure
 * @param error RESULT_ERROR bytes; after a failure says what is wrong and where
 * @return 0, or 1 after a failure
 */
int result_read(const char *path, struct result_file *file, char *error);

/** Releases what result_read allocated. @param file the file; may be all zero */
void result_free(struct result_file *file);

/**
 * Reads the newest file of a kind: the one named date-gpu-what.json with the latest date. Date and
 * card in its environment must be those of its name.
 *
 * @param folder where to look
 * @param gpu    card as file names spell it, e.g. "nvidia-h200"
 * @param what   kind, e.g. "bench" or "peers"
 * @param file   filled; result_free releases it, whatever is returned
 * @param error  RESULT_ERROR bytes; filled unless RESULT_FOUND is returned
 * @return enum result_found
 */
int result_open_newest(const char *folder, const char *gpu, const char *what,
                       struct result_file *file, char *error);

/**
 * A card's name as file names spell it: lower case, blanks as dashes, other signs left out.
 *
 * @param gpu  name of the card
 * @param name RESULT_TEXT bytes, filled
 */
void result_gpu_name(const char *gpu, char *name);

/** Whether two points are the same. @param a one @param b the other @return 1 if they are */
int result_same_point(const struct bench_point *a, const struct bench_point *b);

/**
 * Finds a row.
 *
 * @param file  where
 * @param like  op, implementation, set, mask, layout that it must have, if they are not empty; its
 *              point, if B is above 0; its row_stride_bytes and seed, if they are above 0
 * @param after row after which to search, or NULL
 * @return the first such row, or NULL
 */
const struct result_row *result_find(const struct result_file *file, const struct result_row *like,
                                     const struct result_row *after);

#endif
